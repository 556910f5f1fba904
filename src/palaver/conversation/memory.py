"""Memory for an engine: what is recalled for a message, and what is learned from it once it is answered."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from palaver.context import sources
from palaver.context.values import Context
from palaver.conversation.crew import Sleep
from palaver.conversation.episodes import Episodist
from palaver.conversation.journal import Kept
from palaver.conversation.learning import Learner
from palaver.conversation.remembering import Acquaintances, Recollection
from palaver.memory.facts import Fact
from palaver.messages import Place
from palaver.models.base import Model


class Memory:
    """`Engine(store, model, platforms, memory=Memory(store, model=model))`; without a model it goes by patterns.

    Everything it learns, it learns in the background, and a process that ends in between loses nothing.
    """

    def __init__(
        self,
        store: Kept,
        *,
        model: Model | None = None,
        search: sources.Search | None = None,
        learnt: Callable[[Sequence[Fact]], None] | None = None,
        recalled: Callable[[Context], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.knowledge = Recollection(
            Acquaintances(store.facts),
            episodes=store.episodes,
            search=search,
            beginning=store.standing.beginning,
            now=now,
        )
        self._learner = Learner(store.facts, store.learned, store.log, model=model, now=now, sleep=sleep, learnt=learnt)
        self._episodist = Episodist(store.episodes, store.log, model=model, blocked=store.standing.blocked, sleep=sleep)
        self._recalled = recalled

    async def start(self) -> None:
        """Read what an earlier process has not."""
        await self._learner.start()
        await self._episodist.start()

    def heard(self, place: Place) -> None:
        """Read what is new in a place, soon; returns at once."""
        self._learner.heard(place)
        self._episodist.take(place)

    def changed(self, place: Place, message_id: str) -> None:
        """A message says something else now, or nothing any more."""
        self._learner.changed(place, message_id)
        self._episodist.take(place)

    def told(self, context: Context) -> None:
        """What the model is reminded of: it is not learned again from whoever repeats it."""
        hits = [hit.text for hit in context.relevant]
        texts = [*context.memories, *context.key_facts.values(), *hits, *(one.summary for one in context.episodes)]
        if texts or context.summary:
            self._learner.recalled(context.place, [*texts, context.summary])
            if self._recalled:
                self._recalled(context)

    @property
    def busy(self) -> bool:
        return self._learner.busy or self._episodist.busy

    async def done(self) -> None:
        """Wait until all that was said has been read."""
        await self._learner.done()
        await self._episodist.done()

    async def close(self) -> None:
        await self._learner.close()
        await self._episodist.close()
