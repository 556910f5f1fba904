"""The site: what the endpoints of one page share."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime

from msgspec import Struct

from tertulia.engine.engine import Engine
from tertulia.engine.health import Health
from tertulia.engine.limits import Cap
from tertulia.engine.replay.replayer import Replayer
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.agents import KnownAgents
from tertulia.models.base import Model
from tertulia.platforms.web.room_platform import RoomPlatform


class StreamLimits(Struct, frozen=True, kw_only=True):
    """How many streams one page has, and how often each looks about."""

    most: int = 100
    of_guests: int = 80  # of all guests together
    of_guest: int = 8  # of one
    tick: float = 0.5  # seconds between two looks whether who listens still may
    keep_alive: float = 15.0  # seconds of silence, after which proxies might close a stream


class RoomLimits(Struct, frozen=True, kw_only=True):
    """How much guests may do, each of them."""

    writes: int = 30  # at once
    writes_per_second: float = 0.5  # after these
    write_seconds: float = 15.0  # after which who writes is not held any longer
    writing: int = 100  # messages and the like that wait for the store, of all guests together
    bytes: int = 200_000_000  # of files, in a day
    files: int = 10  # of one message
    uploads: int = 8  # under way, of all guests together
    upload_seconds: float = 120.0  # in which a file must arrive
    texts: int = 400_000  # characters of texts at once that become elements
    texts_per_second: float = 20_000.0  # after these


class Replays(Struct, frozen=True, kw_only=True):
    """What replays past requests: by the options of a bot, and its models."""

    models: tuple[str, ...]  # names
    open: Callable[[], Awaitable[Replayer]]
    open_model: Callable[[str, AsyncExitStack], Awaitable[Model]]  # one of them; it is closed with the stack


class Site(Struct, frozen=True, kw_only=True):
    """A store, and in the bot's own process its engine."""

    store: StoreProtocol
    now: Callable[[], datetime]
    engine: Engine | None = None  # None: a bot may be running in another process
    rooms: RoomPlatform | None = None  # of the bot in this process: elsewhere nobody enters a room
    daily: Cap | None = None  # of the config; an engine knows its own
    agent: str = ""  # its name, as far as it is known here
    profile: str = ""  # of the config
    configured: Callable[[], Awaitable[KnownAgents]] | None = None  # beside the bot: its agents, by its config
    language: str = "en"  # of the bot's own lines, which the page takes too
    streams: StreamLimits = StreamLimits()
    room_limits: RoomLimits = RoomLimits()
    replays: Replays | None = None  # by a config; an engine has its own

    @property
    def health(self) -> Health | None:
        """What the bot's own process knows of its models and platforms."""
        return self.engine.health if self.engine else None

    async def agents(self) -> KnownAgents:
        """Return the agents, as far as they are known here."""
        if self.engine is None:
            return await self.configured() if self.configured else KnownAgents()
        models = {"": self.engine.models, **{one.name: one.models for one in self.engine.agents}}
        names = {agent: tuple(model.name for model in own) for agent, own in models.items()}
        return KnownAgents(cast=self.engine.cast, models=names, profile=self.profile)

    @property
    def cap(self) -> Cap | None:
        """The cap on all that the bot may spend in a day, as far as it is known."""
        return self.engine.limits.total if self.engine else self.daily

    @property
    def replaying(self) -> Replays | None:
        """What replays past requests here; None where neither an engine nor a config is known."""
        engine = self.engine
        if engine is None:
            return self.replays
        models = {model.name: model for model in engine.models}

        async def opened() -> Replayer:
            return engine.replayer()

        async def model(name: str, _: AsyncExitStack) -> Model:
            return models[name]

        return Replays(models=tuple(models), open=opened, open_model=model)
