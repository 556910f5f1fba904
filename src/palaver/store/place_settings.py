"""Settings of places: the delimiter, the start of the conversation, blocked authors."""

import secrets
import string
from datetime import datetime

from palaver.messages import Place
from palaver.store import episodes
from palaver.store.encoding import clean
from palaver.store.forget.retraction import strip_quotes
from palaver.store.identities import conversation_start, find_author, place_key, read_place, upsert_author, upsert_place
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import ConnectionThread, Repository
from palaver.timezones import utc

_LETTERS = string.ascii_lowercase + string.digits
_LENGTH = 16
_CACHE_SIZE = 4096  # delimiters, which never change


class SqlPlaceSettings(Repository):
    """Implements `engine.store_protocols.PlaceSettings`."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread) -> None:
        super().__init__(writer, reader)
        self._delimiters: dict[str, str] = {}
        self._blocked: frozenset[tuple[str, str]] | None = None  # None: not read yet

    async def delimiter(self, place: Place) -> str:
        key = place_key(place)
        if key in self._delimiters:
            return self._delimiters[key]
        delimiter = await self._reader.run(lambda database: _delimiter(database, place))
        if delimiter is None:
            made = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
            delimiter = await self._writer.run(lambda database: _set_delimiter(database, place, made))
        if len(self._delimiters) >= _CACHE_SIZE:
            self._delimiters.clear()
        self._delimiters[key] = delimiter
        return delimiter

    async def beginning(self, place: Place) -> int:
        return await self._reader.run(lambda database: conversation_start(database, place))

    async def clear(self, place: Place, beginning: int, *, at: datetime) -> None:
        await self._writer.run(lambda database: _clear(database, place, beginning, utc(at)))

    async def blocked(self) -> frozenset[tuple[str, str]]:
        if self._blocked is None:
            found = await self._reader.run(_blocked)
            if self._blocked is None:  # nobody was blocked meanwhile
                self._blocked = found
        return self._blocked

    async def block(self, platform: str, author_id: str, *, at: datetime) -> None:
        self._blocked = await self._writer.run(lambda database: _block(database, platform, author_id, at))

    async def unblock(self, platform: str, author_id: str) -> None:
        self._blocked = await self._writer.run(lambda database: _unblock(database, platform, author_id))

    def clear_cache(self) -> None:
        """Forget what was read."""
        self._delimiters.clear()
        self._blocked = None


def _delimiter(database: Database, place: Place) -> str | None:
    row = read_place(database, place, "delimiter")
    return row[0] if row else None


def _set_delimiter(database: Database, place: Place, made: str) -> str:
    """Set the delimiter of *place* to *made* if it has none; return its delimiter."""
    update = "UPDATE places SET delimiter = coalesce(delimiter, ?) WHERE id = ? RETURNING delimiter"
    delimiter: str = database.execute(update, (made, upsert_place(database, place))).fetchone()[0]
    return delimiter


def _clear(database: Database, place: Place, first: int, at: datetime) -> None:
    """Begin the conversation with number *first*; later messages lose their quotes of earlier ones."""
    row = upsert_place(database, place)
    update = "UPDATE places SET beginning = ? WHERE id = ? AND beginning < ?"
    if not database.execute(update, (first, row, first)).rowcount:
        return
    episodes.remove_spanning(database, row, first)
    quoting = """SELECT m.id, m.reply FROM messages m JOIN messages q ON q.place = m.place
        AND q.message_id = m.reply_to WHERE m.place = ? AND m.number >= ? AND q.number < ?"""
    strip_quotes(database, database.execute(quoting, (row, first, first)).fetchall(), at)


def _blocked(database: Database) -> frozenset[tuple[str, str]]:
    select = "SELECT a.platform, a.author_id FROM blocked_authors b JOIN authors a ON a.id = b.author"
    return frozenset(database.execute(select).fetchall())


def _block(database: Database, platform: str, author_id: str, at: datetime) -> frozenset[tuple[str, str]]:
    """Block an author; return all blocked ones."""
    insert = "INSERT INTO blocked_authors (author, at) VALUES (?, ?) ON CONFLICT DO NOTHING"
    database.execute(insert, (upsert_author(database, platform, author_id), utc(at).isoformat()))
    return _blocked(database)


def _unblock(database: Database, platform: str, author_id: str) -> frozenset[tuple[str, str]]:
    """Unblock an author; return all blocked ones."""
    author = find_author(database, clean(platform), clean(author_id))
    if author is not None and database.execute("DELETE FROM blocked_authors WHERE author = ?", (author,)).rowcount:
        episodes.remove_without(database, author)
    return _blocked(database)
