"""The chat in the terminal from the first line to the last."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import partial

from palaver.agent.toolbox import Function
from palaver.chat import Chat
from palaver.conversation.watching import Watched
from palaver.errors import PalaverError
from palaver.models.base import Response
from palaver.models.local.weights import find
from palaver.models.naming import NAMES, kind_of
from palaver.parts import ToolResult
from palaver.platforms.terminal.choosing import BETTER, GEMINI_KEYS, Chosen, choose_model
from palaver.platforms.terminal.commands import HELP, Command, misused, understand
from palaver.platforms.terminal.equipment import settings_for, system_for, toolbox_for
from palaver.platforms.terminal.program import program
from palaver.platforms.terminal.reading import Reader, interrupts
from palaver.platforms.terminal.showing import Show
from palaver.platforms.terminal.ways import AT_START, IN_CHAT
from palaver.platforms.terminal.wording import error_words, greeting, prompt_lines, turn_lines
from palaver.prompt.ledger import Ledger
from palaver.turns import Turn
from palaver.wire.foreign import Wire
from palaver.wire.repair import repair

Choose = Callable[[str | None, str | None], Chosen]

CHOOSE: Choose = partial(choose_model, ways=IN_CHAT)
LEFT_BY_INTERRUPT = 130  # as shells have it


class Conversation:
    """One person, one screen, and the model that answers at the moment."""

    def __init__(
        self,
        chosen: Chosen,
        *,
        reader: Reader,
        show: Show,
        choose: Choose = CHOOSE,
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
        self._ways = IN_CHAT if interactive else AT_START  # nobody sits at a pipe to type commands
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
            self._show.failed(error, error_words(error, self._ways))

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
        complaint = misused(command)
        if complaint:
            self._show.note(complaint)
            return
        match command.name:
            case "help":
                self._show.note(*HELP.splitlines())
            case "history":
                self._show.note(*self._history())
            case "prompt":
                self._show.note(*self._last_prompt())
            case "model":
                await self._switch(command.rest)
            case "system":
                self._instruct(command.rest)
            case "clear":
                self.chat.clear_history()
                self._show.note("(forgotten)")
            case "quit" | "exit":
                self._leaving = True

    def _history(self) -> Iterable[str]:
        if not self.chat.history:
            return ["(nothing has been said yet)"]
        return [line for turn in self.chat.history for line in turn_lines(turn)]

    def _last_prompt(self) -> Iterable[str]:
        prompt = self._ledger.prompt
        if prompt is None:
            return ["(nothing has been asked yet)"]
        wire: Wire = "gemini" if self.chosen.kind == "gemini" else "openai"
        _, receipts = repair(prompt.turns, self.chosen.model.name, wire=wire)
        return prompt_lines(self._ledger.entries[-1], receipts, unsaid=getattr(self.chosen.model, "left_out", 0))

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
        fetched = find(BETTER) is not None
        lines = greeting(self.chosen, self._ways, program=program(), fetched=fetched, key=key)
        self._show.greet(self.chosen, lines)

    def _talk_to(self, chosen: Chosen, history: Iterable[Turn]) -> None:
        self.chosen = chosen
        self._toolbox = toolbox_for(chosen, self._tools)
        system = system_for(chosen) if self._system is None else self._system
        self._ledger = Ledger()
        model = Watched(chosen.model, self._ledger)
        self.chat = Chat(model, system=system, tools=self._toolbox, history=history, settings=settings_for(chosen))


async def _closed(chosen: Chosen) -> None:
    aclose = getattr(chosen.model, "aclose", None)
    if aclose is not None:
        await aclose()
