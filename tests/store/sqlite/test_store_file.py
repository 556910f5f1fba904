"""What the store does with a file that is not as it should be: one line, and nothing damaged."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from people import GROUP, NOON, a_message, a_talk
from store.builders import names_in
from tertulia import errors
from tertulia.store import Store, migrations
from tertulia.store.database import Connection
from tertulia.store.migrations.steps import EDITION, MIGRATIONS, Migration
from tertulia.store.sqlite import connection


async def a_file(path: Path, count: int = 3) -> None:
    async with Store.open(path) as store:
        for message in a_talk(count):
            await store.inbox.receive(message, at=NOON)


async def refusal(path: Path, kind: type[errors.TertuliaError]) -> str:
    with pytest.raises(kind) as caught:
        await Store.open(path)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"the store {path}: ")
    return said.removeprefix(f"the store {path}: ")


async def test_a_new_store_is_one_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    await a_file(tmp_path / "s.db")

    assert names_in(tmp_path) == ["s.db"]
    assert (tmp_path / "s.db").stat().st_mode & 0o777 == 0o600


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    await a_file(tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute("INSERT INTO migrations VALUES (99, 'm099_later', '2030-01-01', 1)")
    before = (tmp_path / "s.db").read_bytes()

    said = await refusal(tmp_path / "s.db", errors.StoreTooNew)

    known = len(MIGRATIONS)
    assert said == f"a newer program has written it: its tables have version 99, this program knows {known}"
    assert (tmp_path / "s.db").read_bytes() == before


async def test_tables_of_another_unreleased_edition_are_refused_and_left_alone(tmp_path: Path) -> None:
    await a_file(tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute("UPDATE migrations SET edition = edition - 1")
    before = (tmp_path / "s.db").read_bytes()

    said = await refusal(tmp_path / "s.db", errors.StoreRefused)

    assert said == (
        f"an unreleased version of this program has made it (tables of edition {EDITION - 1}, this one has {EDITION}), "
        "and there is no way from one to the other: move the file away to begin a new one"
    )
    assert (tmp_path / "s.db").read_bytes() == before


async def test_a_file_of_the_former_name_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute(f"PRAGMA application_id = {0x504C5652}")
        database.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, at TEXT)")
    before = (tmp_path / "s.db").read_bytes()

    said = await refusal(tmp_path / "s.db", errors.StoreRefused)

    assert said == (
        "it was made when this program was unreleased and called Palaver, and cannot be read any more: "
        "move the file away to begin a new one"
    )
    assert (tmp_path / "s.db").read_bytes() == before


async def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE messages (id INTEGER)")
    before = (tmp_path / "s.db").read_bytes()

    assert (
        await refusal(tmp_path / "s.db", errors.StoreBroken) == "it is a database of another program; name another file"
    )
    assert (tmp_path / "s.db").read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"hello, I am a text\n" * 500, b"\xff\xd8\xff" * 2000, b"SQLite format 3\0" + b"x" * 9000]
)
async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.db").write_bytes(content)

    assert "the file is damaged, or no store at all" in await refusal(tmp_path / "s.db", errors.StoreBroken)
    assert (tmp_path / "s.db").read_bytes() == content
    assert names_in(tmp_path) == ["s.db"]


async def test_a_damaged_file_is_found_out_and_says_so(tmp_path: Path) -> None:
    await a_file(tmp_path / "s.db", 500)
    content = bytearray((tmp_path / "s.db").read_bytes())
    page = content.find(b"message number 250") // 4096 * 4096
    content[page : page + 64] = b"\xa5" * 64
    (tmp_path / "s.db").write_bytes(content)

    async with Store.open(tmp_path / "s.db") as store:
        assert await store.check() != []
        with pytest.raises(errors.StoreBroken, match="damaged"):
            await store.log.read(GROUP, 0, 500)


async def test_a_file_cut_short_is_refused_or_found_out(tmp_path: Path) -> None:
    await a_file(tmp_path / "s.db", 500)
    content = (tmp_path / "s.db").read_bytes()
    (tmp_path / "s.db").write_bytes(content[: len(content) // 2])

    assert "damaged" in " ".join(await faults(tmp_path / "s.db"))


async def faults(path: Path) -> list[str]:
    """What is said of a file, when it is opened or when it is checked."""
    try:
        async with Store.open(path) as store:
            return await store.check()
    except errors.StoreBroken as error:
        return [str(error)]


async def test_a_folder_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    assert await refusal(tmp_path, errors.StoreRefused) == "it is a folder"
    missing = tmp_path / "no" / "s.db"
    assert await refusal(missing, errors.StoreRefused) == "No such file or directory"
    (tmp_path / "file").write_text("x")
    assert await refusal(tmp_path / "file" / "s.db", errors.StoreRefused) == "Not a directory"


async def test_a_file_somebody_else_is_writing_to_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertulia.store.sqlite.connection._BUSY_TIMEOUT", 0.01)
    await a_file(tmp_path / "s.db")
    async with Store.open(tmp_path / "s.db") as store:
        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            told = await asyncio.gather(
                *(store.inbox.receive(a_message(id=f"new {n}"), at=NOON) for n in range(20)), return_exceptions=True
            )

            assert {type(outcome) for outcome in told} == {errors.StoreBusy}
            assert await store.log.count(GROUP) == 3
        assert await store.inbox.receive(a_message(id="new"), at=NOON) is True


async def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()

    async with await Store.open(tmp_path / "s.db") as store:
        assert await store.inbox.receive(a_message(), at=NOON) is True


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "s.db")
    await store.close()
    await store.close()

    for asked in (store.inbox.receive(a_message(), at=NOON), store.log.count(GROUP)):
        with pytest.raises(errors.InvalidValue, match="the store is closed"):
            await asked


async def test_what_was_asked_for_before_closing_is_done(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "s.db")
    asked = [asyncio.ensure_future(store.inbox.receive(message, at=NOON)) for message in a_talk(50)]
    await asyncio.sleep(0)

    await store.close()

    assert await asyncio.gather(*asked) == [True] * 50


def test_steps_are_run_once_each_and_in_order() -> None:
    run: list[int] = []
    steps: list[Migration] = [lambda _, n=n: run.append(n) for n in range(3)]  # type: ignore[misc]
    with closing(connection.connect(connection.MEMORY)) as database:
        migrations.migrate(database, steps[:2])
        migrations.migrate(database, steps[:2])
        migrations.migrate(database, steps)

        assert (run, migrations.version(database)) == ([0, 1, 2], 3)


def test_a_new_store_is_what_the_steps_make_one_after_another(tmp_path: Path) -> None:
    stored = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    made: list[object] = []
    for number, steps in enumerate([MIGRATIONS, [*MIGRATIONS]]):  # a copy of them is run
        with closing(connection.connect(str(tmp_path / f"{number}.db"))) as database:
            connection.enable_wal(database)
            migrations.migrate(database, steps)
            tables = database.execute(stored).fetchall()
            run = database.execute("SELECT number, name FROM migrations").fetchall()
            pragmas = [database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "journal_mode")]
            made.append((tables, run, pragmas, database.faults()))

    assert made[0] == made[1]


def test_a_step_that_fails_leaves_the_store_as_the_one_before_left_it() -> None:
    def bad(database: Connection) -> None:
        database.define("CREATE TABLE half (id INTEGER)")
        raise ValueError("no")

    with closing(connection.connect(connection.MEMORY)) as database:
        migrations.migrate(database)
        with pytest.raises(ValueError, match="no"):
            migrations.migrate(database, [*MIGRATIONS, bad])

        assert migrations.version(database) == len(MIGRATIONS)
        assert database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)


def test_the_store_is_imported_only_when_it_is_used() -> None:
    asked = "import sys, tertulia; before = 'sqlite3' in sys.modules; print(before, tertulia.Store.__module__)"

    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout

    assert said == "False tertulia.store.store\n"


async def test_an_opening_that_is_given_up_leaves_the_file_to_others(tmp_path: Path) -> None:
    async def opened() -> Store:
        return await Store.open(tmp_path / "s.db")

    opening = asyncio.ensure_future(opened())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening

    async with Store.open(tmp_path / "s.db") as store:
        assert await store.check() == []
