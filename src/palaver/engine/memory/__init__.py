"""Memory for an engine: what is recalled for a message, and what is learned from it once it is answered."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from palaver.context import sources
from palaver.context.values import Context
from palaver.engine.background import Sleep
from palaver.engine.log_views import VisibleLog
from palaver.engine.memory.episode_writer import EpisodeWriter
from palaver.engine.memory.indexer import Indexer
from palaver.engine.memory.learner import Learner
from palaver.engine.memory.recall import EchoFilter, KnownFacts, MemorySources, MessageRecall
from palaver.engine.metered_model import MeteredModel
from palaver.engine.spend_caps import Caps, SpendTracker
from palaver.engine.store_protocols import StoreProtocol
from palaver.messages import Place
from palaver.models.base import Model


class Memory:
    """`Engine(store, model, platforms, memory=Memory(store, model=model))`; without a model it goes by patterns.

    Everything it learns, it learns in the background, and a process that ends in between loses nothing.
    """

    def __init__(
        self,
        store: StoreProtocol,
        *,
        model: Model | None = None,
        search: sources.Search | None = None,
        reads: Callable[[Place], bool] = lambda _: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.knowledge = MemorySources(
            KnownFacts(store.facts, now=now),
            episodes=store.episodes,
            window_pasts=store.window_pasts,
            search=search or MessageRecall(store.index_reader, now=now),
            beginning=store.place_settings.beginning,
            now=now,
        )
        self._store = store
        self._reads = reads  # whether what is said in a place is learned from
        self._now = now
        self._sleep = sleep
        self._lately = EchoFilter(store.log)
        self._spending = SpendTracker(store.usage, Caps(), now=now)
        self._indexer = Indexer(store.index_writer, sleep=sleep)
        self._read_with(model)

    async def start(self) -> None:
        """Read what an earlier process has not."""
        await self._learner.start(self._reads)
        await self._episode_writer.start(self._reads)
        await self._indexer.start(self._reads)

    async def change(self, model: Model | None) -> None:
        """Let another model read from now on, or patterns; what is being read is begun anew."""
        self._spending.require_prices([model] if model else [])
        await self.close()
        self._read_with(model)
        await self.start()

    def charge(self, spending: SpendTracker) -> None:
        """Count what the model reads with *spending*; once a cap is reached, memory waits until tomorrow."""
        spending.require_prices([self._model] if self._model else [])
        self._spending = spending

    def on_behind(self, behind: Callable[[int], None]) -> None:
        """Call *behind* with the number of messages that have no vectors yet, when there are many."""
        self._indexer.behind = behind

    def wake(self, place: Place) -> None:
        """Read what is new or was changed in a place, soon; returns at once."""
        if self._reads(place):
            self._learner.wake(place)
            self._episode_writer.wake(place)
            self._indexer.wake(place)

    def add_recalled(self, context: Context) -> None:
        """What the model is reminded of: it is not learned again from whoever repeats it."""
        self._lately.note(context)

    @property
    def busy(self) -> bool:
        return any(reader.busy for reader in self._readers)

    async def done(self) -> None:
        """Wait until all that was said has been read."""
        for reader in self._readers:
            await reader.done()

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()

    @property
    def _readers(self) -> tuple[Learner, EpisodeWriter, Indexer]:
        return self._learner, self._episode_writer, self._indexer

    def _read_with(self, model: Model | None) -> None:
        kept = self._store
        self._model = model
        said = VisibleLog(kept.log, kept.place_settings.blocked)
        self._learner = Learner(
            kept.facts,
            kept.cursors,
            said,
            model=model,
            now=self._now,
            sleep=self._sleep,
            recalled=self._lately.of,
            metered=self._metered,
        )
        self._episode_writer = EpisodeWriter(kept.episodes, said, model=model, sleep=self._sleep, metered=self._metered)

    def _metered(self, model: Model, place: Place) -> Model:
        return MeteredModel(model, self._spending, place)
