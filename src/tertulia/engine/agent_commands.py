"""Commands about agents: who is in a place, who answers there, and agents that owners add while the bot runs."""

from collections.abc import Sequence

from tertulia.engine.cast_changes import CastChanges
from tertulia.engine.languages.lines import Lines
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import AddedAgent, Command, PlaceCast
from tertulia.errors import InvalidValue
from tertulia.messages import Place

RESET = "-"  # takes back what an administrator chose


class AgentCommands:
    """Carries out `/agents` and `/agent`."""

    def __init__(self, shared: Shared, changes: CastChanges) -> None:
        self._shared = shared
        self._identity = shared.identity
        self._places = shared.agent_places
        self._changes = changes

    async def carry_out(self, command: Command, lines: Lines) -> str:
        """Carry out a command; return what is said. Without an argument both list who is in a place."""
        place, given = command.message.place, command.argument.strip()
        how, _, rest = given.partition(" ")
        if command.name == "agent" and how in ("add", "remove") and rest.strip():
            if not self._identity.is_owner(place, command.message.author):
                return lines.only_owners
            return await (self._add if how == "add" else self._remove)(command, rest.strip(), lines)
        if given:
            if refused := await self._refused(command, lines):
                return refused
            choose = self._with_agents if command.name == "agents" else self._with_default
            chosen = choose(await self._places.chosen(place), given, lines)
            if isinstance(chosen, str):
                return chosen
            await self._places.choose(place, chosen)
        return await self._listed(place, lines)

    def _with_agents(self, chosen: PlaceCast, given: str, lines: Lines) -> PlaceCast | str:
        """`/agents Ada, Bob` sets who is in a place, `/agents -` takes it back."""
        names = [] if given == RESET else [name.strip() for name in given.split(",") if name.strip()]
        known = [self._identity.cast.get(name) for name in names]
        if None in known:
            return self._unknown(names[known.index(None)], lines)
        agents = tuple(agent.name for agent in known if agent)
        default = chosen.default if not agents or chosen.default in agents else None
        return PlaceCast(agents=agents or None, default=default)

    def _with_default(self, chosen: PlaceCast, given: str, lines: Lines) -> PlaceCast | str:
        """`/agent NAME` says who answers in a place where nobody is named, `/agent -` takes it back."""
        if given == RESET:
            return PlaceCast(agents=chosen.agents)
        if (agent := self._identity.cast.get(given)) is None:
            return self._unknown(given, lines)
        agents = chosen.agents
        if agents is not None and agent.name not in agents:
            agents = (*agents, agent.name)
        return PlaceCast(agents=agents, default=agent.name)

    async def _add(self, command: Command, given: str, lines: Lines) -> str:
        """`/agent add Ada: You are Ada Lovelace.`"""
        message = command.message
        name, colon, text = given.partition(":")
        if not colon:
            name, _, text = given.partition(" ")
        if not (name := name.strip()) or not (text := text.strip()):
            return lines.agent_how
        if self._changes.is_configured(name):
            return lines.agent_configured.format(name=name)
        service, who = message.place.author_namespace, message.author.id
        try:
            await self._changes.add(AddedAgent(name=name, text=text, at=self._shared.now(), service=service, who=who))
        except InvalidValue as error:
            return str(error)
        return lines.agent_added.format(name=name)

    async def _remove(self, _: Command, name: str, lines: Lines) -> str:
        if self._changes.is_configured(name):
            return lines.agent_configured.format(name=name)
        is_gone = await self._changes.remove(name)
        return lines.agent_removed.format(name=name) if is_gone else self._unknown(name, lines)

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
