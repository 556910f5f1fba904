"""Places have names in addresses, a state and today's cost; their messages say what became of them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import BOB, GROUP, said
from inspector.evening import NOW, an_evening, doubt, in_group
from tertulia.decisions import Address, Decision, Reason
from tertulia.errors import InvalidValue
from tertulia.inspector import places
from tertulia.inspector.words import ADDRESSES, IMPORTED, REASONS, decision_words
from tertulia.memory.values import Subject
from tertulia.messages import Place
from tertulia.parts import Media, Text
from tertulia.store import Store

NAMES = st.text(st.characters(codec="utf-8"), min_size=1)


@given(NAMES, NAMES, st.none() | NAMES)
def test_the_name_of_a_place_or_person_in_addresses_gives_it_back(platform: str, name: str, thread: str | None) -> None:
    place = Place(platform=platform, id=name, kind="group", thread=thread)
    person = Subject(platform=platform, id=name)

    assert places.place_of_key(places.place_key(place)) == place.key
    assert places.person_of_key(places.person_key(person)) == person
    assert places.place_key(place).replace(".", "").replace("~", "").replace("-", "").replace("_", "").isalnum()


def test_what_names_no_place_or_person_is_refused() -> None:
    for key in ("", "telegram", "a.b.c.d", "telegram.~FF"):
        with pytest.raises(InvalidValue, match="there is no place"):
            places.place_of_key(key)
    with pytest.raises(InvalidValue, match="there is no person"):
        places.person_of_key("a.b.c")


async def test_a_place_is_found_by_its_name(store: Store) -> None:
    await store.inbox.receive(said("hi", 1, place=GROUP), at=NOW)

    assert await places.find_place(store, "recorded.-100") == GROUP
    with pytest.raises(InvalidValue, match="there is no place recorded"):
        await places.find_place(store, "recorded.-200")


async def test_a_place_has_its_state_its_cost_and_its_last_message() -> None:
    async with an_evening() as store:
        failed = await places.place_row(store, GROUP, now=NOW)
        await doubt(store)
        (to_decide,) = await places.places(store, now=NOW)
        await store.inbox.receive(in_group("Gryag?", 9), at=NOW)
        (waits,) = await places.places(store, now=NOW + timedelta(days=1))

    assert (failed.key, failed.state, failed.messages, failed.runs) == ("recorded.-100", "failed", 6, 3)
    assert failed.why.startswith("Gemini is busy (503)")
    assert failed.today.calls == 9
    assert 0 < failed.today.money <= failed.today.without_cache
    assert failed.last
    assert (failed.last.number, failed.last.text) == (5, "Gryag, and 3B?")
    assert (to_decide.state, to_decide.to_decide) == ("to decide", 1)
    assert (waits.state, waits.waiting, waits.today.calls) == ("waits", 1, 0)


async def test_messages_have_decisions_runs_tools_and_deliveries() -> None:
    async with an_evening() as store:
        page = await places.messages(store, GROUP, now=NOW)

    assert [
        (
            one.number,
            one.message.text,
            [made.reason for made in one.decisions],
            one.wrote is not None,
            [tool.call.args for tool in one.tools],
            one.delivery and one.delivery.status,
        )
        for one in page.messages
    ] == [
        (0, "anybody here?", ["not addressed"], False, [], None),
        (1, "Gryag, hello!", ["answered"], False, [], None),
        (2, "Hello, Alice.", [], True, [], "sent"),
        (3, "Gryag, is 3A free?", ["answered"], False, [], None),
        (4, "Seat 3A is free. Take it.", [], True, [{"seat": "3A"}], "sent"),
        (5, "Gryag, and 3B?", ["answered"], False, [], None),
    ]
    assert [one.delivery.turns for one in page.messages if one.delivery] == [(), ()]
    assert page.before is None
    assert page.event > 6


async def test_messages_come_in_pages(store: Store) -> None:
    for number in range(130):
        await store.inbox.receive(in_group(f"number {number}", number), at=NOW)

    pages: list[list[int]] = []
    before = None
    while not pages or before is not None:
        page = await places.messages(store, GROUP, before=before, now=NOW)
        before = page.before
        pages.append([one.number for one in page.messages])

    assert pages == [list(range(70, 130)), list(range(10, 70)), list(range(10))]


async def test_words_of_blocked_people_and_hidden_messages_are_not_shown(store: Store) -> None:
    photo = Media(media_kind="photo", unique_id="p", data=b"abc", file_id="f", uri="https://x/?token=abc", raw={"a": 1})
    await store.inbox.receive(in_group("a secret", 1, author=BOB), at=NOW)
    await store.inbox.receive(in_group("", 2, parts=(photo, Text(text="look"))), at=NOW)
    await store.inbox.receive(in_group("gone", 3), at=NOW)
    await store.inbox.delete(GROUP, "3", at=NOW)
    await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOW)

    page = await places.messages(store, GROUP, now=NOW)
    decided = await places.decisions(store, GROUP, now=NOW)

    shown = replace(photo, data=None, file_id=None, raw=None, uri="https://x/?token=***")
    assert [one.message.parts for one in page.messages] == [(), (shown, Text(text="look")), ()]
    assert [one.message.author.name for one in page.messages] == ["Bob", "Alice", "Alice"]
    assert [one.message.parts for one in decided.messages] == [(), (shown, Text(text="look")), ()]
    assert page.row.last
    assert page.row.last.text == "[photo] look"


async def test_decisions_are_sentences() -> None:
    async with an_evening() as store:
        page = await places.decisions(store, GROUP, now=NOW)

    assert [(one.number, one.words) for one in page.messages] == [
        (0, ("not addressed to the bot: no mention, name or reply to it, and no rule that answers more",)),
        (1, ("answered; it spoke to the bot by name",)),
        (3, ("answered; it spoke to the bot by name",)),
        (5, ("answered; it spoke to the bot by name",)),
    ]
    assert IMPORTED.startswith("imported")
    assert decision_words(Decision(reason="waiting", edited=True)) == REASONS["waiting"]


def test_every_reason_and_every_way_to_speak_to_the_bot_has_words() -> None:
    assert (set(REASONS), set(ADDRESSES)) == (set(Reason.__args__), set(Address.__args__))  # type: ignore[attr-defined]
