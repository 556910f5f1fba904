"""Parts of a split reply: messages of the service, each with its own id, that are one message in the log.

A reply that was split is one message in the log. Its id is that of the part that was sent first; what it says are the
parts that people see, in order. This table holds each part, so that an edit or a deletion of one changes only that.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from palaver.parts import Part, Text, joined_text
from palaver.store.encoding import PARTS, clean, dumps
from palaver.store.sqlite.connection import Database

# the row of a message, by the id of it or of one of its parts; SQL with :place and :message_id
FIND_MESSAGE = """coalesce((SELECT message FROM message_parts WHERE place = :place AND message_id = :message_id),
    (SELECT id FROM messages WHERE place = :place AND message_id = :message_id))"""


def find(database: Database, place: int | None, message_id: str) -> int | None:
    """Return the row of the message with this id, or with a part of this id."""
    found = database.execute(f"SELECT {FIND_MESSAGE}", {"place": place, "message_id": message_id}).fetchone()
    return found[0] if found else None


def whole_id(database: Database, place: int | None, message_id: str) -> str:
    """Return the id of the message that has a part of this id; the id itself where there is none."""
    select = """SELECT m.message_id FROM message_parts p JOIN messages m ON m.id = p.message
        WHERE p.place = ? AND p.message_id = ?"""
    found = database.execute(select, (place, message_id)).fetchone()
    return found[0] if found else message_id


def add(
    database: Database, place: int, message: int, message_id: str, content: Sequence[Part], at: tuple[int, str]
) -> None:
    """Add a part to a message; *at* is its number in the reply, and the separator before it."""
    number, separator = at
    insert = """INSERT INTO message_parts (place, message_id, message, part, separator, content)
        VALUES (?, ?, ?, ?, ?, ?)"""
    values = (place, message_id, message, number, clean(separator), dumps(tuple(content)))
    database.execute(insert, values)


def is_part(database: Database, place: int | None, message_id: str) -> bool:
    """Return whether this is the id of one of several parts of a message."""
    select = "SELECT 1 FROM message_parts WHERE place = ? AND message_id = ?"
    return database.execute(select, (place, message_id)).fetchone() is not None


def change(database: Database, message: int, message_id: str, content: Sequence[Part]) -> None:
    """Replace the content of a part; an empty one is deleted."""
    update = "UPDATE message_parts SET content = ? WHERE message = ? AND message_id = ?"
    database.execute(update, (dumps(tuple(content)), message, message_id))


def content_of(
    database: Database, message: int, changed: Mapping[str, Sequence[Part]] = MappingProxyType({})
) -> tuple[Part, ...]:
    """Return the content of all parts: their texts joined, then other parts; *changed* ones override stored ones."""
    select = "SELECT message_id, separator, content FROM message_parts WHERE message = ? ORDER BY part"
    text, rest = "", list[Part]()
    for message_id, separator, content in database.execute(select, (message,)):
        parts = changed.get(message_id, PARTS.loads(content))
        part_text = joined_text(parts, "\n")
        text += f"{separator if text and part_text else ''}{part_text}"
        rest += [part for part in parts if not isinstance(part, Text)]
    return (*([Text(text=text)] if text else []), *rest)


def empty(database: Database, message: int) -> None:
    """Remove the content of all parts of a message."""
    database.execute("UPDATE message_parts SET content = '[]' WHERE message = ?", (message,))
