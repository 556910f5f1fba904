"""The search index: entries of messages, parsed queries, and the protocols of the store that holds it. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from msgspec import Struct

from tertulia.characters import visible
from tertulia.memory.retrieval.dates import find_dates
from tertulia.memory.retrieval.terms import terms, terms_with_words, words
from tertulia.messages import Author, Message, Place

Posting = tuple[str, int, int]  # term, number of the message, weight and position of the term in it, packed
Row = tuple[int, int, int, int, int, int, int]  # number, author, at, length, traits, first, last

ASKS, ENDS_ASKING, DIGITS, MEDIA, FORWARDED = 1, 2, 4, 8, 16
MISSING = -1
SCALE = 50  # a weight is stored in units of 1/SCALE
PLACES = 256  # weight and first position are packed: weight * PLACES + position

_SATURATION, _LENGTH_SHARE, _USUAL_LENGTH = 1.2, 0.5, 12
MAX_INDEXED_LENGTH = 16_000  # characters; the rest is not indexed
_DATED = 4_000  # characters in which dates are looked for

WantedTerm = tuple[str, bool]  # a prefix of words; with True, a whole word

_WHEN = frozenset("when date day коли когда kiedy wann 什么时候 いつ".split())
_COUNT = frozenset("many often long old number скільки сколько ile wieviel".split())
MAX_QUERY_LENGTH = 4_000  # characters
MAX_QUERY_TERMS = 48


class MessageText(Struct, frozen=True, kw_only=True):
    """The text of a message that is to be indexed."""

    number: int
    name: int  # row of the author's name
    author: str  # the name
    at: datetime | None
    text: str
    shown: str = ""  # descriptions of its media
    forwarded: bool = False  # it has words of somebody else

    @property
    def whole(self) -> str:
        """Author, text and media, for an embedder."""
        shown = f" [{self.shown}]" if self.shown else ""
        return f"{self.author}: {self.text}{shown}"[:MAX_INDEXED_LENGTH]


class IndexEntry(Struct, frozen=True, kw_only=True):
    """The index entry of a message."""

    number: int
    name: int
    at: int  # seconds
    length: int
    traits: int
    first: int = MISSING  # first and last day of the dates in it, as ordinals
    last: int = MISSING
    words: dict[str, int]  # for each term its weight and position, packed


def index_entry(message: MessageText) -> IndexEntry:
    found = terms(f"{message.text} {message.shown}"[:MAX_INDEXED_LENGTH])
    dates = find_dates(message.text[:_DATED], message.at.date()) if message.at else []
    stands = {term: place for place, term in reversed(list(enumerate(found)))}
    return IndexEntry(
        number=message.number,
        name=message.name,
        at=int(message.at.timestamp()) if message.at else MISSING,
        length=len(found),
        traits=_traits(visible(message.text), media=bool(message.shown)) | FORWARDED * message.forwarded,
        first=min((one.first.toordinal() for one in dates), default=MISSING),
        last=max((one.last.toordinal() for one in dates), default=MISSING),
        words={
            term: _weight(count, len(found)) * PLACES + min(stands[term], PLACES - 1)
            for term, count in Counter(found).items()
        },
    )


def _traits(text: str, *, media: bool) -> int:
    asks = "?" in text or "？" in text
    ends = text.rstrip().endswith(("?", "？"))
    digits = any(mark.isdigit() for mark in text)
    return ASKS * asks | ENDS_ASKING * ends | DIGITS * digits | MEDIA * media


def _weight(count: int, length: int) -> int:
    share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _USUAL_LENGTH
    return max(1, round(SCALE * count * (_SATURATION + 1) / (count + _SATURATION * share)))


class Query(Struct, frozen=True, kw_only=True):
    """A parsed query."""

    terms: tuple[str, ...]  # without names of people in the place, unless there is nothing else
    words: tuple[str, ...] = ()  # the terms as they were written
    people: frozenset[int] = frozenset()  # authors whom the query names
    names: tuple[str, ...] = ()  # the terms that name them
    days: tuple[int, int] | None = None  # first and last day of the dates in it, as ordinals
    when: bool = False  # it asks for a date
    counted: bool = False  # it asks for a number


def parse_query(question: str, *, names: Mapping[str, frozenset[int]], now: date) -> Query:
    """Parse a query about a place; *names* are its authors by the terms of their names."""
    question = question[:MAX_QUERY_LENGTH]
    known = terms_with_words(question)
    every = tuple(known)
    named = tuple(term for term in every if term in names)
    found = find_dates(question, now)
    plain = frozenset(words(question))
    wanted = (tuple(term for term in every if term not in names) or every)[:MAX_QUERY_TERMS]
    return Query(
        terms=wanted,
        words=tuple(known[term] for term in wanted),
        people=frozenset(author for term in named for author in names[term]),
        names=named,
        days=(min(one.first for one in found).toordinal(), max(one.last for one in found).toordinal())
        if found
        else None,
        when=bool(plain & _WHEN),
        counted=bool(plain & _COUNT),
    )


class PlaceView(Struct, frozen=True, kw_only=True):
    """The state of a place for an author who searches there."""

    row: int  # of the place
    first: int = 0  # number of the first visible message
    size: int  # indexed messages
    edition: int  # changes with each edit of an indexed message
    blocked: frozenset[int] = frozenset()  # authors
    embedded: dict[str, int] = {}  # embedder: number up to which all messages have vectors
    embedder: str = ""  # the chosen one
    own: tuple[tuple[int, int], ...] | None = None  # of one's own words in groups: place and number of each message


class IndexReader(Protocol):
    """Reads the index for a search. Every method is about one view."""

    async def view(self, place: Place, author: Author) -> PlaceView | None:
        """Return the state of *place* for *author*; None if nothing is visible."""
        ...

    async def own_view(self, place: Place, author: Author) -> PlaceView | None:
        """Return what *author* said in groups, as a view for their direct chat *place*; None for other places."""
        ...

    async def rows(self, view: PlaceView, since: int) -> Sequence[Row]:
        """Return the messages of a place from number *since* on, in order, without blocked authors."""
        ...

    async def names(self, view: PlaceView, since: int) -> Sequence[tuple[int, str]]:
        """Authors of those messages, and their names in the place."""
        ...

    async def vectors(self, view: PlaceView, embedder: str, since: int) -> Sequence[tuple[int, bytes]]: ...

    async def postings(self, view: PlaceView, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        """Return the postings of each wanted word; of too many the newest."""
        ...

    async def messages(self, view: PlaceView, numbers: Sequence[int]) -> Mapping[int, Message]:
        """Messages by number, without deleted ones and blocked authors."""
        ...


class IndexBatch(Struct, frozen=True, kw_only=True):
    """Messages of a place, from number *start* up to *stop*, that are to be indexed or embedded."""

    row: int
    start: int
    stop: int
    edition: int  # of the index of the place when they were read
    said: tuple[MessageText, ...]  # without empty ones


class IndexProgress(Struct, frozen=True, kw_only=True):
    messages: int  # all
    indexed: int
    embedded: int = 0


class IndexWriter(Protocol):
    """Reads and writes the index for an indexer."""

    async def embedder(self) -> str:
        """Return the name of the chosen embedder; empty if none was chosen."""
        ...

    async def choose(self, embedder: str) -> None: ...

    async def unread(self, embedder: str | None) -> Sequence[Place]:
        """Places with messages that are not indexed, or not embedded by *embedder* alone; newest first."""
        ...

    async def unindexed(self, place: Place, *, most: int) -> IndexBatch | None: ...

    async def add(self, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
        """Store the entries of a batch; return False, and store nothing, if it has changed since it was read."""
        ...

    async def unembedded(self, place: Place, embedder: str, *, most: int) -> IndexBatch | None: ...

    async def embed(self, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        """Store vectors by number, except for messages that have changed since they were read."""
        ...

    async def drop(self, place: Place, *, but: str | None) -> None:
        """Remove the vectors of other embedders from a place."""
        ...

    async def reset_gaps(self, embedder: str) -> None:
        """Let messages without a vector be embedded again, also where a place counts as embedded."""
        ...

    async def rebuild_broken(self) -> None:
        """Index places again whose index does not match their messages."""
        ...

    async def progress(self, embedder: str | None) -> IndexProgress: ...
