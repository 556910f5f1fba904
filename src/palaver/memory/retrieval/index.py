"""What a message is indexed as: its terms with their weights, and what can be said of it in numbers. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from palaver.characters import visible
from palaver.memory.retrieval.dates import find_dates
from palaver.memory.retrieval.terms import terms
from palaver.messages import Author, Message, Place

Posting = tuple[str, int, int]  # a term, the number of a message, weight and place of the term there, packed
Row = tuple[int, int, int, int, int, int, int]  # number, author, at, length, traits, first, last

ASKS, ENDS_ASKING, DIGITS, MEDIA = 1, 2, 4, 8
MISSING = -1
SCALE = 50  # a weight of a word in a message is kept in 1/SCALE
PLACES = 256  # where the word stands first is kept beside it: weight * PLACES + place

_SATURATION, _LENGTH_SHARE, _USUAL_LENGTH = 1.2, 0.5, 12
MAX_INDEXED_LENGTH = 16_000  # characters of a message that are indexed
_DATED = 4_000  # characters of it in which times are looked for


class MessageText(Struct, frozen=True, kw_only=True):
    """A message as it is read to be indexed."""

    number: int
    name: int  # the row of the name its author went by
    author: str  # that name
    at: datetime | None
    text: str
    shown: str = ""  # what its media show, in words

    @property
    def whole(self) -> str:
        """All of it, for an embedder."""
        shown = f" [{self.shown}]" if self.shown else ""
        return f"{self.author}: {self.text}{shown}"[:MAX_INDEXED_LENGTH]


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One message as it is indexed."""

    number: int
    name: int
    at: int  # seconds
    length: int
    traits: int
    first: int = MISSING  # the days it speaks of, as ordinals
    last: int = MISSING
    words: dict[str, int]  # for each term its weight, in 1/SCALE, and its place, packed


def index_entry(said: MessageText) -> IndexEntry:
    found = terms(f"{said.text} {said.shown}"[:MAX_INDEXED_LENGTH])
    spoken = find_dates(said.text[:_DATED], said.at.date()) if said.at else []
    stands = {term: place for place, term in reversed(list(enumerate(found)))}
    return IndexEntry(
        number=said.number,
        name=said.name,
        at=int(said.at.timestamp()) if said.at else MISSING,
        length=len(found),
        traits=_traits(visible(said.text), media=bool(said.shown)),
        first=min((one.first.toordinal() for one in spoken), default=MISSING),
        last=max((one.last.toordinal() for one in spoken), default=MISSING),
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


WantedTerm = tuple[str, bool]  # what words begin with; or, where True, the whole word


class PlaceView(Struct, frozen=True, kw_only=True):
    """A place as somebody who asks there may see it."""

    row: int  # of the place
    first: int = 0  # the number of the first message they may see
    size: int  # how many of its messages are indexed
    edition: int  # another number after each change of what was indexed before
    blocked: frozenset[int] = frozenset()  # authors who are not to be heard of
    embedded: dict[str, int] = {}  # for each embedder the number up to which all messages have vectors
    embedder: str = ""  # the one that was chosen


class IndexReader(Protocol):
    """What a search asks for. The place is part of every question."""

    async def seen(self, place: Place, author: Author) -> PlaceView | None:
        """How *place* stands for the author who asks there; None where there is nothing they may see."""
        ...

    async def rows(self, row: int, since: int) -> Sequence[Row]:
        """The messages of a place from number *since* on, in order; none of authors who are blocked."""
        ...

    async def names(self, row: int, since: int) -> Sequence[tuple[int, str]]:
        """Authors of those messages, by the names they went by in the place."""
        ...

    async def vectors(self, row: int, embedder: str, since: int) -> Sequence[tuple[int, bytes]]: ...

    async def postings(self, row: int, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        """Where in the place each of the wanted words is; of too many the newest."""
        ...

    async def messages(self, row: int, numbers: Sequence[int]) -> Mapping[int, Message]:
        """Messages by number, without those that are deleted or whose author is blocked."""
        ...


class IndexBatch(Struct, frozen=True, kw_only=True):
    """Messages of a place that are to be indexed or embedded, numbered from *start* up to *stop*."""

    row: int
    start: int
    stop: int
    changes: int  # how often messages there had changed when they were read
    said: tuple[MessageText, ...]  # those that say something


class IndexProgress(Struct, frozen=True, kw_only=True):
    messages: int  # all that are kept
    indexed: int
    embedded: int = 0


class IndexWriter(Protocol):
    """What an indexer asks for."""

    async def embedder(self) -> str:
        """The name of the embedder that was chosen; nothing where nobody has."""
        ...

    async def choose(self, embedder: str) -> None: ...

    async def unread(self, embedder: str | None) -> Sequence[Place]:
        """Places with messages that are not indexed, or not embedded by that one alone; the newest first."""
        ...

    async def unindexed(self, place: Place, *, most: int) -> IndexBatch | None: ...

    async def add(self, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
        """Index a stretch; nothing is kept where it has changed since it was read."""
        ...

    async def unembedded(self, place: Place, embedder: str, *, most: int) -> IndexBatch | None: ...

    async def embed(self, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors by number, but for messages that have changed since they were read."""
        ...

    async def drop(self, place: Place, *, but: str | None) -> None:
        """Remove the vectors of other embedders from a place."""
        ...

    async def mend(self) -> None:
        """Begin anew in places whose index does not agree with what was said there."""
        ...

    async def progress(self, embedder: str | None) -> IndexProgress: ...
