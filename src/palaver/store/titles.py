"""Removes the titles of groups that hold a person's name."""

from typing import Any

from msgspec.structs import replace

from palaver.store.sqlite import Database
from palaver.store.values import MESSAGE, PLACE, REPLY, TASK, Kind, dumps
from palaver.store.vocabulary import Vocabulary

_REFERRING = ("messages", "runs", "facts", "episodes")
_COPIES: tuple[tuple[str, str, Kind[Any]], ...] = (
    ("tasks", "body", TASK),
    ("outbox", "reply", REPLY),
    ("events", "before", MESSAGE),
)


def remove(database: Database, words: Vocabulary) -> int:
    """Leave groups without a title that held the person's words; the next message brings the one they have now."""
    count = 0
    for row, place, title, body in database.execute("SELECT id, place, title, body FROM titles").fetchall():
        if not words.at(place).is_in(title):
            continue
        count += 1
        bare = replace(PLACE.loads(body), title="")
        same = database.execute("SELECT id FROM titles WHERE body = ?", (dumps(bare),)).fetchone()
        if same is None:
            database.execute("UPDATE titles SET title = '', body = ? WHERE id = ?", (dumps(bare), row))
        else:
            for table in _REFERRING:
                database.execute(f"UPDATE {table} SET title = ? WHERE title = ?", (same[0], row))  # noqa: S608
            database.execute("DELETE FROM titles WHERE id = ?", (row,))
        _remove_copies(database, place, title)
    return count


def _remove_copies(database: Database, place: int, title: str) -> None:
    """Take a title out of what else names the place by it."""
    for table, column, kind in _COPIES:
        select = f"SELECT id, {column} FROM {table} WHERE place = ? AND {column} IS NOT NULL"  # noqa: S608
        for row, text in database.execute(select, (place,)).fetchall():
            value = kind.loads(text)
            if value.place.title == title:
                bare = dumps(replace(value, place=replace(value.place, title="")))
                database.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (bare, row))  # noqa: S608
