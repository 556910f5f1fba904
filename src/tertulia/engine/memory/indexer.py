"""The indexer: adds new messages to the search index, in the background; their words first, then their vectors."""

import asyncio
import logging
from collections.abc import Callable

from tertulia.engine.background import PlaceQueue, Sleep
from tertulia.memory.embeddings import NO_EMBEDDER, Embedder, Embedders, find_embedder
from tertulia.memory.retrieval.index import index_entry
from tertulia.memory.values import IndexBatch, IndexWriter
from tertulia.messages import Place

log = logging.getLogger(__name__)

BATCH = 200  # messages that are indexed together: a few milliseconds of the store's time
EMBEDDED = 32  # messages that are embedded together
LATE = 1_000  # messages without vectors from which the log warns: 20 seconds of a busy place
BEHIND = "%d messages have no vectors yet; until then they are found by their words alone"
CAUGHT_UP = "all messages of the place have vectors again"


class Indexer:
    """Indexes each place that is woken. The words of all places come before the vectors of any.

    Nothing is lost when a process ends: what is not indexed yet is indexed by the next one. After another embedder was
    chosen everything is embedded again; the old vectors of a place are used until it is done.
    """

    def __init__(
        self, index: IndexWriter, *, embedders: Embedders = find_embedder, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.behind: Callable[[int], None] | None = None  # called with the number of messages without vectors
        self._index = index
        self._embedders = embedders
        self._words = PlaceQueue(self._index_then_embed, "indexing", sleep=sleep)
        self._vectors = PlaceQueue(self.embed_messages, "embedding", sleep=sleep)

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Wake the places with messages that are not in the index, or lack a vector."""
        embedder = await self._embedder()
        if embedder:
            await self._index.reset_gaps(embedder.id)
        for place in filter(wanted, await self._index.unread(embedder.id if embedder else None)):
            self.wake(place)

    def wake(self, place: Place) -> None:
        """Index the new messages of a place, soon; return at once."""
        self._words.wake(place)

    @property
    def busy(self) -> bool:
        return self._words.busy or self._vectors.busy

    async def done(self) -> None:
        """Wait until all places are indexed."""
        await self._words.done()
        await self._vectors.done()

    async def close(self) -> None:
        """Stop. What is left is found by the next `start`."""
        await self._words.close()
        await self._vectors.close()

    async def index_words(self, place: Place) -> None:
        """Index the words of a place now, in batches."""
        while batch := await self._index.unindexed(place, most=BATCH):
            await self._index.add(batch, await asyncio.to_thread(list, map(index_entry, batch.said)))

    async def embed_messages(self, place: Place) -> None:
        """Embed the messages of a place now; words that wait anywhere come first."""
        behind = False
        while True:
            await self._words.done()
            embedder = await self._embedder()
            batch = await self._index.unembedded(place, embedder.id, most=EMBEDDED) if embedder else None
            if embedder is None or batch is None:
                break
            if not behind and len(batch.said) == EMBEDDED:
                behind = True
                now = await self._index.progress(embedder.id)
                missing = now.messages - now.embedded
                log.log(logging.WARNING if missing >= LATE else logging.INFO, BEHIND, missing)
                if self.behind:
                    self.behind(missing)
            await self._index.embed(batch, embedder.id, await _vectors(embedder, batch))
        if behind:
            log.info(CAUGHT_UP)
        if embedder or await self._index.embedder() == NO_EMBEDDER:
            await self._index.drop(place, but=embedder.id if embedder else None)

    async def _index_then_embed(self, place: Place) -> None:
        await self.index_words(place)
        self._vectors.wake(place)

    async def _embedder(self) -> Embedder | None:
        """Return the embedder that was chosen, if it can be used here."""
        name = await self._index.embedder()
        return None if name == NO_EMBEDDER else self._embedders(name)


async def _vectors(embedder: Embedder, batch: IndexBatch) -> dict[int, bytes]:
    if not batch.said:
        return {}
    from tertulia.memory.retrieval.features import pack_vectors  # imported late: numpy is slow to import

    vectors = await embedder.embed([one.whole for one in batch.said])
    return dict(zip((one.number for one in batch.said), pack_vectors(vectors), strict=True))
