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
from tertulia.seen_by import SeenBy
from tertulia.store.database import Database
from tertulia.store.encoding import clean
from tertulia.store.identities import conversation_start, find_author, place_key
from tertulia.store.message_rows import MESSAGES, SEEN, WAS_PRESENT, with_descriptions
from tertulia.store.search_index import chosen_embedder
from tertulia.store.threads import Access, Repository, reading

MAX_POSTINGS = 20_000  # postings of a term in a place; only the newest are read
MAX_OWN = 2_000  # messages of one person in groups that are searched; the newest
LAST_CHARACTER = "\U0010ffff"

# The index of a place, for an author who may see it: a direct chat is visible to its members only.
_VIEW = """SELECT p.id, s.indexed_to, s.edition FROM places p JOIN search_places s ON s.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.place_key = :key AND NOT EXISTS (
        SELECT 1 FROM authors a JOIN blocked_authors b ON b.author = a.id
        WHERE a.platform = p.service AND a.author_id = :author_id
    ) AND ((t.direct = 0 AND :direct = 0) OR p.place_id = :author_id OR EXISTS (
        SELECT 1 FROM search_messages w JOIN names n ON n.id = w.name JOIN authors a ON a.id = n.author
        WHERE w.place = p.id AND a.author_id = :author_id
    ))"""

# Whether a place is a direct chat of somebody else, in which the author never wrote.
_IS_ANOTHERS = """SELECT 1 FROM places p JOIN search_places s ON s.place = p.id
    WHERE p.place_key = :key AND p.place_id <> :author_id AND NOT EXISTS (
        SELECT 1 FROM search_messages w JOIN names n ON n.id = w.name WHERE w.place = p.id AND n.author = :author)"""

_NOT_BLOCKED = "NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author = n.author)"
_STAYS = "SELECT since, until FROM presences WHERE place = :place AND agent = :agent ORDER BY since"
_ROW = "s.at, s.length, s.traits, s.first, s.last"

# What is read of a place; `{}` is where a condition on the numbers of messages is put.
# The messages.
_ROWS = f"""SELECT s.number, n.author, {_ROW} FROM search_messages s JOIN names n ON n.id = s.name
    WHERE s.place = :place AND s.number >= :since AND {_NOT_BLOCKED} {{}} ORDER BY s.number"""

# The names of those who wrote them.
_NAMES = f"""SELECT n.author, n.name, n.username FROM names n
    WHERE n.id IN (SELECT name FROM search_messages WHERE place = :place AND number >= :since {{}}) AND {_NOT_BLOCKED}
    ORDER BY n.id"""

# Their vectors.
_VECTORS = """SELECT number, vector FROM search_vectors
    WHERE place = :place AND embedder = :embedder AND number >= :since {} ORDER BY number"""

# Where a word stands, and where words with a prefix do.
_TERM = """SELECT term, number, packed FROM search_terms WHERE place = :place AND term = :first {}
    ORDER BY number DESC LIMIT :most"""
_PREFIX = """SELECT term, number, packed FROM search_terms WHERE place = :place AND term >= :first AND term < :stop {}
    ORDER BY number DESC LIMIT :most"""

# What a person said in groups, without what they forwarded, was cleared, or said when it was a direct chat.
_OWN = f"""names n JOIN search_messages s ON s.name = n.id JOIN places p ON p.id = s.place
    WHERE n.author = :author AND (s.traits & {FORWARDED}) = 0
    AND p.open_until > p.direct_until AND s.number >= p.beginning AND s.number >= p.direct_until AND {_NOT_BLOCKED}"""
_OWN_PLACES = f"SELECT s.place, s.number FROM {_OWN} {{}} ORDER BY s.at DESC, s.place DESC, s.number DESC LIMIT :most"
_OWN_ROWS = f"SELECT s.place, s.number, n.author, {_ROW} FROM {_OWN}"
_OWN_VECTORS = f"""WITH own AS (SELECT s.place, s.number FROM {_OWN}) SELECT v.place, v.number, v.vector FROM own
    JOIN search_vectors v ON v.place = own.place AND v.embedder = :embedder AND v.number = own.number"""

