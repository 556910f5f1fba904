"""The index of what was said, asked: the place and who asks there are part of every question."""

from collections.abc import Mapping, Sequence
from typing import Any

from palaver.memory.retrieval.index import PlaceView, Posting, Row, WantedTerm
from palaver.messages import Author, Message, Place
from palaver.store.encoding import clean
from palaver.store.identities import Versions, beginning, place_key
from palaver.store.index_writer import chosen
from palaver.store.messages import COLUMNS, as_message
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import Owner

MOST = 20_000  # of a word that is in more messages of a place than this, only the newest are looked at
_LAST = "\U0010ffff"

_SEEN = """SELECT p.id, s.words, s.edition FROM places p JOIN search_places s ON s.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.place_key = ? AND NOT EXISTS (
        SELECT 1 FROM authors a JOIN blocked b ON b.author = a.id WHERE a.platform = p.service AND a.author_id = ?
    ) AND ((? <> 'direct' AND json_extract(t.body, '$.kind') <> 'direct') OR p.place_id = ? OR EXISTS (
        SELECT 1 FROM search_said w JOIN names n ON n.id = w.name JOIN authors a ON a.id = n.author
        WHERE w.place = p.id AND a.author_id = ?
    ))"""  # a direct chat is for those who talk there
_ROWS = """SELECT s.number, n.author, s.at, s.length, s.traits, s.first, s.last FROM search_said s
    JOIN names n ON n.id = s.name WHERE s.place = ? AND s.number >= ?
    AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.author = n.author) ORDER BY s.number"""
_NAMES = """SELECT n.author, n.name, n.username FROM names n
    WHERE n.id IN (SELECT name FROM search_said WHERE place = ? AND number >= ?)
    AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.author = n.author)"""
_VECTORS = """SELECT number, vector FROM search_vectors
    WHERE place = ? AND embedder = ? AND number >= ? ORDER BY number"""
_WHOLE = """SELECT term, number, packed FROM search_words WHERE place = ? AND term = ?
    ORDER BY number DESC LIMIT ?"""
_ALIKE = """SELECT term, number, packed FROM search_words WHERE place = ? AND term >= ? AND term < ?
    ORDER BY number DESC LIMIT ?"""


class IndexReader:
    """`memory.index.Index`, kept."""

    def __init__(self, reader: Owner, *, most: int = MOST) -> None:
        self._reader = reader
        self._most = most

    async def seen(self, place: Place, author: Author) -> PlaceView | None:
        return await self._reader.run(lambda database: _seen(database, place, author))

    async def rows(self, row: int, since: int) -> Sequence[Row]:
        return await self._asked(_ROWS, row, since)

    async def names(self, row: int, since: int) -> Sequence[tuple[int, str]]:
        found = await self._asked(_NAMES, row, since)
        return [(author, name) for author, *names in found for name in names if name]

    async def vectors(self, row: int, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        return await self._asked(_VECTORS, row, embedder, since)

    async def postings(self, row: int, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        return await self._reader.run(lambda database: [_postings(database, row, *one, self._most) for one in wanted])

    async def messages(self, row: int, numbers: Sequence[int]) -> Mapping[int, Message]:
        return await self._reader.run(lambda database: _messages(database, row, numbers))

    async def _asked(self, select: str, *values: Any) -> list[Any]:
        return await self._reader.run(lambda database: database.execute(select, values).fetchall())


def _seen(database: Database, place: Place, author: Author) -> PlaceView | None:
    who = clean(author.id)
    found = database.execute(_SEEN, (place_key(place), who, place.kind, who, who)).fetchone()
    if found is None:
        return None
    row, size, edition = found
    embedded = database.execute("SELECT embedder, done FROM search_embedded WHERE place = ?", (row,))
    return PlaceView(
        row=row,
        first=beginning(database, place),
        size=size,
        edition=edition,
        blocked=frozenset(blocked for (blocked,) in database.execute("SELECT author FROM blocked")),
        embedded=dict(embedded.fetchall()),
        embedder=chosen(database),
    )


def _postings(database: Database, place: int, beginning: str, whole: bool, most: int) -> list[Posting]:
    if whole:
        return database.execute(_WHOLE, (place, beginning, most)).fetchall()
    return database.execute(_ALIKE, (place, beginning, beginning + _LAST, most)).fetchall()


def _messages(database: Database, place: int, numbers: Sequence[int]) -> dict[int, Message]:
    select = f"""SELECT {COLUMNS} FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND m.number IN ({", ".join("?" * len(numbers))}) AND m.deleted = 0 AND m.hidden = 0
        AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.author = n.author)"""  # noqa: S608
    versions = Versions()
    rows = database.execute(select, (place, *numbers)).fetchall()
    return {row[1]: as_message(database, row, versions) for row in rows}
