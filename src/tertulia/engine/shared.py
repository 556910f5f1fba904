"""What the parts of one engine share: the store, the chat services, the clock, and what holds for all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.values import Persona
from tertulia.engine.agent_places import AgentPlaces
from tertulia.engine.agents.agent import Agent, Cast, cast_of_one
from tertulia.engine.allowed_places import AllowedPlaces
from tertulia.engine.background import EngineClock, RealClock, Sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.event_stream import EventStream
from tertulia.engine.identity import Identity, platforms_by_name
from tertulia.engine.languages.translator import Translator
from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.engine.places import DelimiterCache, PlaceAliases
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.platform import Platform
from tertulia.timezones import zone_named


class Shared(Struct, frozen=True, kw_only=True, eq=False):
    """What every part of one engine is given."""

    store: StoreProtocol
    identity: Identity  # the persona, and our accounts
    behavior: Behavior
    limits: CurrentLimits
    aliases: PlaceAliases
    allowed_places: AllowedPlaces
    agent_places: AgentPlaces
    delimiters: DelimiterCache
    events: EventStream
    clock: EngineClock
    zone: str

    @property
    def platforms(self) -> Mapping[str, Platform]:
        return self.identity.platforms

    @property
    def now(self) -> Callable[[], datetime]:
        return self.clock.now

    @property
    def sleep(self) -> Sleep:
        return self.clock.sleep

    @property
    def translator(self) -> Translator:
        """Who chooses the language of the agent's own lines."""
        return Translator(
            self.behavior, self.identity.language_of, self.store.place_settings, self.store.runs, self.store.log
        )


def make_shared(
    store: StoreProtocol,
    platforms: Iterable[Platform],
    *,
    persona: Persona | None = None,
    agents: Sequence[Agent] | Cast = (),
    behavior: Behavior | None = None,
    limits: Limits | None = None,
    zone: str = "UTC",
    clock: EngineClock | None = None,
) -> Shared:
    behavior = behavior or Behavior()
    if agents and persona:
        raise InvalidValue("an engine with agents has no persona besides: give it to one of them")
    cast = (
        agents
        if isinstance(agents, Cast)
        else Cast(agents=tuple(agents))
        if agents
        else cast_of_one(persona or Persona())
    )
    default = cast.default
    if not set(behavior.names) <= set(default.names):
        cast = cast.with_agent(replace(default, names=(*default.names, *behavior.names)))
    zone_named(zone)
    aliases = PlaceAliases()
    identity = Identity(cast, platforms_by_name(platforms), owners=behavior.owners)
    return Shared(
        store=store,
        identity=identity,
        behavior=behavior,
        limits=CurrentLimits(limits),
        aliases=aliases,
        allowed_places=AllowedPlaces(behavior.allowed_places, identity, aliases),
        agent_places=AgentPlaces(store.agents, identity, aliases, now=(clock or RealClock()).now),
        delimiters=DelimiterCache(store.place_settings.delimiter),
        events=EventStream(store.events),
        clock=clock or RealClock(),
        zone=zone,
    )
