"""The chat in the terminal from the first line to the last."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from palaver.agent.toolbox import Function
from palaver.chat import Chat
from palaver.errors import PalaverError
from palaver.models.base import Response
from palaver.models.naming import NAMES, kind_of
from palaver.parts import ToolResult
from palaver.platforms.terminal.choosing import GEMINI_KEYS, Chosen, choose_model
from palaver.platforms.terminal.commands import HELP, Command, understand
from palaver.platforms.terminal.equipment import opened_tools, read_persona, settings_for, system_for, toolbox_for
from palaver.platforms.terminal.reading import Editor, JsonStrings, Lines, Reader, interrupts
from palaver.platforms.terminal.showing import JsonLines, Screen, Show, wants_colour
from palaver.platforms.terminal.wording import greeting, turn_words
from palaver.turns import Turn

Choose = Callable[[str | None, str | None], Chosen]

LEFT_BY_INTERRUPT = 130  # as shells have it


class Conversation:
    """One person, one screen, and the model that answers at the moment."""

    def __init__(
        self,
        chosen: Chosen,
        *,
        reader: Reader,
        show: Show,
        choose: Choose = choose_model,
        tools: Sequence[Function] = (),
        system: str | None = None,
        understand: Callable[[str], Command | str] = understand,
        interactive: bool = True,
    ) -> None:
        self._reader = reader
        self._show = show
        self._choose = choose
        self._tools = tools
        self._system = system  # None: the one that suits the model
        self._understand = understand
        self._interactive = interactive
        self._status = 0
        self._leaving = False
        self._talk_to(chosen, history=())

    async def run(self) -> int:
        """Talk until the person leaves; the exit status."""
        self._greet()
        if self._interactive:
            self._show.note("/help shows what you can do; Ctrl-D leaves.")
        interrupted = False
        while not self._leaving:
            try:
                said = self._understand(await self._reader.read())
            except EOFError:
                break
            except KeyboardInterrupt:
                if not self._interactive:
                    self._status = LEFT_BY_INTERRUPT
                if interrupted or not self._interactive:
                    break
                interrupted = True
                self._show.note("(Ctrl-C again leaves)")
                continue
            interrupted = False
            await self._obey(said)
        await _closed(self.chosen)
        return 0 if self._interactive else self._status

    async def _obey(self, said: Command | str) -> None:
        try:
            if isinstance(said, Command):
                await self._command(said)
            elif said:
                await self._stoppable(self._answer(said))
        except PalaverError as error:
            self._status = 1
            self._show.failed(error)

    async def _answer(self, message: str) -> None:
        stream = self.chat.send_message_stream(message)
        async with aclosing(stream):
            async for piece in stream:
                match piece:
                    case Response():
                        self._show.ended(piece)
                    case ToolResult():
                        self._show.piece(piece, self._toolbox.seconds.popleft())
                    case _:
                        self._show.piece(piece)

    async def _stoppable(self, answer: Coroutine[None, None, None]) -> None:
        """Await an answer; Ctrl-C stops it, and ends the chat where nobody is there to go on."""
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(answer)
        stopped = asyncio.Event()

        def stop() -> None:
            stopped.set()
            task.cancel()

        with interrupts(lambda *_: loop.call_soon_threadsafe(stop)):
            try:
                await task
            except asyncio.CancelledError:
                if not stopped.is_set():
                    raise
                self._show.note("(stopped)")
        if stopped.is_set() and not self._interactive:
            self._status, self._leaving = LEFT_BY_INTERRUPT, True

    async def _command(self, command: Command) -> None:
        match command.name:
            case "help":
                self._show.note(*HELP.splitlines())
            case "history":
                self._show.note(*self._history())
            case "model":
                await self._switch(command.rest)
            case "system":
                self._instruct(command.rest)
            case "clear":
                self.chat.clear_history()
                self._show.note("(forgotten)")
            case "quit" | "exit":
                self._leaving = True
            case _:
                self._show.note(f"there is no /{command.name}; /help shows what there is")

    def _history(self) -> Iterable[str]:
        if not self.chat.history:
            return ["(nothing has been said yet)"]
        return [turn_words(turn) for turn in self.chat.history]

    async def _switch(self, rest: str) -> None:
        """Let another model go on with the same conversation; an address stays with the service it was given for."""
        if not rest:
            self._greet()
            self._show.note(f"/model NAME chooses another: {NAMES}")
            return
        name, _, given = rest.partition(" ")
        before = self.chosen
        address = before.base_url if kind_of(name) == before.kind else None
        chosen = self._choose(name, given.strip() or address)
        self._talk_to(chosen, history=self.chat.history)
        await _closed(before)
        self._greet()

    def _instruct(self, text: str) -> None:
        if text:
            self._system = "" if text == "-" else text
            self.chat.system = self._system
        self._show.note(self.chat.system or "(no instruction)")

    def _greet(self) -> None:
        key = next((key for key in GEMINI_KEYS if os.environ.get(key)), None)
        self._show.greet(self.chosen, greeting(self.chosen, key=key))

    def _talk_to(self, chosen: Chosen, history: Iterable[Turn]) -> None:
        self.chosen = chosen
        self._toolbox = toolbox_for(chosen, self._tools)
        system = system_for(chosen) if self._system is None else self._system
        self.chat = Chat(
            chosen.model, system=system, tools=self._toolbox, history=history, settings=settings_for(chosen)
        )


async def _closed(chosen: Chosen) -> None:
    aclose = getattr(chosen.model, "aclose", None)
    if aclose is not None:
        await aclose()


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
    """`converse` for the command line."""
    if not os.environ.get("PALAVER_TRACEBACK"):
        logging.getLogger("palaver").addHandler(logging.NullHandler())  # a tool's failure is shown as its result
    talk = converse(model_name, base_url=base_url, persona=persona, as_json=as_json, weather=weather)
    try:
        return asyncio.run(talk)
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
