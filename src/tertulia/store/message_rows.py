"""Rows of messages: their columns, their numbered changes, the parts of split replies, reactions.

Changes are edits, deletions and removals, numbered in their place. Whoever has read messages of a place notes the
number of its last change (`places.changes`). Messages with a later change must be read again; what was derived from
them (facts, episodes, the index) is then not stored.

A reply that was split is one message in the log. Its id is that of the part that was sent first; what it says are the
parts that people see, in order. `message_parts` holds each part, so that an edit or a deletion of one changes only
that.

A service names the message it sent, so a reaction to any part of a split reply belongs to our one message. What a
prompt may have shown is not altered: a later change of a person's reactions is a row of its own, at the position that
the place has reached by then.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from msgspec.structs import replace

from tertulia.context.edits import Reaction
from tertulia.messages import Message, Place
from tertulia.parts import Media, Part, Text, joined_text
from tertulia.platform import Reacted
from tertulia.store.encoding import ANY, AUTHOR, PARTS, QUOTE, STRINGS, clean, dumps, format_time, parse_time, validate
from tertulia.store.identities import IdentityCache, upsert_name, upsert_place
from tertulia.store.sqlite.connection import Database

ChangeKind = Literal["edited", "deleted", "said", "removed"]

MESSAGE_COLUMNS = (
    "m.id, m.number, m.message_id, m.name, m.title, m.sent_at, m.edited_at, m.deleted, m.reply, m.parts, m.album, "
    "m.forwarded_from, m.doubtful"
)
# the row of a message, by the id of it or of one of its parts; SQL with :place and :message_id
FIND_MESSAGE = """coalesce((SELECT message FROM message_parts WHERE place = :place AND message_id = :message_id),
    (SELECT id FROM messages WHERE place = :place AND message_id = :message_id))"""

MAX_REACTIONS_SHOWN = 5  # changes of reactions to one message that prompts show


def decode_message(database: Database, row: tuple[Any, ...], identities: IdentityCache) -> Message:
    """Decode a row of `MESSAGE_COLUMNS`."""
    _, _, message_id, name, title, sent_at, edited_at, deleted, reply, parts, album, origin, doubtful = row
    return validate(
        Message(
            id=message_id,
            place=identities.place(database, title),
            author=identities.author(database, name),
            sent_at=parse_time(sent_at),
            parts=PARTS.loads(parts),
            reply_to=None if reply is None else QUOTE.loads(reply),
            album=album,
            forwarded_from=None if origin is None else AUTHOR.loads(origin),
            edited_at=parse_time(edited_at),
            deleted=bool(deleted),
            doubtful=bool(doubtful),
        )
    )


def find_message(database: Database, place: int | None, message_id: str) -> int | None:
    """Return the row of the message with this id, or with a part of this id."""
    found = database.execute(f"SELECT {FIND_MESSAGE}", {"place": place, "message_id": message_id}).fetchone()
    return found[0] if found else None


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
        "seen": int(number < known_messages(database, place)),
    }
    insert = f"INSERT INTO message_changes ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
    database.execute(insert, tuple(values.values()))


def has_changed(database: Database, place: int, since: int, between: tuple[int, int]) -> bool:
    """Return whether people changed a message with a number *between* these after the change *since*."""
    select = """SELECT 1 FROM message_changes WHERE place = ? AND change > ? AND number >= ? AND number < ?
        AND kind IN ('edited', 'deleted', 'removed') LIMIT 1"""
    return database.execute(select, (place, since, *between)).fetchone() is not None


def known_messages(database: Database, place: int) -> int:
    """Return the number of messages that the newest run with a prompt knew of a place."""
    select = "SELECT horizon FROM runs WHERE place = ? AND horizon > 0 ORDER BY id DESC LIMIT 1"
    row = database.execute(select, (place,)).fetchone()
    return row[0] if row else 0


def whole_id(database: Database, place: int | None, message_id: str) -> str:
    """Return the id of the message that has a part of this id; the id itself where there is none."""
    select = """SELECT m.message_id FROM message_parts p JOIN messages m ON m.id = p.message
        WHERE p.place = ? AND p.message_id = ?"""
    found = database.execute(select, (place, message_id)).fetchone()
    return found[0] if found else message_id


def add_part(
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


def change_part(database: Database, message: int, message_id: str, content: Sequence[Part]) -> None:
    """Replace the content of a part; an empty one is deleted."""
    update = "UPDATE message_parts SET content = ? WHERE message = ? AND message_id = ?"
    database.execute(update, (dumps(tuple(content)), message, message_id))


def remove_part(database: Database, place: int, message_id: str) -> None:
    database.execute("DELETE FROM message_parts WHERE place = ? AND message_id = ?", (place, message_id))


def first_part(database: Database, message: int) -> str:
    """Return the id of the first part of a message."""
    select = "SELECT message_id FROM message_parts WHERE message = ? ORDER BY part LIMIT 1"
    name: str = database.execute(select, (message,)).fetchone()[0]
    return name


def join_parts(
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


def empty_parts(database: Database, message: int) -> None:
    """Remove the content of all parts of a message."""
    database.execute("UPDATE message_parts SET content = '[]' WHERE message = ?", (message,))


def _place_of_message(database: Database, place: Place, message_id: str) -> int:
    """Return the row of a place, or of its thread that has the message: some services do not name the thread."""
    row = upsert_place(database, place)
    if place.thread is not None or find_message(database, row, message_id) is not None:
        return row
    threads = "SELECT id FROM places WHERE platform = ? AND place_id = ? AND thread IS NOT NULL ORDER BY id"
    found = [thread for (thread,) in database.execute(threads, (clean(place.platform), place.id)).fetchall()]
    return next((thread for thread in found if find_message(database, thread, message_id) is not None), row)


def add_reaction(database: Database, change: Reacted, at: datetime) -> None:
    """Store the current reactions of a person to a message, in place of earlier ones."""
    name = upsert_name(database, change.place.author_namespace, change.author, at)
    place = _place_of_message(database, change.place, change.message_id)
    theirs = """place = ? AND message_id = ? AND name IN (
        SELECT id FROM names WHERE author = (SELECT author FROM names WHERE id = ?))"""
    key = (place, change.message_id, name)
    select = f"SELECT emojis FROM reactions WHERE {theirs} AND current = 1"
    found = database.execute(select, key).fetchone()
    if (STRINGS.loads(found[0]) if found else ()) == change.emojis:
        return
    (count,) = database.execute("SELECT messages FROM places WHERE id = ?", (place,)).fetchone()
    replaced = f"DELETE FROM reactions WHERE {theirs} AND (position IS NULL OR position = ?) RETURNING position"
    positions = [row[0] for row in database.execute(replaced, (*key, count)).fetchall()]
    before = database.execute(f"UPDATE reactions SET current = 0 WHERE {theirs}", key).rowcount
    if change.emojis or before:
        message = find_message(database, place, change.message_id)
        select = "SELECT count(*) FROM reactions WHERE message = ? AND position IS NOT NULL"
        (shown,) = database.execute(select, (message,)).fetchone()
        position = count if message is not None and shown < MAX_REACTIONS_SHOWN else None
        positions.append(position)
        insert = """INSERT INTO reactions (place, message_id, name, emojis, at, message, position)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        database.execute(insert, (*key, dumps(change.emojis), format_time(change.at or at), message, position))
    if any(position is not None for position in positions):  # a prompt that was built meanwhile is outdated
        database.execute("UPDATE places SET changes = changes + 1 WHERE id = ?", (place,))


