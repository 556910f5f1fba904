"""Config: a bot in one file, `tertulia.toml`, and in variables of the environment."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from tertulia.config_reader import PREFIX, ConfigReader, KeyPath
from tertulia.context.gather import ContextOptions
from tertulia.context.values import Persona, require_names
from tertulia.engine.agents.agent import Agent, Cast, require_distinct, require_recipients
from tertulia.engine.behavior import Behavior
from tertulia.engine.languages import languages_with, lines_in
from tertulia.engine.limits import Cap, Limits
from tertulia.engine.places import require_places
from tertulia.errors import InvalidValue
from tertulia.media.values import MediaOptions
from tertulia.models.base import Model
from tertulia.models.prices import PRICES
from tertulia.profiles import profile_of
from tertulia.store_url import is_url
from tertulia.tasks.kinds import KINDS
from tertulia.toolbox.toolbox import Tool, Toolbox
from tertulia.turns import Effort, Settings

FILE = "tertulia.toml"
DEFAULT_STORE = "tertulia.db"
IN_MEMORY = ":memory:"  # a store without a file
NO_MODEL = "none"  # where nothing is to describe media

PLATFORMS = {"telegram": "tertulia.platforms.telegram:Telegram"}  # ours, by the names that `use` may have

# Variables whose names are not those of their keys.
RENAMED = {
    "TERTULIA_DB": "store",
    "TERTULIA_MEMORY": "memory.enabled",
    "HISTORY_SIZE": "context.history_size",
    "ENABLE_MULTI_LEVEL_CONTEXT": "context.levels",
    "ENABLE_SYSTEM_CONTEXT_BLOCK": "context.block.enabled",
    "SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES": "context.block.max_messages",
    "SYSTEM_CONTEXT_BLOCK_INCLUDE_META": "context.block.include_meta",
}


class PersonaConfig(Persona, frozen=True, kw_only=True, omit_defaults=True):
    """A persona whose text may be in a file."""

    file: str = ""  # relative to the config

    @property
    def persona(self) -> Persona:
        return Persona(**{name: getattr(self, name) for name in Persona.__struct_fields__})


class SettingsConfig(Settings, frozen=True, kw_only=True, omit_defaults=True):
    """Settings within the ranges that services document."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    thinking: Annotated[int, Meta(ge=-1)] | Effort | None = None  # -1: it decides


class MemoryConfig(Struct, frozen=True, kw_only=True):
    enabled: bool = True  # whether facts, summaries and episodes are learned and recalled
    model: str = ""  # learns them; empty: patterns do


class MediaConfig(MediaOptions, frozen=True, kw_only=True):
    """Options of media, where their files are, and what describes them."""

    folder: str = ""  # relative to the config; empty: beside the store
    describe: str = ""  # the model that describes them; empty: the bot's own; "none": nothing does
    transcribe: str = ""  # the model of a transcription service that hears voices, such as openai:whisper-1


class TelegramConfig(Struct, frozen=True, kw_only=True):
    """A bot on Telegram. Further ones are `[platforms.NAME]` with `use = "telegram"`."""

    token: str = ""  # as BotFather gives it; best in TERTULIA_TELEGRAM_TOKEN
    base_url: str = ""  # of another Bot API server; empty: Telegram's own
    webhook: str = ""  # the public https address where updates are posted; empty: they are polled for
    listen: str = "127.0.0.1:8443"  # where the webhook listens


class WebConfig(Struct, frozen=True, kw_only=True):
    """The page of a bot, which its process serves where the table is written."""

    host: str = "127.0.0.1"  # where it listens
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8765
    path: str = ""  # where it is at its host, such as /bot
    hosts: tuple[str, ...] = ()  # names by which people reach it; those of loopback are known
    certificate: str = ""  # the file of a TLS certificate, relative to the config
    key: str = ""  # the file of its private key
    proxy: tuple[str, ...] = ()  # addresses of the proxy that speaks TLS; then only it may ask


class TracesConfig(Struct, frozen=True, kw_only=True):
    """Traces of runs, which are exported where the table is written."""

    endpoint: str = ""  # where OTLP is taken over HTTP; empty: that of OTEL_EXPORTER_OTLP_ENDPOINT
    content: bool = False  # whether spans have what people and models wrote


class CapsConfig(Struct, frozen=True, kw_only=True):
    """Caps of one agent, within those of the bot."""

    place: Cap = Cap()
    person: Cap = Cap()
    total: Cap = Cap()


