"""Rows that are at hand are the rows that are there, whatever was taken back or removed."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import ALICE, DIRECT, GROUP, NOON, a_message
from sizes import size
from store.builders import PROMPT, a_run
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.messages import Author, Message, Place
from tertulia.store import Store
from tertulia.store.identities import audience_start, find_place, upsert_name, upsert_place, upsert_title
from tertulia.store.messages import MessageRow, add, waiting_places
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import ConnectionThread

HOME = replace(DIRECT, id=ALICE.id)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "s.db") as opened:
        yield opened


def learned(database: Database, place: Place = GROUP, author: Author = ALICE) -> tuple[int, ...]:
    """The rows of a place and an author, kept, then found, and so at hand."""
    for _ in range(2):
        row = upsert_place(database, place)
        rows = (row, upsert_title(database, place, row), upsert_name(database, place.platform, author, NOON))
    return rows


def then_fail(database: Database) -> None:
    learned(database)
    raise ZeroDivisionError


def wishes(store: Store) -> StoreProtocol:
    """A store is what the engine wishes for: mypy reads this."""
    return store


async def test_what_was_taken_back_is_not_at_hand(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await store.writer.run(then_fail)

    assert await store.writer.run(lambda database: find_place(database, GROUP)) is None
    assert await store.inbox.receive(a_message(), at=NOON) is True
    await wishes(store).runs.begin(a_run(), PROMPT, at=NOON)
    assert await store.check() == []


async def test_what_was_removed_is_not_at_hand(store: Store) -> None:
    for _ in range(2):
        assert await store.inbox.receive(a_message(place=HOME), at=NOON) is True
        await store.runs.begin(a_run(place=HOME), PROMPT, at=NOON)
        before = await store.writer.run(lambda database: learned(database, HOME))

        await store.forget(platform="telegram", author_id=ALICE.id)

        after = await store.writer.run(lambda database: learned(database, HOME))
        assert set(before).isdisjoint(after)
        assert await store.check() == []
        await store.forget(platform="telegram", author_id=ALICE.id)


moves = st.tuples(st.sampled_from(["receive", "begin", "fail", "forget"]), st.integers(0, 2), st.integers(0, 2))


@given(st.lists(moves, max_size=20))
@settings(max_examples=size(30, full=60))
async def test_whatever_happens_the_store_is_whole(made: list[tuple[str, int, int]]) -> None:
    places = [GROUP, HOME, replace(HOME, title="Alice")]
    authors = [ALICE, replace(ALICE, name="Alisa"), Author(id="u9", name="Zoë")]
    async with Store.open(":memory:") as store:
        for number, (move, n, m) in enumerate(made):
            place, author = places[n], authors[m]
            match move:
                case "receive":
                    message = a_message(id=str(number), place=place, author=author)
                    assert await store.inbox.receive(message, at=NOON) is True
                    assert (await store.log.read(place, 0, 99))[-1] == message
                case "begin":
                    run = a_run(id=f"r{number}", place=place, taken=())
                    await store.runs.begin(run, PROMPT, at=NOON)
                    assert (await store.runs.open())[-1] == run
                case "fail":
                    with pytest.raises(ZeroDivisionError):
                        await store.writer.run(then_fail)
                case "forget":
                    await store.forget(platform="telegram", author_id=author.id)
            assert await store.check() == []


async def test_a_place_that_was_renamed_without_end_is_read_as_before(store: Store) -> None:
    renamed = [replace(GROUP, title=f'{number} "kind":"direct"') for number in range(40_000)]

    def rename(database: Database) -> int:
        place = upsert_place(database, GROUP)
        for one in renamed:
            upsert_title(database, one, place)
        return audience_start(database, GROUP)

    assert await store.writer.run(rename) == 0
    await store.inbox.receive(a_message(id="1", place=renamed[7]), at=NOON)
    direct = replace(GROUP, kind="direct")
    assert await store.reader.run(lambda database: audience_start(database, direct)) == 1


@given(st.lists(st.sampled_from(["direct", "group", "channel"]), max_size=8))
async def test_a_conversation_begins_after_what_was_said_where_the_place_was_of_another_kind(kinds: list[Any]) -> None:
    async with Store.open(":memory:") as store:
        for number, kind in enumerate(kinds):
            await store.inbox.receive(a_message(id=str(number), place=replace(GROUP, kind=kind)), at=NOON)

        def found(database: Database) -> list[int]:
            return [audience_start(database, replace(GROUP, kind=kind)) for kind in ("direct", "group", "channel")]

        direct = max((number for number, kind in enumerate(kinds, 1) if kind == "direct"), default=0)
        others = max((number for number, kind in enumerate(kinds, 1) if kind != "direct"), default=0)
        assert await store.reader.run(found) == [others, direct, direct]


async def test_reading_and_receiving_cost_the_same_however_often_place_and_author_were_renamed(tmp_path: Path) -> None:
    few, many = [await steps_after(renames, tmp_path) for renames in (50, size(5_000, full=20_000))]

    assert many == few


async def steps_after(renames: int, folder: Path) -> dict[str, int]:
    """What SQLite does for each wish, in steps of its machine, where each message has a title and a name of its own."""

    def said(number: int) -> Message:
        titled, named = replace(GROUP, title=f"title {number}"), replace(ALICE, name=f"name {number}")
        return a_message(id=str(number), place=titled, author=named)

    async with Store.open(folder / f"{renames}.db", durable=False) as store:
        newest = said(renames)

        def rename(database: Database) -> None:
            for number in range(renames):
                add(database, MessageRow(said(number)), NOON, "not addressed")
            add(database, MessageRow(newest), NOON, "waiting")

        await store.writer.run(rename)
        return {
            "receive": await steps(
                store.writer, lambda database: add(database, MessageRow(said(renames + 1)), NOON, "waiting")
            ),
            "begun": await steps(store.writer, lambda database: audience_start(database, GROUP)),
            "begun, direct": await steps(
                store.writer, lambda database: audience_start(database, replace(GROUP, kind="direct"))
            ),
            "waiting": await steps(store.writer, waiting_places),
            "title": await steps(store.writer, lambda database: upsert_title(database, newest.place, 1)),
            "name": await steps(store.writer, lambda database: upsert_name(database, "telegram", newest.author, NOON)),
        }


async def steps(writer: ConnectionThread, work: Callable[[Database], object]) -> int:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    def counted(database: Database) -> None:
        database.cache.clear()
        database.set_progress_handler(step, 1)
        try:
            work(database)
        finally:
            database.set_progress_handler(None, 1)

    await writer.run(counted)
    return count
