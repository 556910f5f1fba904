"""TerminalSession: a chat in the terminal, from the first line to the exit status."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from msgspec.structs import replace

from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.engine.background import RealClock
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.inspection import Named
from tertulia.engine.limits import Limits
from tertulia.engine.memory import Memory
from tertulia.engine.store_protocols import PlaceCast
from tertulia.engine.task_worker import TaskHandler
from tertulia.engine.view import View
from tertulia.errors import PromptRemoved, StoreBroken, StoreTrouble, TertuliaError
from tertulia.memory.facts import is_same_place, subject_of
from tertulia.memory.values import Fact
from tertulia.messages import Message
from tertulia.model_choice import (
    BETTER,
    GEMINI_KEYS,
    ModelChoice,
    program_command,
)
from tertulia.models import NAME_FORMS, provider_of
from tertulia.models.local.client import Local
from tertulia.models.local.weights import find_weights
from tertulia.parts import Media, Text
from tertulia.platform import Commanded, Inbox, Received
from tertulia.platforms.terminal.attachments import Attachments, prompt_as_sent, unseen_lines
from tertulia.platforms.terminal.commands import (
    AGENT_HELP,
    HELP,
    HELP_INDENT,
    ONE_AGENT,
    ChatCommand,
    parse_line,
    usage_error,
)
from tertulia.platforms.terminal.history import history_lines, summary_lines, why_lines
from tertulia.platforms.terminal.input import InputReader, on_interrupt
from tertulia.platforms.terminal.output import Display, Output, count_seconds, show_error
from tertulia.platforms.terminal.platform import Terminal, UpdateDisplay
from tertulia.platforms.terminal.saved_files import SavedFiles, folder_of
from tertulia.platforms.terminal.setup import (
    DEFAULT_OPTIONS,
    PLACE,
    SessionOptions,
    doing_text,
    memory_model_for,
    person,
    settings_for,
    system_for,
    toolbox_for,
)
from tertulia.platforms.terminal.text import (
    error_text,
    greeting,
    one_line,
    prompt_lines,
    proposal_text,
    removal_hint,
    short_greeting,
    tool_lines,
)
from tertulia.prompt.ledger import Ledger
from tertulia.store import Store
from tertulia.store.sqlite.connection import MEMORY
from tertulia.tasks.task import Task
from tertulia.wire.repair import repair
from tertulia.wire.signatures import Wire

Doing = Callable[[], str]  # says what takes long

MEMORY_OFF = "(memory is off, by TERTULIA_MEMORY: nothing of this is recalled, and nothing learned)"  # after /memory
LEFT = "(the next start answers it)"  # after Ctrl-D during an answer
INTERRUPTED = 130  # the exit status of shells for Ctrl-C
STOP_TIMEOUT = 2.0  # seconds for a stopped answer to end; what waits for the store continues in the background


async def _ignore_remember_task(_: Task) -> None:
    """Handle a `remember` task while memory is off."""


class TerminalSession:
    """One person at one screen, and the model that answers; the messages are in the store."""

    def __init__(
        self,
        choice: ModelChoice,
        *,
        store: Store,
        reader: InputReader,
        display: Display,
        options: SessionOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._options = options
        self._store = store
        self._reader = reader
        self._display = display
        self._attachments = Attachments(options.attached, reader=reader, display=display)
        self._person = person()
        self._system = options.system
        self._status = 0
        self._leaving = False
        self._place = options.place
        self._output = Output(reader.show_above_input)
        self._updates = UpdateDisplay(self._output, display, View(place=options.place))
        files = SavedFiles(None if store.path == MEMORY else folder_of(store.path))
        self._terminal = Terminal(self._output, display, self._updates, talk=self._read_lines, files=files)
        self._memory = self._create_memory(choice) if options.config.memory.enabled else None
        self._engine = self._create_engine(choice)
        self._use_model(choice)

    def _create_memory(self, choice: ModelChoice) -> Memory:
        model, reads = memory_model_for(choice), partial(is_same_place, self._place)
        return Memory(self._store, model=model, reads=reads, clock=RealClock(sleep=self._options.sleep))

    def _create_engine(self, choice: ModelChoice) -> Engine:
        no_memory = {"remember": TaskHandler(run=_ignore_remember_task, repeatable=True, about=None)}
        return Engine(
            self._store,
            choice.model,
            [self._terminal],
            profile=self._options.config.profile,
            context=self._options.config.context,
            behavior=Behavior(
                debounce=0.0,
                error_text=self._error_text,
                forget_question=proposal_text,
            ),
            limits=Limits(messages=1_000_000),
            agents=self._options.cast or (),
            zone=self._options.zone,
            memory=self._memory,
            task_handlers={} if self._memory else no_memory,
            clock=RealClock(sleep=self._options.sleep),
        )

    async def run(self, on_leave: Callable[[], None] = lambda: None) -> int:
        """Read and answer until the person leaves; return the exit status."""
        if self._options.agent:
            await self._store.agents.set_cast(self._place, PlaceCast(default=self._options.agent))
        updates = self._engine.view(self._place)
        self._updates.begin((await anext(updates)).view)
        anew = "/clear" if self._options.interactive else "--db :memory:"
        summary = summary_lines(self._updates.view, _now(), anew=anew, shown=self._options.last_messages)
        self._greet(short_greeting if summary else greeting)
        if self._options.bot:
            self._display.note(f"({self._options.bot}: its persona, tools, zone and store; options take precedence)")
        if self._options.interactive:
            self._display.note("/help shows what you can do; Ctrl-D leaves.")
        for line in summary:
            self._display.note(line, indent=4)
        reading = asyncio.create_task(self._updates.run(updates))
        try:
            async with self._engine:
                try:
                    await self._wait_for_answer()
                    await self._wait_for_memory()
                    await self._terminal.run(self._engine.inbox(PLACE.platform))
                finally:
                    on_leave()
            await reading
        finally:
            reading.cancel()
            await _close_model(self.choice)
        return 0 if self._options.interactive else self._status or int(self._terminal.failed)

    async def _read_lines(self, inbox: Inbox) -> None:
        interrupted = False
        while not self._leaving:
            if self._updates.broken:
                raise self._updates.broken
            try:
                said = self._options.parse_line(await self._reader.read(await self._whom()))
            except EOFError:
                break
            except KeyboardInterrupt:
                if not self._options.interactive:
                    self._status = INTERRUPTED
                if interrupted or not self._options.interactive:
                    break
                interrupted = True
                self._display.note("(Ctrl-C again leaves)")
                continue
            interrupted = False
            await self._handle(said, inbox)

    async def _speaker(self) -> Agent:
        """Return the agent that answers here."""
        chosen, cast = await self._store.agents.cast(self._place), self._engine.cast
        here = cast.in_place(self._place, listed=chosen.agents or (), default=chosen.default or "")
        return here.default or cast.default

    async def _whom(self) -> str:
        """Return the name of the agent that answers here; empty where there is only one."""
        return "" if self._engine.cast.is_single else (await self._speaker()).name

    async def _wait_for_memory(self) -> None:
        """In a pipe, wait until memory has read the line, and show what it learned."""
        if self._options.interactive or self._leaving or self._status == INTERRUPTED:
            return
        await self._memory_done()
        if self._memory:
            await self._catch_up()
            self._output.show_pending()

    async def _catch_up(self) -> None:
        """Wait until the view has all that is stored by now."""
        with suppress(StoreTrouble):
            stored = await self._store.inspection.conversation(self._place, Named(), most=0)
            await self._updates.reach(lambda view: view.event >= stored.event)

    async def _memory_done(self) -> None:
        """Wait until memory has read all messages, at most for the timeout."""
        if self._memory is None:
            return
        with self._output.streaming(), suppress(TimeoutError):
            async with asyncio.timeout(self._options.learn_timeout):
                await self._memory.done()

    async def _handle(self, said: ChatCommand | str, inbox: Inbox) -> None:
        try:
            if isinstance(said, ChatCommand):
                await self._command(said, inbox)
            elif said:
                await self._answer(said, inbox)
        except StoreBroken:
            raise
        except StoreTrouble as error:
            self._status = 1
            self._updates.report_trouble(str(error), error=type(error).__name__)
        except TertuliaError as error:
            self._status = 1
            show_error(self._display, error, self._error_text(error))

    def _error_text(self, error: TertuliaError) -> str:
        return error_text(error, self._options.hints(self.choice))

    async def _answer(self, text: str, inbox: Inbox) -> None:
        left = await self._attachments.offer(text) if self._options.interactive else text
        if left is None:
            return
        media = self._attachments.take()
        if unseen := unseen_lines(media, self.choice.model):
            self._display.note(*unseen)
        message = self._message(left, media)
        self._updates.reset_trouble()
        applying = inbox.apply([Received(message=message)], key=message.id)
        await self._wait_for_answer(applying, lambda: doing_text(self.choice))
        await self._wait_for_memory()

    async def _wait_for_answer(self, applying: Awaitable[bool] | None = None, doing: Doing = str) -> None:
        """Wait until *applying* is done, and everything is answered. Ctrl-C stops the answer, in a pipe the session;
        Ctrl-D leaves.
        """
        loop = asyncio.get_running_loop()
        stopped, left = asyncio.Event(), asyncio.Event()
        with (
            self._output.streaming(),
            on_interrupt(lambda *_: loop.call_soon_threadsafe(stopped.set)),
            self._reader.watched(partial(_obey, stopped, left)),
        ):
            settled = asyncio.ensure_future(self._apply_and_settle(applying))
            waiting = asyncio.ensure_future(count_seconds(self._output, self._display, doing))
            ends = [stopped, left, self._output.closed, *([] if self._options.interactive else [self._updates.stuck])]
            events = [asyncio.ensure_future(event.wait()) for event in ends]
            try:
                await asyncio.wait([settled, *events], return_when=asyncio.FIRST_COMPLETED)
                if self._output.closed.is_set():
                    raise BrokenPipeError
                if left.is_set() and not settled.done():
                    self._leaving = True
                    self._display.note(LEFT)
                elif stopped.is_set() and not settled.done():
                    await self._stop(settled)
                elif settled.done():
                    settled.result()  # raises if the file of the store is damaged
                    await self._catch_up()
                else:  # the store cannot be written; the next start continues
                    self._status, self._leaving = 1, True
            finally:
                for task in (waiting, settled, *events):
                    task.cancel()
                self._output.show(self._display.hide_waiting)
        self._output.show_pending()

    async def _apply_and_settle(self, applying: Awaitable[bool] | None) -> None:
        if applying is not None:
            await applying
        await self._engine.settled(learned=False)

    async def _stop(self, settled: asyncio.Future[None]) -> None:
        """Stop the answer; it is tried again and again, since a run may be about to start."""
        waited = 0.0
        while not settled.done() and waited < STOP_TIMEOUT:
            self._engine.stop(self._place)
            await asyncio.wait([settled], timeout=0.05)
            waited += 0.05
        self._display.note("(stopped)")
        self._reader.hold_back()
        if not self._options.interactive:
            self._status, self._leaving = INTERRUPTED, True

    async def _command(self, command: ChatCommand, inbox: Inbox) -> None:
        complaint = usage_error(command)
        if complaint:
            self._display.note(complaint)
            return
        match command.name:
            case "help":
                help_lines = HELP if self._engine.cast.is_single else f"{AGENT_HELP}\n{HELP}"
                self._display.note(*help_lines.splitlines(), indent=HELP_INDENT)
            case "tools":
                specs = self._engine.toolbox.specs
                column = max((len(spec.name) + 2 for spec in specs), default=0)
                self._display.note(*tool_lines(specs, self.choice.model.name), indent=column)
            case "history":
                self._display.note(*history_lines(self._updates.view), indent=2)
            case "prompt":
                self._display.note(*await self._last_prompt())
            case "why":
                self._display.note(*why_lines(self._updates.view, command.rest), indent=2)
            case "model":
                await self._switch(command.rest)
            case "attach":
                self._attachments.add(command.rest)
            case "system":
                await self._set_persona(command.rest)
            case "agent" | "agents" if self._engine.cast.is_single:
                self._display.note(ONE_AGENT)
            case "quit" | "exit":
                self._leaving = True
            case _:
                await self._engine_command(command, inbox)

    async def _engine_command(self, command: ChatCommand, inbox: Inbox) -> None:
        """Let the engine run a command, and add what is specific to the terminal."""
        await self._memory_done()
        known = await self._facts() if command.name == "forget" else []
        said = self._message(f"/{command.name} {command.rest}".strip())
        commanded = Commanded(message=said, name=command.name, argument=command.rest)
        await self._wait_for_answer(inbox.apply([commanded], key=said.id))
        if command.name == "memory" and not self._memory:
            self._display.note(MEMORY_OFF)
        if command.name == "clear" and self._store.path != MEMORY:
            self._display.note(removal_hint(self._store.path, self._person))
        left = {fact.id for fact in await self._facts()} if known else set()
        gone = [f"(forgotten: {one_line(fact.text)})" for fact in known if fact.id not in left]
        if gone:
            self._display.note(*gone)

    async def _facts(self) -> Sequence[Fact]:
        return await self._store.facts.listed(subject_of(self._person, self._place))

    def _message(self, text: str, media: Sequence[Media] = ()) -> Message:
        parts = (*media, *((Text(text=text),) if text else ()))
        return Message(id=uuid4().hex, place=self._place, author=self._person, sent_at=_now(), parts=parts)

    async def _last_prompt(self) -> list[str]:
        ledger = Ledger()
        sent, words = None, tuple[str, ...]()
        for run_id, step in self._updates.prompts:
            try:
                found = await self._store.prompts.sent(run_id, step)
            except PromptRemoved as error:
                return [f"({error})"]
            if found:
                sent = found
                prompt, words = prompt_as_sent(sent.prompt, self.choice.model)
                ledger.record_request(prompt)
        if sent is None:
            return ["(nothing has been asked yet)"]
        if self._updates.usage:
            ledger.record_usage(self._updates.usage)
        wire: Wire = "gemini" if self.choice.kind == "gemini" else "openai"
        _, receipts = repair(sent.prompt.turns, self.choice.model.name, wire=wire)
        model = self.choice.model
        omitted = model.omitted_exchanges if isinstance(model, Local) else 0
        return prompt_lines(ledger.entries[-1], receipts, left_out=sent.left_out, omitted=omitted, words=words)

    async def _switch(self, rest: str) -> None:
        """Continue the conversation with another model; a base URL is kept for models of the same provider."""
        if not rest:
            self._greet()
            self._display.note(f"/model NAME chooses another: {NAME_FORMS}")
            return
        name, _, given = rest.partition(" ")
        before = self.choice
        address = before.base_url if provider_of(name) == before.kind else None
        self._use_model(self._options.choose(name, given.strip() or address))
        if self._memory:
            await self._memory.change(memory_model_for(self.choice))
        await _close_model(before)
        self._greet()

    async def _set_persona(self, text: str) -> None:
        if text:
            self._system = "" if text == "-" else text
            persona = Persona(text=self._system)
            if self._engine.cast.is_single:
                self._engine.persona = persona
            else:
                agent = replace(await self._speaker(), persona=persona)
                await self._engine.set_agents(self._engine.cast.with_agent(agent))
        self._display.note((await self._speaker()).persona.text or "(no instruction)")

    def _greet(self, greeting: Callable[..., list[str]] = greeting) -> None:
        key = next((key for key in GEMINI_KEYS if os.environ.get(key)), None)
        fetched = find_weights(BETTER) is not None
        lines = greeting(
            self.choice, self._options.hints(self.choice), program=program_command(), fetched=fetched, key=key
        )
        self._display.greet(self.choice, lines)

    def _use_model(self, choice: ModelChoice) -> None:
        self.choice = choice
        self._updates.prompts.clear()
        self._engine.models = (choice.model,)
        self._engine.toolbox = toolbox_for(choice, self._options.tools)
        self._engine.settings = settings_for(choice)
        if self._engine.cast.is_single:
            self._engine.persona = Persona(text=system_for(choice) if self._system is None else self._system)


def _obey(stopped: asyncio.Event, left: asyncio.Event, line: str) -> bool:
    """Obey a line that is typed during an answer, if it is a command that ends it."""
    name = getattr(parse_line(line), "name", "")
    if name in ("quit", "exit"):
        left.set()
    if name == "stop":
        stopped.set()
    return name in ("quit", "exit", "stop")


def _now() -> datetime:
    return datetime.now(UTC)


async def _close_model(choice: ModelChoice) -> None:
    aclose = getattr(choice.model, "aclose", None)
    if aclose is not None:
        await aclose()
