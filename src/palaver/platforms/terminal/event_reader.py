"""The reader of the engine's events that shows the person what happens: the answer as it comes, tools, trouble."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from palaver import errors
from palaver.events import (
    Delta,
    DurableEvent,
    Event,
    FactsLearned,
    FallbackTried,
    Missed,
    PromptSent,
    Recalled,
    ResponseReceived,
    RunFailed,
    RunStarted,
    StoreUnavailable,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from palaver.memory.facts import is_current
from palaver.models.base import Response, Usage
from palaver.parts import Text
from palaver.platform import Delivery
from palaver.platforms.terminal.defaults import PLACE
from palaver.platforms.terminal.output import Display, Output
from palaver.platforms.terminal.text import MAX_ERROR, one_line
from palaver.store import Store

MAX_LAG = 5.0  # seconds that a reply waits for what streamed before it; another process may cause events too


class EventReader:
    """Reads the events of the terminal's place, one after another, and remembers what of them is on the screen."""

    def __init__(self, store: Store, output: Output, display: Display) -> None:
        self.stuck = asyncio.Event()  # the store cannot be written, and nothing goes on until it can
        self.broken: errors.StoreBroken | None = None  # the store's file is damaged
        self.prompts: deque[tuple[str, int]] = deque(maxlen=2)  # the run and step of the last requests
        self.usage: Usage | None = None  # what the service reported for the last of them
        self._store = store
        self._output = output
        self._display = display
        self._cursor = ""  # of the last durable event that was read
        self._read = asyncio.Condition()
        self._live = ""  # the run of which all that was said is on the screen
        self._said = ""  # by the response that streams in
        self._answered = -1  # the step of the last response
        self._tools: dict[tuple[str, int, int], datetime] = {}  # when each call under way began
        self._failed: dict[str, RunFailed] = {}  # by run, until the line about it is shown
        self._in_mind: set[str] = set()  # what came to mind last

    async def run(self, events: AsyncIterator[Event]) -> None:
        """Read until the events end."""
        async for event in events:
            with suppress(errors.StoreTrouble, errors.StoreBroken):  # of which an event tells
                await self._handle(event)
            if cursor := getattr(event, "cursor", ""):
                self._cursor = cursor
                async with self._read:
                    self._read.notify_all()

    async def catch_up(self, until: Delivery | None = None) -> None:
        """Wait until all that has happened in the place is read, or all up to when a reply was queued."""
        pending = await self._pending()
        if until is not None:
            pending = [one for one in pending if getattr(one, "delivery_id", None) == until.id][:1]
        if not pending:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_LAG), self._read:
                while pending[-1] in await self._pending():
                    await self._read.wait()

    async def _pending(self) -> Sequence[DurableEvent]:
        """What has happened in the place and is not read yet."""
        return await self._store.events.read(after=self._cursor, place=PLACE)

    def was_streamed(self, delivery: Delivery) -> bool:
        """Whether the reply is on the screen already."""
        return delivery.streamed and delivery.run_id == self._live

    def failure_of(self, delivery: Delivery) -> RunFailed | None:
        """What went wrong in the run of a line that says so; it is asked for once."""
        return self._failed.pop(delivery.run_id or "", None)

    def reset_trouble(self) -> None:
        """Trouble with the store is told again, should there be any again."""
        self.stuck.clear()

    async def _handle(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._live, self._said, self._answered = event.run_id, "", -1
            case PromptSent():
                self.prompts.append((event.run_id, event.step))
                self.usage = None
            case Delta():
                self._delta(event)
            case ResponseReceived():
                self._response(event.response)
            case ToolStarted(at=datetime() as began):
                self._tools[event.run_id, event.step, event.call] = began
            case ToolFinished():
                await self._tool(event)
            case FallbackTried():
                await self._fallback(event)
            case Waiting():
                self._note(f"{event.why}; asked again in {event.seconds:g} s")
            case RunFailed():
                self._failed[event.run_id] = event
            case Recalled():
                self._recalled(event.texts)
            case FactsLearned():
                self._output.notify_later(partial(self._learned, event.fact_ids))
            case StoreUnavailable():
                self._trouble(event)
            case Missed():
                self._live = ""

    def _delta(self, event: Delta) -> None:
        """Show a piece of what a model says, unless somebody is typing: then the reply is shown when it is whole."""
        if not self._output.is_live:
            self._live = ""
            return
        if isinstance(event.part, Text):
            self._said += event.part.text
        self._output.show(partial(self._display.piece, event.part))

    def _response(self, response: Response) -> None:
        if self.prompts:
            self._answered = self.prompts[-1][1]
        self.usage = response.usage
        said, self._said = self._said, ""
        if self._output.is_live and not _calls_tools(response):
            self._output.show(partial(self._display.end, response, said))

    async def _tool(self, event: ToolFinished) -> None:
        began = self._tools.pop((event.run_id, event.step, event.call), None)
        seconds = (event.at - began).total_seconds() if began and event.at else None
        journal = await self._store.runs.journal(event.run_id)
        tools = journal.tools_of(event.step) if journal else []
        result = next((tool.result for tool in tools if tool.number == event.call), None)
        if result and self._output.is_live:
            self._output.show(partial(self._display.piece, result, seconds))

    async def _fallback(self, event: FallbackTried) -> None:
        if self._answered == event.step - 1:  # how the answer ended was shown
            self._note("asked again")
            return
        journal = await self._store.runs.journal(event.run_id)
        why = next((one.why for one in journal.tried if one.step == event.step), "") if journal else ""
        self._note(f"{why}; asked again, differently")

    def _recalled(self, texts: Sequence[str]) -> None:
        """Show what came to mind for a message, and had not for the one before."""
        fresh = [text for text in texts if text not in self._in_mind]
        self._in_mind = set(texts)
        if fresh:
            self._output.notify(partial(self._display.recalled, fresh))

    async def _learned(self, fact_ids: Sequence[str]) -> Callable[[], None] | None:
        """What was learned, as far as it is in the store by then."""
        found = [fact for one in fact_ids if (fact := await self._store.facts.get(one))]
        facts = [fact for fact in found if is_current(fact, datetime.now(UTC))]
        return partial(self._display.learned, facts) if facts else None

    def report_trouble(self, why: str, *, error: str) -> None:
        """Tell of trouble with the store: once, however often it is tried again."""
        if not self.stuck.is_set():
            self.stuck.set()
            self._output.notify(partial(self._display.failed, one_line(why, MAX_ERROR), error=error))

    def _trouble(self, event: StoreUnavailable) -> None:
        self._live = ""  # what was being said may be said again
        if event.damaged:
            self.broken = errors.StoreBroken(event.why)
        else:
            self.report_trouble(event.why, error=event.error)

    def _note(self, words: str) -> None:
        self._output.notify(partial(self._display.note, f"({one_line(words, MAX_ERROR)})"))


def _calls_tools(response: Response) -> bool:
    """Whether tools are run now, and the model is asked again."""
    return bool(response.function_calls) and response.finish.outcome == "complete"
