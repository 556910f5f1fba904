"""`tertulia chat`: a session on the standard streams, which may be a terminal, a dumb terminal or a pipe."""

import asyncio
import faulthandler
import logging
import os
import shlex
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct
from msgspec.structs import replace

from tertulia.config import Config, ConfigFile, cast_of, from_environment, load_object, local_zone, read_persona
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Cast
from tertulia.errors import StoreBroken, StoreBusy, TertuliaError
from tertulia.jsonio import dumps
from tertulia.model_choice import CHAT_HINTS, START_HINTS, ModelChoice, choose_model, ollama_url, program_command
from tertulia.platforms.terminal.attachments import read_attachment
from tertulia.platforms.terminal.commands import parse_line
from tertulia.platforms.terminal.found_model import FoundModel, takes_tools
from tertulia.platforms.terminal.input import (
    SIGNAL_STATUS,
    EditorReader,
    InputReader,
    JsonReader,
    LineReader,
    hidden_input,
    on_termination,
)
from tertulia.platforms.terminal.output import Display, JsonDisplay, ScreenDisplay, show_error, wants_colour
from tertulia.platforms.terminal.session import INTERRUPTED, TerminalSession
from tertulia.platforms.terminal.setup import (
    LAST_MESSAGES,
    LEARN_TIMEOUT,
    SessionOptions,
    place_for,
    tool_names,
    toolbox_for,
)
from tertulia.platforms.terminal.text import error_text
from tertulia.store import Store
from tertulia.toolbox.toolbox import Function, Tool
from tertulia.tools import open_tools

