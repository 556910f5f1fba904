"""Indexing in the background: what was said can be found by its words soon, and by its meaning a little later."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from palaver.conversation.crew import Crew, Sleep, pauses
from palaver.errors import PalaverError
from palaver.memory.embedding import NONE, Embedder, Embedders, known
from palaver.memory.entries import Entry, entry
from palaver.memory.index import Indexing, Stretch
from palaver.messages import Place

log = logging.getLogger(__name__)

BATCH = 200  # messages that are indexed at once: a few milliseconds of the store's time
EMBEDDED = 32  # messages that are embedded at once
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds

Key = tuple[str, str, str | None]


class Indexer:
    """`heard(place)` whenever something was said there; words come first, everywhere, and then vectors.

    A process that ends in between loses nothing: what is not indexed yet is indexed by the next. An embedder that was
    chosen anew embeds everything again; the vectors of the one before serve each place until it is done.
    """

    def __init__(self, index: Indexing, *, embedders: Embedders = known, sleep: Sleep = asyncio.sleep) -> None:
        self._index = index
        self._embedders = embedders
        self._sleep = sleep
        self._crew = Crew()
        self._unindexed: OrderedDict[Key, Place] = OrderedDict()
        self._unembedded: OrderedDict[Key, Place] = OrderedDict()
        self._working = False

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Take up what an earlier process has not indexed, and what was kept before there was an index."""
        embedder = await self._embedder()
        for place in filter(wanted, await self._index.unread(embedder.id if embedder else None)):
            self.heard(place)

    def heard(self, place: Place) -> None:
        """Index what is new in a place, soon; returns at once."""
        self._unindexed[_key(place)] = place
        if not self._working:
            self._working = True
            self._crew.begin(self._work())

    def changed(self, place: Place, message_id: str) -> None:
        """Embed a message again that says something else now: the store has its words already."""
        self.heard(place)

    @property
    def busy(self) -> bool:
        return self._crew.busy

    async def done(self) -> None:
        """Wait until nothing is left to be indexed."""
        await self._crew.done()

    async def close(self) -> None:
        """Let go; what is left is done by the next who starts."""
        await self._crew.stop()
        self._working = False

    async def _work(self) -> None:
        """A batch at a time; what fails is tried again, after a longer pause each time."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        try:
            while self._unindexed or self._unembedded:
                try:
                    await (self._index_some() if self._unindexed else self._embed_some())
                    waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
                except PalaverError as error:
                    pause = next(waits)
                    log.warning("indexing goes on in %g s: %s", pause, error)
                    await self._sleep(pause)
                await asyncio.sleep(0)
        finally:
            self._working = False

    async def _index_some(self) -> None:
        """The next messages of the place that has waited longest."""
        key, place = next(iter(self._unindexed.items()))
        stretch = await self._index.unindexed(place, most=BATCH)
        if stretch is None:
            self._unindexed.pop(key, None)
            self._unembedded[key] = place
            return
        await self._index.add(stretch, await asyncio.to_thread(_entries, stretch))

    async def _embed_some(self) -> None:
        key, place = next(iter(self._unembedded.items()))
        embedder = await self._embedder()
        stretch = await self._index.unembedded(place, embedder.id, most=EMBEDDED) if embedder else None
        if embedder and stretch:
            await self._index.embed(stretch, embedder.id, await _vectors(embedder, stretch))
            return
        if embedder or await self._index.embedder() == NONE:
            await self._index.drop(place, but=embedder.id if embedder else None)
        self._unembedded.pop(key, None)

    async def _embedder(self) -> Embedder | None:
        """The one that was chosen, where it can be used here."""
        name = await self._index.embedder()
        return None if name == NONE else self._embedders(name)


async def _vectors(embedder: Embedder, stretch: Stretch) -> dict[int, bytes]:
    if not stretch.said:
        return {}
    from palaver.memory.columns import packed  # numpy takes a while, and not everybody has vectors

    made = await embedder.embed([one.whole for one in stretch.said])
    return dict(zip((one.number for one in stretch.said), packed(made), strict=True))


def _entries(stretch: Stretch) -> list[Entry]:
    return [entry(one) for one in stretch.said]


def _key(place: Place) -> Key:
    return place.platform, place.id, place.thread