class AgentConfig(Struct, frozen=True, kw_only=True):
    """One of several agents, `[agents.NAME]`. What it does not say is as it is for the bot."""

    persona: PersonaConfig = PersonaConfig()  # its name is NAME
    names: tuple[str, ...] = ()  # other names that people use for it
    model: str | tuple[str, ...] = ()
    profile: str = ""
    tools: tuple[str, ...] | None = None
    settings: SettingsConfig = SettingsConfig()
    memory: Literal["shared", "own"] = "shared"  # whether facts about people are those of all agents, or its own
    knows: Literal["all", "present"] = "all"  # whether it knows what was said in a place while it was not there
    limits: CapsConfig = CapsConfig()
    avatar: str = ""  # a picture of it, for platforms that show one
    language: str = ""
    places: tuple[str, ...] = ()  # where it takes part, as `service:id`, or a kind of places; empty: everywhere
    may_send: tuple[str, ...] = ()  # places and agents that it may send to
    accounts: tuple[str, ...] = ()  # platforms whose account is its own

    def __post_init__(self) -> None:
        require_names(self.names)
        require_places("places", self.places)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,) if isinstance(self.model, str) else self.model


class AgentOptions(Struct, frozen=True, kw_only=True):
    """What `[agents]` says of all of them."""

    default: str = ""  # who answers where nobody is named; empty: the first
    locked: bool = False  # whether commands cannot change who is in a place


class PlatformConfig(Struct, frozen=True, kw_only=True):
    """A platform: its class, and what that is called with."""

    use: str  # "module:Class", or the name of one of ours
    options: dict[str, Any] = {}


class Config(Struct, frozen=True, kw_only=True):
    """Everything that `tertulia run` reads. The fields are the keys of the file, and its tables."""

    model: str | tuple[str, ...] = ()  # or several, in order: each is a fallback for the one before
    cache: bool = False  # whether Gemini stores the start of the prompts in explicit caches
    store: str = DEFAULT_STORE  # relative to the config; or a URL of PostgreSQL
    zone: str = ""  # of the people, such as Europe/Kyiv; empty: that of the machine
    profile: str = "layered"
    tools: tuple[str, ...] = ("calculator", "clock", "reminders", "memory")  # by name, or "module:function"
    persona: PersonaConfig = PersonaConfig()
    settings: SettingsConfig = SettingsConfig()
    context: ContextOptions = ContextOptions()
    behavior: Behavior = Behavior()
    limits: Limits = Limits()
    memory: MemoryConfig = MemoryConfig()
    media: MediaConfig = MediaConfig()
    telegram: TelegramConfig = TelegramConfig()
    web: WebConfig = WebConfig()
    traces: TracesConfig = TracesConfig()
    platforms: dict[str, Any] = {}  # the raw tables; `ConfigFile.platforms` has them checked
    agents: dict[str, Any] = {}  # the same; `ConfigFile.agents`

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,) if isinstance(self.model, str) else self.model


class ConfigFile(Struct, frozen=True, kw_only=True):
    """A config and the folder that its paths are relative to."""

    config: Config
    platforms: Mapping[str, PlatformConfig] = {}
    agents: Mapping[str, AgentConfig] = {}  # by name; empty: the persona of the config is the only one
    agent_options: AgentOptions = AgentOptions()
    web: WebConfig | None = None  # None: the bot serves no page
    traces: TracesConfig | None = None  # None: nothing is traced
    folder: Path = Path()
    path: Path | None = None  # None: there is no file
    reader: ConfigReader | None = None  # knows the line of each key

    @contextmanager
    def naming(self, *key: str) -> Iterator[None]:
        """Add the line of a key, or its variable, and its name to an `InvalidValue`."""
        try:
            yield
        except InvalidValue as error:
            place = self.reader.place_of(key) if self.reader else self.path
            raise InvalidValue(f"{place}: {'.'.join(key)}: {error}") from error

    @property
    def media_folder(self) -> Path | None:
        """The folder of media that the config names; None: the one beside the store."""
        return self.folder / self.config.media.folder if self.config.media.folder else None

    @property
    def store(self) -> str:
        """The file of the store; a URL of PostgreSQL as it is."""
        is_elsewhere = self.config.store == IN_MEMORY or is_url(self.config.store)
        return self.config.store if is_elsewhere else str(self.folder / self.config.store)


