"""What the parts of one engine share: the store, the chat services, the clock, and what holds for all of them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from tertulia.context.values import Persona
from tertulia.engine.background import EngineClock, RealClock, Sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.event_stream import EventStream
from tertulia.engine.identity import Identity, platforms_by_name
from tertulia.engine.languages.translator import Translator
from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.engine.places import DelimiterCache, PlaceAliases
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.platform import Platform


class Shared(Struct, frozen=True, kw_only=True, eq=False):
    """What every part of one engine is given."""

    store: StoreProtocol
    identity: Identity  # the persona, and our accounts
    behavior: Behavior
    limits: CurrentLimits
    aliases: PlaceAliases
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
        return Translator(self.behavior, self.store.place_settings, self.store.runs, self.store.log)


def make_shared(
    store: StoreProtocol,
    platforms: Iterable[Platform],
    *,
    persona: Persona | None = None,
    behavior: Behavior | None = None,
    limits: Limits | None = None,
    zone: str = "UTC",
    clock: EngineClock | None = None,
) -> Shared:
    behavior = behavior or Behavior()
    return Shared(
        store=store,
        identity=Identity(persona or Persona(), platforms_by_name(platforms), owners=behavior.owners),
        behavior=behavior,
        limits=CurrentLimits(limits),
        aliases=PlaceAliases(),
        delimiters=DelimiterCache(store.place_settings.delimiter),
        events=EventStream(store.events),
        clock=clock or RealClock(),
        zone=zone,
    )
