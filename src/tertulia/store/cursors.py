"""Reading cursors: up to which message a place was read for facts and episodes; facts excluded from learning."""

import hashlib
from collections.abc import Sequence

from tertulia.memory.values import CursorKind, UnreadRange
from tertulia.memory.verify.comparison import comparable_words
from tertulia.messages import Place
from tertulia.store.encoding import PLACE, dumps
from tertulia.store.identities import find_place, place_key
from tertulia.store.message_rows import has_changed
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository

EXCLUDED = (
    "EXISTS (SELECT 1 FROM fact_exclusions g WHERE g.about = ? AND g.digest IN ('', ?) AND m.id <= g.last_message)"
)


class SqlCursors(Repository):
    """Implements `memory.values.Cursors`."""

    async def next_range(self, place: Place, *, most: int | None = None) -> UnreadRange | None:
        return await self._reader.run(lambda database: _next_range(database, place, most))

    async def unread(self) -> Sequence[Place]:
        return await self._reader.run(_unread)


def set_cursor(database: Database, place: Place, number: int, what: CursorKind = "facts") -> None:
    """Set the cursor of a place, at most to its number of messages."""
    row = database.execute("SELECT id, messages FROM places WHERE place_key = ?", (place_key(place),)).fetchone()
    if row is None:
        return
    upsert = f"""INSERT INTO reading_cursors (place, {what}) VALUES (?, ?)
        ON CONFLICT (place) DO UPDATE SET {what} = excluded.{what}"""
    database.execute(upsert, (row[0], max(0, min(number, row[1]))))


def mark_read(database: Database, reading: UnreadRange) -> None:
    """Advance the cursor over a range, and mark its messages as no longer stale."""
    if reading.stop > read_cursor(database, reading.place):
        set_cursor(database, reading.place, reading.stop)
    done = "UPDATE messages SET stale = 0 WHERE place = ? AND number >= ? AND number < ? AND stale = 1"
    database.execute(done, (find_place(database, reading.place), reading.start, reading.stop))


def is_current(database: Database, reading: UnreadRange) -> bool:
    """Return whether a range is still unread, and none of its messages has changed since it was handed out."""
    select = "SELECT id, messages, changes FROM places WHERE place_key = ?"
    row = database.execute(select, (place_key(reading.place),)).fetchone()
    if row is None or row[1] < reading.stop or row[2] < reading.changes:
        return False  # it was forgotten meanwhile
    unread = "SELECT 1 FROM messages WHERE place = ? AND number = ? AND (stale = 1 OR number = ?)"
    due = (row[0], reading.start, read_cursor(database, reading.place))
    if database.execute(unread, due).fetchone() is None:
        return False
    return not has_changed(database, row[0], reading.changes, (reading.start, reading.stop))


def fact_digest(text: str, name: str) -> str:
    """Digest of a fact: equal for facts that say the same in other words, and not readable."""
    return hashlib.sha256(dumps(comparable_words(text, name)).encode()).hexdigest()[:16]


def exclude_fact(database: Database, fact: int) -> None:
    """Exclude a fact: it is not learned again from messages that exist now."""
    about, text, name = database.execute("SELECT about, text, name FROM facts WHERE id = ?", (fact,)).fetchone()
    exclude(database, about, fact_digest(text, name))


def exclude(database: Database, author: int, what: str = "") -> None:
    """Exclude a digest for a person; without one, everything about that person."""
    upsert = """INSERT INTO fact_exclusions (about, digest, last_message)
        SELECT ?, ?, coalesce(max(id), 0) FROM messages WHERE true
        ON CONFLICT (about, digest) DO UPDATE SET last_message = excluded.last_message"""
    database.execute(upsert, (author, what))


def _next_range(database: Database, place: Place, most: int | None) -> UnreadRange | None:
    select = """SELECT p.messages, p.changes, coalesce(l.facts, 0),
        (SELECT min(m.number) FROM messages m WHERE m.place = p.id AND m.stale = 1)
        FROM places p LEFT JOIN reading_cursors l ON l.place = p.id WHERE p.place_key = ?"""
    messages, changes, read, again = database.execute(select, (place_key(place),)).fetchone() or (0, 0, 0, None)
    if again is not None:
        return UnreadRange(place=place, start=again, stop=again + 1, changes=changes)
    if read >= messages:
        return None
    stop = messages if most is None else min(messages, read + max(1, most))
    return UnreadRange(place=place, start=read, stop=stop, changes=changes)


def _unread(database: Database) -> list[Place]:
    select = """SELECT t.body FROM places p LEFT JOIN reading_cursors l ON l.place = p.id
        JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
        WHERE p.messages > coalesce(l.facts, 0) OR p.id IN (SELECT place FROM messages WHERE stale = 1)
        ORDER BY p.id"""
    return [PLACE.loads(body) for (body,) in database.execute(select)]


def read_cursor(database: Database, place: Place, what: CursorKind = "facts") -> int:
    """Return the cursor of a place: the number of the first message that was not read."""
    select = f"SELECT {what} FROM reading_cursors WHERE place = ?"
    row = database.execute(select, (find_place(database, place),)).fetchone()
    return row[0] if row else 0
