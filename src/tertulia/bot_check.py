"""Bot check: whether each thing that a config names works, with one line of help where it does not."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.app import (
    BLIND,
    check_zone,
    error_line,
    hide_secrets,
    models_of,
    open_model,
    open_platform,
    open_transcriber,
    persona_of,
    require_tracing,
    secrets_of,
    tools_of,
    why_uncached,
)
from tertulia.config import (
    IN_MEMORY,
    NO_MODEL,
    RENAMED,
    AgentConfig,
    AgentOptions,
    Config,
    ConfigFile,
    PersonaConfig,
    TracesConfig,
    WebConfig,
    cast_of,
    load_config,
    local_zone,
)
from tertulia.config_reader import PREFIX, keys_of
from tertulia.engine.background import RealClock
from tertulia.engine.cast_changes import with_added
from tertulia.engine.identity import require_account
from tertulia.engine.owner_settings import in_force
from tertulia.engine.store_protocols import OwnerSetting
from tertulia.errors import StoreBusy, StoreRefused, TertuliaError
from tertulia.media.decoding import missing_decoders
from tertulia.models import provider_of
from tertulia.models.base import Model, media_taken
from tertulia.platforms.web.page_server import checked_address
from tertulia.profiles import profile_of
from tertulia.redaction import redact_keys
from tertulia.store import Store
from tertulia.store.media_folder import check_folder, default_folder
from tertulia.store_url import is_url, masked
from tertulia.turns import Prompt, Settings, user

TIMEOUT = 30.0  # seconds for a service to answer
OTHER_VARIABLES = {  # that are no keys of a config
    f"{PREFIX}{name}"
    for name in "CONFIG DB MODELS TRACEBACK GEMINI_BASE_URL OPENAI_BASE_URL SEARXNG_URL EXAMPLES".split()
}


class Finding(Struct, frozen=True, kw_only=True):
    """What was checked, whether it works, and a line about it."""

    what: str
    ok: bool
    line: str


async def check_bot(path: Path, environment: Mapping[str, str] = os.environ) -> AsyncIterator[Finding]:
    """Check a config and everything it names. A config that cannot be read is the only finding."""
    try:
        file = load_config(path, environment)
    except TertuliaError as error:
        for line in str(error).splitlines():
            yield Finding(what="config", ok=False, line=redact_keys(line))
        return
    yield Finding(what="config", ok=True, line=str(path))
    for variable in unknown_variables(environment, file.agents):
        yield variable
    zone = file.config.zone or local_zone(environment)
    yield await _finding("zone", _zone(zone, file))
    yield await _finding("profile", _profile(file))
    if not file.agents:
        yield _persona("persona", file.config.persona)
    yield (store := await _finding("store", _store(file.store)))
    for setting in await _owner_settings(file) if store.ok else ():
        line = f"an owner changed it by /{setting.name} on {setting.at.date()}"
        yield Finding(what=setting.name, ok=True, line=f"{line}; /{setting.name} - takes that of {path.name}")
    media = await _finding("media", asyncio.to_thread(_media_folder, file.media_folder, file.store))
    if file.media_folder or (store.ok and not media.ok):
        yield media
    yield await _finding("tools", _tools(file, zone, environment))
    for name, agent in file.agents.items():
        yield _persona(f"agent {name}", agent.persona)
        if agent.tools is not None:
            yield await _finding(f"agent {name}", _tools(file, zone, environment, agent=name))
    for added in await _added_agents(file) if store.ok else ():
        yield added
    if missing := missing_decoders():
        yield Finding(what="media", ok=True, line=f"tertulia[media] is not installed: no {', '.join(missing)}")
    try:
        names = models_of(file)
    except TertuliaError as error:
        yield _failed("model", error)
        names = ()
    others = [file.config.memory.model, file.config.media.describe]
    others += [name for agent in file.agents.values() for name in agent.models]
    for name in dict.fromkeys([*names, *(name for name in others if name not in ("", NO_MODEL))]):
        yield await _finding("model", _model(name, file, environment))
    if file.config.media.transcribe:
        yield await _finding("transcriber", _transcriber(file, environment))
    for name in file.platforms:
        found = await _finding(f"platform {name}", _platform(name, file))
        yield replace(found, line=hide_secrets(found.line, secrets_of(file.platforms[name])))
    if file.web is not None:
        yield await _finding("page", _page(file.web, file))
    if file.traces is not None:
        yield await _finding("traces", _traces(file.traces))
    if not file.platforms and file.web is None:
        yield Finding(
            what="platforms",
            ok=False,
            line="none: set TERTULIA_TELEGRAM_TOKEN, or add [platforms.NAME]; until then: tertulia chat",
        )


def unknown_variables(environment: Mapping[str, str], agents: Iterable[str] = ()) -> list[Finding]:
    """Return a finding for each variable that begins like ours and means nothing; *agents* have tables."""
    keys = [*keys_of(Config), *keys_of(AgentOptions, ("agents",))]
    keys += [key for name in agents for key in keys_of(AgentConfig, ("agents", name))]
    known = OTHER_VARIABLES | set(RENAMED) | {key.variable for key in keys}
    found = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and not name.startswith(f"{PREFIX}PLATFORMS_"):
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            found.append(Finding(what="variable", ok=False, line=f"{name} is no setting{meant}"))
    return found


async def _finding(what: str, checking: Any) -> Finding:
    try:
        async with asyncio.timeout(TIMEOUT):
            return Finding(what=what, ok=True, line=await checking)
    except TimeoutError:
        return Finding(what=what, ok=False, line=f"no answer within {TIMEOUT:g} seconds")
    except TertuliaError as error:
        return _failed(what, error)
    except Exception as error:  # noqa: BLE001 (the code of a platform may raise anything)
        return Finding(what=what, ok=False, line=redact_keys(error_line(error)))


def _failed(what: str, error: TertuliaError) -> Finding:
    return Finding(what=what, ok=False, line=redact_keys(str(error)))


async def _zone(zone: str, file: ConfigFile) -> str:
    check_zone(zone, file)
    return zone


async def _profile(file: ConfigFile) -> str:
    with file.naming("profile"):
        return profile_of(file.config.profile, file.config.context).name


def _persona(what: str, persona: PersonaConfig) -> Finding:
    if not persona.text:
        return Finding(what=what, ok=True, line="none: persona.file or persona.text says who the bot is")
    return Finding(what=what, ok=True, line=f"{len(persona.text)} characters, {persona.file or 'persona.text'}")


async def _store(path: str) -> str:
    if new := await asyncio.to_thread(_new_store, path):
        return new
    try:
        async with Store.open(path):
            return masked(path)
    except StoreBusy:
        if is_url(path):
            async with Store.open(path, beside=True):  # another reason is told
                pass
        return f"{masked(path)}, open in a running bot"


async def _owner_settings(file: ConfigFile) -> list[OwnerSetting]:
    """Return what owners changed by commands and what holds instead of the config."""
    if not file.config.behavior.owners or _new_store(file.store):
        return []
    async with Store.open(file.store, beside=True) as store:
        found = in_force(await store.owner_settings.listed(), persona_of(file.config), file.config.limits)
    return [one for one in found if one.value != one.replaced]


async def _added_agents(file: ConfigFile) -> list[Finding]:
    """Return a finding for each agent that an owner added by a command."""
    if not file.config.behavior.owners or _new_store(file.store):
        return []
    async with Store.open(file.store, beside=True) as store:
        added = await store.agents.added()
    known = cast_of(file)
    found = []
    for one in added:
        line = f"{len(one.text)} characters, an owner added it by /agent add on {one.at.date()}"
        is_there = with_added(known, [one]) != known
        why = "" if is_there else "; it is left out, since people could not tell it from those of the config"
        found.append(Finding(what=f"agent {one.name}", ok=is_there, line=line + why))
    return found


def _new_store(path: str) -> str:
    """Return a line about a store that does not exist yet; empty if it does."""
    if path == IN_MEMORY:
        return "in memory: nothing is kept"
    if is_url(path) or Path(path).exists():
        return ""
    _require_writable(Path(path).parent, f"the store {path}")
    return f"{path} will be made"


def _media_folder(named: Path | None, store: str) -> str:
    """Return a line about the folder of media; raise `StoreRefused` if it cannot be used."""
    folder = named or default_folder(store)
    if store == IN_MEMORY:
        return f"{folder} is not used: the store is in memory"
    if is_url(store):
        return f"files in {named}" if named else "files in your data folder, since media.folder names no other"
    _require_writable(folder, f"the folder of media {folder}")
    check_folder(store, folder)
    return f"files in {folder}" if folder.exists() else f"{folder} will be made"


def _require_writable(folder: Path, what: str) -> None:
    """Raise `StoreRefused` if no file can be made in a folder, or in the one in which it would be made."""
    folder = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        with TemporaryDirectory(dir=folder, prefix=".tertulia-"):
            pass
    except OSError as error:
        raise StoreRefused(f"{what}: {folder} cannot be written ({error.strerror or error})") from error


async def _tools(file: ConfigFile, zone: str, environment: Mapping[str, str], *, agent: str = "") -> str:
    async with (
        Store.open(":memory:") as store,
        tools_of(file, store, RealClock().now, zone, environment, agent=agent) as toolbox,
    ):
        return ", ".join(spec.name for spec in toolbox.specs) or "none"


async def _model(name: str, file: ConfigFile, environment: Mapping[str, str]) -> str:
    """Ask a model of a service for one word; a local one is only looked for."""
    async with AsyncExitStack() as opened:
        model = await open_model(name, file, opened, environment)
        notes = "; " + BLIND if name == file.config.media.describe and not media_taken(model).sees else ""
        if file.config.cache and name in file.config.models:
            notes += f"; {_caching(model)}"
        if provider_of(name) == "local":
            return f"{name} is here{notes}"
        response = await model.respond(Prompt.of(user("Say ok."), settings=Settings(max_tokens=64)))
        return f"{name} answers ({response.usage.total} tokens){notes}"


def _caching(model: Model) -> str:
    """Return what `cache = true` does for a model."""
    why = why_uncached(model)
    return f"cache = true does nothing for {why}" if why else "its prompts are cached"


async def _transcriber(file: ConfigFile, environment: Mapping[str, str]) -> str:
    """Check the key of the transcriber, which costs nothing."""
    async with AsyncExitStack() as opened:
        if transcriber := await open_transcriber(file, opened, environment):
            await transcriber.check_model()
        return f"{file.config.media.transcribe} is there"


async def _page(config: WebConfig, file: ConfigFile) -> str:
    with file.naming("web"):
        return checked_address(config, file.folder).url


async def _traces(config: TracesConfig) -> str:
    require_tracing()
    return f"spans go to {config.endpoint or 'the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT'}"


async def _platform(name: str, file: ConfigFile) -> str:
    platform = open_platform(name, file.platforms[name], file)
    await platform.open()
    require_account(platform)
    return f"{platform.me.name} ({platform.me.id}) on {platform.name}"
