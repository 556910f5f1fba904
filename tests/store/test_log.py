"""One contract for whatever says what was said in a place: in memory, and kept."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from people import ALICE, DIRECT, GROUP, GRYAG, NOON, a_message, a_talk
from store.builders import a_run, add_own, begin
from tertulia.context.edits import MessageChange
from tertulia.context.log import InMemoryLog, Log
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place
from tertulia.parts import Text
from tertulia.store import Store
from tertulia.store import log as kept_log
from tertulia.store.identities import place_key
from tertulia.turns import Turn, model

Add = Callable[[Message, Iterable[Turn]], Awaitable[None]]
Alter = Callable[[Message], Awaitable[None]]
DONE = (model("Yes?", by="gemini-3.8-flash"),)


class Kept:
    """A log to test, and how messages get into it."""

    def __init__(self, log: Log, add: Add, change: Alter) -> None:
        self.log = log
        self.add = add
        self.change = change

    async def of(self, messages: Iterable[Message]) -> Log:
        for message in messages:
            await self.add(message, ())
        return self.log


def in_memory() -> Kept:
    log = InMemoryLog()

    async def add(message: Message, turns: Iterable[Turn]) -> None:
        log.add(message, turns=turns)

    async def change(message: Message) -> None:
        log.add(message)

    return Kept(log, add, change)


def in_store(store: Store) -> Kept:
    async def add(message: Message, turns: Iterable[Turn]) -> None:
        if turns:
            await add_own(store, message, tuple(turns))
        else:
            await store.inbox.receive(message, at=NOON)

    async def change(message: Message) -> None:
        if message.deleted:
            await store.inbox.delete(message.place, message.id, at=NOON)
        else:
            await store.inbox.edit(message, at=NOON)

    return Kept(store.log, add, change)


@pytest.fixture(params=["memory", "store in memory", "store in a file"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    if request.param == "memory":
        yield in_memory()
        return
    async with Store.open(":memory:" if request.param == "store in memory" else tmp_path / "s.db") as store:
        yield in_store(store)


async def test_a_place_nobody_wrote_in_is_empty(kept: Kept) -> None:
    assert await kept.log.count(GROUP) == 0
    assert list(await kept.log.read(GROUP, 0, 10)) == []
    assert await kept.log.number(a_message()) is None
    assert await kept.log.turns([]) == {}
    assert await kept.log.turns([a_message()]) == {}


async def test_messages_are_numbered_as_they_came(kept: Kept) -> None:
    talk = a_talk(7)

    log = await kept.of(talk)

    assert await log.count(GROUP) == 7
    assert [await log.number(message) for message in talk] == list(range(7))
    assert list(await log.read(GROUP, 0, 7)) == talk


async def test_messages_are_found_by_their_ids(kept: Kept) -> None:
    talk = a_talk(7)
    log = await kept.of(talk)
    await log.read(GROUP, 4, 6)

    assert list(await log.find(GROUP, ["5", "nowhere", "0"])) == [(5, talk[5]), (0, talk[0])]
    assert (await log.get(GROUP, "5"), await log.get(GROUP, "nowhere")) == (talk[5], None)
    assert list(await log.find(GROUP, [])) == list(await log.find(DIRECT, ["0"])) == []
    await kept.change(replace(talk[0], deleted=True))
    assert list(await log.find(GROUP, ["0"])) == [(0, replace(talk[0], deleted=True))]


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (2, 5), (5, 7), (6, 99), (7, 9), (3, 2)])
async def test_a_range_is_what_a_slice_is(kept: Kept, start: int, stop: int) -> None:
    talk = a_talk(7)

    log = await kept.of(talk)

    assert list(await log.read(GROUP, start, stop)) == talk[start:stop]


async def test_the_same_message_is_the_same_object(kept: Kept) -> None:
    log = await kept.of(a_talk(7))

    first, again, part = await log.read(GROUP, 0, 7), await log.read(GROUP, 0, 7), await log.read(GROUP, 3, 5)

    assert [id(message) for message in first] == [id(message) for message in again]
    assert [id(message) for message in first[3:5]] == [id(message) for message in part]


async def test_an_edited_message_keeps_its_number_and_the_others_their_objects(kept: Kept) -> None:
    talk = a_talk(3, authors=(ALICE,))
    log = await kept.of(talk)
    before = await log.read(GROUP, 0, 3)
    edited = replace(talk[1], parts=a_message("edited").parts, edited_at=NOON)

    await kept.change(edited)

    after = await log.read(GROUP, 0, 3)
    assert list(after) == [talk[0], edited, talk[2]]
    assert (after[0] is before[0], after[2] is before[2]) == (True, True)
    assert (await log.count(GROUP), await log.number(edited)) == (3, 1)


async def test_a_deleted_message_keeps_its_number_and_its_words(kept: Kept) -> None:
    talk = a_talk(3)
    log = await kept.of(talk)
    await log.read(GROUP, 0, 3)
    deleted = replace(talk[0], deleted=True)

    await kept.change(deleted)

    assert list(await log.read(GROUP, 0, 3)) == [deleted, *talk[1:]]
    assert (await log.count(GROUP), await log.number(deleted)) == (3, 0)


async def test_places_and_their_threads_do_not_mix(kept: Kept) -> None:
    places = [GROUP, DIRECT, replace(GROUP, thread="9"), replace(GROUP, platform="discord")]

    log = await kept.of(a_message(f"in {n}", id="1", place=place) for n, place in enumerate(places))

    assert [await log.count(place) for place in places] == [1, 1, 1, 1]
    assert [list(await log.read(place, 0, 9)) for place in places] == [
        [a_message(f"in {n}", id="1", place=place)] for n, place in enumerate(places)
    ]


async def test_a_place_that_is_renamed_is_the_same_place(kept: Kept) -> None:
    renamed = replace(GROUP, title="Best friends")

    log = await kept.of([a_message(id="1"), a_message(id="2", place=renamed)])

    assert list(await log.read(renamed, 0, 2)) == [a_message(id="1"), a_message(id="2", place=renamed)]


async def test_somebody_who_is_renamed_spoke_under_both_names(kept: Kept) -> None:
    talk = [a_message(id="1"), a_message(id="2", author=replace(ALICE, name="Alisa")), a_message(id="3")]

    log = await kept.of(talk)

    assert list(await log.read(GROUP, 0, 3)) == talk


async def test_turns_are_those_behind_the_agents_own_messages(kept: Kept) -> None:
    own = a_message("Yes?", id="2", author=GRYAG)
    await kept.add(a_message(id="1"), ())
    await kept.add(own, DONE)

    messages = await kept.log.read(GROUP, 0, 2)

    assert await kept.log.turns(messages) == {"2": DONE}
    assert await kept.log.turns([replace(own, parts=())]) == {"2": DONE}
    assert await kept.log.turns(messages[:1]) == {}


async def test_turns_are_the_same_objects_too(kept: Kept) -> None:
    await kept.add(a_message("Yes?", id="2", author=GRYAG), DONE)
    messages = await kept.log.read(GROUP, 0, 1)

    first, again = await kept.log.turns(messages), await kept.log.turns(messages)

    assert first["2"][0] is again["2"][0]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["add", "edit", "delete", "read"])), max_size=40))
async def test_a_kept_log_says_what_one_in_memory_says(steps: list[tuple[int, str]]) -> None:
    async with Store.open(":memory:") as store:
        logs = [in_memory(), in_store(store)]
        said: dict[str, Message] = {}
        for number, (name, step) in enumerate(steps):
            await take_step(logs, said, str(name), step, number)
            whole = [list(await one.log.read(GROUP, 0, 99)) for one in logs]

            assert whole[0] == whole[1]
            assert [await one.log.count(GROUP) for one in logs] == [len(said), len(said)]


async def take_step(logs: list[Kept], said: dict[str, Message], name: str, step: str, number: int) -> None:
    before = said.get(name)
    if step == "add" and before is None:
        said[name] = a_message(f"step {number}", id=name)
        for one in logs:
            await one.add(said[name], ())
    elif step in ("edit", "delete") and before is not None and not before.deleted:
        changed = replace(before, parts=a_message(f"step {number}").parts, edited_at=NOON)
        said[name] = replace(before, deleted=True) if step == "delete" else changed
        for one in logs:
            await one.change(said[name])


async def test_changes_are_those_of_what_a_run_had_shown() -> None:
    async with Store.open(":memory:") as store:
        log, talk = store.log, a_talk(4, authors=(ALICE,))
        for message in talk:
            await store.inbox.receive(message, at=NOON)
        await begin(store, a_run(horizon=3, taken=()))
        edited = replace(talk[1], parts=a_message("edited").parts, edited_at=NOON)
        for change in (edited, replace(talk[3], parts=()), replace(talk[0], parts=())):
            await store.inbox.edit(change, at=NOON)
        await store.inbox.delete(GROUP, "1", at=NOON)

        found = await log.changes(GROUP, 1)

        assert list(found) == [
            MessageChange(number=1, position=4, before=talk[1]),
            MessageChange(number=1, position=4, before=edited),
        ]
        assert [one.number for one in await log.changes(GROUP, 0)] == [1, 0, 1]
        assert list(await log.changes(GROUP, 2)) == list(await log.changes(DIRECT, 0)) == []


async def test_changes_are_the_same_objects_and_new_ones_come_to_them() -> None:
    async with Store.open(":memory:") as store:
        talk = a_talk(3, authors=(ALICE,))
        for message in talk:
            await store.inbox.receive(message, at=NOON)
        await begin(store, a_run(horizon=3, taken=()))
        await store.inbox.delete(GROUP, "1", at=NOON)

        first, again = await store.log.changes(GROUP, 0), await store.log.changes(GROUP, 0)
        await store.inbox.delete(GROUP, "2", at=NOON)
        more = await store.log.changes(GROUP, 0)

        assert (first[0] is again[0], first[0] is more[0], len(more)) == (True, True, 2)


async def test_a_log_in_memory_knows_of_no_run() -> None:
    log = InMemoryLog([a_message()])
    log.add(a_message("edited"))

    assert list(await log.changes(GROUP, 0)) == []


async def test_what_is_at_hand_is_bounded_and_still_right() -> None:
    cache = kept_log.LogCache(places=2, messages=4)
    places = [Place(platform="p", id=str(n), kind="group") for n in range(5)]
    async with Store.open(":memory:") as store:
        for place in places:
            for message in a_talk(10, place=place):
                await store.inbox.receive(message, at=NOON)

        log = kept_log.SqlLog(store.reader, cache)
        for place in places * 2:
            assert list(await log.read(place, 0, 10)) == a_talk(10, place=place)
            assert list(await log.read(place, 2, 5)) == a_talk(10, place=place)[2:5]

        assert len(cache.by_place) == 2
        assert all(len(place.entries) == 4 for place in cache.by_place.values())


async def test_the_cache_is_bounded_in_bytes_however_long_the_messages_are() -> None:
    cache = kept_log.LogCache(size=200_000)
    places = [Place(platform="p", id=str(n), kind="group") for n in range(5)]
    talks = [[replace(one, parts=(Text(text="ї" * 2_000),)) for one in a_talk(5, place=place)] for place in places]
    long = [replace(one, parts=(Text(text="ї" * 40_000),)) for one in talks[0]]
    async with Store.open(":memory:") as store:
        for message in (one for talk in talks for one in talk):
            await store.inbox.receive(message, at=NOON)
        log = kept_log.SqlLog(store.reader, cache)

        for talk in talks * 2:
            assert list(await log.read(talk[0].place, 0, 5)) == talk
            assert sum(place.size for place in cache.by_place.values()) <= 200_000
        many = [len(place.entries) for place in cache.by_place.values()]
        for message in long:
            await store.inbox.edit(message, at=NOON)
        read = list(await log.read(places[0], 0, 5))

        assert many == [5]
        assert [one.parts for one in read] == [one.parts for one in long]
        assert len(cache.by_place[place_key(places[0])].entries) == 0


async def test_more_messages_than_one_question_takes_have_their_turns() -> None:
    async with Store.open(":memory:") as store:
        talk = a_talk(1200, authors=(GRYAG,))
        for message in talk:
            await add_own(store, message, DONE)

        assert await store.log.turns(talk) == {message.id: DONE for message in talk}


async def test_a_snapshot_says_what_the_log_says(kept: Kept) -> None:
    talk = a_talk(5)
    log = await kept.of(talk)
    own = a_message("own", author=GRYAG)
    await kept.add(own, DONE)
    ids = [message.id for message in (*talk, own)]

    async def read(log: Log) -> list[object]:
        return [
            await log.count(GROUP),
            await log.number(own),
            list(await log.read(GROUP, 2, 9)),
            list(await log.find(GROUP, [*ids, "none"])),
            await log.turns([*talk, own]),
            list(await log.changes(GROUP, 0)),
            await log.in_snapshot(lambda same: same.count(GROUP)),
        ]

    assert await log.in_snapshot(read) == await read(log)


async def test_a_snapshot_shows_one_state_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        first, second = a_talk(2)
        await store.inbox.receive(first, at=NOON)
        loop, begun, going = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        async def twice(log: Log) -> tuple[int, int]:
            before = await log.count(GROUP)
            loop.call_soon_threadsafe(begun.set)
            going.wait()
            return before, len(await log.read(GROUP, 0, 9))

        reading = asyncio.ensure_future(store.log.in_snapshot(twice))
        await begun.wait()
        await store.inbox.receive(second, at=NOON)
        going.set()

        assert await reading == (1, 1)
        assert await store.log.in_snapshot(lambda log: log.count(GROUP)) == 2


async def test_what_reads_a_snapshot_may_await_nothing_else(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        with pytest.raises(InvalidValue, match="may await nothing else"):
            await store.log.in_snapshot(lambda _: asyncio.sleep(0))
