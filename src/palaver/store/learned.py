"""How far the messages of each place were read for facts and episodes."""

from collections.abc import Sequence

from palaver.memory.facts import Reading, What
from palaver.messages import Place
from palaver.store.people import find_place, place_key
from palaver.store.sqlite import Database
from palaver.store.values import PLACE
from palaver.store.writer import Owner

_COLUMN = {"facts": "facts", "episodes": "episodes"}


class Learned:
    """`memory.facts.Learned`, kept."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader

    async def reading(self, place: Place, *, most: int | None = None) -> Reading | None:
        return await self._reader.run(lambda database: _reading(database, place, most))

    async def unread(self, what: What = "facts") -> Sequence[Place]:
        return await self._reader.run(lambda database: _unread(database, _COLUMN[what]))

    async def read_to(self, place: Place, what: What = "facts") -> int:
        return await self._reader.run(lambda database: _read_to(database, place, _COLUMN[what]))

    async def mark(self, place: Place, number: int, what: What = "facts") -> None:
        await self._writer.run(lambda database: mark(database, place, number, what))


def mark(database: Database, place: Place, number: int, what: What = "facts") -> None:
    """Note how far a place was read: no further than there are messages."""
    column = _COLUMN[what]
    row = database.execute("SELECT id, messages FROM places WHERE place_key = ?", (place_key(place),)).fetchone()
    if row is None:
        return
    keep = f"""INSERT INTO learned (place, {column}) VALUES (?, ?)
        ON CONFLICT (place) DO UPDATE SET {column} = excluded.{column}"""  # noqa: S608
    database.execute(keep, (row[0], max(0, min(number, row[1]))))


def stands(database: Database, reading: Reading) -> bool:
    """Whether nothing of a stretch was read or has changed since its reading began."""
    known = database.execute("SELECT messages, changes FROM places WHERE place_key = ?", (place_key(reading.place),))
    messages, changes = known.fetchone() or (-1, -1)  # it may have been forgotten meanwhile
    if messages < reading.stop or changes < reading.changes:
        return False
    if _read_to(database, reading.place, "facts") != reading.start:
        return False
    select = """SELECT 1 FROM events WHERE place = ? AND change > ? AND number >= ? AND number < ?
        AND kind IN ('edited', 'deleted', 'removed') LIMIT 1"""
    between = (reading.changes, reading.start, reading.stop)
    return database.execute(select, (find_place(database, reading.place), *between)).fetchone() is None


def _reading(database: Database, place: Place, most: int | None) -> Reading | None:
    select = """SELECT coalesce(l.facts, 0), p.messages, p.changes FROM places p LEFT JOIN learned l ON l.place = p.id
        WHERE p.place_key = ?"""
    row = database.execute(select, (place_key(place),)).fetchone()
    if row is None or row[0] >= row[1]:
        return None
    start, stop, changes = row
    return Reading(
        place=place, start=start, stop=stop if most is None else min(stop, start + max(1, most)), changes=changes
    )


def _unread(database: Database, column: str) -> list[Place]:
    select = f"""SELECT t.body FROM places p LEFT JOIN learned l ON l.place = p.id
        JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
        WHERE p.messages > coalesce(l.{column}, 0) ORDER BY p.id"""  # noqa: S608
    return [PLACE.loads(body) for (body,) in database.execute(select)]


def _read_to(database: Database, place: Place, column: str) -> int:
    select = f"SELECT {column} FROM learned WHERE place = ?"  # noqa: S608
    row = database.execute(select, (find_place(database, place),)).fetchone()
    return row[0] if row else 0
