"""A conversation on the standard streams, whatever they are: a terminal, a dumb one, a pipe."""

import asyncio
import logging
import os
import sys
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from palaver.errors import PalaverError
from palaver.platforms.terminal.choosing import choose_model
from palaver.platforms.terminal.commands import understand
from palaver.platforms.terminal.conversation import LEFT_BY_INTERRUPT, Conversation
from palaver.platforms.terminal.equipment import opened_tools, read_persona
from palaver.platforms.terminal.reading import Editor, JsonStrings, Lines, Reader
from palaver.platforms.terminal.showing import JsonLines, Screen, Show, wants_colour
from palaver.platforms.terminal.ways import AT_START
from palaver.platforms.terminal.wording import error_words

COULD_NOT_BEGIN = 2


async def converse(
    model_name: str | None = None,
    *,
    base_url: str | None = None,
    persona: Path | None = None,
    as_json: bool = False,
    weather: bool = False,
) -> int:
    """Talk on the standard streams; the exit status. What cannot begin raises a PalaverError."""
    system = None if persona is None else read_persona(persona)
    chosen = choose_model(model_name, base_url)
    typed = sys.stdin or StringIO()  # a shell can close it
    _forgiving(typed, sys.stdout, sys.stderr)
    interactive = typed.isatty() and sys.stdout.isatty() and not as_json
    async with opened_tools(os.environ, weather=weather) as tools:
        conversation = Conversation(
            chosen,
            reader=_reader(typed, interactive=interactive, as_json=as_json),
            show=_show(interactive=interactive, as_json=as_json),
            tools=tools,
            system=system,
            understand=str.strip if as_json else understand,
            interactive=interactive,
        )
        return await conversation.run()


def run(
    model_name: str | None = None,
    *,
    base_url: str | None = None,
    persona: Path | None = None,
    as_json: bool = False,
    weather: bool = False,
) -> int:
    """`converse` for the command line: programs are told in their own format what could not begin."""
    if not os.environ.get("PALAVER_TRACEBACK"):
        logging.getLogger("palaver").addHandler(logging.NullHandler())  # a tool's failure is shown as its result
    talk = converse(model_name, base_url=base_url, persona=persona, as_json=as_json, weather=weather)
    try:
        return asyncio.run(talk)
    except PalaverError as error:
        if not as_json:
            raise
        JsonLines(sys.stdout).failed(error, error_words(error, AT_START))
        return COULD_NOT_BEGIN
    except KeyboardInterrupt:
        return LEFT_BY_INTERRUPT


def _reader(typed: TextIO, *, interactive: bool, as_json: bool) -> Reader:
    if as_json:
        return JsonStrings(typed)
    if interactive and os.environ.get("TERM", "dumb") != "dumb":
        return Editor()
    if typed.isatty():
        return Lines(typed, prompts=sys.stdout if interactive else sys.stderr)
    return Lines(typed)


def _show(*, interactive: bool, as_json: bool) -> Show:
    if as_json:
        return JsonLines(sys.stdout)
    notes = sys.stdout if interactive else sys.stderr
    return Screen(sys.stdout, notes, coloured=wants_colour(notes))


def _forgiving(*streams: object) -> None:
    """Let a character that a stream cannot carry become a question mark instead of an error."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
