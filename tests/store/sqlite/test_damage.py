"""Whatever has become of a store's file, every command does its work or says in one line why not."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from cli.command import tertulia
from cli.stores import a_store
from memory.known import a_fact, taught
from people import ALICE, GROUP, NOON, a_message, a_talk
from platforms.terminal.test_main import FLASH, beside, environment
from sizes import size
from store.builders import PROMPT, a_record, a_run, a_task, a_tool_run, an_outgoing
from stored_rows import add, change, on_file
from tertulia import Store
from tertulia.errors import StoreBroken, TertuliaError
from tertulia.parts import Media, Text
from tertulia.platforms.terminal.setup import PLACE
from tertulia.sim import GeminiSim
from tertulia.sim.gemini import Echo

Damage = Callable[[Path], object]

PAGE = 4096
FOUND = (("places", "beginning", "'null'"),)  # what once ended in another way than it should
FOUND_IN_CHAT = ("nothing in messages", "places.beginning = 'null'")
COMMANDS = (
    ("db", "check"),
    ("db", "backup", "copy.db"),
    ("db", "export"),
    ("db", "export", "--out", "all.jsonl"),
    ("db", "forget", "u123", "--yes"),
    ("memory", "list", "--all"),
    ("memory", "why", "fact-1"),
    ("memory", "forget", "fact-1"),
    ("memory", "export"),
    ("tasks", "--all"),
    ("outbox", "--all"),
    ("index", "--embedder", "none"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something in each of its tables."""
    return a_full_store(tmp_path_factory.mktemp("whole") / "s.db")


def a_full_store(path: Path) -> Path:
    async def fill() -> None:
        async with Store.open(path) as store:
            run = a_run(target="1", taken=("1",))
            await store.runs.begin(run, PROMPT, at=NOON)
            await store.runs.add_record(run, 0, a_record())
            await store.runs.begin_tool(run, a_tool_run())
            await taught(store, [a_fact("likes tea", id="fact-1", sources=("0",)), a_fact("likes gin", id="fact-2")])
            await store.inbox.edit(a_message("changed", id="3"), at=NOON)

    photo = Media(media_kind="photo", unique_id="p", mime="image/jpeg", data=bytes(9000))
    pictured = a_message(id="p", parts=(Text(text="look"), photo))
    said = [*a_talk(60), *a_talk(20, place=PLACE), pictured]
    a_store(path, messages=said, tasks=[a_task()], replies=[an_outgoing()])
    asyncio.run(fill())
    assert tertulia("index", "--embedder", "none", "--db", str(path)).returncode == 0
    return path


def cut(length: int) -> Damage:
    return lambda path: os.truncate(path, length)


def overwritten(first: int, content: bytes) -> Damage:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(first)
            file.write(content)

    return damage


def beside_it(suffix: str, content: bytes) -> Damage:
    return lambda path: Path(f"{path}{suffix}").write_bytes(content)


