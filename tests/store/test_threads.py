"""Units of work: what came together is committed together, and what fails fails alone."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from tertulia.errors import InvalidValue
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Job, Operation, Outcome, ReaderThread, WriterThread


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[WriterThread]:
    database = connection.connect(str(tmp_path / "w.db"))
    connection.enable_wal(database)
    database.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    opened = WriterThread(database, "writer")
    yield opened
    await opened.close()


def put(number: int) -> Operation[int]:
    return lambda database: database.execute("INSERT INTO numbers VALUES (?)", (number,)).rowcount


def numbers(database: Database) -> list[int]:
    return [number for (number,) in database.execute("SELECT n FROM numbers ORDER BY n")]


async def test_units_that_came_together_are_committed_together(writer: WriterThread) -> None:
    going = Event()
    batches: list[int] = []
    taken = writer.run_batch

    def counted(jobs: list[Job]) -> list[Outcome]:
        batches.append(len(jobs))
        return taken(jobs)

    writer.run_batch = counted  # type: ignore[method-assign]
    first = asyncio.ensure_future(writer.run(lambda _: going.wait()))
    rest = [asyncio.ensure_future(writer.run(put(number))) for number in range(100)]
    await asyncio.sleep(0)
    going.set()

    await asyncio.gather(first, *rest)

    assert sum(batches) == 101
    assert len(batches) <= 3


async def test_a_unit_that_fails_takes_no_other_with_it(writer: WriterThread) -> None:
    def half(database: Database) -> None:
        database.execute("INSERT INTO numbers VALUES (50)")
        raise ZeroDivisionError

    jobs = [writer.run(work) for work in (put(1), half, put(1), put(2))]

    told = await asyncio.gather(*jobs, return_exceptions=True)

    assert [type(one) for one in told] == [int, ZeroDivisionError, InvalidValue, int]
    assert await writer.run(numbers) == [1, 2]


async def test_a_unit_whose_caller_has_gone_is_done_all_the_same(writer: WriterThread) -> None:
    going = Event()
    first = asyncio.ensure_future(writer.run(lambda _: going.wait()))
    gone = asyncio.ensure_future(writer.run(put(7)))
    await asyncio.sleep(0)
    gone.cancel()
    going.set()

    await first

    assert await writer.run(numbers) == [7]
    assert gone.cancelled()


async def test_after_a_failed_sync_nothing_more_is_written(writer: WriterThread) -> None:
    def unsynced(_: Database) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    for work in (unsynced, put(1)):
        with pytest.raises(Exception, match="the disk failed while writing; nothing is written until the next start"):
            await writer.run(work)


async def test_a_reader_sees_what_was_committed_before_it_began(writer: WriterThread, tmp_path: Path) -> None:
    reader = ReaderThread(connection.connect_read_only_beside(str(tmp_path / "w.db")), "reader")
    for number in range(50):
        await writer.run(put(number))

        assert await reader.run(numbers) == list(range(number + 1))
    await reader.close()


async def test_a_reader_sees_one_state_and_cannot_write(writer: WriterThread, tmp_path: Path) -> None:
    reader = ReaderThread(connection.connect_read_only_beside(str(tmp_path / "w.db")), "reader")
    begun, going = Event(), Event()

    def twice(database: Database) -> tuple[list[int], list[int]]:
        first = numbers(database)
        begun.set()
        going.wait()
        return first, numbers(database)

    reading = asyncio.ensure_future(reader.run(twice))
    await asyncio.to_thread(begun.wait)
    await writer.run(put(1))
    going.set()

    assert await reading == ([], [])
    assert await reader.run(numbers) == [1]
    with pytest.raises(Exception, match="readonly"):
        await reader.run(put(2))
    await reader.close()


async def test_units_that_come_together_read_one_state_and_one_that_fails_spoils_no_other(
    writer: WriterThread, tmp_path: Path
) -> None:
    reader = ReaderThread(connection.connect_read_only_beside(str(tmp_path / "w.db")), "reader")
    queued, begun, going = Event(), Event(), Event()

    def first(database: Database) -> list[int]:
        found = numbers(database)
        begun.set()
        going.wait()
        return found

    works: list[Operation[object]] = [lambda _: queued.wait(), first, numbers, put(2), numbers]
    reading = [asyncio.ensure_future(reader.run(work)) for work in works]
    await asyncio.sleep(0)
    queued.set()
    await asyncio.to_thread(begun.wait)
    await writer.run(put(1))
    going.set()
    _, one, other, refused, after_it = await asyncio.gather(*reading, return_exceptions=True)

    assert (one, other, after_it) == ([], [], [1])
    assert "readonly" in str(refused)
    await reader.close()
