"""The search index as it is read: of a place, and of what one person said in groups, for their direct chat.

Every query includes the place and the author who asks. One's own words in groups are searched as if they were a place
of their own: `PlaceView.own` has the place and number of each. Quotes in them, and what they forward, are words of
others, and are left out. So are messages that would not be found in their group.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tertulia.memory.values import FORWARDED, PlaceView, Posting, Row, WantedTerm
from tertulia.messages import Author, Message, Place
from tertulia.store.encoding import clean
from tertulia.store.identities import IdentityCache, conversation_start, find_author, place_key
from tertulia.store.message_rows import MESSAGE_COLUMNS, decode_message, with_descriptions
from tertulia.store.search_index import chosen_embedder
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import CheckedCalls, ConnectionThread

MAX_POSTINGS = 20_000  # postings of a term in a place; only the newest are read
MAX_OWN = 2_000  # messages of one person in groups that are searched; the newest
_LAST_CHARACTER = "\U0010ffff"

_SELECT_VIEW = """SELECT p.id, s.indexed_to, s.edition FROM places p JOIN search_places s ON s.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.place_key = ? AND NOT EXISTS (
        SELECT 1 FROM authors a JOIN blocked_authors b ON b.author = a.id
        WHERE a.platform = p.service AND a.author_id = ?
    ) AND ((? <> 'direct' AND t.direct = 0) OR p.place_id = ? OR EXISTS (
        SELECT 1 FROM search_messages w JOIN names n ON n.id = w.name JOIN authors a ON a.id = n.author
        WHERE w.place = p.id AND a.author_id = ?
    ))"""  # a direct chat is visible to its members only
_ROW = "s.at, s.length, s.traits, s.first, s.last"
_SELECT_ROWS = f"""SELECT s.number, n.author, {_ROW} FROM search_messages s
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

_IS_ANOTHERS = """SELECT 1 FROM places p JOIN search_places s ON s.place = p.id
    WHERE p.place_key = ? AND p.place_id <> ?
    AND NOT EXISTS (SELECT 1 FROM search_messages w JOIN names n ON n.id = w.name WHERE w.place = p.id AND n.author = ?)
    """  # a direct chat in which the author never wrote
# what the person :author said in groups, without what they forwarded, was cleared, or said when it was a direct chat
_OWN = f"""names n JOIN search_messages s ON s.name = n.id JOIN places p ON p.id = s.place
    WHERE n.author = :author AND NOT s.traits & {FORWARDED}
    AND p.open_until > p.direct_until AND s.number >= max(p.beginning, p.direct_until)
    AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author)"""
_SELECT_OWN_TERMS = """SELECT w.term, w.place, w.number, w.packed FROM search_terms w
    JOIN search_messages s ON s.place = w.place AND s.number = w.number JOIN names n ON n.id = s.name
    WHERE w.place = :place AND w.term >= :first AND {} AND n.author = :author
    ORDER BY w.number DESC LIMIT :most"""


