"""The chat in the terminal from the first line to the last."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from palaver.config import Config
from palaver.context.values import Persona
from palaver.engine.background import Sleep
from palaver.engine.behavior import Behavior
from palaver.engine.engine import Engine
from palaver.engine.memory import Memory
from palaver.engine.task_worker import TaskHandler
from palaver.engine.triggers import RateLimit
from palaver.errors import PalaverError, StoreBroken, StoreTrouble
from palaver.memory.facts import Fact, is_same_place, subject_of
from palaver.messages import Author, Message
from palaver.models.local.weights import find_weights
from palaver.models.model_names import NAME_FORMS, provider_of
from palaver.parts import Text
from palaver.platform import Commanded, Inbox, Received
from palaver.platforms.terminal.commands import AT_START, HELP, IN_CHAT, Command, misused, program, understand
from palaver.platforms.terminal.defaults import PLACE, person, reader_for, settings_for, system_for, toolbox_for
from palaver.platforms.terminal.event_reader import EventReader
from palaver.platforms.terminal.history_view import Recalled
from palaver.platforms.terminal.input import Reader, interrupts
from palaver.platforms.terminal.model_choice import BETTER, GEMINI_KEYS, Chosen, choose_model
from palaver.platforms.terminal.output import Output, Show, show_error
from palaver.platforms.terminal.platform import Terminal
from palaver.platforms.terminal.text import error_words, greeting, prompt_lines, proposal_words, shortened
from palaver.prompt.ledger import Ledger
from palaver.store import Store
from palaver.store.sqlite.connection import MEMORY
from palaver.tasks.task import Task
from palaver.toolbox.toolbox import Function, Tool
from palaver.wire.repair import repair
from palaver.wire.signatures import Wire

Choose = Callable[[str | None, str | None], Chosen]

CHOOSE: Choose = partial(choose_model, ways=IN_CHAT)
OFF = "(memory is off, by PALAVER_MEMORY: nothing of this is recalled, and nothing learned)"
PLAIN = Config(profile="plain")
LEFT_BY_INTERRUPT = 130  # as shells have it
PATIENCE = 2.0  # seconds for a stopped answer to end; what waits for the store goes on beside the next line
TO_LEARN = 2.0  # seconds for a line of a pipe to be learned from; what is not by its end, the next start does


async def _nothing(_: Task) -> None:
    """With memory off, nothing is remembered."""


class Conversation:
    """One person, one screen, and the model that answers at the moment; what is said is in the store."""

    def __init__(
        self,
        chosen: Chosen,
        *,
        store: Store,
        reader: Reader,
        show: Show,
        choose: Choose = CHOOSE,
        tools: Sequence[Function | Tool] = (),
        system: str | None = None,
        understand: Callable[[str], Command | str] = understand,
        interactive: bool = True,
        config: Config = PLAIN,
        zone: str = "UTC",
        to_learn: float = TO_LEARN,
        sleep: Sleep = asyncio.sleep,
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
        self._path = store.path
        self._recalled = Recalled(store)
        self._person = person()
        self._store = store
        self._output = Output(reader.aside)
        self._events = EventReader(store, self._output, show)
        self._terminal = Terminal(self._output, show, self._events, talk=self._talk)
        self._to_learn = to_learn
        self._memory = (
            Memory(
                store,
                model=reader_for(chosen),
                reads=partial(is_same_place, PLACE),
                sleep=sleep,
            )
            if config.memory
            else None
        )
        self._engine = Engine(
            store,
            chosen.model,
            [self._terminal],
            config=config,
            behavior=Behavior(
                burst=0.0,
                limit=RateLimit(messages=1_000_000),
                excuse=partial(error_words, ways=self._ways),
                proposal=proposal_words,
            ),
            zone=zone,
            memory=self._memory,
            task_handlers={} if config.memory else {"remember": TaskHandler(run=_nothing, repeatable=True, about=None)},
            sleep=sleep,
        )
        self._talk_to(chosen)

    async def run(self) -> int:
        """Talk until the person leaves; the exit status."""
        standing = await self._recalled.standing(_now(), anew="/clear" if self._interactive else "--db :memory:")
        self._greet()
        if self._interactive:
            self._show.note("/help shows what you can do; Ctrl-D leaves.")
        for line in standing:
            self._show.note(line)
        since = await self._store.events.last()
        reading = asyncio.create_task(self._events.run(self._engine.events(place=PLACE, after=since)))
        try:
            async with self._engine:
                await self._attend()
                await self._learn()
                await self._terminal.run(self._engine.inbox(PLACE.platform))
            await reading
        finally:
            reading.cancel()
            await _closed(self.chosen)
        return 0 if self._interactive else self._status or int(self._terminal.failed)

    async def _talk(self, inbox: Inbox) -> None:
        interrupted = False
        while not self._leaving:
            if self._events.broken:
                raise self._events.broken
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
            await self._obey(said, inbox)

    async def _learn(self) -> None:
        """Let what was said be learned from, for a moment, before the next line of a pipe, or its end."""
        if self._interactive or self._leaving or self._status == LEFT_BY_INTERRUPT:
            return
        await self._until_learned()
        if self._memory:
            await self._events.caught_up()
            await self._output.show_mentions()

    async def _until_learned(self) -> None:
        """Wait, for a moment at most, until memory has read what was said."""
        if self._memory is None:
            return
        with self._output.attended(), suppress(TimeoutError):
            async with asyncio.timeout(self._to_learn):
                await self._memory.done()

    async def _obey(self, said: Command | str, inbox: Inbox) -> None:
        try:
            if isinstance(said, Command):
                await self._command(said, inbox)
            elif said:
                await self._answer(said, inbox)
        except StoreBroken:
            raise
        except StoreTrouble as error:
            self._status = 1
            self._events.tell_trouble(str(error), error=type(error).__name__)
        except PalaverError as error:
            self._status = 1
            show_error(self._show, error, error_words(error, self._ways))

    async def _answer(self, text: str, inbox: Inbox) -> None:
        said = self._message(text)
        self._events.calm()
        await self._attend(inbox.apply([Received(message=said)], key=said.id))
        await self._learn()

    async def _attend(self, applying: Awaitable[bool] | None = None) -> None:
        """Wait until nothing is left to answer; Ctrl-C stops it, and ends the chat where nobody is there to go on.

        What is *applying* comes first: it waits while the store has no room.
        """
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        with self._output.attended(), interrupts(lambda *_: loop.call_soon_threadsafe(stopped.set)):
            settled = asyncio.ensure_future(self._settled(applying))
            ends = [stopped, self._output.left, *([] if self._interactive else [self._events.stuck])]
            events = [asyncio.ensure_future(event.wait()) for event in ends]
            try:
                await asyncio.wait([settled, *events], return_when=asyncio.FIRST_COMPLETED)
                if self._output.left.is_set():
                    raise BrokenPipeError
                if stopped.is_set() and not settled.done():
                    await self._stop(settled)
                elif settled.done():
                    settled.result()  # raises where the store's file is damaged
                else:  # what could not be kept is taken up by the next who starts
                    self._status, self._leaving = 1, True
            finally:
                for waiting in (settled, *events):
                    waiting.cancel()
        await self._output.show_mentions()

    async def _settled(self, applying: Awaitable[bool] | None) -> None:
        if applying is not None:
            await applying
        await self._engine.settled()

    async def _stop(self, settled: asyncio.Future[None]) -> None:
        """End the answer under way, which may be about to begin."""
        waited = 0.0
        while not settled.done() and waited < PATIENCE:
            self._engine.stop(PLACE)
            await asyncio.wait([settled], timeout=0.05)
            waited += 0.05
        self._show.note("(stopped)")
        if not self._interactive:
            self._status, self._leaving = LEFT_BY_INTERRUPT, True

    async def _command(self, command: Command, inbox: Inbox) -> None:
        complaint = misused(command)
        if complaint:
            self._show.note(complaint)
            return
        match command.name:
            case "help":
                self._show.note(*HELP.splitlines())
            case "history":
                self._show.note(*await self._recalled.history())
            case "prompt":
                self._show.note(*await self._last_prompt())
            case "model":
                await self._switch(command.rest)
            case "system":
                self._instruct(command.rest)
            case "quit" | "exit":
                self._leaving = True
            case _:
                await self._give(command, inbox)

    async def _give(self, command: Command, inbox: Inbox) -> None:
        """Let the engine carry out a command, and add what is only true of this program."""
        await self._until_learned()
        known = await self._facts() if command.name == "forget" else []
        said = self._message(f"/{command.name} {command.rest}".strip())
        commanded = Commanded(message=said, name=command.name, argument=command.rest)
        await self._attend(inbox.apply([commanded], key=said.id))
        if command.name == "memory" and not self._memory:
            self._show.note(OFF)
        if command.name == "clear" and self._path != MEMORY:
            self._show.note(_how_to_remove(self._path, self._person))
        left = {fact.id for fact in await self._facts()} if known else set()
        gone = [f"(forgotten: {shortened(fact.text)})" for fact in known if fact.id not in left]
        if gone:
            self._show.note(*gone)

    async def _facts(self) -> Sequence[Fact]:
        return await self._store.facts.listed(subject_of(self._person, PLACE))

    def _message(self, text: str) -> Message:
        return Message(id=uuid4().hex, place=PLACE, author=self._person, sent_at=_now(), parts=(Text(text=text),))

    async def _last_prompt(self) -> list[str]:
        ledger = Ledger()
        sent = None
        for run_id, step in self._events.prompts:
            if found := await self._store.prompts.sent(run_id, step):
                sent = found
                ledger.note(sent.prompt)
        if sent is None:
            return ["(nothing has been asked yet)"]
        if self._events.usage:
            ledger.heard(self._events.usage)
        wire: Wire = "gemini" if self.chosen.kind == "gemini" else "openai"
        _, receipts = repair(sent.prompt.turns, self.chosen.model.name, wire=wire)
        unsaid = getattr(self.chosen.model, "left_out", 0)
        return prompt_lines(ledger.entries[-1], receipts, left_out=sent.left_out, unsaid=unsaid)

    async def _switch(self, rest: str) -> None:
        """Let another model go on with the same conversation; an address stays with the service it was given for."""
        if not rest:
            self._greet()
            self._show.note(f"/model NAME chooses another: {NAME_FORMS}")
            return
        name, _, given = rest.partition(" ")
        before = self.chosen
        address = before.base_url if provider_of(name) == before.kind else None
        self._talk_to(self._choose(name, given.strip() or address))
        if self._memory:
            await self._memory.change(reader_for(self.chosen))
        await _closed(before)
        self._greet()

    def _instruct(self, text: str) -> None:
        if text:
            self._system = "" if text == "-" else text
            self._engine.persona = Persona(text=self._system)
        self._show.note(self._engine.persona.text or "(no instruction)")

    def _greet(self) -> None:
        key = next((key for key in GEMINI_KEYS if os.environ.get(key)), None)
        fetched = find_weights(BETTER) is not None
        lines = greeting(self.chosen, self._ways, program=program(), fetched=fetched, key=key)
        self._show.greet(self.chosen, lines)

    def _talk_to(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self._events.prompts.clear()
        self._engine.models = (chosen.model,)
        self._engine.toolbox = toolbox_for(chosen, self._tools)
        self._engine.settings = settings_for(chosen)
        self._engine.persona = Persona(text=system_for(chosen) if self._system is None else self._system)


def _now() -> datetime:
    return datetime.now(UTC)


def _how_to_remove(path: str, person: Author) -> str:
    """What a person who clears is told about the file."""
    given = shlex.join([person.id, "--platform", PLACE.platform, "--db", path])
    return f"(to remove you from the file too, leave and run: {program()} db forget {given})"


async def _closed(chosen: Chosen) -> None:
    aclose = getattr(chosen.model, "aclose", None)
    if aclose is not None:
        await aclose()
