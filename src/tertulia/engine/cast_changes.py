"""Changes of the cast: agents are added, changed and removed while the engine runs."""

from collections.abc import Iterable
from contextlib import suppress

from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.agents.names import name_key
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.place_worker import PlaceWorkers
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import AddedAgent, OutboxItem
from tertulia.errors import InvalidValue
from tertulia.messages import Reply


class CastChanges:
    """Sets the agents of an engine: those of the config, and those that owners added to them."""

    def __init__(self, shared: Shared, workers: PlaceWorkers, sender: OutboxSender) -> None:
        self._shared = shared
        self._store = shared.store.agents
        self._workers = workers
        self._sender = sender
        self._configured = shared.identity.cast
        self._added: dict[str, AddedAgent] = {}

    async def load(self) -> None:
        """Add the agents that owners have added. One that no longer goes with those of the config stays away."""
        self._configured = self._shared.identity.cast
        self._shared.identity.had_several |= await self._store.had_several()
        if self._shared.identity.has_owners:
            self._added = {one.name: one for one in await self._store.added()}
            self._shared.identity.cast = with_added(self._configured, self._added.values())
        for name in await self._store.awaited():
            if self._shared.identity.cast.get(name) is None:
                await self._drop(name)

    async def configure(self, cast: Cast) -> None:
        """Take over the agents of a config."""
        self._configured = cast
        await self._set(with_added(cast, self._added.values()))

    def is_configured(self, name: str) -> bool:
        return any(name_key(one.name) == name_key(name) for one in self._configured.agents)

    async def add(self, added: AddedAgent) -> None:
        """Add an agent, or change one that was added; raise `InvalidValue` where people could not tell it apart."""
        if self._configured.is_single and not self._configured.default.name:
            raise InvalidValue("the first agent needs a name before there can be another: persona.name")
        others = {name: one for name, one in self._added.items() if name_key(name) != name_key(added.name)}
        cast = with_added(self._current(), others.values()).with_agent(_agent(added))
        self._added = {**others, added.name: added}
        await self._store.add(added)
        await self._set(cast)

    async def remove(self, name: str) -> bool:
        """Remove an agent that was added; return whether there was one."""
        found = next((one for one in self._added if name_key(one) == name_key(name)), None)
        if found is None:
            return False
        self._added = {key: one for key, one in self._added.items() if key != found}
        await self._store.remove(found, at=self._shared.now())
        await self._set(with_added(self._current(), self._added.values()))
        return True

    def _current(self) -> Cast:
        """Return the agents of the config, with what an owner changed of the first by `/persona`."""
        return self._configured.with_persona(self._shared.identity.persona)

    async def _set(self, cast: Cast) -> None:
        """Use a cast. A removed agent stops in the middle of an answer, without a word; its tasks are told of."""
        identity = self._shared.identity
        gone = [one.name for one in identity.cast.agents if cast.get(one.name) is None]
        identity.had_several |= not (identity.cast.is_single and cast.is_single)
        identity.cast = cast
        self._shared.agent_places.clear()
        for name in gone:
            self._workers.stop_agent(name)
            await self._drop(name)

    async def _drop(self, name: str) -> None:
        """End what waits for a removed agent; say in each place how many of its tasks will not be done."""
        cancelled = await self._store.drop_waiting(name, at=self._shared.now())
        places = {task.place.key: task.place for task in cancelled}
        lines = self._shared.behavior.lines_in("")
        items = [
            OutboxItem(
                id=f"removed-{name}-{self._shared.now():%Y%m%d%H%M%S%f}-{number}",
                reply=Reply(place=place, text=lines.agent_tasks_cancelled.format(name=name, count=count)),
                made_at=self._shared.now(),
                kind="notice",
            )
            for number, place in enumerate(places.values())
            if (count := sum(task.place.key == place.key for task in cancelled))
        ]
        await self._shared.store.outbox.put(*items)
        self._sender.enqueue(items)


def with_added(cast: Cast, added: Iterable[AddedAgent]) -> Cast:
    """Return a cast with the agents that owners added, without those that do not go with the others."""
    for one in added:
        with suppress(InvalidValue):
            cast = cast.with_agent(_agent(one))
    return cast


def _agent(added: AddedAgent) -> Agent:
    return Agent(name=added.name, persona=Persona(text=added.text))