class SqlIndexReader(CheckedCalls):
    """Implements `memory.values.IndexReader`."""

    def __init__(self, reader: ConnectionThread, *, most: int = MAX_POSTINGS) -> None:
        self._reader = reader
        self._most = most

    async def view(self, place: Place, author: Author) -> PlaceView | None:
        return await self._reader.run(lambda database: _view(database, place, author))

    async def own_view(self, place: Place, author: Author) -> PlaceView | None:
        if place.kind != "direct":
            return None
        return await self._reader.run(lambda database: _own_view(database, place, author))

    async def rows(self, view: PlaceView, since: int) -> Sequence[Row]:
        if view.own is None:
            return await self._select(_SELECT_ROWS, (view.row, since))
        select = f"SELECT s.place, s.number, n.author, {_ROW} FROM {_OWN}"
        return _numbered(view, await self._select(select, {"author": view.row}))

    async def names(self, view: PlaceView, since: int) -> Sequence[tuple[int, str]]:
        if view.own is None:
            found = await self._select(_SELECT_NAMES, (view.row, since))
        else:
            found = await self._select("SELECT author, name, username FROM names WHERE author = ?", (view.row,))
        return [(author, name) for author, *names in found for name in names if name]

    async def vectors(self, view: PlaceView, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        if view.own is None:
            return await self._select(_SELECT_VECTORS, (view.row, embedder, since))
        select = f"""WITH own AS (SELECT s.place, s.number FROM {_OWN}) SELECT v.place, v.number, v.vector FROM own
            JOIN search_vectors v ON v.place = own.place AND v.embedder = :embedder AND v.number = own.number"""
        return _numbered(view, await self._select(select, {"author": view.row, "embedder": embedder}))

    async def postings(self, view: PlaceView, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        read = _postings if view.own is None else _own_postings
        return await self._reader.run(lambda database: [read(database, view, *one, self._most) for one in wanted])

    async def messages(self, view: PlaceView, numbers: Sequence[int]) -> Mapping[int, Message]:
        read = _read_messages if view.own is None else _read_own_messages
        return await self._reader.run(lambda database: read(database, view, numbers))

    async def _select(self, select: str, values: Any) -> list[Any]:
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


def _own_view(database: Database, place: Place, author: Author) -> PlaceView | None:
    who = find_author(database, clean(place.author_namespace), clean(author.id))
    if who is None or database.execute(_IS_ANOTHERS, (place_key(place), clean(author.id), who)).fetchone():
        return None
    select = f"SELECT s.place, s.number FROM {_OWN} ORDER BY s.at DESC, s.place DESC, s.number DESC LIMIT :most"
    own = database.execute(select, {"author": who, "most": MAX_OWN}).fetchall()[::-1]
    if not own:
        return None
    places = sorted({place for place, _ in own})
    marks = ", ".join("?" * len(places))
    editions = f"SELECT total(edition) FROM search_places WHERE place IN ({marks})"
    progress = f"SELECT embedder, place, embedded_to FROM search_progress WHERE place IN ({marks})"
    stops: dict[str, dict[int, int]] = {}
    for embedder, there, stop in database.execute(progress, places).fetchall():
        stops.setdefault(embedder, {})[there] = stop
    return PlaceView(
        row=who,
        size=len(own),
        edition=int(database.execute(editions, places).fetchone()[0]),
        embedded={name: sum(number < to.get(there, 0) for there, number in own) for name, to in stops.items()},
        embedder=chosen_embedder(database),
        own=tuple(own),
    )


def _numbered(view: PlaceView, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return rows with the number in the view in place of a message's place and number; others are not in it."""
    numbers = {one: number for number, one in enumerate(view.own or ())}
    return sorted((numbers[row[:2]], *row[2:]) for row in rows if row[:2] in numbers)


def _postings(database: Database, view: PlaceView, prefix: str, whole: bool, most: int) -> list[Posting]:
    if whole:
        return database.execute(_SELECT_TERM, (view.row, prefix, most)).fetchall()
    return database.execute(_SELECT_PREFIX, (view.row, prefix, prefix + _LAST_CHARACTER, most)).fetchall()


def _own_postings(database: Database, view: PlaceView, prefix: str, whole: bool, most: int) -> list[Posting]:
    select = _SELECT_OWN_TERMS.format("w.term <= :first" if whole else "w.term < :first || :last")
    asked = {"first": prefix, "last": _LAST_CHARACTER, "author": view.row, "most": most}
    numbers = {one: number for number, one in enumerate(view.own or ())}
    found: list[Posting] = []
    for place in {place for place, _ in numbers}:
        rows = database.execute(select, asked | {"place": place})
        found += ((term, numbers[at], packed) for term, *at_, packed in rows if (at := tuple(at_)) in numbers)
    return found


def _read_messages(database: Database, view: PlaceView, numbers: Sequence[int]) -> dict[int, Message]:
    select = f"""SELECT {MESSAGE_COLUMNS} FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND m.number IN ({", ".join("?" * len(numbers))}) AND m.deleted = 0 AND m.hidden = 0
        AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author)"""
    identities = IdentityCache()
    rows = database.execute(select, (view.row, *numbers)).fetchall()
    return {row[1]: with_descriptions(database, decode_message(database, row, identities)) for row in rows}


def _read_own_messages(database: Database, view: PlaceView, numbers: Sequence[int]) -> dict[int, Message]:
    select = f"""SELECT {MESSAGE_COLUMNS} FROM messages m WHERE m.place = :place AND m.number = :number
        AND m.deleted = 0 AND m.hidden = 0 AND m.forwarded_from IS NULL
        AND EXISTS (SELECT 1 FROM {_OWN} AND s.place = m.place AND s.number = m.number)"""
    identities = IdentityCache()
    found: dict[int, Message] = {}
    for at in (number for number in numbers if 0 <= number < view.size):
        place, number = (view.own or ())[at]
        row = database.execute(select, {"author": view.row, "place": place, "number": number}).fetchone()
        if row:
            message = with_descriptions(database, decode_message(database, row, identities))
            found[at] = replace(message, reply_to=None)
    return found