START_FAILED = 2
MEMORY = ":memory:"
MAX_LEAVING = 9.0  # seconds between leaving and the end of the process
IN_MEMORY_LEARN_TIMEOUT = 0.2  # seconds: what is learned is only shown, not stored


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What the command line says about a chat."""

    model: FoundModel | None = None  # None: the better local model that is installed
    base_url: str | None = None
    persona: Path | None = None
    as_json: bool = False
    weather: bool = False
    db: str | Path = MEMORY  # messages are stored there, and the session continues from those that are there
    bot: ConfigFile | None = None  # a tertulia.toml, whose persona, tools, zone and context the chat uses
    question: str | None = None  # asked once; None: what is typed or piped is
    attached: Sequence[Path] = ()  # files that go with the first message
    agent: str = ""  # of the bot: who answers; empty: who did before
    conversation: str | None = None  # None: a local model's own, or that of all other models
    keys: Mapping[str, str] = {}  # keys of services that are used where the environment has none


async def converse(options: ChatOptions, on_leave: Callable[[], None] = lambda: None) -> int:
    """Run a session on the standard streams; return the exit status. Raise a TertuliaError if it cannot start.

    Call *on_leave* when the person leaves, before anything is closed.
    """
    environment = {**options.keys, **os.environ}
    config, db = _config(options.bot, environment), options.db
    choose = partial(_choose, environment=environment)
    choice = _choice(options, choose)
    stdin = sys.stdin or StringIO()  # a shell may have closed it
    _replace_unencodable(stdin, sys.stdout, sys.stderr)
    if options.question is not None:
        stdin = StringIO(dumps(options.question).decode())
    attached = tuple(map(read_attachment, options.attached))
    interactive = stdin.isatty() and sys.stdout.isatty() and not options.as_json
    zone = config.zone or local_zone(environment)
    names = _tool_names(options, config, environment)
    own = {name: one.tools for name, one in options.bot.agents.items() if one.tools is not None} if options.bot else {}
    async with _open_store(db) as store, AsyncExitStack() as opened:
        opening = partial(open_tools, store=store, now=_now, zone=zone, environment=environment, load=load_object)
        tools = await opened.enter_async_context(opening(names))
        agent_tools = {
            name: await opened.enter_async_context(opening(_remembering(given, config))) for name, given in own.items()
        }
        session = TerminalSession(
            choice,
            store=store,
            reader=_reader(stdin, interactive=interactive, as_json=options.as_json or options.question is not None),
            display=_display(interactive=interactive, as_json=options.as_json),
            options=SessionOptions(
                choose=partial(choose, hints=CHAT_HINTS),
                tools=tools,
                system=_system(options),
                parse_line=str.strip if options.as_json else parse_line,
                place=place_for(choice, options.conversation),
                attached=attached,
                bot=str(options.bot.path) if options.bot else "",
                interactive=interactive,
                last_messages=LAST_MESSAGES if interactive else 0,
                config=config,
                cast=_cast(options, choice, agent_tools),
                agent=options.agent,
                zone=zone,
                stored_keys=options.keys.keys() - {name for name, value in os.environ.items() if value},
                learn_timeout=IN_MEMORY_LEARN_TIMEOUT if str(db) == MEMORY else LEARN_TIMEOUT,
            ),
        )
        with ExitStack() as screen:
            if interactive:
                screen.enter_context(hidden_input(stdin, by_line=_is_dumb()))
            screen.callback(on_leave)
            return await session.run(on_leave=screen.close)


def _cast(options: ChatOptions, choice: ModelChoice, tools: Mapping[str, Sequence[Function | Tool]]) -> Cast | None:
    """Return the agents of the bot, with their own *tools*; None where it has no several ones."""
    if not options.bot or len(options.bot.agents) < 2:
        return None
    cast = cast_of(options.bot, tools={name: toolbox_for(choice, own) for name, own in tools.items()})
    agent = cast.get(options.agent) if options.persona is not None else None
    return cast.with_agent(replace(agent, persona=Persona(text=_system(options) or ""))) if agent else cast


def _choice(options: ChatOptions, choose: Callable[..., ModelChoice]) -> ModelChoice:
    found = options.model
    if found is None:
        return choose(None, options.base_url)
    choice = choose(found.name, options.base_url or found.base_url)
    return replace(choice, why=found.why, has_tools=found.has_tools and choice.has_tools)


def _choose(name: str | None, base_url: str | None, *, environment: Mapping[str, str], **more: Any) -> ModelChoice:
    """Return the model that is named. Ollama is asked whether its model takes tools: it refuses them for many."""
    choice = choose_model(name, base_url, environment=environment, **more)
    if choice.kind != "ollama":
        return choice
    url = (choice.base_url or ollama_url(environment)).rstrip("/").removesuffix("/v1")
    return replace(choice, has_tools=takes_tools(url, choice.model.name))


def _system(options: ChatOptions) -> str | None:
    """Return the instruction that the command line or the bot gives; None if there is none."""
    if options.persona is not None:
        return read_persona(options.persona)
    return (cast_of(options.bot).default.persona.text or None) if options.bot else None


def _tool_names(options: ChatOptions, config: Config, environment: Mapping[str, str]) -> list[str]:
    if not options.bot:
        return tool_names(environment, weather=options.weather, memory=config.memory.enabled)
    named = _remembering(config.tools, config)
    return [*named, *(["weather"] if options.weather and "weather" not in named else [])]


def _remembering(names: Sequence[str], config: Config) -> list[str]:
    """Return the names of tools, without memory where it is off."""
    return [name for name in names if name != "memory" or config.memory.enabled]


def run(options: ChatOptions) -> int:
    """Run `converse` for the command line: with `--json`, an error at the start is a line of JSON."""
    if not os.environ.get("TERTULIA_TRACEBACK"):
        logging.getLogger("tertulia").addHandler(logging.NullHandler())  # failures of tools are shown as their results
    try:
        with ends_in_time() as on_leave:
            return asyncio.run(_until_terminated(converse(options, on_leave), on_leave))
    except TertuliaError as error:
        if not options.as_json:
            raise
        show_error(JsonDisplay(sys.stdout), error, error_text(error, START_HINTS))
        return START_FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def ends_in_time(seconds: float = MAX_LEAVING) -> Iterator[Callable[[], None]]:
    """Yield a function that ends the process after so many seconds, unless the block has ended before.

    Nothing holds the process then: neither a task or a thread that goes on, nor an extension that does not let Python
    run. What was said is in the store, which survives that; the terminal is restored when the person leaves.
    """
    threads = set(threading.enumerate())
    with open(os.devnull, "w") as nowhere:  # else it prints what each thread does
        try:
            yield lambda: faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            for thread in set(threading.enumerate()) - threads:
                if not thread.daemon:
                    thread.join()
        finally:
            faulthandler.cancel_dump_traceback_later()


async def _until_terminated(talk: Coroutine[Any, Any, int], on_leave: Callable[[], None]) -> int:
    """Return the status of the session. If the process is asked to end, or its terminal is closed, the session ends."""
    loop, session = asyncio.get_running_loop(), asyncio.ensure_future(talk)
    received: list[int] = []

    def end(number: int, _: Any) -> None:
        received.append(number)
        on_leave()
        loop.call_soon_threadsafe(session.cancel)

    with on_termination(end):
        try:
            return await session
        except (asyncio.CancelledError, OSError, ExceptionGroup):  # the terminal may be gone
            if not received:
                raise
            return SIGNAL_STATUS + received[0]


@asynccontextmanager
async def _open_store(db: str | Path) -> AsyncIterator[Store]:
    """Open the store; an error about its file says what to do."""
    opening = Store.open(db)
    try:
        store = await opening
        async with store:
            yield store
    except StoreBusy as error:
        raise StoreBusy(f"{error}; --db ANOTHER names another store, --db :memory: does without") from error
    except StoreBroken as error:
        check = shlex.join(["db", "check", "--db", str(db)])
        todo = f"`{program_command()} {check}` lists what is wrong, and a copy made by `db backup` can take its place"
        raise StoreBroken(f"{error}; {todo}") from error


def _now() -> datetime:
    return datetime.now(UTC)


def _config(bot: ConfigFile | None, environment: Mapping[str, str]) -> Config:
    """Return the settings of a bot; else of the environment, with the profile `plain` unless it names one."""
    if bot:
        return bot.config
    config = from_environment(environment)
    return config if environment.get("TERTULIA_PROFILE") else replace(config, profile="plain")


def _reader(stdin: TextIO, *, interactive: bool, as_json: bool) -> InputReader:
    if as_json:
        return JsonReader(stdin)
    if interactive and not _is_dumb():
        return EditorReader()
    if stdin.isatty():
        return LineReader(stdin, prompts=sys.stdout if interactive else sys.stderr)
    return LineReader(stdin)


def _display(*, interactive: bool, as_json: bool) -> Display:
    if as_json:
        return JsonDisplay(sys.stdout)
    notes = sys.stdout if interactive else sys.stderr
    has_spinner = interactive and not _is_dumb()
    return ScreenDisplay(sys.stdout, notes, coloured=wants_colour(notes), has_spinner=has_spinner)


def _is_dumb() -> bool:
    """Return whether the terminal only writes lines: nothing on it can be changed."""
    return os.environ.get("TERM", "dumb") == "dumb"


def _replace_unencodable(*streams: object) -> None:
    """Write a question mark for characters that a stream cannot encode."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
