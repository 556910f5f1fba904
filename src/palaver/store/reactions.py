"""Reactions to messages: the current ones of each person, and earlier ones that a prompt may have shown.

A service names the message it sent; a reaction to any part of a split reply belongs to our one message. What a prompt
may have shown is not altered: a later change is a row of its own, at the position that the place has reached by then.
"""

from datetime import datetime

from palaver.context.edits import Reaction
from palaver.platform import Reacted
from palaver.store import message_parts
from palaver.store.encoding import STRINGS, dumps, format_time, parse_time
from palaver.store.identities import IdentityCache, upsert_name, upsert_place
from palaver.store.sqlite.connection import Database

MAX_SHOWN = 5  # changes of reactions to one message that prompts show


def add(database: Database, change: Reacted, at: datetime) -> None:
    """Store the current reactions of a person to a message, in place of earlier ones."""
    name = upsert_name(database, change.place.author_namespace, change.author, at)
    place = upsert_place(database, change.place)
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
        message = message_parts.find(database, place, change.message_id)
        position = count if message is not None and _is_shown(database, message) else None
        positions.append(position)
        insert = """INSERT INTO reactions (place, message_id, name, emojis, at, message, position)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        database.execute(insert, (*key, dumps(change.emojis), format_time(change.at or at), message, position))
    if any(position is not None for position in positions):  # a prompt that was built meanwhile is outdated
        database.execute("UPDATE places SET changes = changes + 1 WHERE id = ?", (place,))


def read_changes(database: Database, place: int, since: int, identities: IdentityCache) -> list[Reaction]:
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


def _is_shown(database: Database, message: int) -> bool:
    select = "SELECT count(*) FROM reactions WHERE message = ? AND position IS NOT NULL"
    return bool(database.execute(select, (message,)).fetchone()[0] < MAX_SHOWN)
