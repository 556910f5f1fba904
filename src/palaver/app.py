"""App: a bot from a config. It opens what the config names, runs it, and reloads what may change while it runs."""

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from palaver.config import Config, ConfigFile, PlatformConfig, load_config, load_object, local_zone
from palaver.config_reader import is_secret
from palaver.context.values import Persona
from palaver.engine.background import Sleep
from palaver.engine.engine import Engine
from palaver.engine.memory import Memory
from palaver.errors import InvalidValue, PalaverError, StoreRefused
from palaver.logs import log_events
from palaver.model_choice import Hints, choose_model
from palaver.models.base import Model
from palaver.platform import Platform
from palaver.redaction import redact_keys
from palaver.store import Store
from palaver.timezones import zone_named
from palaver.tools import open_tools

log = logging.getLogger(__name__)

RELOADED = ("persona", "limits")  # the keys that may change while the bot runs
INTERVAL = 1.0  # seconds between two looks at the files

HINTS = Hints(
    model="model =",
    address="PALAVER_OPENAI_BASE_URL",
    key="set {names}",
    instead="name another model",
    forget="Set a smaller context.history_size.",
)


async def run_bot(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Run the bot of a config until it is stopped."""
    file = load_config(path, environment)
    if not file.platforms:
        raise InvalidValue(f"{path} names no platform: add [platforms.NAME], or talk to the bot with `palaver chat`")
    async with open_bot(file, environment) as engine:
        beside = [
            asyncio.create_task(log_events(engine.events())),
            asyncio.create_task(reload_on_change(engine, file, environment)),
        ]
        log.info("%s starts: %s", path, ", ".join(file.platforms))
        try:
            await engine.run()
        except PalaverError:
            raise
        except Exception as error:
            secrets = [value for one in file.platforms.values() for value in secrets_of(one)]
            raise PalaverError(hide_secrets(f"{path} cannot run: {type(error).__name__}: {error}", secrets)) from error
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)


@asynccontextmanager
async def open_bot(file: ConfigFile, environment: Mapping[str, str] = os.environ) -> AsyncIterator[Engine]:
    """Open the models, the store and the tools of a config, and make the engine with its platforms."""
    config, zone = file.config, file.config.zone or local_zone(environment)
    platforms = [open_platform(name, one, file) for name, one in file.platforms.items()]
    _check_zone(zone, file)
    async with AsyncExitStack() as opened:
        models = [await _open_model(name, opened, environment) for name in models_of(file)]
        memory_model = await _open_model(config.memory.model, opened, environment) if config.memory.model else None
        _make_folder(file.store)
        store = await opened.enter_async_context(Store.open(file.store))
        names = [name for name in config.tools if name != "memory" or config.memory.enabled]
        tools = await opened.enter_async_context(
            open_tools(names, store=store, now=_now, zone=zone, environment=environment, load=load_object)
        )
        yield Engine(
            store,
            models,
            platforms,
            persona=persona_of(config),
            tools=tools,
            memory=Memory(store, model=memory_model) if config.memory.enabled else None,
            profile=config.profile,
            context=config.context,
            settings=config.settings,
            behavior=config.behavior,
            limits=config.limits,
            zone=zone,
        )


def _check_zone(zone: str, file: ConfigFile) -> None:
    try:
        zone_named(zone)
    except InvalidValue as error:
        raise InvalidValue(f"{file.path}: zone: {error}; give an IANA name such as Europe/Kyiv") from error


def _make_folder(store: Path) -> None:
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", "") or error
        raise StoreRefused(f"the store {store}: its folder cannot be made: {reason}") from error


def models_of(file: ConfigFile) -> Sequence[str]:
    """Return the names of the models; raise `InvalidValue` if there is none."""
    if not file.config.models:
        raise InvalidValue(f'{file.path}: there is no model: write model = "gemini-3.8-flash", or set PALAVER_MODEL')
    return file.config.models


def persona_of(config: Config) -> Persona:
    fields = asdict(config.persona)
    fields.pop("file")
    return Persona(**fields)


def open_platform(name: str, platform: PlatformConfig, file: ConfigFile) -> Platform:
    """Make a platform of the class and the options that a config names."""
    where = f"{file.path}: platforms.{name}"
    try:
        made = _make(load_object(platform.use), platform.options)
    except PalaverError as error:
        raise InvalidValue(hide_secrets(f"{where}: {error}", secrets_of(platform))) from error
    if not isinstance(made, Platform):
        raise InvalidValue(f"{where}: {platform.use} is no subclass of palaver.Platform")
    return made


def secrets_of(platform: PlatformConfig) -> list[str]:
    """Return the values of options that are never shown: tokens, keys, passwords."""
    return [str(value) for name, value in platform.options.items() if value and is_secret(name)]


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets, and what else looks like a key, with `***`."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return redact_keys(text)


def _make(kind: Any, options: Mapping[str, Any]) -> Any:
    try:
        inspect.signature(kind).bind(**options)
    except TypeError as error:
        takes = ", ".join(inspect.signature(kind).parameters) or "no options"
        raise InvalidValue(f"{error}; it takes: {takes}") from error
    try:
        return kind(**options)
    except PalaverError:
        raise
    except Exception as error:
        raise InvalidValue(f"it cannot be made: {type(error).__name__}: {error}") from error


async def _open_model(name: str, opened: AsyncExitStack, environment: Mapping[str, str]) -> Model:
    model: Any = choose_model(name, hints=HINTS, environment=environment).model
    opened.push_async_callback(model.aclose)
    return model  # type: ignore[no-any-return]


async def reload_on_change(
    engine: Engine, file: ConfigFile, environment: Mapping[str, str], *, sleep: Sleep = asyncio.sleep
) -> None:
    """Set the persona and the limits of the engine whenever their files change. A faulty change is logged."""
    seen = _stamps(file)
    while True:
        await sleep(INTERVAL)
        if (now := _stamps(file)) == seen or any(stamp and stamp[1] == 0 for stamp in now):
            continue  # an empty file is about to be written
        seen = now
        try:
            changed = load_config(file.path, environment) if file.path else file
            _apply(engine, file.config, changed.config)
        except Exception as error:  # noqa: BLE001 (modules that it names may raise anything)
            log.error("the change of %s is not taken over: %s", file.path, error)
            continue
        file, seen = changed, _stamps(changed)


def _apply(engine: Engine, before: Config, after: Config) -> None:
    fields = [name for name in Config.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    if "limits" in fields:
        engine.limits = after.limits  # first: they may be refused
    if "persona" in fields:
        engine.persona = persona_of(after)
    taken = [name for name in fields if name in RELOADED]
    if taken:
        log.info("taken over: %s", ", ".join(taken))
    if left := [name for name in fields if name not in RELOADED]:
        log.warning("taken over at the next start: %s", ", ".join(left))


def _stamps(file: ConfigFile) -> list[tuple[int, int] | None]:
    """Return the time and size of each file that is reloaded; a difference means a change."""
    persona = file.config.persona.file
    files = [*([file.path] if file.path else []), *([file.folder / persona] if persona else [])]
    return [_stamp(one) for one in files]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _now() -> datetime:
    return datetime.now(UTC)
