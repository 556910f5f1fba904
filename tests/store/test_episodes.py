"""Episodes, and how far a place was read for them."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from people import ALICE, BOB, DIRECT, GROUP, GRYAG, NOON, a_message, a_talk
from store.builders import files_hold
from tertulia.memory.facts import subject_of
from tertulia.memory.values import Episode, EpisodeCursor, WindowPast
from tertulia.messages import Author, Place
from tertulia.store import Store
from tertulia.store.identities import place_key

THREAD = replace(DIRECT, thread="5")
OTHER = Place(platform="telegram", id="8", kind="direct")
FORUM = replace(GROUP, thread="9")


def an_episode(**changes: Any) -> Episode:
    fields: dict[str, Any] = {
        "id": "e1", "place": GROUP, "start": 0, "stop": 4, "began_at": NOON, "ended_at": NOON, "topic": "Trip",
        "summary": "They go to Lviv.", "people": (ALICE.id, BOB.id), "tags": ("lviv",), "importance": 0.7,
    }  # fmt: skip
    return Episode(**fields | changes)


async def seen(store: Store, place: Place = GROUP) -> EpisodeCursor:
    found = await store.episodes.cursor(place)
    assert found is not None
    return found


async def talked(store: Store, count: int = 12, place: Place = GROUP) -> None:
    for message in a_talk(count, place=place, authors=(ALICE, BOB)):
        await store.inbox.receive(message, at=NOON)


async def test_an_episode_is_kept_as_it_is_and_its_messages_are_read(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await talked(store)
        before = await seen(store)
        assert await store.episodes.add(an_episode(), seen=before) is True
        assert (before.read, before.count, (await seen(store)).read) == (0, 12, 4)

    async with Store.open(tmp_path / "s.db") as store:
        assert await store.episodes.listed(GROUP) == [an_episode()]
        assert await store.episodes.missing_ranges(GROUP) == []


async def test_the_same_episode_again_takes_the_place_of_the_first() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        await store.episodes.add(an_episode(), seen=await seen(store))
        anew = an_episode(summary="They stay.", people=(BOB.id,))

        assert await store.episodes.add(anew, seen=await seen(store)) is True
        assert await store.episodes.listed(GROUP) == [anew]
        assert (await seen(store)).read == 4


@pytest.mark.parametrize("change", ["edited", "deleted", "forgotten", "read", "another place"])
async def test_what_has_changed_meanwhile_is_not_kept(change: str) -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        before = await seen(store)
        match change:
            case "edited":
                await store.inbox.edit(a_message("else", id="2", author=ALICE), at=NOON)
            case "deleted":
                await store.inbox.delete(GROUP, "3", at=NOON)
            case "forgotten":
                await store.forget(platform="telegram", author_id=ALICE.id)
            case "read":
                await store.episodes.add(an_episode(stop=3), seen=before)
            case _:
                before = replace(before, place=before.place + 1)

        assert await store.episodes.add(an_episode(id="late"), seen=before) is False


async def test_a_change_elsewhere_in_the_place_does_not_matter() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        before = await seen(store)
        await store.inbox.delete(GROUP, "9", at=NOON)

        assert await store.episodes.add(an_episode(), seen=before) is True


@pytest.mark.parametrize("change", ["edited", "deleted"])
async def test_an_episode_whose_message_changes_has_to_be_told_anew(change: str) -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        for number in range(3):
            span = {"id": f"e{number}", "start": 4 * number, "stop": 4 * number + 4}
            await store.episodes.add(an_episode(**span), seen=await seen(store))
        if change == "edited":
            await store.inbox.edit(a_message("else", id="5", author=BOB), at=NOON)
        else:
            await store.inbox.delete(GROUP, "5", at=NOON)

        assert [episode.id for episode in await store.episodes.listed(GROUP)] == ["e0", "e2"]
        assert await store.episodes.missing_ranges(GROUP) == [(4, 8)]


async def test_an_episode_with_somebody_who_is_blocked_is_not_told_until_it_is_told_anew() -> None:
    async with Store.open(":memory:") as store:
        await talked(store, 4)
        await store.episodes.add(an_episode(), seen=await seen(store))
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)
        assert await store.episodes.listed(GROUP) == []
        assert await store.episodes.missing_ranges(GROUP) == [(0, 4)]
        assert await store.episodes.places() == [GROUP]

        anew = an_episode(people=(ALICE.id,))
        await store.episodes.add(anew, seen=await seen(store))

        assert await store.episodes.listed(GROUP) == [anew]
        assert await store.episodes.places() == []


async def test_who_is_blocked_elsewhere_is_somebody_else() -> None:
    async with Store.open(":memory:") as store:
        await talked(store, 4)
        await store.episodes.add(an_episode(), seen=await seen(store))
        await store.place_settings.block(platform="discord", author_id=BOB.id, at=NOON)

        assert await store.episodes.listed(GROUP) == [an_episode()]


@pytest.mark.parametrize(
    ("asked", "heard"),
    [
        (GROUP, {"group"}),
        (FORUM, {"forum"}),
        (DIRECT, {"direct", "thread"}),
        (THREAD, {"direct", "thread"}),
        (OTHER, {"other"}),
        (Place(platform="discord", id=DIRECT.id, kind="direct"), set()),
        (Place(platform="telegram", id=DIRECT.id, kind="group", thread="6"), set()),
    ],
)
async def test_only_what_happened_here_is_heard_or_in_direct_chats_of_the_same_person(
    asked: Place, heard: set[str]
) -> None:
    places = {"group": GROUP, "forum": FORUM, "direct": DIRECT, "thread": THREAD, "other": OTHER}
    async with Store.open(":memory:") as store:
        for name, place in places.items():
            await talked(store, 4, place)
            await store.episodes.add(an_episode(id=name, place=place), seen=await seen(store, place))

        found = await store.episodes.visible_to(a_message("Lviv", place=asked))

        assert {episode.id for episode in found} == heard


@pytest.mark.parametrize("kind", ["direct", "group"])
async def test_what_happened_in_a_direct_chat_is_not_told_where_it_has_become_a_group(kind: Any) -> None:
    here, then = replace(DIRECT, kind=kind), replace(DIRECT, kind="group" if kind == "direct" else "direct")
    async with Store.open(":memory:") as store:
        await talked(store, 4, then)
        await store.episodes.add(an_episode(place=then), seen=await seen(store, then))

        assert await store.episodes.visible_to(a_message("Lviv", place=here)) == []
        assert await store.episodes.listed(here) == []
        assert await store.episodes.listed(then) == [an_episode(place=then)]


async def test_who_is_heard_again_is_told_of_again() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        for number, people in enumerate([(ALICE.id,), (ALICE.id, BOB.id), ()]):
            span = {"id": f"e{number}", "start": 4 * number, "stop": 4 * number + 4}
            await store.episodes.add(an_episode(**span, people=people), seen=await seen(store))
        await store.window_pasts.add(GROUP, WindowPast(since=0, start=8, text="x"), seen=await seen(store))
        await store.place_settings.block(platform="telegram", author_id=BOB.id, at=NOON)

        await store.place_settings.unblock(platform="telegram", author_id=BOB.id)

        assert [episode.id for episode in await store.episodes.listed(GROUP)] == ["e1"]
        assert await store.episodes.missing_ranges(GROUP) == [(0, 4), (8, 12)]
        assert await store.window_pasts.find(GROUP, 0, 8) is None


async def test_nothing_is_left_of_somebody_who_is_forgotten(tmp_path: Path) -> None:
    eve = Author(id="u-eve-1", name="Evelyn Quartz")
    async with Store.open(tmp_path / "s.db") as store:
        for number, author in enumerate((ALICE, eve, BOB, ALICE)):
            await store.inbox.receive(a_message("purple xylophones", id=str(number), author=author), at=NOON)
        told = an_episode(summary="Evelyn Quartz: “purple xylophones”", people=(ALICE.id, eve.id))
        await store.episodes.add(told, seen=await seen(store))
        past = WindowPast(since=0, start=4, text="2025-01-15 Evelyn Quartz has xylophones", people=(eve.id,))
        await store.window_pasts.add(GROUP, past, seen=await seen(store))

        await store.forget(platform="telegram", author_id=eve.id)

        assert await store.episodes.listed(GROUP) == []
        assert await store.window_pasts.find(GROUP, 0, 4) is None
        assert await store.episodes.missing_ranges(GROUP) == [(0, 4)]
    assert not files_hold(tmp_path, "Evelyn")
    assert not files_hold(tmp_path, "u-eve-1")


async def test_who_forgets_everything_forgets_what_happened_in_their_direct_chats(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        for place in (DIRECT, THREAD, OTHER, GROUP):
            authors = (BOB, GRYAG) if place is OTHER else (ALICE, GRYAG)
            for message in a_talk(12, place=place, authors=authors):
                await store.inbox.receive(message, at=NOON)
            told = an_episode(id=place_key(place), place=place, summary=f"They go to {place_key(place)}.")
            await store.episodes.add(told, seen=await seen(store, place))
            past = WindowPast(since=0, start=8, text="They met.")
            await store.window_pasts.add(place, past, seen=await seen(store, place))
        before = await seen(store, DIRECT)

        assert await store.facts.forget_all(subject_of(ALICE, DIRECT)) == 0

        here = [place for place in (DIRECT, THREAD, OTHER, GROUP) if await store.episodes.listed(place)]
        assert here == [OTHER, GROUP]
        assert [await store.cursors.next_range(place) for place in (DIRECT, THREAD)] == [None, None]
        assert await store.window_pasts.find(DIRECT, 0, 8) is None
        assert await store.episodes.add(an_episode(place=DIRECT), seen=before) is False
        assert (await store.window_pasts.add(DIRECT, past, seen=before)).text == ""
        assert not files_hold(tmp_path, f"They go to {place_key(DIRECT)}")


@pytest.mark.parametrize("change", ["nothing", "edited", "deleted", "blocked", "forgotten again"])
async def test_what_was_forgotten_with_everything_is_never_told_again(change: str) -> None:
    async with Store.open(":memory:") as store:
        await talked(store, 12, DIRECT)
        await store.episodes.add(an_episode(place=DIRECT), seen=await seen(store, DIRECT))
        await store.facts.forget_all(subject_of(ALICE, DIRECT))
        await talked(store, 16, DIRECT)
        match change:
            case "edited":
                await store.inbox.edit(a_message("else", id="2", place=DIRECT, author=ALICE), at=NOON)
            case "deleted":
                await store.inbox.delete(DIRECT, "11", at=NOON)
            case "blocked":
                await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
                await store.place_settings.unblock(platform="telegram", author_id=ALICE.id)
            case "forgotten again":
                await store.facts.forget_all(subject_of(BOB, DIRECT))

        again = 16 if change == "forgotten again" else 12
        assert await store.episodes.missing_ranges(DIRECT) == []
        assert (await seen(store, DIRECT)).read == again
        anew = an_episode(id="e2", place=DIRECT, start=again, stop=again + 4)
        assert await store.episodes.add(anew, seen=await seen(store, DIRECT)) is True
        assert await store.episodes.listed(DIRECT) == [anew]


async def test_a_direct_chat_that_was_forgotten_meanwhile_does_not_come_back() -> None:
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message(place=DIRECT, author=Author(id=DIRECT.id, name="A")), at=NOON)
        before = await seen(store, DIRECT)
        await store.forget(platform="telegram", author_id=DIRECT.id)

        assert await store.episodes.add(an_episode(place=DIRECT), seen=before) is False
        past = WindowPast(since=0, start=4, text="x")
        assert (await store.window_pasts.add(DIRECT, past, seen=before)).text == ""
        assert await store.episodes.cursor(DIRECT) is None


async def test_what_no_file_can_hold_is_kept_without_it() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        odd = an_episode(topic="a\0b", summary="\ud800", tags=("\0",))

        assert await store.episodes.add(odd, seen=await seen(store)) is True
        assert await store.episodes.listed(GROUP) == [an_episode(topic="a�b", summary="�", tags=("�",))]