def damages(path: Path) -> Iterator[tuple[str, Damage]]:
    """Files as disks, copies and other programs leave them."""
    random = Random(11)  # noqa: S311 (it is the same in each run)
    length = path.stat().st_size
    pages = range(length // PAGE)
    some = size(3, full=40)
    for cut_at in (1, 15, 16, 99, 100, PAGE - 1, PAGE, *random.sample(range(length), some)):
        yield f"cut at {cut_at}", cut(cut_at)
    for first in random.sample(range(length // PAGE), min(some, len(pages))):
        yield f"page {first} of noise", overwritten(first * PAGE, random.randbytes(PAGE))
        yield f"page {first} of zeros", overwritten(first * PAGE, bytes(PAGE))
    for first in random.sample(range(length), size(5, full=150)):
        yield f"noise at {first}", overwritten(first, random.randbytes(random.choice((1, 4, 30))))
    yield "no header", overwritten(0, bytes(100))
    yield "another page size", overwritten(16, b"\x02\x00")
    yield "another encoding", overwritten(56, b"\0\0\0\x02")
    for suffix in ("-wal", "-shm", "-journal"):
        yield f"{suffix} of noise", beside_it(suffix, random.randbytes(3 * PAGE))
        yield f"{suffix} of zeros", beside_it(suffix, bytes(32768))
        yield f"{suffix} empty", beside_it(suffix, b"")
    log = a_log(path)
    yield "a log of its own, cut", beside_it("-wal", log[: len(log) // 2 + 7])
    yield "a log of its own, damaged", beside_it("-wal", log[:2000] + bytes(500) + log[2500:])
    yield "a text", lambda path: path.write_text("hello\n" * 5000)
    yield "a newer schema", lambda path: on_file(path, add, "migrations", number=99, name="m099", at="2030", edition=1)
    yield "a schema without a number", lambda path: on_file(path, change, "migrations", name=b"\xff", at=b"\xff")
    yield from lost_tables(path)
    yield from strange_values(path)


def a_log(path: Path) -> bytes:
    """What SQLite writes beside the file while it is in use."""
    copy = path.with_name("logged.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE messages SET text = text || '!'")
        return Path(f"{copy}-wal").read_bytes()


def lost_tables(path: Path) -> Iterator[tuple[str, Damage]]:
    for table in tables(path) if size(False, full=True) else ["messages", "names", "facts", "migrations"]:
        drop = f"PRAGMA foreign_keys = OFF; DROP TABLE {table}"
        yield f"without {table}", lambda path, drop=drop: script(path, drop)  # type: ignore[misc]
        empty = f"PRAGMA foreign_keys = OFF; DELETE FROM {table}"  # noqa: S608
        yield f"nothing in {table}", lambda path, empty=empty: script(path, empty)  # type: ignore[misc]


def strange_values(path: Path) -> Iterator[tuple[str, Damage]]:
    """Each column with values that our program never writes there."""
    random = Random(12)  # noqa: S311 (it is the same in each run)
    values = ("'{'", "'[]'", "'null'", "'\"x\"'", "x'ff00'", "CAST(x'ff0aff' AS TEXT)", "''", "-1", "9e999", "NULL")
    found = [(table, column, value) for table in tables(path) for column in columns(path, table) for value in values]
    for table, column, value in [*FOUND, *random.sample(found, size(10, full=500))]:
        change = f"PRAGMA ignore_check_constraints = ON; UPDATE OR IGNORE {table} SET {column} = {value}"  # noqa: S608
        yield f"{table}.{column} = {value}", lambda path, change=change: script(path, change)  # type: ignore[misc]


def script(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        for statement in statements.split("; "):
            try:
                database.execute(statement)
            except sqlite3.IntegrityError:
                return  # the tables themselves refuse it


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        select = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        return [name for (name,) in database.execute(select)]


def columns(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def fresh(whole: Path, folder: Path, damage: Damage) -> Path:
    """A copy of the store in an empty folder, damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "s.db"
    shutil.copy(whole, path)
    damage(path)
    return path


def trouble(*command: str, given: str = "") -> str | None:
    """What is wrong with how a command ends: it neither did its work nor said in one line why not."""
    try:
        ran = tertulia(*command, given=given)
    except Exception as error:  # noqa: BLE001 (it is what is looked for)
        return f"{type(error).__name__}: {error}"
    if "Traceback" in ran.stderr or ran.returncode not in (0, 1, 2):
        return f"{ran.returncode}: {ran.stderr}"
    lines = ran.stderr.splitlines()
    said = lines[-1:] if command[0] == "chat" else lines  # a conversation has greeted by then
    if ran.returncode == 2 and not (len(said) == 1 and said[0].startswith("tertulia: ")):
        return f"not one line: {ran.stderr!r}"
    if ran.returncode == 1 and command[:2] != ("db", "check") and command[0] != "chat":
        return f"exit 1 with {ran.stderr!r}"
    return None


def test_commands_end_with_their_work_or_one_line(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, str] = {}
    random = Random(13)  # noqa: S311 (it is the same in each run)
    for name, damage in damages(whole):
        for command in random.sample(COMMANDS, size(1, full=4)):
            path = fresh(whole, tmp_path / "here", damage)
            monkeypatch.chdir(path.parent)
            if said := trouble(*command, "--db", str(path)):
                found[f"{name}, {' '.join(command)}"] = said

    assert found == {}


def test_a_store_is_opened_and_read_or_says_in_one_line_why_not(whole: Path, tmp_path: Path) -> None:
    found: dict[str, str] = {}
    for name, damage in damages(whole):
        path = fresh(whole, tmp_path / "here", damage)
        for beside_another in (False, True):
            for said in asyncio.run(read_all(path, beside_another=beside_another)):
                found[f"{name}, {beside_another}"] = said

    assert found == {}


async def read_all(path: Path, *, beside_another: bool) -> list[str]:
    """What went wrong in another way than it should."""
    try:
        store = await Store.open(path, durable=False, beside=beside_another)
    except TertuliaError as error:
        return multiline(error)
    said: list[str] = []
    async with store:
        for read in (
            lambda: store.check(),
            lambda: store.log.read(GROUP, 0, 100),
            lambda: store.log.changes(GROUP, 0),
            lambda: store.inbox.places(),
            lambda: store.inbox.waiting(GROUP),
            lambda: store.inbox.receive(a_message("more", id="more"), at=NOON),
            lambda: store.inbox.edit(a_message("more", id="4"), at=NOON),
            lambda: store.runs.open(),
            lambda: store.runs.journal("r1"),
            lambda: store.outbox.listed(),
            lambda: store.tasks.listed(),
            lambda: store.facts.listed(),
            lambda: store.facts.why("fact-1"),
            lambda: store.forget(platform="telegram", author_id=ALICE.id, at=NOON),
        ):
            try:
                await read()
            except TertuliaError as error:
                said += multiline(error)
            except Exception as error:  # noqa: BLE001 (it is what is looked for)
                said.append(f"{type(error).__name__}: {error}")
    return said


def multiline(error: TertuliaError) -> list[str]:
    return [f"not one line: {error}"] if "\n" in str(error) or not str(error) else []


def test_a_conversation_begins_or_says_in_one_line_why_not(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, str] = {}
    with beside(GeminiSim(behaviour=Echo())) as sim:
        for name, value in environment(sim).items():
            monkeypatch.setenv(name, value)
        every = list(damages(whole))
        for name, damage in [*every[:: size(20, full=3)], *(one for one in every if one[0] in FOUND_IN_CHAT)]:
            path = fresh(whole, tmp_path / "here", damage)
            if said := trouble("chat", *FLASH, "--db", str(path), given="hello\n"):
                found[name] = said

    assert found == {}


async def test_what_is_damaged_is_told_also_where_rows_are_compared_outside_of_the_database(
    whole: Path, tmp_path: Path
) -> None:
    damaged = "PRAGMA ignore_check_constraints = ON; UPDATE OR IGNORE messages SET place = 'null'"
    path = fresh(whole, tmp_path / "here", lambda path: script(path, damaged))
    async with Store.open(path, durable=False) as store:
        await store.inbox.receive(a_message("more", id="more"), at=NOON)
        with pytest.raises(StoreBroken, match=r"^the store: it holds something that cannot be read \(TypeError: .*\)$"):
            await store.forget(platform="telegram", author_id=ALICE.id, at=NOON)
