"""Statements of the rooms in SQLite: by which index they search; rows that can be read without this program."""

import sqlite3
from contextlib import closing
from pathlib import Path

from people import GRYAG, NOON, a_message, a_photo
from store.builders import add_own
from tertulia.parts import Text
from tertulia.store import Store, log


async def test_changes_are_found_without_reading_all_events() -> None:
    async with Store.open(":memory:") as store:
        explained = f"EXPLAIN QUERY PLAN {log.CHANGES}"
        plan = await store.reader.run(lambda database: database.all(explained, place=1, since=1))

        assert [row[3] for row in plan][:2] == [
            "SEARCH e USING INDEX message_changes_seen (place=? AND number>?)",
            "CORRELATED SCALAR SUBQUERY 1",
        ]


async def test_the_messages_can_be_read_with_plain_sqlite(tmp_path: Path) -> None:
    photo = a_photo(rendered_text="a cat")
    async with Store.open(tmp_path / "s.db") as store:
        await store.inbox.receive(a_message("look", parts=(Text(text="look"), photo, Text(text="here"))), at=NOON)
        await add_own(store, a_message("A cat!", id="m2", author=GRYAG), [])

        with closing(sqlite3.connect(tmp_path / "s.db")) as database:
            rows = database.execute("SELECT role, text, media FROM messages ORDER BY id DESC LIMIT 10").fetchall()

    media = '[{"kind":"media","media_kind":"photo","unique_id":"p1","mime":"image/jpeg","rendered_text":"a cat"}]'
    assert rows == [("model", "A cat!", None), ("user", "look\nhere", media)]
