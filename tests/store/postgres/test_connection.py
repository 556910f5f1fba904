"""One connection to a real PostgreSQL."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

import postgres
from tertulia.errors import InvalidValue, StoreAway, StoreBroken, StoreRefused, TertuliaError
from tertulia.messages import Place
from tertulia.store import Store
from tertulia.store.database import Database
from tertulia.store.identities import place_key
from tertulia.store.postgres.connection import PostgresDatabase
from tertulia.store.threads import Operation, ReaderThread, WriterThread
from tertulia.store_url import masked

HALL = Place(platform="demo", id="hall", kind="group")
_ADD = "INSERT INTO owner_settings (name, value, replaced, at) VALUES (:name, '1', '2', 'now')"


@pytest.fixture
async def writer(url: str) -> AsyncIterator[WriterThread]:
    opened = WriterThread(PostgresDatabase(url, caching=True), "writer")
    yield opened
    await opened.close()


@pytest.fixture
async def reader(url: str) -> AsyncIterator[ReaderThread]:
    opened = ReaderThread(PostgresDatabase(url), "reader")
    yield opened
    await opened.close()


def put(name: str) -> Operation[int]:
    return lambda database: database.insert(_ADD, name=name)


def names(database: Database) -> list[str]:
    return [name for (name,) in database.all("SELECT name FROM owner_settings ORDER BY name")]


def test_every_kind_of_value_comes_back_as_it_was(database: PostgresDatabase) -> None:
    values = {"a": "ціна 'x' \\ %s", "b": -1, "c": 2**40, "d": 0.1, "e": b"\0\xff", "f": None, "g": True}

    row = database.one(
        "SELECT :a, :b, :c, :d, :e, CAST(:f AS TEXT), :g, (SELECT sum(x) FROM (SELECT CAST(:c AS BIGINT) AS x) q)",
        **values,
    )

    assert row == (*(values[name] for name in "abcdef"), 1, 2**40)


def test_a_text_with_nul_is_refused_and_not_cut(database: PostgresDatabase) -> None:
    with pytest.raises(psycopg.DataError):
        database.insert(_ADD, name="a\0b")


def test_rows_are_added_in_one_exchange_and_counted(database: PostgresDatabase) -> None:
    database.many(_ADD, [{"name": f"n{number:04}"} for number in range(1201)])

    database.begin_reading()
    assert [name for (name,) in database.each("SELECT name FROM owner_settings ORDER BY name")] == names(database)
    database.undo()
    assert database.run("DELETE FROM owner_settings WHERE name IN (:names)", names=["n0001", "n0002", "?"]) == 2
    assert database.run("DELETE FROM owner_settings WHERE name NOT IN (:names)", names=[]) == 1199
    database.many(_ADD, [])


def test_a_row_that_exists_has_no_new_id(database: PostgresDatabase) -> None:
    insert = f"{_ADD} ON CONFLICT DO NOTHING"

    assert database.insert_new(insert, name="a") == 1
    assert database.insert_new(insert, name="a") is None


def test_text_is_compared_by_its_bytes(database: PostgresDatabase) -> None:
    words = ["Z", "a", "ä", "a-b", "a b", "ab", "+00:00", ".5"]
    database.many(_ADD, [{"name": word} for word in words])

    assert names(database) == sorted(words)


async def test_a_unit_that_fails_takes_no_other_with_it(writer: WriterThread, reader: ReaderThread) -> None:
    def half(database: Database) -> None:
        database.insert(_ADD, name="half")
        raise ZeroDivisionError

    units = [put("a"), half, put("a"), put("b")]
    found = await asyncio.gather(*(writer.run(unit) for unit in units), return_exceptions=True)

    assert [type(one) for one in found] == [int, ZeroDivisionError, InvalidValue, int]
    assert await reader.run(names) == ["a", "b"]


async def test_the_reads_of_a_unit_see_one_state(writer: WriterThread, reader: ReaderThread) -> None:
    loop = asyncio.get_running_loop()

    def twice(database: Database) -> tuple[list[str], list[str]]:
        before = names(database)
        asyncio.run_coroutine_threadsafe(writer.run(put("a")), loop).result()
        return before, names(database)

    assert await reader.run(twice) == ([], [])
    assert await reader.run(names) == ["a"]


async def test_a_reader_cannot_write(reader: ReaderThread) -> None:
    with pytest.raises(StoreRefused, match="read-only"):
        await reader.run(put("a"))


async def test_units_that_lock_each_other_are_run_again(url: str, writer: WriterThread) -> None:
    other = WriterThread(PostgresDatabase(url), "other")
    await writer.run(put("a"))
    await writer.run(put("b"))
    first = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()
    runs = []

    def change(*order: str) -> Operation[None]:
        def unit(database: Database) -> None:
            runs.append(order)
            for number, name in enumerate(order):
                database.run("UPDATE owner_settings SET value = value || :name WHERE name = :name", name=name)
                if number == 0 and len(runs) <= 2:
                    asyncio.run_coroutine_threadsafe(first.wait(), loop).result()

        return unit

    await asyncio.gather(writer.run(change("a", "b")), other.run(change("b", "a")))

    assert len(runs) >= 3
    assert await writer.run(lambda database: database.all("SELECT value FROM owner_settings ORDER BY name")) == [
        ("1aa",),
        ("1bb",),
    ]
    await other.close()


async def test_a_unit_locks_its_places_first(url: str, writer: WriterThread) -> None:
    other = WriterThread(PostgresDatabase(url), "other")
    await writer.run(
        lambda database: database.insert(
            "INSERT INTO places (place_key, platform, place_id) VALUES (:key, 'demo', 'hall')", key=place_key(HALL)
        )
    )
    loop = asyncio.get_running_loop()
    order: list[str] = []

    def slow(database: Database) -> None:
        database.one("SELECT 1")
        later.append(asyncio.run_coroutine_threadsafe(other.run(quick, places=[HALL]), loop))
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        while not database.all(waiting) and time.monotonic() < end:
            time.sleep(0.01)
        order.append("slow")

    def quick(database: Database) -> None:
        database.one("SELECT 1")
        order.append("quick")

    later: list[object] = []
    end = time.monotonic() + 10
    await writer.run(slow, places=[HALL])
    await other.run(lambda database: None)

    assert order == ["slow", "quick"]
    await other.close()


async def test_a_lost_connection_is_made_again(url: str, writer: WriterThread, reader: ReaderThread) -> None:
    def cut(database: Database) -> None:
        database.all(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'tertulia' AND pid <> pg_backend_pid()"
        )

    await writer.run(put("a"))
    await reader.run(names)
    third = WriterThread(PostgresDatabase(url), "third")
    await third.run(cut)
    await third.close()

    await writer.run(put("b"))
    assert await writer.run(names) == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/x", StoreAway),
        ("postgresql://u:s3cret@[::1/x", StoreRefused),
        ("postgresql://u:s3cret@127.0.0.1/x?wrong=s3cret", StoreRefused),
    ],
)
async def test_an_error_of_connecting_is_one_line_without_the_password(
    wrong: str, error: type[TertuliaError], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(error) as raised:
        await Store.open(wrong)

    said: BaseException | None = raised.value
    assert "\n" not in str(said)
    while said:
        assert "s3cret" not in str(said)
        said = said.__cause__ or (None if said.__suppress_context__ else said.__context__)


async def test_an_error_shows_no_rows(writer: WriterThread) -> None:
    await writer.run(put("what nobody may read"))

    with pytest.raises(InvalidValue) as raised:
        await writer.run(put("what nobody may read"))

    assert "nobody" not in str(raised.value)


def test_a_database_that_cannot_hold_every_text_is_refused(tmp_path: Path) -> None:
    url = postgres.new_database(encoding="LATIN1")

    with pytest.raises(StoreRefused, match="its encoding is LATIN1, which cannot hold every text, not UTF8"):
        Store.open(url, media_folder=tmp_path).__enter__()


def test_a_database_of_another_program_is_refused_by_its_name(tmp_path: Path) -> None:
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE users (id INTEGER)")

    with pytest.raises(StoreBroken, match=f"the store {masked(url)}: it is a database of another program"):
        Store.open(url, media_folder=tmp_path).__enter__()


def test_a_database_that_is_not_there_is_one_line_with_what_the_server_says(tmp_path: Path) -> None:
    url = postgres.server().replace("/postgres?", "/missing?")

    said = r'the server refuses the role or the database of the URL \(.*: FATAL: database "missing" does not exist\)$'
    with pytest.raises(StoreRefused, match=said):
        Store.open(url, media_folder=tmp_path).__enter__()


def test_what_is_no_url_is_one_line_that_shows_one(tmp_path: Path) -> None:
    line = "the store postgresql://…: it is no URL of PostgreSQL such as postgresql:///database or "

    with pytest.raises(StoreRefused, match=line):
        Store.open("mysql://me:secret@db/bot", media_folder=tmp_path).__enter__()


def test_a_store_is_named_without_user_and_password() -> None:
    assert masked("postgresql://me:secret@db.example:5433/bot?sslmode=require") == "postgresql://db.example:5433/bot"


async def test_a_role_that_may_only_read_is_told_so(url: str) -> None:
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as admin:
        admin.execute("CREATE ROLE tertulia_reading LOGIN")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO tertulia_reading")
    writer = WriterThread(PostgresDatabase(url.replace("//postgres", "//tertulia_reading", 1)), "writer")
    try:
        with pytest.raises(StoreRefused, match="permission denied for table tertulia_units"):
            await writer.run(put("x"))
    finally:
        await writer.close()
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as admin:
            admin.execute("DROP OWNED BY tertulia_reading")
            admin.execute("DROP ROLE tertulia_reading")
