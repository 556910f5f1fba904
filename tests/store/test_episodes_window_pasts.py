"""The pasts of windows: what was said before each begins."""

import pytest
from msgspec.structs import replace

from people import ALICE, GROUP, NOON
from store.test_episodes import an_episode, seen, talked
from tertulia.memory.values import WindowPast
from tertulia.store import Store
from tertulia.store.episodes import PAST_RETENTION


async def test_the_past_of_a_window_stays_as_it_was_first_kept() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        before = await seen(store)
        first = WindowPast(since=0, start=8, text="They met.", people=(ALICE.id,))
        assert await store.window_pasts.find(GROUP, 0, 8) is None

        assert await store.window_pasts.add(GROUP, first, seen=before) == first
        assert await store.window_pasts.add(GROUP, replace(first, text="They parted."), seen=before) == first
        assert await store.window_pasts.find(GROUP, 0, 8) == first
        assert await store.window_pasts.find(GROUP, 1, 8) is None
        assert await store.episodes.listed(GROUP) == []


async def test_nothing_stays_nothing_for_a_whole_window() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        empty = WindowPast(since=2, start=8)
        await store.window_pasts.add(GROUP, empty, seen=await seen(store))

        assert await store.window_pasts.add(GROUP, replace(empty, text="late"), seen=await seen(store)) == empty


async def test_a_past_of_somebody_who_is_blocked_is_not_told() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        await store.window_pasts.add(
            GROUP, WindowPast(since=0, start=8, text="x", people=(ALICE.id,)), seen=await seen(store)
        )
        await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)

        assert await store.window_pasts.find(GROUP, 0, 8) == WindowPast(since=0, start=8, people=(ALICE.id,))


async def test_a_past_goes_with_an_episode_that_begins_in_it() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        await store.episodes.add(an_episode(start=4, stop=10), seen=await seen(store))
        for start in (4, 6):
            past = WindowPast(since=0, start=start, text="x")
            await store.window_pasts.add(GROUP, past, seen=await seen(store))

        await store.inbox.delete(GROUP, "8", at=NOON)

        assert await store.window_pasts.find(GROUP, 0, 6) is None
        assert await store.window_pasts.find(GROUP, 0, 4) is not None


@pytest.mark.parametrize("changed", ["2", "9"])
async def test_a_past_made_of_what_has_changed_since_is_not_kept(changed: str) -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        before = await seen(store)
        await store.inbox.delete(GROUP, changed, at=NOON)

        assert (await store.window_pasts.add(GROUP, WindowPast(since=0, start=8, text="x"), seen=before)).text == ""
        assert await store.window_pasts.find(GROUP, 0, 8) is None


async def test_the_past_of_a_window_long_ago_is_removed() -> None:
    async with Store.open(":memory:") as store:
        await talked(store)
        for start in (8, 9, 9 + PAST_RETENTION):
            await store.window_pasts.add(GROUP, WindowPast(since=0, start=start, text="x"), seen=await seen(store))

        found = [await store.window_pasts.find(GROUP, 0, start) for start in (8, 9, 9 + PAST_RETENTION)]
        assert [past and past.start for past in found] == [None, 9, 9 + PAST_RETENTION]