def read_reactions(database: Database, place: int, since: int, identities: IdentityCache) -> list[Reaction]:
    """Return the changes of reactions that prompts show, to messages from number *since* on, in order."""
    select = """SELECT m.number, r.position, r.name, r.emojis, r.at FROM reactions r JOIN messages m ON m.id = r.message
        WHERE r.place = ? AND r.position > ? AND m.number >= ? ORDER BY r.position, r.id"""
    return [
        Reaction(
            number=number,
            position=position,
            author=identities.author(database, name),
            emojis=STRINGS.loads(emojis),
            at=parse_time(at),
        )
        for number, position, name, emojis, at in database.execute(select, (place, since, since)).fetchall()
    ]


def description_of(database: Database, unique_id: str) -> str:
    """Return the newest description of media; empty without one."""
    select = "SELECT body FROM descriptions WHERE unique_id = ? ORDER BY id DESC LIMIT 1"
    row = database.execute(select, (clean(unique_id),)).fetchone()
    return str(ANY.loads(row[0])) if row else ""


def with_descriptions(database: Database, message: Message) -> Message:
    """Return a message with the descriptions of its media, by which it may have been found."""
    if not any(isinstance(part, Media) for part in message.parts):
        return message
    parts = (
        replace(part, rendered_text=part.rendered_text or description_of(database, part.unique_id) or None)
        if isinstance(part, Media)
        else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
