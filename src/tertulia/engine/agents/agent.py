"""Agents: who speaks in the places of an engine, and which of them in a place. Pure."""

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tertulia.characters import is_blank
from tertulia.context.values import Persona, require_names
from tertulia.engine.agents.names import name_key, name_pattern
from tertulia.engine.limits import Limits
from tertulia.engine.places import is_identified, is_listed, require_places
from tertulia.errors import InvalidValue
from tertulia.messages import Place
from tertulia.models.base import Model
from tertulia.profiles import Profile
from tertulia.seen_by import SeenBy
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Settings
from tertulia.value_cache import cached


class Agent(Struct, frozen=True, kw_only=True):
    """One of the characters of an engine. What it does not have of its own is that of the engine."""

    name: str  # as people see it; empty: that of its account, if it is the only one
    persona: Persona = Persona()  # has the name of the agent
    names: tuple[str, ...] = ()  # other names that people use for it; `gryag*` has any ending
    models: tuple[Model, ...] = ()  # each a fallback for the one before; empty: those of the engine
    profile: Profile | None = None  # how its prompts are laid out
    tools: Toolbox | None = None  # that its models may call
    settings: Settings | None = None  # of its requests
    memory: Literal["shared", "own"] = "shared"  # whether facts about people are those of all agents, or its own
    knows: Literal["all", "present"] = "all"  # whether it knows what was said in a place while it was not there
    limits: Limits | None = None  # caps on what it spends, within those of the engine
    avatar: str = ""  # a picture of it, for platforms that show one
    language: str = ""  # of its own lines, for people whose language is unknown; empty: that of the engine
    places: tuple[str, ...] = ()  # where it takes part, as `service:id`, or a kind of places; empty: everywhere
    may_send: tuple[str, ...] = ()  # places, as `service:id`, and agents that it may send to
    accounts: tuple[str, ...] = ()  # platforms whose account is this agent's own

    def __post_init__(self) -> None:
        if self.persona.name not in ("", self.name):
            raise InvalidValue(
                f"agent {self.name!r}: its persona is named {self.persona.name!r}; give both one name, others in names"
            )
        force_setattr(self, "persona", replace(self.persona, name=self.name))
        require_names(self.names)
        require_places(f"agent {self.name!r}: places", self.places)

    @property
    def seen_by(self) -> SeenBy:
        """What of memory it sees."""
        return SeenBy(agent=self.name, present=self.knows == "present", own=self.memory == "own")

    @property
    def called(self) -> tuple[str, ...]:
        """What people call it. Its own name is no pattern."""
        return tuple(one for one in (self.name.rstrip("*"), *self.persona.names, *self.names) if not is_blank(one))


class PlaceAgents(Struct, frozen=True, kw_only=True):
    """The agents of a place, in their order."""

    agents: tuple[Agent, ...]
    default: Agent | None  # is meant where nobody is named; None: there are no agents
    account: Agent | None  # is meant by a mention of the account there


