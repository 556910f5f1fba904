"""What search wants kept: the words and vectors of what was said, each under the place it belongs to. Pure."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from palaver.memory.finding.entries import Entry, Posting, Row, Said
from palaver.messages import Author, Message, Place

Wanted = tuple[str, bool]  # what words begin with; or, where True, the whole word


class Seen(Struct, frozen=True, kw_only=True):
    """A place as somebody who asks there may see it."""

    row: int  # of the place
    first: int = 0  # the number of the first message they may see
    size: int  # how many of its messages are indexed
    edition: int  # another number after each change of what was indexed before
    blocked: frozenset[int] = frozenset()  # authors who are not to be heard of
    embedded: dict[str, int] = {}  # for each embedder the number up to which all messages have vectors
    embedder: str = ""  # the one that was chosen


class Index(Protocol):
    """What a search asks for. The place is part of every question."""

    async def seen(self, place: Place, author: Author) -> Seen | None:
        """How *place* stands for the author who asks there; None where there is nothing they may see."""
        ...

    async def rows(self, row: int, since: int) -> Sequence[Row]:
        """The messages of a place from number *since* on, in order; none of authors who are blocked."""
        ...

    async def names(self, row: int, since: int) -> Sequence[tuple[int, str]]:
        """Authors of those messages, by the names they went by in the place."""
        ...

    async def vectors(self, row: int, embedder: str, since: int) -> Sequence[tuple[int, bytes]]: ...

    async def postings(self, row: int, wanted: Sequence[Wanted]) -> Sequence[Sequence[Posting]]:
        """Where in the place each of the wanted words is; of too many the newest."""
        ...

    async def messages(self, row: int, numbers: Sequence[int]) -> Mapping[int, Message]:
        """Messages by number, without those that are deleted or whose author is blocked."""
        ...


class Stretch(Struct, frozen=True, kw_only=True):
    """Messages of a place that are to be indexed or embedded, numbered from *start* up to *stop*."""

    row: int
    start: int
    stop: int
    changes: int  # how often messages there had changed when they were read
    said: tuple[Said, ...]  # those that say something


class Progress(Struct, frozen=True, kw_only=True):
    messages: int  # all that are kept
    indexed: int
    embedded: int = 0


class Indexing(Protocol):
    """What an indexer asks for."""

    async def embedder(self) -> str:
        """The name of the embedder that was chosen; nothing where nobody has."""
        ...

    async def choose(self, embedder: str) -> None: ...

    async def unread(self, embedder: str | None) -> Sequence[Place]:
        """Places with messages that are not indexed, or not embedded by that one alone; the newest first."""
        ...

    async def unindexed(self, place: Place, *, most: int) -> Stretch | None: ...

    async def add(self, stretch: Stretch, entries: Sequence[Entry]) -> bool:
        """Index a stretch; nothing is kept where it has changed since it was read."""
        ...

    async def unembedded(self, place: Place, embedder: str, *, most: int) -> Stretch | None: ...

    async def embed(self, stretch: Stretch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors by number, but for messages that have changed since they were read."""
        ...

    async def drop(self, place: Place, *, but: str | None) -> None:
        """Remove the vectors of other embedders from a place."""
        ...

    async def mend(self) -> None:
        """Begin anew in places whose index does not agree with what was said there."""
        ...

    async def progress(self, embedder: str | None) -> Progress: ...
