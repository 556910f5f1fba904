"""Memory of an engine: recalls facts, episodes and messages for a prompt, and learns in the background."""

from collections.abc import Callable, Sequence

from tertulia.context import sources
from tertulia.context.values import Context
from tertulia.engine.background import EngineClock, RealClock
from tertulia.engine.limits import CurrentLimits
from tertulia.engine.log_views import VisibleLog
from tertulia.engine.memory.indexer import Indexer
from tertulia.engine.memory.learner import Agents, EpisodeWriter, Learner
from tertulia.engine.memory.recall import EchoFilter, KnownFacts, MemorySources, MessageRecall
from tertulia.engine.spend_caps import MeteredEmbedder, MeteredModel, SpendTracker
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.memory.embeddings import Embedder, RemoteEmbedder, find_embedder
from tertulia.messages import Place
from tertulia.models.base import Model
from tertulia.models.calls import Purpose
from tertulia.seen_by import SeenBy


class Memory:
    """`Engine(store, model, platforms, memory=Memory(store, model=model))`. Without a model it learns by patterns.

    It learns in the background. Nothing is lost when a process ends: the next one reads what is left.
    """

    def __init__(
        self,
        store: StoreProtocol,
        *,
        model: Model | None = None,
        search: sources.MessageSearch | None = None,
        reads: Callable[[Place], bool] = lambda _: True,
        clock: EngineClock | None = None,
    ) -> None:
        now, sleep = (clock or RealClock()).now, (clock or RealClock()).sleep
        self._search = search or MessageRecall(store.index_reader, embedders=self._embedders, now=now)
        self._store = store
        self._agents: Agents | None = None
        self._reads = reads  # whether the messages of a place are read
        self._now = now
        self.knowledge = self.knowledge_of(None)  # the sources of all that is known
        self._sleep = sleep
        self._echo_filter = EchoFilter(store.log)
        self._spending = SpendTracker(store.usage, CurrentLimits(), now=now)
        self._indexer = Indexer(store.index_writer, embedders=self._embedders, sleep=sleep)
        self._use_model(model)

    def knowledge_of(self, seen_by: SeenBy | None) -> MemorySources:
        """Return the sources of what an agent sees; None: of everything."""
        search = self._search
        return MemorySources(
            KnownFacts(self._store.facts, now=self._now, seen_by=seen_by),
            episodes=self._store.episodes,
            window_pasts=self._store.window_pasts,
            search=search.for_agent(seen_by) if seen_by and isinstance(search, MessageRecall) else search,
            beginning=self._store.place_settings.beginning,
            now=self._now,
            seen_by=seen_by,
        )

    @property
    def models(self) -> list[Model]:
        """The model that learns, if there is one."""
        return [self._model] if self._model else []

    async def start(self) -> None:
        """Read what an earlier process left unread."""
        await self._learner.start(self._reads)
        await self._episode_writer.start(self._reads)
        await self._indexer.start(self._reads)

    async def change(self, model: Model | None) -> None:
        """Use another model from now on, or patterns. What is being read is read again."""
        self._spending.require_prices([model] if model else [])
        await self.close()
        self._use_model(model)
        await self.start()

    def charge(self, spending: SpendTracker) -> None:
        """Count what the model is asked with *spending*. Once a cap is reached, memory waits until the next day."""
        self._spending = spending

    def on_behind(self, behind: Callable[[int], None]) -> None:
        """Call *behind* with the number of messages that have no vectors yet, when there are many."""
        self._indexer.behind = behind

    def use_agents(self, agents: Agents) -> None:
        """Learn for the *agents* of each place that do not see all of it, or have facts of their own."""
        self._agents = agents

    async def _agents_in(self, place: Place) -> Sequence[SeenBy | None]:
        return await self._agents(place) if self._agents else (None,)

    def wake(self, place: Place) -> None:
        """Read the new and changed messages of a place, soon; return at once."""
        if self._reads(place):
            self._learner.wake(place)
            self._episode_writer.wake(place)
            self._indexer.wake(place)

    def add_recalled(self, context: Context) -> None:
        """Note what a prompt recalls, so that it is not learned again from a message that repeats it."""
        self._echo_filter.add(context)

    @property
    def busy(self) -> bool:
        return any(reader.busy for reader in self._readers)

    async def done(self) -> None:
        """Wait until all messages are read."""
        for reader in self._readers:
            await reader.done()

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()

    @property
    def _readers(self) -> tuple[Learner, EpisodeWriter, Indexer]:
        return self._learner, self._episode_writer, self._indexer

    def _use_model(self, model: Model | None) -> None:
        store = self._store
        self._model = model
        messages = VisibleLog(store.log, store.place_settings.blocked)
        self._learner = Learner(
            store.facts,
            store.cursors,
            messages,
            model=model,
            now=self._now,
            sleep=self._sleep,
            recalled=self._echo_filter.recalled_in,
            metered=self._metered,
            agents=self._agents_in,
        )
        self._episode_writer = EpisodeWriter(
            store.episodes, messages, model=model, sleep=self._sleep, metered=self._metered
        )

    def _metered(self, model: Model, place: Place, purpose: Purpose) -> Model:
        return MeteredModel(model, self._spending, place, purpose=purpose)

    def _embedders(self, name: str) -> Embedder | None:
        embedder = find_embedder(name)
        return (
            MeteredEmbedder(embedder, lambda: self._spending.counted("embedding", name))
            if isinstance(embedder, RemoteEmbedder)
            else embedder
        )
