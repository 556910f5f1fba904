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
    """Leave groups without a title that held the person's words; the next message brings the one they have now.

    A group may have had thousands of titles: each table is gone through once for all of them.
    """
    select = "SELECT id, place, title, body FROM titles"
    found = [row for row in database.execute(select).fetchall() if words.at(row[1]).is_in(row[2])]
    bare_rows: dict[str, int] = {}
    replaced: dict[int, list[int]] = {}  # rows of titles by the row that stands for them from now on
    removed: dict[int, set[str]] = {}  # titles by place
    for row, place, title, body in found:
        bare = dumps(replace(PLACE.loads(body), title=""))
        if bare not in bare_rows:
            bare_rows[bare] = _bare_row(database, row, bare)
        replaced.setdefault(bare_rows[bare], []).append(row)
        removed.setdefault(place, set()).add(title)
    for bare_row, rows in replaced.items():
        if others := [row for row in rows if row != bare_row]:
            _replace(database, others, bare_row)
    for place, titles in removed.items():
        _remove_copies(database, place, titles)
    return len(found)


def _bare_row(database: Database, row: int, bare: str) -> int:
    """The row of the place without a title: that which there is, else *row*, which becomes it."""
    same = database.execute("SELECT id FROM titles WHERE body = ?", (bare,)).fetchone()
    if same is not None:
        return int(same[0])
    database.execute("UPDATE titles SET title = '', body = ? WHERE id = ?", (bare, row))
    return row


def _replace(database: Database, rows: list[int], by: int) -> None:
    """Let everything refer to the row *by* in place of *rows*, which go.

    SQLite looks for references to every row that is deleted; without an index it would read the whole table each time.
    """
    which = dumps(rows)
    for table in _REFERRING:
        update = f"UPDATE {table} SET title = ? WHERE title IN (SELECT value FROM json_each(?))"  # noqa: S608
        database.execute(update, (by, which))
        database.execute(f"CREATE INDEX {table}_title ON {table} (title)")
    database.execute("DELETE FROM titles WHERE id IN (SELECT value FROM json_each(?))", (which,))
    for table in _REFERRING:
        database.execute(f"DROP INDEX {table}_title")


def _remove_copies(database: Database, place: int, titles: set[str]) -> None:
    """Take titles out of what else names the place by them."""
    for table, column, kind in _COPIES:
        select = f"SELECT id, {column} FROM {table} WHERE place = ? AND {column} IS NOT NULL"  # noqa: S608
        for row, text in database.execute(select, (place,)).fetchall():
            value = kind.loads(text)
            if value.place.title in titles:
                bare = dumps(replace(value, place=replace(value.place, title="")))
                database.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (bare, row))  # noqa: S608
