"""App: a bot from a config. It opens what the config names, runs it, and reloads what may change while it runs."""

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tertulia.code_location import error_location
from tertulia.config import (
    NO_MODEL,
    PLATFORMS,
    Config,
    ConfigFile,
    PlatformConfig,
    cast_of,
    load_config,
    load_object,
    local_zone,
)
from tertulia.config_reader import is_secret
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Cast
from tertulia.engine.background import EngineClock, RealClock, Sleep
from tertulia.engine.cast_changes import with_added
from tertulia.engine.describers import ModelDescriber, by_model
from tertulia.engine.engine import Engine
from tertulia.engine.identity import require_usable
from tertulia.engine.memory import Memory
from tertulia.engine.owner_settings import in_force
from tertulia.engine.replay.replayer import Replayer
from tertulia.engine.rooms import PLATFORM
from tertulia.engine.shared import make_shared
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue, KeyRefused, ModelUnknown, NotInstalled, StoreRefused, TertuliaError
from tertulia.inspector.agents import KnownAgents
from tertulia.logs import log_events
from tertulia.model_choice import Hints, choose_model, choose_transcriber
from tertulia.models import CachedGemini, Gemini
from tertulia.models.base import Model, media_taken
from tertulia.models.http import ServiceClient
from tertulia.models.local.client import Local
from tertulia.models.openai.transcription import Transcriber
from tertulia.platform import Platform
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.platforms.web.site import Replays, Site
from tertulia.profiles import profile_of
from tertulia.redaction import redact_keys
from tertulia.store import Store
from tertulia.store.media_folder import default_folder
from tertulia.store_url import is_url
from tertulia.timezones import zone_named
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools import open_tools
from tertulia.wire.generations import smallest_cache

log = logging.getLogger(__name__)

RELOADED = ("persona", "limits", "agents")  # the keys that may change while the bot runs
BLIND = "it sees no pictures, and describes only documents"
INTERVAL = 1.0  # seconds between two looks at the files

HINTS = Hints(
    model="model =",
    address="TERTULIA_OPENAI_BASE_URL",
    key="set {names}",
    instead="name another model",
    forget="Set a smaller context.history_size.",
)