def local_zone(environment: Mapping[str, str]) -> str:
    """Return the IANA name of the time zone of this machine; UTC if it is unknown."""
    linked = os.path.realpath("/etc/localtime").rpartition("zoneinfo/")[2]
    for name in (environment.get("TZ", "").lstrip(":"), linked):
        try:
            return ZoneInfo(name).key
        except (KeyError, ValueError, OSError):
            continue
    return "UTC"


def find_config(folder: Path | None = None) -> Path | None:
    """Return the config that TERTULIA_CONFIG names, or that of the folder; None if there is none."""
    if given := os.environ.get("TERTULIA_CONFIG"):
        return Path(given)
    path = (folder or Path()) / FILE
    return path if path.is_file() else None


def load_config(path: Path, environment: Mapping[str, str] = os.environ) -> ConfigFile:
    """Read a config; modules that it names are also looked for in its folder."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path} is no text in UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        hint = "; `tertulia init` writes one" if isinstance(error, FileNotFoundError) else ""
        raise InvalidValue(f"cannot read {path}: {getattr(error, 'strerror', '') or error}{hint}") from error
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.insert(0, folder)
    return read_config(text, environment, path=path)


def from_environment(environment: Mapping[str, str]) -> Config:
    """Read a config from variables alone."""
    return read_config("", environment).config


def read_config(text: str, environment: Mapping[str, str], *, path: Path | None = None) -> ConfigFile:
    """Read the text of a config, and the variables that take precedence over it."""
    reader = ConfigReader(text, file=str(path or FILE), environment=environment, load=load_object, renamed=RENAMED)
    config = reader.read(Config, reader.tables)
    if config.behavior.prices is not PRICES:
        config = replace(config, behavior=replace(config.behavior, prices={**PRICES, **config.behavior.prices}))
    if unknown := [name for name in config.behavior.blocks or () if name not in KINDS]:
        where = reader.place_of(("behavior", "blocks"))
        raise InvalidValue(f"{where}: behavior.blocks must hold some of {', '.join(KINDS)}, not {', '.join(unknown)}")
    folder = path.parent if path else Path()
    config = replace(config, persona=_with_text(config.persona, folder, reader, ("persona",)))
    platforms = _platforms(config.platforms, reader, environment)
    if config.telegram != TelegramConfig() or "telegram" in reader.tables:
        options = {name: value for name, value in asdict(config.telegram).items() if value}
        platforms = {"telegram": PlatformConfig(use=PLATFORMS["telegram"], options=options), **platforms}
    web = config.web if config.web != WebConfig() or "web" in reader.tables else None
    traces = config.traces if config.traces != TracesConfig() or "traces" in reader.tables else None
    agent_options, agents = _agents(config, folder, reader)
    file = ConfigFile(
        config=config,
        platforms=platforms,
        agents=agents,
        agent_options=agent_options,
        web=web,
        traces=traces,
        folder=folder,
        path=path,
        reader=reader,
    )
    cast_of(file)  # that its agents go together
    return file


def cast_of(
    file: ConfigFile, *, models: Mapping[str, Model] | None = None, tools: Mapping[str, Toolbox] | None = None
) -> Cast:
    """Return the agents of a config, with those of their *models* and *tools* that are open, by names and by agents."""
    config, agents = file.config, list[Agent]()
    if not file.agents:
        persona = config.persona.persona
        agents = [Agent(name=persona.name, persona=persona, names=config.behavior.names)]
    for name, one in file.agents.items():
        with file.naming("agents", name, "language"):
            if one.language and lines_in(one.language, languages_with(config.behavior.lines)) is None:
                raise InvalidValue(f"{one.language!r} has no lines; add them to behavior.lines")
        with file.naming("agents", name, "accounts"):
            if wrong := [account for account in one.accounts if account not in file.platforms]:
                raise InvalidValue(f"there is no platform {wrong[0]!r}")
        with file.naming("agents", name, "profile"):
            profile = profile_of(one.profile, config.context) if one.profile else None
        with file.naming("agents", name):
            caps = one.limits
            agent = Agent(
                name=name,
                persona=one.persona.persona,
                names=one.names,
                models=tuple(models[model] for model in one.models if model in models) if models else (),
                profile=profile,
                tools=tools.get(name) if tools else None,
                settings=one.settings if one.settings != SettingsConfig() else None,
                memory=one.memory,
                knows=one.knows,
                limits=None if caps == CapsConfig() else Limits(place=caps.place, person=caps.person, total=caps.total),
                avatar=one.avatar,
                language=one.language,
                places=one.places,
                may_send=one.may_send,
                accounts=one.accounts,
            )
            require_distinct(agent, agents)
        agents.append(agent)
    for agent in agents:
        with file.naming("agents", agent.name, "may_send"):
            require_recipients(agent, agents)
    with file.naming("agents", "default"):
        options = file.agent_options
        return Cast(agents=tuple(agents), default_name=options.default, locked=options.locked)


def load_object(name: str) -> Any:
    """Import what "module:name" names."""
    module, _, attribute = name.partition(":")
    if module.endswith(".py"):
        raise InvalidValue(f'a module is named without .py: "{module.removesuffix(".py")}:{attribute}"')
    try:
        found = import_module(module)
    except (Exception, SystemExit) as error:
        raise InvalidValue(f"cannot import {module}: {type(error).__name__}: {error}") from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidValue(f"there is no {attribute} in {module}{_names_hint(attribute, module)}") from error
    return found


def _names_hint(wanted: str, module: str) -> str:
    """Return which of a module's functions, classes and tools may be meant, or all of them if they are few."""
    names = [
        name
        for name, one in vars(sys.modules[module]).items()
        if isinstance(one, Tool) or (isinstance(one, FunctionType | type) and one.__module__ == module)
        if name[0] != "_"
    ]
    if near := get_close_matches(wanted, names, n=1):
        return f", did you mean {near[0]}?"
    return f"; there are {', '.join(names)}" if 0 < len(names) <= 10 else ""