# Where a word, and words with a prefix, stand in what a person said in some places.
_OWN_POSTINGS = """SELECT w.place, w.number, w.term, w.packed FROM search_terms w
    JOIN search_messages s ON s.place = w.place AND s.number = w.number JOIN names n ON n.id = s.name
    WHERE w.place IN (:places) AND {} AND n.author = :author ORDER BY s.at DESC, w.number DESC LIMIT :most"""
_OWN_TERM = _OWN_POSTINGS.format("w.term = :first")
_OWN_PREFIX = _OWN_POSTINGS.format("w.term >= :first AND w.term < :stop")

# The messages that may be shown.
_MESSAGES = f"""JOIN names n ON n.id = m.name
    WHERE m.place = :place AND m.number IN (:numbers) AND {SEEN} {{}}"""

# What a person said in groups, by its numbers there; more of them than are asked for.
_OWN_MESSAGES = f"""WHERE m.place IN (:places) AND m.number IN (:numbers)
    AND m.deleted = 0 AND m.hidden = 0 AND m.forwarded_from IS NULL
    AND EXISTS (SELECT 1 FROM {_OWN} AND s.place = m.place AND s.number = m.number)"""


class SqlIndexReader(Repository):
    """Implements `memory.values.IndexReader`."""

    def __init__(self, access: Access, *, most: int = MAX_POSTINGS) -> None:
        super().__init__(access)
        self._most = most

    @reading
    def view(
        self, database: Database, place: Place, author: Author, *, seen_by: SeenBy | None = None
    ) -> PlaceView | None:
        direct = int(place.kind == "direct")
        found = database.one(_VIEW, key=place_key(place), author_id=clean(author.id), direct=direct)
        if found is None:
            return None
        row, size, edition = found
        limited = seen_by if seen_by and seen_by.is_limited_in(place) else None
        stays = database.all(_STAYS, place=row, agent=limited.agent) if limited else []
        if limited and not stays:
            return None
        progress = "SELECT embedder, embedded_to FROM search_progress WHERE place = :place"
        return PlaceView(
            row=row,
            first=conversation_start(database, place),
            size=size,
            edition=edition,
            blocked=frozenset(database.column("SELECT author FROM blocked_authors")),
            embedded=dict(database.all(progress, place=row)),
            embedder=chosen_embedder(database),
            agent=limited.agent if limited else None,
            stays=tuple((since, until) for since, until in stays),
        )

    async def own_view(self, place: Place, author: Author, *, seen_by: SeenBy | None = None) -> PlaceView | None:
        if place.kind != "direct":
            return None
        agent = seen_by.agent if seen_by and seen_by.present else None
        return await self._reader.run(lambda database: _own_view(database, place, author, agent))

    @reading
    def rows(self, database: Database, view: PlaceView, since: int) -> Sequence[Row]:
        if view.own is None:
            return _of_place(database, _ROWS, view, since=since)
        return _numbered(view, database.all(_OWN_ROWS, author=view.row))

    @reading
    def names(self, database: Database, view: PlaceView, since: int) -> Sequence[tuple[int, str]]:
        if view.own is None:
            found = _of_place(database, _NAMES, view, since=since)
        else:
            select = "SELECT author, name, username FROM names WHERE author = :author ORDER BY id"
            found = database.all(select, author=view.row)
        return [(author, name) for author, *names in found for name in names if name]

    @reading
    def vectors(self, database: Database, view: PlaceView, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        if view.own is None:
            return _of_place(database, _VECTORS, view, embedder=embedder, since=since)
        return _numbered(view, database.all(_OWN_VECTORS, author=view.row, embedder=embedder))

    @reading
    def postings(
        self, database: Database, view: PlaceView, wanted: Sequence[WantedTerm]
    ) -> Sequence[Sequence[Posting]]:
        return [_postings(database, view, *one, self._most) for one in wanted]

    @reading
    def messages(self, database: Database, view: PlaceView, numbers: Sequence[int]) -> Mapping[int, Message]:
        if view.own is None:
            which = _MESSAGES.format(_seen(view))
            values = {"place": view.row, "agent": view.agent, "numbers": numbers}
            return dict(_read(database, "m.number", which, **values))
        asked = {view.own[at]: at for at in numbers if 0 <= at < view.size}
        places, theirs = {place for place, _ in asked}, [number for _, number in asked]
        of_author = {"author": view.row, "places": places, "numbers": theirs}
        found = _read(database, "m.place, m.number", _OWN_MESSAGES, **of_author)
        return {asked[at]: replace(message, reply_to=None) for at, message in found if at in asked}


def _seen(view: PlaceView) -> str:
    """Return the condition on the numbers of messages that a view can see."""
    return "" if view.agent is None else f"AND {WAS_PRESENT.format(':place', 'number')}"


def _of_place(database: Database, statement: str, view: PlaceView, **values: Any) -> list[Any]:
    """Return what a statement reads of the place of a view."""
    return database.all(statement.format(_seen(view)), place=view.row, agent=view.agent, **values)


def _own_view(database: Database, place: Place, author: Author, agent: str | None) -> PlaceView | None:
    author_id = clean(author.id)
    who = find_author(database, clean(place.author_namespace), author_id)
    if who is None or database.one(_IS_ANOTHERS, key=place_key(place), author_id=author_id, author=who):
        return None
    seen = "" if agent is None else f"AND {WAS_PRESENT.format('s.place', 's.number')}"
    own = database.all(_OWN_PLACES.format(seen), author=who, agent=agent, most=MAX_OWN)[::-1]
    if not own:
        return None
    places = sorted({place for place, _ in own})
    editions = database.column("SELECT edition FROM search_places WHERE place IN (:places)", places=places)
    progress = "SELECT embedder, place, embedded_to FROM search_progress WHERE place IN (:places)"
    stops: dict[str, dict[int, int]] = {}
    for embedder, there, stop in database.all(progress, places=places):
        stops.setdefault(embedder, {})[there] = stop
    return PlaceView(
        row=who,
        size=len(own),
        edition=sum(editions),
        embedded={name: sum(number < to.get(there, 0) for there, number in own) for name, to in stops.items()},
        embedder=chosen_embedder(database),
        own=tuple((place, number) for place, number in own),
        agent=agent,
    )


def _numbers(view: PlaceView) -> dict[tuple[int, ...], int]:
    """Return the number in the view of each message, by its place and its number there."""
    return {one: number for number, one in enumerate(view.own or ())}


def _numbered(view: PlaceView, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return rows with the number in the view in place of a message's place and number; others are not in it."""
    numbers = _numbers(view)
    return sorted((numbers[row[:2]], *row[2:]) for row in rows if row[:2] in numbers)


def _postings(database: Database, view: PlaceView, first: str, whole: bool, most: int) -> list[Posting]:
    asked = {"first": first, "most": most} | ({} if whole else {"stop": first + LAST_CHARACTER})
    if view.own is None:
        return _of_place(database, _TERM if whole else _PREFIX, view, **asked)
    places = {place for place, _ in view.own}
    rows = database.all(_OWN_TERM if whole else _OWN_PREFIX, places=places, author=view.row, **asked)
    numbers = _numbers(view)
    return [
        (term, numbers[place, number], packed) for place, number, term, packed in rows if (place, number) in numbers
    ]


def _read(database: Database, key: str, which: str, **values: Any) -> list[tuple[Any, Message]]:
    """Return messages with what shows their media, each after the values of a key."""
    found = MESSAGES.beside(database, key, which, **values)
    messages = with_descriptions(database, [message for message, _ in found])
    return [(key[0] if len(key) == 1 else key, message) for (_, key), message in zip(found, messages, strict=True)]