async def run_bot(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Run the bot of a config until it is stopped."""
    file = load_config(path, environment)
    if not file.platforms and file.web is None:
        raise InvalidValue(
            f"{path} names no platform: set TERTULIA_TELEGRAM_TOKEN, add [web] or [platforms.NAME], "
            "or talk to the bot with `tertulia chat`"
        )
    async with open_bot(file, environment) as engine, page_of(engine, file), traces_of(engine, file):
        beside = [
            asyncio.create_task(log_events(engine.events())),
            asyncio.create_task(reload_on_change(engine, file, environment)),
            asyncio.create_task(check_models(engine.models)),
        ]
        log.info("%s starts: %s", path, ", ".join(engine.platforms))
        try:
            await engine.run()
        except TertuliaError:
            raise
        except Exception as error:
            secrets = [value for one in file.platforms.values() for value in secrets_of(one)]
            raise TertuliaError(hide_secrets(f"{path} cannot run: {error_line(error)}", secrets)) from error
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)


@asynccontextmanager
async def page_of(engine: Engine, file: ConfigFile) -> AsyncIterator[None]:
    """Serve the page that a config asks for, and print its links; without the table `[web]` do nothing."""
    if file.web is None:
        yield
        return
    from tertulia.platforms.web.page_server import serve_page

    config, rooms = file.config, engine.platforms.get(PLATFORM)
    site = Site(
        store=engine.store,
        now=lambda: datetime.now(UTC),
        engine=engine,
        rooms=rooms if isinstance(rooms, RoomPlatform) else None,
        agent=engine.cast.default.name,
        profile=config.profile,
        language=config.behavior.language,
    )
    async with AsyncExitStack() as opened:
        with file.naming("web"):
            page = await opened.enter_async_context(serve_page(site, file.web, store=file.store, folder=file.folder))
        print(*page.lines, sep="\n", flush=True)  # the log would hide the tokens
        yield


@asynccontextmanager
async def traces_of(engine: Engine, file: ConfigFile) -> AsyncIterator[None]:
    """Trace runs as a config asks for; without the table `[traces]` do nothing."""
    if file.traces is None:
        yield
        return
    require_tracing()
    from tertulia.traces.tracing import open_tracer, trace_runs

    async with open_tracer(file.traces.endpoint) as tracer:
        tracing = asyncio.create_task(trace_runs(engine, tracer, content=file.traces.content))
        try:
            yield
            await tracing  # the events of an engine end with it
        finally:
            tracing.cancel()
            await asyncio.wait([tracing])


def require_tracing() -> None:
    """Raise `NotInstalled` where the packages that trace are missing."""
    try:
        import tertulia.traces.tracing  # noqa: F401
    except ModuleNotFoundError as error:
        raise NotInstalled("traces need OpenTelemetry: pip install 'tertulia[traces]'") from error


@asynccontextmanager
async def open_bot(
    file: ConfigFile,
    environment: Mapping[str, str] = os.environ,
    *,
    models: Sequence[Model] = (),
    platforms: Sequence[Platform] = (),
    clock: EngineClock | None = None,
) -> AsyncIterator[Engine]:
    """Open the models, the store and the tools of a config, and make the engine with its platforms.

    *models* and *platforms* replace those of the config, also the models that learn, describe media and transcribe.
    """
    config, zone = file.config, file.config.zone or local_zone(environment)
    clock = clock or RealClock()
    has_rooms = not platforms and file.web is not None
    platforms = platforms or [open_platform(name, one, file) for name, one in file.platforms.items()]
    check_zone(zone, file)
    with file.naming("profile"):
        profile = profile_of(config.profile, config.context)
    async with AsyncExitStack() as opened:
        learns = None if models else config.memory.model
        is_given = bool(models)
        models = models or [await open_model(name, file, opened, environment) for name in models_of(file)]
        memory_model = await open_model(learns, file, opened, environment) if learns else None
        describe = None if is_given else await _open_describer(models[0], file, opened, environment)
        transcribe = None if is_given else await open_transcriber(file, opened, environment)
        folder = file.media_folder
        if not is_url(file.store):
            beside = _make_folder(file.store)
            folder = folder or beside
        store = await opened.enter_async_context(Store.open(file.store, media_folder=folder))
        if has_rooms:
            platforms = [*platforms, _rooms_of(store, file, clock)]
        if config.cache and not is_given:
            models = [with_cache(model, store, opened) for model in models]
        tools = await opened.enter_async_context(tools_of(file, store, clock.now, zone, environment))
        opened_models = None if is_given else dict(zip(models_of(file), models, strict=True))
        cast = await open_cast(file, store, opened, environment, models=opened_models, now=clock.now, zone=zone)
        cast = with_accounts(cast, file, platforms)
        yield Engine(
            store,
            models,
            platforms,
            agents=cast,
            tools=tools,
            memory=Memory(store, model=memory_model) if config.memory.enabled else None,
            profile=profile,
            context=config.context,
            settings=config.settings,
            behavior=config.behavior,
            limits=config.limits,
            media=config.media,
            describe=describe,
            transcribe=transcribe,
            zone=zone,
            clock=clock,
        )


async def known_agents(file: ConfigFile, store: StoreProtocol) -> KnownAgents:
    """Return the agents of a config with those that owners added, as they are known beside the bot."""
    cast = cast_of(file)
    if file.config.behavior.owners:
        cast = with_added(cast, await store.agents.added())
    models = {"": tuple(file.config.models), **{name: one.models for name, one in file.agents.items()}}
    return KnownAgents(cast=cast, models=models, profile=file.config.profile)


def _rooms_of(store: Store, file: ConfigFile, clock: EngineClock) -> RoomPlatform:
    name, largest = cast_of(file).default.name, file.config.media.largest
    return RoomPlatform(store.rooms, store.media, now=clock.now, name=name, largest=largest)


def replays_of(store: Store, file: ConfigFile, environment: Mapping[str, str] = os.environ) -> Replays:
    """Return what replays past requests of a store by a config, beside its bot."""

    async def opened(name: str, stack: AsyncExitStack) -> Model:
        return await open_model(name, file, stack, environment)

    return Replays(models=file.config.models, open=lambda: open_replayer(store, file, environment), open_model=opened)


async def open_replayer(
    store: Store, file: ConfigFile, environment: Mapping[str, str] = os.environ, *, zone: str = ""
) -> Replayer:
    """Return what replays runs of a store by the options of a config, with what owners changed in them."""
    config, persona = file.config, persona_of(file.config)
    settings = await store.owner_settings.listed() if config.behavior.owners else ()
    values = {one.name: one.value for one in in_force(settings, persona, config.limits)}
    shared = make_shared(
        store,
        (),
        persona=replace(persona, **values.get("persona", {})),
        behavior=config.behavior,
        limits=replace(config.limits, **values.get("limit", {})),
        zone=zone or config.zone or local_zone(environment),
    )
    spending = SpendTracker(
        store.usage, shared.limits, rooms=store.rooms, prices=config.behavior.prices, now=shared.now
    )
    return Replayer(shared, spending, config.context)


@asynccontextmanager
async def tools_of(
    file: ConfigFile,
    store: StoreProtocol,
    now: Callable[[], datetime],
    zone: str,
    environment: Mapping[str, str],
    *,
    agent: str = "",
) -> AsyncIterator[Toolbox]:
    """Open the tools that a config names, or those that it names for one of its agents."""
    table = file.agents[agent] if agent else file.config
    names = [name for name in table.tools or () if name != "memory" or file.config.memory.enabled]
    async with AsyncExitStack() as opened:
        with file.naming(*(("agents", agent) if agent else ()), "tools"):
            opening = open_tools(names, store=store, now=now, zone=zone, environment=environment, load=load_object)
            toolbox = Toolbox(await opened.enter_async_context(opening))
        yield toolbox


async def open_cast(
    file: ConfigFile,
    store: StoreProtocol,
    opened: AsyncExitStack,
    environment: Mapping[str, str],
    *,
    models: Mapping[str, Model] | None,
    now: Callable[[], datetime],
    zone: str,
) -> Cast:
    """Return the agents of a config with their models and tools, which are closed with *opened*.

    *models* are open already, by name; None: the agents have none of their own.
    """
    named = [] if models is None else [name for one in file.agents.values() for name in one.models]
    found = dict(models or {})
    for name in dict.fromkeys(named):
        if name not in found:
            model = await open_model(name, file, opened, environment)
            found[name] = with_cache(model, store, opened) if file.config.cache else model
    tools = {
        name: await opened.enter_async_context(tools_of(file, store, now, zone, environment, agent=name))
        for name, one in file.agents.items()
        if one.tools is not None
    }
    return cast_of(file, models=found, tools=tools)


def with_accounts(cast: Cast, file: ConfigFile, platforms: Iterable[Platform]) -> Cast:
    """Return agents with the names of their platforms, which a config calls by its tables."""
    names = {table: platform.name for table, platform in zip(file.platforms, platforms, strict=False)}
    agents = [
        replace(one, accounts=tuple(names.get(account, account) for account in one.accounts)) for one in cast.agents
    ]
    return replace(cast, agents=tuple(agents))


def with_cache(model: Model, store: StoreProtocol, opened: AsyncExitStack) -> Model:
    """Return the model with explicit caches, which are closed with *opened*; itself if it has none."""
    if why := why_uncached(model):
        log.warning("cache: %s", why)
    if why or not isinstance(model, Gemini):
        return model
    cached = CachedGemini(model, store=store.model_caches)
    opened.push_async_callback(cached.aclose)
    return cached


def why_uncached(model: Model) -> str:
    """Return why a model has no explicit caches; empty if it has."""
    if not isinstance(model, Gemini):
        return f"{model.name}: only models of Gemini have explicit caches"
    return "" if smallest_cache(model.name) else f"{model.name}: this model has no explicit caches"


async def check_models(models: Iterable[Model]) -> None:
    """Log a model or a key that its service refuses before somebody asks; it costs nothing."""
    for model in models:
        try:
            if isinstance(model, ServiceClient | CachedGemini):
                await model.check_model()
        except (KeyRefused, ModelUnknown) as error:
            log.error("%s cannot answer: %s", model.name, error)
        except TertuliaError as error:  # it is busy, or not there: a run will try again
            log.debug("%s: %s", model.name, error)


def check_zone(zone: str, file: ConfigFile) -> None:
    """Raise `InvalidValue` if there is no such time zone."""
    with file.naming("zone"):
        try:
            zone_named(zone)
        except InvalidValue as error:
            raise InvalidValue(f"{error}; give an IANA name such as Europe/Kyiv") from error


def _make_folder(store: str) -> Path:
    """Make the folder of a file; return that of media beside it."""
    try:
        Path(store).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return default_folder(os.path.realpath(store))
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", "") or error
        raise StoreRefused(f"the store {store}: its folder cannot be made: {reason}") from error


def models_of(file: ConfigFile) -> Sequence[str]:
    """Return the names of the models; raise `InvalidValue` if there is none."""
    if not file.config.models:
        raise InvalidValue(f'{file.path}: there is no model: write model = "gemini-3.8-flash", or set TERTULIA_MODEL')
    return file.config.models


def persona_of(config: Config) -> Persona:
    return config.persona.persona


def open_platform(name: str, platform: PlatformConfig, file: ConfigFile) -> Platform:
    """Make a platform of the class and the options that a config names."""
    is_ours = name in PLATFORMS and name not in file.config.platforms  # it has a table of its own, as [telegram]
    table = (name,) if is_ours else ("platforms", name)
    with file.naming(*table, "use"):
        kind = load_object(platform.use)
        if not callable(kind):
            raise InvalidValue(f"{platform.use} is no subclass of tertulia.Platform")
    with file.naming(*table, *_unknown_option(kind, platform.options)):
        try:
            made = _make(kind, platform, file.folder)
            if not isinstance(made, Platform):
                raise InvalidValue(f"{platform.use} is no subclass of tertulia.Platform")
            require_usable(made)
        except TertuliaError as error:
            raise InvalidValue(hide_secrets(str(error), secrets_of(platform))) from error
        return made


def _unknown_option(kind: Any, options: Mapping[str, Any]) -> list[str]:
    """Return the first option that a class does not take, if there is one."""
    takes = inspect.signature(kind).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in takes.values())
    return [] if takes_any else [name for name in options if name not in takes][:1]


def secrets_of(platform: PlatformConfig) -> list[str]:
    """Return the values of options that are never shown: tokens, keys, passwords."""
    return [str(value) for name, value in platform.options.items() if value and is_secret(name)]


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets, and what else looks like a key, with `***`."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return redact_keys(text)


def _make(kind: Any, platform: PlatformConfig, folder: Path) -> Any:
    if missing := getattr(kind, "__abstractmethods__", ()):
        raise InvalidValue(f"{platform.use} has no {' and no '.join(sorted(missing))}: write `async def`")
    parameters = inspect.signature(kind).parameters
    try:
        inspect.signature(kind).bind(**platform.options)
    except TypeError as error:
        raise InvalidValue(f"{error}; it takes: {', '.join(parameters) or 'no options'}") from error
    options = {
        name: _converted(name, value, parameters[name].annotation, folder) if name in parameters else value
        for name, value in platform.options.items()
    }
    try:
        return kind(**options)
    except TertuliaError:
        raise
    except Exception as error:
        raise InvalidValue(f"it cannot be made: {error_line(error)}") from error


def _converted(name: str, value: Any, annotation: Any, folder: Path) -> Any:
    """Return an option as its parameter is typed: a path in the folder of the config, a number that a variable has."""
    if not isinstance(value, str):
        return value
    if annotation in (Path, "Path"):
        return folder / value
    for kind, words in ((int, "a whole number"), (float, "a number")):
        if annotation in (kind, kind.__name__):
            try:
                return kind(value)
            except ValueError:
                raise InvalidValue(f"{name} must be {words}, not {value!r}") from None
    return value


def error_line(error: Exception) -> str:
    """Return an error of a user's code as one line, with the line of their file: `wall.py:12: KeyError: 'x'`."""
    where = error_location(error)
    return f"{where and f'{where}: '}{type(error).__name__}: {error}"


async def open_model(name: str, file: ConfigFile, opened: AsyncExitStack, environment: Mapping[str, str]) -> Model:
    """Return a model that the config names; it is closed with *opened*."""
    keys: dict[str, tuple[str, ...]]
    keys = {model: ("agents", agent, "model") for agent, one in file.agents.items() for model in one.models}
    keys |= {file.config.media.describe: ("media", "describe"), file.config.memory.model: ("memory", "model")}
    with file.naming(*(("model",) if name in file.config.models else keys[name])):
        model: Any = choose_model(name, hints=HINTS, environment=environment).model
    opened.push_async_callback(model.aclose)
    return model  # type: ignore[no-any-return]


async def _open_describer(
    own: Model, file: ConfigFile, opened: AsyncExitStack, environment: Mapping[str, str]
) -> ModelDescriber | None:
    """Return who describes media: the bot's *own* model by default; nobody if it reads text only."""
    name = file.config.media.describe
    if name == NO_MODEL:
        return None
    if name:
        model = await open_model(name, file, opened, environment)
        if not media_taken(model).sees:
            log.warning("media.describe: %s: %s", name, BLIND)
        return by_model(model)
    return None if isinstance(own, Local) else by_model(own)


async def open_transcriber(
    file: ConfigFile, opened: AsyncExitStack, environment: Mapping[str, str]
) -> Transcriber | None:
    """Return the transcriber that the config names; it is closed with *opened*."""
    if not file.config.media.transcribe:
        return None
    with file.naming("media", "transcribe"):
        transcriber = choose_transcriber(file.config.media.transcribe, hints=HINTS, environment=environment)
    opened.push_async_callback(transcriber.aclose)
    return transcriber


async def reload_on_change(
    engine: Engine, file: ConfigFile, environment: Mapping[str, str], *, sleep: Sleep = asyncio.sleep
) -> None:
    """Set the persona and the limits of the engine whenever their files change. A faulty change is logged."""
    async with AsyncExitStack() as opened:  # models and tools of agents that have changed
        seen, is_faulty = _stamps(file), False
        while True:
            await sleep(INTERVAL)
            if (now := _stamps(file)) == seen or any(stamp and stamp[1] == 0 for stamp in now):
                continue  # an empty file is about to be written
            seen = now
            try:
                changed = load_config(file.path, environment) if file.path else file
                await _apply(engine, file, changed, opened, environment)
            except Exception as error:  # noqa: BLE001 (modules that it names may raise anything)
                log.error("the change of %s is not taken over: %s", file.path, error)
                is_faulty = True
                continue
            if is_faulty:
                log.info("%s is right again", file.path)
                is_faulty = False
            file, seen = changed, _stamps(changed)


async def _apply(
    engine: Engine, before: ConfigFile, after: ConfigFile, opened: AsyncExitStack, environment: Mapping[str, str]
) -> None:
    fields = [name for name in Config.__struct_fields__ if _value(before, name) != _value(after, name)]
    if "limits" in fields:
        engine.limits = after.config.limits  # first: they may be refused
    if "agents" in fields:
        open_models = dict(zip(models_of(before), engine.models, strict=False))
        zone = after.config.zone or local_zone(environment)
        now = RealClock().now
        cast = await open_cast(after, engine.store, opened, environment, models=open_models, now=now, zone=zone)
        await engine.set_agents(with_accounts(cast, before, engine.platforms.values()))
    elif "persona" in fields:
        engine.persona = persona_of(after.config)
    if isinstance(rooms := engine.platforms.get(PLATFORM), RoomPlatform):
        rooms.rename(cast_of(after).default.name)
    taken = [name for name in fields if name in RELOADED]
    if taken:
        log.info("taken over: %s", ", ".join(taken))
    if left := [name for name in fields if name not in RELOADED]:
        log.warning("taken over at the next start: %s", ", ".join(left))


def _value(file: ConfigFile, name: str) -> Any:
    if name == "agents":
        return file.agents, file.agent_options
    return getattr(file if name in ("web", "traces") else file.config, name)  # an empty table counts


def _stamps(file: ConfigFile) -> list[tuple[int, int] | None]:
    """Return the time and size of each file that is reloaded; a difference means a change."""
    personas = [file.config.persona.file, *(one.persona.file for one in file.agents.values())]
    files = [*([file.path] if file.path else []), *(file.folder / persona for persona in personas if persona)]
    return [_stamp(one) for one in files]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
