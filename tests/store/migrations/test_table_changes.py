"""Tables, columns and indexes have plain names, in files of every older version too."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from people import ALICE, GROUP, NOON, a_message, a_talk
from store.builders import a_run, an_outgoing, begin, set_cursor
from store.older import revert
from store.processes import child
from tertulia.media.descriptions import Description
from tertulia.memory.facts import Subject
from tertulia.store import Store
from tertulia.store.migrations import migrate, table_changes, version
from tertulia.store.migrations.steps import MIGRATIONS, m030_plain_names
from tertulia.store.sqlite import connection

RENAMED = MIGRATIONS.index(m030_plain_names) + 1  # the version with plain names
ROWS = (  # as version 1 has them
    "INSERT INTO places (id, place_key, platform, place_id, messages, changes) "
    "VALUES (1, '[\"telegram\",\"-100123\"]', 'telegram', '-100123', 2, 1)",
    """INSERT INTO titles VALUES (1, 1, '', '{"platform":"telegram","id":"-100123","kind":"group"}')""",
    "INSERT INTO authors VALUES (1, 'telegram', 'u1')",
    """INSERT INTO names VALUES (1, 1, 'Alice', NULL, NULL, '{"id":"u1","name":"Alice"}')""",
    *(
        f"""INSERT INTO messages (id, place, number, message_id, role, text, state, name, title, parts)
        VALUES ({number + 1}, 1, {number}, 'm{number}', 'user', 'hello', 'passed', 1, 1,
            '[{{"kind":"text","text":"hello"}}]')"""  # noqa: S608 (numbers)
        for number in range(2)
    ),
    """INSERT INTO events (place, change, message, number, kind, at, before)
        VALUES (1, 1, 1, 0, 'edited', '2025-01-15T12:00:00+00:00', NULL)""",
    "INSERT INTO descriptions VALUES ('p1', 'a cat', '\"a cat\"', 'model', '2025-01-15T12:00:00+00:00')",
    """INSERT INTO runs VALUES (1, 'r1', 1, 1, 'm0', '["m0"]', '2025-01-15T12:00:00+00:00', 1, 'm', 'p', 'done',
        NULL, '', '[]')""",
    "INSERT INTO layers (hash, name, rest) VALUES ('ee', 'static', '{\"name\":\"static\"}')",
)


def schema(database: Any) -> list[Any]:
    select = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    return database.execute(select).fetchall()  # type: ignore[no-any-return]


async def test_a_file_of_every_older_version_opens(tmp_path: Path) -> None:
    async with Store.open(":memory:") as new:
        wanted = await new.reader.run(schema)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as older:
        for number in range(1, len(MIGRATIONS)):
            migrate(older, MIGRATIONS[:number])
            for row in ROWS if number == 1 else ():
                older.execute(row)
            path = tmp_path / f"{number}.db"
            with closing(sqlite3.connect(path)) as file:
                older.backup(file)
            await check_opens(path, wanted)


async def check_opens(path: Path, wanted: list[Any]) -> None:
    async with Store.open(path, durable=False) as store:
        assert await store.reader.run(schema) == wanted, path.name
        assert [message.text for message in await store.log.read(GROUP, 0, 2)] == ["hello", "hello"], path.name
        assert await store.descriptions.find(["p1"]) == {"p1": Description(words="a cat")}, path.name
        rows = {row["table"]: row async for row in store.export()}
        assert rows["runs"]["message_ids"] == ["m0"], path.name
        assert rows["message_changes"]["kind"] == "edited", path.name
        assert await store.reader.run(connection.find_faults) == [], path.name


async def a_full_file(path: Path) -> list[dict[str, Any]]:
    """A file with rows in the tables that are renamed; its rows."""
    async with Store.open(path) as store:
        for message in a_talk(3):
            await store.inbox.receive(message, at=NOON)
        await store.inbox.edit(a_message("other words", id="0", author=a_talk(3)[0].author), at=NOON)
        await begin(store, a_run(target="0", taken=("0",)))
        await store.outbox.put(an_outgoing())
        await store.place_settings.block("telegram", "u666", at=NOON)
        await set_cursor(store, GROUP, 2)
        await store.facts.forget_all(Subject(platform="telegram", id=ALICE.id, name=ALICE.name), at=NOON)
        await store.descriptions.describe("p1", "a cat", by="model", at=NOON)
        return [row async for row in store.export()]


async def test_renaming_changes_no_row(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    before = await a_full_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        revert(database, m030_plain_names)
        assert version(database) == RENAMED - 1

    async with Store.open(path) as store:
        assert [row async for row in store.export()] == before
        assert await store.check() == []


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE events RENAME", "ALTER TABLE messages RENAME", "CREATE INDEX messages_stale", "COMMIT"],
)
async def test_a_kill_while_names_are_changed_leaves_the_file_whole(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "s.db"
    before = await a_full_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        revert(database, m030_plain_names)

    with child(path, f"die at {statement}") as process:
        assert process.wait() == 9
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        assert version(database) == RENAMED - 1
    async with Store.open(path) as store:
        assert [row async for row in store.export()] == before
        assert await store.check() == []


def test_names_are_reverted_as_they_were() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, MIGRATIONS[: RENAMED - 1])
        before = schema(database)

        table_changes.rename_all(database, table_changes.ALL_RENAMES)
        table_changes.revert_all(database, table_changes.ALL_RENAMES)

        assert [row[:3] for row in schema(database)] == [row[:3] for row in before]
