"""Changes of messages: edits, deletions and removals, numbered in their place.

Whoever has read messages of a place notes the number of its last change (`places.changes`). Messages with a later
change must be read again; what was derived from them (facts, episodes, the index) is then not stored.
"""

from datetime import datetime
from typing import Literal

from palaver.messages import Message
from palaver.store.encoding import dumps, format_time
from palaver.store.sqlite.connection import Database

ChangeKind = Literal["edited", "deleted", "said", "removed"]


def insert_change(
    database: Database, message: int, kind: ChangeKind, at: datetime | None, before: Message | None
) -> None:
    """Store that a message changes, and what it was *before*."""
    place, number = database.execute("SELECT place, number FROM messages WHERE id = ?", (message,)).fetchone()
    counted = "UPDATE places SET changes = changes + 1 WHERE id = ? RETURNING changes, messages"
    change, position = database.execute(counted, (place,)).fetchone()
    values = {
        "place": place,
        "change": change,
        "message": message,
        "number": number,
        "kind": kind,
        "at": format_time(at),
        "before": None if before is None else dumps(before),
        "position": position,
        "seen": int(number < _horizon(database, place)),
    }
    insert = f"INSERT INTO message_changes ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
    database.execute(insert, tuple(values.values()))


def has_changed(database: Database, place: int, since: int, between: tuple[int, int]) -> bool:
    """Return whether people changed a message with a number *between* these after the change *since*."""
    select = """SELECT 1 FROM message_changes WHERE place = ? AND change > ? AND number >= ? AND number < ?
        AND kind IN ('edited', 'deleted', 'removed') LIMIT 1"""
    return database.execute(select, (place, since, *between)).fetchone() is not None


def _horizon(database: Database, place: int) -> int:
    """Return the number of messages that the newest run with a prompt knew of a place."""
    select = "SELECT horizon FROM runs WHERE place = ? AND horizon > 0 ORDER BY id DESC LIMIT 1"
    row = database.execute(select, (place,)).fetchone()
    return row[0] if row else 0
