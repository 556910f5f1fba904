"""In a place that is not allowed nothing is stored, learned or answered."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, DIRECT, GROUP, engine_with, said
from people import NOON
from stored_rows import count, on, read
from tertulia.engine.behavior import Behavior
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Place
from tertulia.models import Scripted
from tertulia.platform import Change, Commanded, Deleted, Edited, PlaceMigrated, Reacted, Received, Stopped
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

ELSEWHERE = replace(GROUP, id="-200", title="Strangers")
TABLES = (
    "places titles authors names messages updates update_places commands reactions outbox runs place_events".split()
)


def here(*allowed: str, **changes: Any) -> Behavior:
    return replace(AT_ONCE, allowed_places=allowed or ("recorded:-100",), **changes)


async def rows(store: Store) -> dict[str, int]:
    return {table: number for table in TABLES if (number := await on(store, count, table))}


CHANGES: list[Change] = [
    Received(message=said("Gryag, hi", 1, place=ELSEWHERE)),
    Edited(message=said("Gryag, hi", 1, place=ELSEWHERE)),
    Deleted(place=ELSEWHERE, message_id="1"),
    Reacted(place=ELSEWHERE, message_id="1", author=ALICE, emojis=("👍",)),
    Commanded(message=said("/help", 1, place=ELSEWHERE), name="help"),
    Received(message=said("hi", 1, place=DIRECT, author=BOB)),
    Stopped(place=ELSEWHERE),
    PlaceMigrated(old=ELSEWHERE, new=replace(ELSEWHERE, id="-300")),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
async def test_nothing_of_another_place_is_stored_or_answered(store: Store, change: Change) -> None:
    platform, model = RecordedPlatform(), Scripted("Hi.")
    async with engine_with(model, platform, store=store, behavior=here()) as engine:
        new = await engine.inbox("recorded").apply([change], key="u1", raw=b"{}")
        await engine.settled()

    assert (new, platform.texts, model.prompts, await rows(store)) == (False, [], [], {})


async def test_it_is_logged_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async with engine_with(Scripted(), store=store, behavior=here()) as engine:
        for number in range(3):
            assert await engine.receive(said("Gryag, hi", number, place=ELSEWHERE)) is False

    assert [record.getMessage() for record in caplog.records] == [
        "nothing is stored or answered in recorded:-200, which behavior.allowed_places does not list"
    ]


async def test_what_an_update_says_of_an_allowed_place_is_stored_without_its_raw_form(store: Store) -> None:
    platform = RecordedPlatform()
    mixed = [*CHANGES[:1], Received(message=said("Gryag, hi", 2, place=GROUP))]
    async with engine_with(Scripted("Hi."), platform, store=store, behavior=here()) as engine:
        assert await engine.inbox("recorded").apply(mixed, key="u1", raw=b"{}") is True
        await engine.settled()

    raw = await on(store, read, "updates", "raw")
    assert (platform.texts, raw, (await rows(store))["places"]) == (["Hi."], [(None,)], 1)


@pytest.mark.parametrize(
    ("allowed", "place", "author", "answered"),
    [
        (("recorded:-100",), GROUP, BOB, True),
        (("recorded:-100",), replace(GROUP, thread="5"), BOB, True),
        (("telegram:-100",), GROUP, BOB, False),
        (("direct",), DIRECT, BOB, True),
        (("direct",), GROUP, ALICE, False),
        (("direct", "recorded:-100"), GROUP, BOB, True),
        (("recorded:-100",), DIRECT, BOB, False),
        (("recorded:-100",), DIRECT, ALICE, True),  # an owner
        (("recorded:7",), DIRECT, BOB, True),
        (("recorded:-200",), GROUP, ALICE, False),
    ],
)
async def test_which_places_are_allowed(
    store: Store, allowed: tuple[str, ...], place: Place, author: Author, answered: bool
) -> None:
    platform, behavior = RecordedPlatform(), here(*allowed, owners=("recorded:1",))
    async with engine_with(Scripted("Hi."), platform, store=store, behavior=behavior) as engine:
        await engine.inbox("recorded").apply(
            [Received(message=said("Gryag, hi", 1, place=place, author=author))], key="1"
        )
        await engine.settled()

    assert platform.texts == (["Hi."] if answered else [])


async def test_a_group_that_moves_is_allowed_by_each_of_its_ids_also_after_a_restart(store: Store) -> None:
    platform, moved = RecordedPlatform(), replace(GROUP, id="-100500")
    async with engine_with(Scripted("One."), platform, store=store, behavior=here()) as engine:
        inbox = engine.inbox("recorded")
        assert await inbox.apply([PlaceMigrated(old=GROUP, new=moved)], key="u1") is True
        await inbox.apply([Received(message=said("Gryag, hi", 1, place=moved))], key="u2")
        await engine.settled()
    async with engine_with(Scripted("Two."), platform, store=store, behavior=here()) as engine:
        await engine.inbox("recorded").apply([Received(message=said("Gryag?", 2, place=moved))], key="u3")
        await engine.settled()

    assert platform.texts == ["One.", "Two."]


async def test_what_waits_in_a_place_that_is_allowed_no_longer_is_not_answered(store: Store) -> None:
    platform = RecordedPlatform()
    await store.inbox.receive(said("Gryag, hi", 1, place=ELSEWHERE), at=NOON)
    async with engine_with(Scripted("Hi."), platform, store=store, behavior=here()) as engine:
        await engine.settled()

    assert platform.texts == []


@pytest.mark.parametrize("place", ["", "-100", "groups", "telegram:", ":5"])
def test_a_place_is_one_of_a_service_or_a_kind(place: str) -> None:
    with pytest.raises(
        InvalidValue, match="allowed_places must hold places as `service:id`, such as telegram:-100123, or kin"
    ):
        Behavior(allowed_places=(place,))


async def test_talk_that_is_not_addressed_is_context_and_never_answered(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("At five.")
    async with engine_with(model, platform, store=store) as engine:
        for number, text in enumerate(["we meet at five", "bring the blue boat", "is it far?"]):
            await engine.receive(said(text, number, place=GROUP, author=BOB))
            await engine.settled()
        before = list(platform.texts)
        await engine.receive(said("Gryag, when?", 9, place=GROUP))
        await engine.settled()

    assert (before, platform.texts, len(model.prompts)) == ([], ["At five."], 1)
    assert all(text in str(model.prompts[0]) for text in ("we meet at five", "bring the blue boat", "is it far?"))


async def test_two_bots_that_name_each_other_stop_until_a_person_speaks(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted(*(f"Einstein, {number}!" for number in range(9)))
    other = Author(id="9", name="Einstein", persona="Einstein")  # as a platform says of another bot
    async with engine_with(model, platform, store=store) as engine:
        for number in range(5):
            await engine.receive(said("Gryag, and you?", f"e{number}", place=GROUP, author=other))
            await engine.settled()
        alone = list(platform.texts)
        await engine.receive(said("Gryag, go on", "p", place=GROUP))
        await engine.settled()

    assert alone == ["Einstein, 0!"]  # then two messages of agents in a row, its own among them
    assert platform.texts == ["Einstein, 0!", "Einstein, 1!"]
