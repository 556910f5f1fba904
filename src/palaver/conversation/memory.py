"""Memory for an engine: what is recalled for a message, and what is learned from it once it is answered."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from palaver.context import sources
from palaver.context.values import Context
from palaver.conversation.crew import Sleep
from palaver.conversation.episodes import Episodist
from palaver.conversation.indexing import Indexer
from palaver.conversation.journal import Kept
from palaver.conversation.learning import Learner
from palaver.conversation.recalling import Recall
from palaver.conversation.remembering import Acquaintances, Recollection
from palaver.memory.facts import Fact
from palaver.messages import Place
from palaver.models.base import Model

LATELY = 20  # recollections that are known again by another model


class Memory:
    """`Engine(store, model, platforms, memory=Memory(store, model=model))`; without a model it goes by patterns.

    Everything it learns, it learns in the background, and a process that ends in between loses nothing.
    """

    def __init__(
        self,
        store: Kept,
        *,
        model: Model | None = None,
        search: sources.Search | bool = True,
        learnt: Callable[[Sequence[Fact]], None] | None = None,
        recalled: Callable[[Context], None] | None = None,
        reads: Callable[[Place], bool] = lambda _: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.knowledge = Recollection(
            Acquaintances(store.facts),
            episodes=store.episodes,
            search=self._searching(store, search, now),
            beginning=store.standing.beginning,
            now=now,
        )
        self._store = store
        self._learnt = learnt  # is shown what was learned
        self._recalled = recalled  # is shown what the model is reminded of
        self._reads = reads  # whether what is said in a place is learned from
        self._now = now
        self._sleep = sleep
        self._lately: deque[tuple[Place, list[str]]] = deque(maxlen=LATELY)
        self._indexer = Indexer(store.indexing, sleep=sleep) if search else None
        self._read_with(model)

    async def start(self) -> None:
        """Read what an earlier process has not."""
        for place in filter(self._reads, await self._store.learned.unread()):
            self._learner.heard(place)
        for place in filter(self._reads, await self._store.episodes.places()):
            self._episodist.take(place)
        if self._indexer:
            await self._indexer.start(self._reads)

    async def change(self, model: Model | None) -> None:
        """Let another model read from now on, or patterns; what is being read is begun anew."""
        await self.close()
        self._read_with(model)
        for place, texts in self._lately:
            self._learner.recalled(place, texts)
        await self.start()

    def heard(self, place: Place) -> None:
        """Read what is new in a place, soon; returns at once."""
        if self._reads(place):
            self._learner.heard(place)
            self._episodist.take(place)
            if self._indexer:
                self._indexer.heard(place)

    def changed(self, place: Place, message_id: str) -> None:
        """A message says something else now, or nothing any more."""
        if self._reads(place):
            self._learner.changed(place, message_id)
            self._episodist.take(place)
            if self._indexer:
                self._indexer.changed(place, message_id)

    def told(self, context: Context) -> None:
        """What the model is reminded of: it is not learned again from whoever repeats it."""
        hits = [hit.text for hit in context.relevant]
        texts = [*context.memories, *context.key_facts.values(), *hits, *(one.summary for one in context.episodes)]
        if texts or context.summary:
            self._lately.append((context.place, [*texts, context.summary]))
            self._learner.recalled(*self._lately[-1])
            if self._recalled:
                self._recalled(context)

    @property
    def busy(self) -> bool:
        return self._learner.busy or self._episodist.busy or bool(self._indexer and self._indexer.busy)

    async def done(self) -> None:
        """Wait until all that was said has been read."""
        await self._learner.done()
        await self._episodist.done()
        if self._indexer:
            await self._indexer.done()

    async def close(self) -> None:
        await self._learner.close()
        await self._episodist.close()
        if self._indexer:
            await self._indexer.close()

    @staticmethod
    def _searching(store: Kept, search: sources.Search | bool, now: Callable[[], datetime]) -> sources.Search | None:
        if isinstance(search, bool):
            return Recall(store.search, now=now) if search else None
        return search

    def _read_with(self, model: Model | None) -> None:
        kept = self._store
        self._learner = Learner(
            kept.facts, kept.learned, kept.log, model=model, now=self._now, sleep=self._sleep, learnt=self._learnt
        )
        self._episodist = Episodist(
            kept.episodes, kept.log, model=model, blocked=kept.standing.blocked, sleep=self._sleep
        )