def _with_text(persona: PersonaConfig, folder: Path, reader: ConfigReader, key: KeyPath) -> PersonaConfig:
    if not persona.file:
        return persona
    try:
        return replace(persona, text=read_persona(folder / persona.file))
    except InvalidValue as error:
        raise InvalidValue(f"{reader.place_of((*key, 'file'))}: {error}") from error


def read_persona(file: Path) -> str:
    """Return the text of a persona's file."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"the persona {file} is no text in UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        shown = str(file) if str(file).isprintable() else repr(str(file))
        raise InvalidValue(f"cannot read the persona {shown}: {getattr(error, 'strerror', '') or error}") from error
    if not text:
        raise InvalidValue(f"the persona {file} is empty: write into it who the model is to be")
    return text


def _platforms(
    tables: Mapping[str, Any], reader: ConfigReader, environment: Mapping[str, str]
) -> dict[str, PlatformConfig]:
    """Return the platforms of a config; a variable sets any option of one that it names."""
    made = {}
    for name, table in tables.items():
        path = ("platforms", name)
        if not isinstance(table, dict):
            reader.refuse(path, table, f"a table: [platforms.{name}]")
        prefix = f"{PREFIX}PLATFORMS_{name}_".upper()
        given = {key[len(prefix) :].lower(): value for key, value in environment.items() if key.startswith(prefix)}
        options = {**table, **given}
        use = options.pop("use", None)
        use = PLATFORMS.get(use, use) if isinstance(use, str) else use
        if not isinstance(use, str) or ":" not in use:
            reader.refuse((*path, "use"), use, 'the class of the platform, as "module:Class", or "telegram"')
        made[name] = PlatformConfig(use=use, options=options)
    return made


def _agents(config: Config, folder: Path, reader: ConfigReader) -> tuple[AgentOptions, dict[str, AgentConfig]]:
    """Return what a config says of its agents: of all of them, and of each."""
    own = {name: value for name, value in config.agents.items() if name in AgentOptions.__struct_fields__}
    options, agents = reader.read(AgentOptions, own, ("agents",)), dict[str, AgentConfig]()
    for name, table in config.agents.items():
        if name not in own:
            path = ("agents", name)
            one = reader.read(AgentConfig, table, path)
            agents[name] = replace(one, persona=_with_text(one.persona, folder, reader, (*path, "persona")))
    personal = {("persona", name) for name in PersonaConfig.__struct_fields__} | {("behavior", "names")}
    if agents and (written := [key for key in sorted(personal) if getattr(getattr(config, key[0]), key[1])]):
        where = f"{reader.place_of(written[0])}: {'.'.join(written[0])}"
        raise InvalidValue(f"{where}: where there are tables [agents.NAME], each has its own persona and names")
    return options, agents
