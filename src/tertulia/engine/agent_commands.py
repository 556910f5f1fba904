"""Commands about agents: who is in a place, who answers there, and agents that owners add while the bot runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from tertulia.engine.cast_changes import CastChanges
from tertulia.engine.languages.lines import Lines
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import AddedAgent, Command, PlaceCast
from tertulia.errors import InvalidValue
from tertulia.messages import Place

RESET = "-"  # takes back what an administrator chose

AgentHandler = Callable[[Command, Lines], Awaitable[tuple[str, ...]]]


class AgentCommands:
    """Carries out `/agents` and `/agent`."""

    def __init__(self, shared: Shared, changes: CastChanges) -> None:
        self._shared = shared
        self._identity = shared.identity
        self._places = shared.agent_places
        self._changes = changes
        self.handlers: Mapping[str, AgentHandler] = {"agents": self._agents, "agent": self._agent}

    async def _agents(self, command: Command, lines: Lines) -> tuple[str, ...]:
        """`/agents` lists who is in a place, `/agents Ada, Bob` sets that, `/agents -` takes it back."""
        place, given = command.message.place, command.argument.strip()
        if not given:
            return (await self._listed(place, lines),)
        if refused := await self._refused(command, lines):
            return (refused,)
        names = [] if given == RESET else [name.strip() for name in given.split(",") if name.strip()]
        known = [self._identity.cast.get(name) for name in names]
        if None in known:
            return (self._unknown(names[known.index(None)], lines),)
        agents = tuple(agent.name for agent in known if agent)
        chosen = await self._places.chosen(place)
        default = chosen.default if not agents or chosen.default in agents else None
        await self._places.choose(place, PlaceCast(agents=agents or None, default=default))
        return (await self._listed(place, lines),)

    async def _agent(self, command: Command, lines: Lines) -> tuple[str, ...]:
        """`/agent NAME` says who answers in a place where nobody is named, `/agent -` takes it back."""
        place, given = command.message.place, command.argument.strip()
        how, _, rest = given.partition(" ")
        if how in ("add", "remove") and rest.strip():
            return await (self._add if how == "add" else self._remove)(command, rest.strip(), lines)
        if not given:
            return (await self._listed(place, lines),)
        if refused := await self._refused(command, lines):
            return (refused,)
        chosen, agent = await self._places.chosen(place), None
        if given != RESET:
            agent = self._identity.cast.get(given)
            if agent is None:
                return (self._unknown(given, lines),)
        agents = chosen.agents
        if agent and agents is not None and agent.name not in agents:
            agents = (*agents, agent.name)
        await self._places.choose(place, PlaceCast(agents=agents, default=agent.name if agent else None))
        return (await self._listed(place, lines),)

    async def _add(self, command: Command, given: str, lines: Lines) -> tuple[str, ...]:
        """`/agent add Ada: You are Ada Lovelace.`"""
        message = command.message
        if not self._identity.is_owner(message.place, message.author):
            return (lines.only_owners,)
        name, colon, text = given.partition(":")
        if not colon:
            name, _, text = given.partition(" ")
        if not (name := name.strip()) or not (text := text.strip()):
            return (lines.agent_how,)
        if self._changes.is_configured(name):
            return (lines.agent_configured.format(name=name),)
        try:
            await self._changes.add(
                AddedAgent(
                    name=name,
                    text=text,
                    at=self._shared.now(),
                    service=message.place.author_namespace,
                    who=message.author.id,
                )
            )
        except InvalidValue as error:
            return (str(error),)
        return (lines.agent_added.format(name=name),)

    async def _remove(self, command: Command, name: str, lines: Lines) -> tuple[str, ...]:
        message = command.message
        if not self._identity.is_owner(message.place, message.author):
            return (lines.only_owners,)
        if self._changes.is_configured(name):
            return (lines.agent_configured.format(name=name),)
        if not await self._changes.remove(name):
            return (self._unknown(name, lines),)
        return (lines.agent_removed.format(name=name),)

    async def _refused(self, command: Command, lines: Lines) -> str:
        """Return why a person may not change the agents of a place; empty if they may."""
        place, author = command.message.place, command.message.author
        if self._identity.cast.locked:
            return lines.agents_locked
        if place.kind == "direct" or await self._identity.is_administrator(place, author):
            return ""
        return lines.agents_by_administrators

    async def _listed(self, place: Place, lines: Lines) -> str:
        here = await self._places.here(place)
        names = [
            lines.agent_default.format(name=agent.name) if agent is here.default else agent.name
            for agent in here.agents
        ]
        others = [agent.name for agent in self._identity.cast.agents if agent not in here.agents]
        said = lines.agents_here.format(names=", ".join(names))
        return f"{said}\n{lines.agents_elsewhere.format(names=', '.join(others))}" if others else said

    def _unknown(self, name: str, lines: Lines) -> str:
        names: Sequence[str] = [agent.name for agent in self._identity.cast.agents]
        return lines.unknown_agent.format(name=name, names=", ".join(names))