class Cast(Struct, frozen=True, kw_only=True, dict=True):
    """The agents of an engine, in their order."""

    agents: tuple[Agent, ...]
    default_name: str = ""  # empty: the first is the default agent
    locked: bool = False  # whether commands cannot change who is in a place

    def __post_init__(self) -> None:
        if not self.agents:
            raise InvalidValue("there is no agent: an engine has at least one")
        for at, agent in enumerate(self.agents):
            require_distinct(agent, self.agents[:at])
            require_recipients(agent, self.agents)
        if self.default_name and self.get(self.default_name) is None:
            raise InvalidValue(f"no agent is named {self.default_name!r}; the agents: {_listed(self.agents)}")

    @property
    def default(self) -> Agent:
        """The agent that answers where nobody else is meant."""
        return cached(self, "by name", _by_name)[""]

    def get(self, name: str) -> Agent | None:
        """Return the agent of a name, in any case; the default agent for an empty one."""
        known = cached(self, "by name", _by_name)
        return known.get(name) or known.get(name_key(name))

    def owner_of(self, account: str) -> Agent | None:
        """Return the agent whose own an account is; that is the name of a platform."""
        return next((one for one in self.agents if account in one.accounts), None)

    @property
    def is_single(self) -> bool:
        return len(self.agents) == 1

    def stored_name(self, agent: Agent) -> str:
        """Return the name under which an agent is stored: none where there is only one, whatever it is called."""
        return "" if self.is_single else agent.name

    def names_of(self, agent: Agent) -> tuple[str, ...]:
        """Return all names under which an agent may be stored."""
        return (agent.name, "") if agent is self.default else (agent.name,)

    def with_agent(self, agent: Agent) -> "Cast":
        """Return the cast with an agent in place of that of its name, or added."""
        others = tuple(agent if name_key(one.name) == name_key(agent.name) else one for one in self.agents)
        return replace(self, agents=others if agent in others else (*others, agent))

    def with_persona(self, persona: Persona) -> "Cast":
        """Return the cast with the persona of the default agent; the only agent takes its name too."""
        if self.is_single:
            [agent] = self.agents
            return cast_of_one(persona, agent)
        return self.with_agent(replace(self.default, persona=persona))

    def in_place(
        self, place: Place, *, former_ids: Collection[str] = (), listed: Iterable[str] = (), default: str = ""
    ) -> PlaceAgents:
        """Return the agents of a place: of those whose `places` have it, the ones that its administrators *listed*.

        A list counts as none when none of its agents is there any more. The default agent is the *default* of the
        administrators, else the one whose account it is, else that of all places, else the first.
        """
        agents = tuple(one for one in self.agents if not one.places or is_listed(place, one.places, former_ids))
        keys = {name_key(name) for name in listed}
        chosen = tuple(one for one in agents if name_key(one.name) in keys)
        agents = chosen or agents
        owner = self.owner_of(place.platform)
        owner = owner if owner in agents else None
        wanted = (self.get(default) if default else None, owner, self.default, *agents)
        found = next((one for one in wanted if one in agents), None)
        if place.kind == "direct" and found and not chosen:  # nobody else hears what is said there
            agents = (found,)
        return PlaceAgents(agents=agents, default=found, account=owner or found)


def _by_name(cast: Cast) -> dict[str, Agent]:
    """Return the agents by their names, and the default one by none."""
    known = {key: one for one in reversed(cast.agents) for key in (name_key(one.name), one.name)}
    return {**known, "": known.get(name_key(cast.default_name), cast.agents[0])}


def require_distinct(agent: Agent, others: Collection[Agent]) -> None:
    """Raise `InvalidValue` where people could not tell an agent from the *others*."""
    for one in (agent, *others):
        if is_blank(one.name) and (one.name or others):
            raise InvalidValue(f"{one.name!r} is no name of an agent: where there are several, each needs one")
    for other in others:
        if name_key(agent.name) == name_key(other.name):
            raise InvalidValue(f"two agents are named {agent.name!r}: give each its own name")
        for pattern, whole in (*_fitting(agent, other), *_fitting(other, agent)):
            raise InvalidValue(
                f"agent {agent.name!r}: people could not tell it from {other.name!r}: {pattern!r} fits {whole!r}"
            )
        for account in set(agent.accounts) & set(other.accounts):
            raise InvalidValue(f"agent {agent.name!r}: the account {account!r} is that of {other.name!r}")


def require_recipients(agent: Agent, agents: Collection[Agent]) -> None:
    """Raise `InvalidValue` where an agent may send to something else than places and *agents*."""
    names = {name_key(one.name) for one in agents}
    if wrong := [one for one in agent.may_send if not is_identified(one) and name_key(one) not in names]:
        raise InvalidValue(
            f"agent {agent.name!r}: may_send must hold places as `service:id`, and agents: {_listed(agents)}; "
            f"not {wrong[0]!r}"
        )


def _listed(agents: Iterable[Agent]) -> str:
    return ", ".join(one.name or "one without a name" for one in agents)


def cast_of_one(persona: Persona, agent: Agent | None = None) -> Cast:
    """Return a cast of one agent, which has the name of its persona."""
    bare = replace(agent or Agent(name=""), persona=Persona(), name=persona.name)
    return Cast(agents=(replace(bare, persona=persona),))


def _fitting(one: Agent, other: Agent) -> Iterable[tuple[str, str]]:
    """Return the names of one agent that fit a whole name of another."""
    for pattern in one.called:
        fits = name_pattern(pattern).fullmatch
        yield from ((pattern, name) for name in other.called if fits(name_key(name.removesuffix("*"))))
