"""Reads the search index. Every query includes the place and the author who asks."""

from collections.abc import Mapping, Sequence
from typing import Any

from palaver.memory.retrieval.index import PlaceView, Posting, Row, WantedTerm
from palaver.messages import Author, Message, Place
from palaver.store.encoding import clean
from palaver.store.identities import IdentityCache, conversation_start, place_key
from palaver.store.index_writer import chosen_embedder
from palaver.store.message_rows import MESSAGE_COLUMNS, decode_message
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import ConnectionThread

MOST = 20_000  # postings of a term in a place; only the newest are read
_LAST_CHARACTER = "\U0010ffff"

_SELECT_VIEW = """SELECT p.id, s.indexed_to, s.edition FROM places p JOIN search_places s ON s.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.place_key = ? AND NOT EXISTS (
        SELECT 1 FROM authors a JOIN blocked_authors b ON b.author = a.id
        WHERE a.platform = p.service AND a.author_id = ?
    ) AND ((? <> 'direct' AND json_extract(t.body, '$.kind') <> 'direct') OR p.place_id = ? OR EXISTS (
        SELECT 1 FROM search_messages w JOIN names n ON n.id = w.name JOIN authors a ON a.id = n.author
        WHERE w.place = p.id AND a.author_id = ?
    ))"""  # a direct chat is visible to its members only
_SELECT_ROWS = """SELECT s.number, n.author, s.at, s.length, s.traits, s.first, s.last FROM search_messages s
    JOIN names n ON n.id = s.name WHERE s.place = ? AND s.number >= ?
    AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author) ORDER BY s.number"""
_SELECT_NAMES = """SELECT n.author, n.name, n.username FROM names n
    WHERE n.id IN (SELECT name FROM search_messages WHERE place = ? AND number >= ?)
    AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author)"""
_SELECT_VECTORS = """SELECT number, vector FROM search_vectors
    WHERE place = ? AND embedder = ? AND number >= ? ORDER BY number"""
_SELECT_TERM = """SELECT term, number, packed FROM search_terms WHERE place = ? AND term = ?
    ORDER BY number DESC LIMIT ?"""
_SELECT_PREFIX = """SELECT term, number, packed FROM search_terms WHERE place = ? AND term >= ? AND term < ?
    ORDER BY number DESC LIMIT ?"""


class SqlIndexReader:
    """Implements `memory.retrieval.index.IndexReader`."""

    def __init__(self, reader: ConnectionThread, *, most: int = MOST) -> None:
        self._reader = reader
        self._most = most

    async def view(self, place: Place, author: Author) -> PlaceView | None:
        return await self._reader.run(lambda database: _view(database, place, author))

    async def rows(self, row: int, since: int) -> Sequence[Row]:
        return await self._asked(_SELECT_ROWS, row, since)

    async def names(self, row: int, since: int) -> Sequence[tuple[int, str]]:
        found = await self._asked(_SELECT_NAMES, row, since)
        return [(author, name) for author, *names in found for name in names if name]

    async def vectors(self, row: int, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        return await self._asked(_SELECT_VECTORS, row, embedder, since)

    async def postings(self, row: int, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        return await self._reader.run(lambda database: [_postings(database, row, *one, self._most) for one in wanted])

    async def messages(self, row: int, numbers: Sequence[int]) -> Mapping[int, Message]:
        return await self._reader.run(lambda database: _messages(database, row, numbers))

    async def _asked(self, select: str, *values: Any) -> list[Any]:
        return await self._reader.run(lambda database: database.execute(select, values).fetchall())


def _view(database: Database, place: Place, author: Author) -> PlaceView | None:
    who = clean(author.id)
    found = database.execute(_SELECT_VIEW, (place_key(place), who, place.kind, who, who)).fetchone()
    if found is None:
        return None
    row, size, edition = found
    embedded = database.execute("SELECT embedder, embedded_to FROM search_progress WHERE place = ?", (row,))
    return PlaceView(
        row=row,
        first=conversation_start(database, place),
        size=size,
        edition=edition,
        blocked=frozenset(blocked for (blocked,) in database.execute("SELECT author FROM blocked_authors")),
        embedded=dict(embedded.fetchall()),
        embedder=chosen_embedder(database),
    )


def _postings(database: Database, place: int, prefix: str, whole: bool, most: int) -> list[Posting]:
    if whole:
        return database.execute(_SELECT_TERM, (place, prefix, most)).fetchall()
    return database.execute(_SELECT_PREFIX, (place, prefix, prefix + _LAST_CHARACTER, most)).fetchall()


def _messages(database: Database, place: int, numbers: Sequence[int]) -> dict[int, Message]:
    select = f"""SELECT {MESSAGE_COLUMNS} FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND m.number IN ({", ".join("?" * len(numbers))}) AND m.deleted = 0 AND m.hidden = 0
        AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author)"""
    identities = IdentityCache()
    rows = database.execute(select, (place, *numbers)).fetchall()
    return {row[1]: decode_message(database, row, identities) for row in rows}
