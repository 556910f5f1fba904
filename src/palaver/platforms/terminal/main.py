"""A conversation on the standard streams, whatever they are: a terminal, a dumb one, a pipe."""

import asyncio
import logging
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from palaver.config import Config, from_environment
from palaver.errors import PalaverError, StoreBroken, StoreBusy
from palaver.platforms.terminal.commands import START_HINTS, parse_line, program_command
from palaver.platforms.terminal.defaults import local_zone, open_tools, read_persona
from palaver.platforms.terminal.input import EditorReader, JsonReader, LineReader, Reader
from palaver.platforms.terminal.model_choice import choose_model
from palaver.platforms.terminal.output import Display, JsonDisplay, ScreenDisplay, show_error, wants_colour
from palaver.platforms.terminal.session import INTERRUPTED, LEARN_TIMEOUT, TerminalSession
from palaver.platforms.terminal.text import error_text
from palaver.store import Store
from palaver.toolbox.toolbox import Function, Tool
from palaver.tools.memory import memory_tools
from palaver.tools.reminders import reminder_tool

START_FAILED = 2
MEMORY = ":memory:"
IN_MEMORY_LEARN_TIMEOUT = 0.2  # seconds: what is learned is not kept, and only shown


async def converse(
    model_name: str | None = None,
    *,
    base_url: str | None = None,
    persona: Path | None = None,
    as_json: bool = False,
    weather: bool = False,
    db: str | Path = MEMORY,
) -> int:
    """Talk on the standard streams; the exit status. What cannot begin raises a PalaverError.

    What is said is kept in the store *db*, and the conversation goes on from what is there.
    """
    config = _config(os.environ)
    system = None if persona is None else read_persona(persona)
    choice = choose_model(model_name, base_url)
    typed = sys.stdin or StringIO()  # a shell can close it
    _replace_unencodable(typed, sys.stdout, sys.stderr)
    interactive = typed.isatty() and sys.stdout.isatty() and not as_json
    zone = local_zone(os.environ)
    async with open_tools(os.environ, weather=weather) as tools, _open_store(db) as store:
        equipment: list[Function | Tool] = [*tools, reminder_tool(store.tasks, _now, zone)]
        if config.memory:
            equipment += memory_tools(store, _now, zone)
        conversation = TerminalSession(
            choice,
            store=store,
            reader=_reader(typed, interactive=interactive, as_json=as_json),
            display=_display(interactive=interactive, as_json=as_json),
            tools=equipment,
            system=system,
            parse_line=str.strip if as_json else parse_line,
            interactive=interactive,
            config=config,
            zone=zone,
            learn_timeout=IN_MEMORY_LEARN_TIMEOUT if str(db) == MEMORY else LEARN_TIMEOUT,
        )
        return await conversation.run()


def run(
    model_name: str | None = None,
    *,
    base_url: str | None = None,
    persona: Path | None = None,
    as_json: bool = False,
    weather: bool = False,
    db: str | Path = MEMORY,
) -> int:
    """`converse` for the command line: programs are told in their own format what could not begin."""
    if not os.environ.get("PALAVER_TRACEBACK"):
        logging.getLogger("palaver").addHandler(logging.NullHandler())  # a tool's failure is shown as its result
    talk = converse(model_name, base_url=base_url, persona=persona, as_json=as_json, weather=weather, db=db)
    try:
        return asyncio.run(talk)
    except PalaverError as error:
        if not as_json:
            raise
        show_error(JsonDisplay(sys.stdout), error, error_text(error, START_HINTS))
        return START_FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


@asynccontextmanager
async def _open_store(db: str | Path) -> AsyncIterator[Store]:
    """The store, open; an error about its file says what can be done."""
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


def _config(environment: Mapping[str, str]) -> Config:
    """The settings of the environment, with the profile that suits one person and any model unless it names one."""
    config = from_environment(environment)
    return config if environment.get("PALAVER_PROFILE") else replace(config, profile="plain")


def _reader(typed: TextIO, *, interactive: bool, as_json: bool) -> Reader:
    if as_json:
        return JsonReader(typed)
    if interactive and os.environ.get("TERM", "dumb") != "dumb":
        return EditorReader()
    if typed.isatty():
        return LineReader(typed, prompts=sys.stdout if interactive else sys.stderr)
    return LineReader(typed)


def _display(*, interactive: bool, as_json: bool) -> Display:
    if as_json:
        return JsonDisplay(sys.stdout)
    notes = sys.stdout if interactive else sys.stderr
    return ScreenDisplay(sys.stdout, notes, coloured=wants_colour(notes))


def _replace_unencodable(*streams: object) -> None:
    """Let a character that a stream cannot carry become a question mark instead of an error."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
