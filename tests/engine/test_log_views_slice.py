from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from people import GROUP, GRYAG, NOON, a_message, a_talk
from store.builders import a_run, a_store_of, add_own, begin
from tertulia.context.edits import MessageChange
from tertulia.engine.log_views import LogSlice
from tertulia.parts import Text
from tertulia.store import Store
from tertulia.turns import model

TALK = a_talk(6)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with a_store_of(TALK) as opened:
        yield opened


@pytest.mark.parametrize("beginning", range(8))
async def test_the_end_of_a_log_is_a_log_of_its_own(store: Store, beginning: int) -> None:
    end, left = LogSlice(store.log, beginning), TALK[beginning:]

    assert await end.count(GROUP) == len(left)
    assert [await end.number(message) for message in left] == list(range(len(left)))
    assert [await end.number(message) for message in TALK[:beginning]] == [None] * min(beginning, 6)
    for start in range(4):
        for stop in range(start, 8):
            assert list(await end.read(GROUP, start, stop)) == left[start:stop]


async def test_messages_are_found_with_the_numbers_they_have_there(store: Store) -> None:
    end = LogSlice(store.log, 2, 5)

    assert await end.find(GROUP, [message.id for message in TALK]) == [(n - 2, TALK[n]) for n in (2, 3, 4)]


async def test_nothing_before_the_beginning_can_be_read(store: Store) -> None:
    end = LogSlice(store.log, 4)

    assert [message.id for message in await end.read(GROUP, -3, 9)] == ["4", "5"]
    assert list(await end.read(GROUP, -3, 0)) == []


async def test_a_message_that_is_not_kept_has_no_number(store: Store) -> None:
    assert await LogSlice(store.log, 0).number(a_message(id="nowhere")) is None


async def test_the_turns_behind_own_messages_are_the_same(store: Store) -> None:
    own = a_message("Yes.", id="own", author=GRYAG)
    await add_own(store, own, [model("Yes.")])

    assert await LogSlice(store.log, 6).turns([own]) == {"own": (model("Yes."),)}


async def test_changes_are_counted_from_the_beginning_and_those_before_it_are_none(store: Store) -> None:
    await begin(store, a_run(target="5", taken=("5",), horizon=6))
    later = NOON + timedelta(hours=1)
    for number in (1, 4):
        await store.inbox.edit(a_message("new", id=str(number), author=TALK[number].author), at=later)

    found = await LogSlice(store.log, 2).changes(GROUP, 0)

    assert found == [MessageChange(number=2, position=4, before=TALK[4])]
    assert await LogSlice(store.log, 2).changes(GROUP, 3) == []
    (now,) = await LogSlice(store.log, 2).read(GROUP, 2, 3)
    assert now.parts == (Text(text="new"),)


async def test_a_snapshot_of_the_end_is_the_end_of_a_snapshot(store: Store) -> None:
    end = LogSlice(store.log, 2, 5)

    assert await end.in_snapshot(lambda log: log.count(GROUP)) == 3
    assert await end.in_snapshot(lambda log: log.read(GROUP, 0, 9)) == TALK[2:5]
    assert await LogSlice(store.log, 2).in_snapshot(lambda log: log.count(GROUP)) == 4
