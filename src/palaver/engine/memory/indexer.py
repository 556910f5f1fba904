"""Indexing in the background: what was said can be found by its words soon, and by its meaning a little later."""

import asyncio
import logging
from collections.abc import Callable

from palaver.engine.background import Sleep
from palaver.engine.memory.place_queue import PlaceQueue
from palaver.memory.embedding import NO_EMBEDDER, Embedder, Embedders, find_embedder
from palaver.memory.retrieval.index import IndexBatch, IndexEntry, IndexWriter, index_entry
from palaver.messages import Place

log = logging.getLogger(__name__)

BATCH = 200  # messages that are indexed at once: a few milliseconds of the store's time
EMBEDDED = 32  # messages that are embedded at once
LATE = 1_000  # messages without vectors from which on the log warns: 20 seconds of a busy place
BEHIND = "%d messages have no vectors yet; until then they are found by their words alone"
CAUGHT_UP = "all messages of the place have vectors again"


class Indexer:
    """`wake(place)` whenever something was said there; words come first, everywhere, and then vectors.

    A process that ends in between loses nothing: what is not indexed yet is indexed by the next. An embedder that was
    chosen anew embeds everything again; the vectors of the one before serve each place until it is done.
    """

    def __init__(
        self, index: IndexWriter, *, embedders: Embedders = find_embedder, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.behind: Callable[[int], None] | None = None  # is told how many messages have no vectors yet
        self._index = index
        self._embedders = embedders
        self._words = PlaceQueue(self._words_first, "indexing", sleep=sleep)
        self._vectors = PlaceQueue(self.vectors, "embedding", sleep=sleep)

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Take up what an earlier process has not indexed, and what was kept before there was an index."""
        embedder = await self._embedder()
        for place in filter(wanted, await self._index.unread(embedder.id if embedder else None)):
            self.wake(place)

    def wake(self, place: Place) -> None:
        """Index what is new in a place, soon; returns at once."""
        self._words.add(place)

    @property
    def busy(self) -> bool:
        return self._words.busy or self._vectors.busy

    async def done(self) -> None:
        """Wait until nothing is left to be indexed."""
        await self._words.done()
        await self._vectors.done()

    async def close(self) -> None:
        """Let go; what is left is done by the next who starts."""
        await self._words.close()
        await self._vectors.close()

    async def words(self, place: Place) -> None:
        """Index the words of a place now, a batch at a time."""
        while stretch := await self._index.unindexed(place, most=BATCH):
            await self._index.add(stretch, await asyncio.to_thread(_entries, stretch))

    async def vectors(self, place: Place) -> None:
        """Embed a place now; words that wait anywhere come first."""
        behind = False
        while True:
            await self._words.done()
            embedder = await self._embedder()
            stretch = await self._index.unembedded(place, embedder.id, most=EMBEDDED) if embedder else None
            if embedder is None or stretch is None:
                break
            if not behind and len(stretch.said) == EMBEDDED:
                behind = True
                now = await self._index.progress(embedder.id)
                missing = now.messages - now.embedded
                log.log(logging.WARNING if missing >= LATE else logging.INFO, BEHIND, missing)
                if self.behind:
                    self.behind(missing)
            await self._index.embed(stretch, embedder.id, await _vectors(embedder, stretch))
        if behind:
            log.info(CAUGHT_UP)
        if embedder or await self._index.embedder() == NO_EMBEDDER:
            await self._index.drop(place, but=embedder.id if embedder else None)

    async def _words_first(self, place: Place) -> None:
        await self.words(place)
        self._vectors.add(place)

    async def _embedder(self) -> Embedder | None:
        """The one that was chosen, where it can be used here."""
        name = await self._index.embedder()
        return None if name == NO_EMBEDDER else self._embedders(name)


async def _vectors(embedder: Embedder, stretch: IndexBatch) -> dict[int, bytes]:
    if not stretch.said:
        return {}
    from palaver.memory.retrieval.matrix import pack_vectors  # numpy takes a while, and not everybody has vectors

    made = await embedder.embed([one.whole for one in stretch.said])
    return dict(zip((one.number for one in stretch.said), pack_vectors(made), strict=True))


def _entries(stretch: IndexBatch) -> list[IndexEntry]:
    return [index_entry(one) for one in stretch.said]
