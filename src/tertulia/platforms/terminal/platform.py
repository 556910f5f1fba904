"""The terminal as a platform: the engine's events as they come, replies, and the stored history."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from msgspec.structs import replace

from tertulia import errors
from tertulia.engine.place_worker import STOPPED
from tertulia.errors import TertuliaError
from tertulia.events import (
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
from tertulia.memory.retrieval.terms import term_set, words
from tertulia.memory.values import is_current
from tertulia.messages import Place, Reply
from tertulia.models.base import Response, Usage
from tertulia.parts import Media, Text
from tertulia.platform import Capabilities, Delivery, Inbox, Platform
from tertulia.platforms.terminal.output import Display, Output
from tertulia.platforms.terminal.saved_files import SavedFiles
from tertulia.platforms.terminal.setup import ME, PLACE
from tertulia.platforms.terminal.text import MAX_ERROR, history_summary, message_lines, one_line
from tertulia.run.cleaner import clean
from tertulia.store import Store
from tertulia.tasks.reminders import PREFIX
from tertulia.turns import Turn

MAX_LAG = 5.0  # seconds that a reply waits for earlier events
MAX_MESSAGES = 50  # that /history shows
AGAIN = "the same call again; it was not run"
UNANSWERED = "(what was said last had no answer yet; here it is)"
Talk = Callable[[Inbox], Awaitable[None]]  # reads lines and applies them


class EventReader:
    """Reads the events of the terminal's place in order, and remembers what is on the screen.

    It shows the answer as it streams, tools, retries, and trouble with the store.
    """

    def __init__(self, store: Store, output: Output, display: Display, place: Place = PLACE) -> None:
        self.stuck = asyncio.Event()  # the store cannot be written
        self.broken: errors.StoreBroken | None = None  # the file of the store is damaged
        self.prompts: deque[tuple[str, int]] = deque(maxlen=2)  # the run and step of the last requests
        self.usage: Usage | None = None  # of the last response
        self._store = store
        self._place = place
        self._output = output
        self._display = display
        self._cursor = ""  # of the last durable event
        self._read = asyncio.Condition()
        self._shown_run = ""  # the run whose text is all on the screen
        self._shown = ""  # what is on the screen of that run
        self._text = ""  # by the response that streams
        self._last_step = -1  # the step of the last response
        self._tools: dict[tuple[str, int, int], datetime] = {}  # the start of each running call
        self._failed: dict[str, RunFailed] = {}  # by run, until it is shown
        self._recalled_texts: set[str] = set()  # the texts recalled last

    async def follow_open_run(self) -> None:
        """Follow the run that an earlier process left without a response: it does not start again, but streams."""
        for run in await self._store.runs.open():
            journal = await self._store.runs.journal(run.id) if run.place == self._place else None
            if journal and not journal.records:
                self._follow(run.id)

    async def run(self, events: AsyncIterator[Event]) -> None:
        """Read events until they end."""
        async for event in events:
            with suppress(errors.StoreTrouble, errors.StoreBroken):  # an event reports it
                await self._handle(event)
            if cursor := getattr(event, "cursor", ""):
                self._cursor = cursor
                async with self._read:
                    self._read.notify_all()

    async def catch_up(self, until: Delivery | None = None) -> None:
        """Wait until all events are read; with *until*, those up to the queueing of that delivery."""
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
        """Return the durable events of the place that are not read yet."""
        return await self._store.events.read(after=self._cursor, place=self._place)

    def unshown(self, delivery: Delivery) -> Reply:
        """Return what was not shown as it streamed: the whole reply, or files, and lines that are links to them."""
        reply = delivery.reply
        if not delivery.streamed or delivery.run_id != self._shown_run:
            return reply
        shown = " ".join(self._shown.split())
        lines = [line for line in reply.text.splitlines() if " ".join(line.split()) not in shown]
        media = [one for one in reply.media if one.data or (one.link or one.caption) not in shown]
        return replace(reply, text="\n".join(lines), media=tuple(media))

    def failure_of(self, delivery: Delivery) -> RunFailed | None:
        """Return why the run of an error notice failed, and forget it."""
        return self._failed.pop(delivery.run_id or "", None)

    def reset_trouble(self) -> None:
        """Report the next trouble with the store again."""
        self.stuck.clear()

    async def _handle(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._follow(event.run_id)
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
                self._output.notify(partial(self._display.retry, one_line(event.why, MAX_ERROR), event.seconds))
            case RunFailed():
                self._failed[event.run_id] = event
            case Recalled():
                await self._show_recalled(event)
            case FactsLearned():
                self._output.notify_later(partial(self._learned_facts, event.fact_ids))
            case StoreUnavailable():
                self._trouble(event)
            case Missed():
                self._shown_run = ""

    def _follow(self, run_id: str) -> None:
        self._shown_run, self._shown, self._text, self._last_step = run_id, "", "", -1

    def _delta(self, event: Delta) -> None:
        """Show a piece of the answer, unless somebody is typing: then the whole reply is shown later."""
        if not self._output.is_streaming:
            self._shown_run = ""
            return
        if isinstance(event.part, Text):
            self._text += event.part.text
            self._shown += event.part.text
        if isinstance(event.part, Media):
            self._shown += f"\n{event.part.caption}\n"
        self._output.show(partial(self._display.piece, event.part))

    def _response(self, response: Response) -> None:
        if self.prompts:
            self._last_step = self.prompts[-1][1]
        self.usage = response.usage
        said, self._text = self._text, ""
        if self._output.is_streaming and not _calls_tools(response):
            self._output.show(partial(self._display.end, response, said))

    async def _tool(self, event: ToolFinished) -> None:
        began = self._tools.pop((event.run_id, event.step, event.call), None)
        seconds = (event.at - began).total_seconds() if began and event.at else None
        journal = await self._store.runs.journal(event.run_id)
        tools = journal.tools_of(event.step) if journal else []
        tool = next((tool for tool in tools if tool.number == event.call), None)
        result = tool.result if tool else None
        if journal and tool and result and result.failed and journal.is_repeated(tool):
            result = replace(result, value=AGAIN)  # it says more, to the model
        if result and self._output.is_streaming:
            self._output.show(partial(self._display.piece, result, seconds))

    async def _fallback(self, event: FallbackTried) -> None:
        if self._last_step == event.step - 1:  # the reason was shown
            self._note("asked again")
            return
        journal = await self._store.runs.journal(event.run_id)
        why = next((one.why for one in journal.tried if one.step == event.step), "") if journal else ""
        self._note(f"{why}; asked again, differently")

    async def _show_recalled(self, event: Recalled) -> None:
        """Show the recalled texts that share a word with the message, and were not shown for the one before."""
        found = await self._store.log.find(self._place, [event.message_id])
        asked = _gist(" ".join(message.text for _, message in found))
        fitting = [text for text in event.texts if _gist(text) & asked]
        fresh = [text for text in fitting if text not in self._recalled_texts]
        self._recalled_texts = set(fitting)
        if fresh:
            self._output.notify(partial(self._display.recollections, fresh))

    async def _learned_facts(self, fact_ids: Sequence[str]) -> Callable[[], None] | None:
        """Return what shows the learned facts that are still current; None if there are none."""
        found = [fact for one in fact_ids if (fact := await self._store.facts.get(one))]
        facts = [fact for fact in found if is_current(fact, datetime.now(UTC))]
        return partial(self._display.facts, facts) if facts else None

    def report_trouble(self, why: str, *, error: str) -> None:
        """Show trouble with the store, once."""
        if not self.stuck.is_set():
            self.stuck.set()
            self._output.notify(partial(self._display.error, one_line(why, MAX_ERROR), error=error))

    def _trouble(self, event: StoreUnavailable) -> None:
        self._shown_run = ""  # the text may be streamed again
        if event.damaged:
            self.broken = errors.StoreBroken(event.why)
        else:
            self.report_trouble(event.why, error=event.error)

    def _note(self, words: str) -> None:
        self._output.notify(partial(self._display.note, f"({one_line(words, MAX_ERROR)})"))


def _calls_tools(response: Response) -> bool:
    """Return whether tools run next, and the model is asked again."""
    return bool(response.function_calls) and response.finish.outcome == "complete"


def _gist(text: str) -> set[str]:
    """Return the terms of a text, and how its longer words begin: live, lives, living."""
    return {*term_set(text), *(word[:4] for word in words(text) if len(word) > 3)}


class HistoryView:
    """Reads the messages of the terminal's place from the store, as lines."""

    def __init__(self, store: Store, place: Place = PLACE) -> None:
        self._store = store
        self._place = place

    async def delimiter(self) -> str:
        return await self._store.place_settings.delimiter(self._place)

    async def summary(self, now: datetime, *, anew: str, shown: int) -> list[str]:
        """Return how many messages there are, how old the last one is, and the last *shown* messages; nothing for an
        empty history.
        """
        start, count = await self._span()
        if count <= start:
            return []
        (last,) = await self._store.log.read(self._place, count - 1, count)
        lines = [history_summary(count - start, last.sent_at, now, anew=f"{anew} begins anew")]
        first = await self._first_shown(start, count, shown)
        lines += [f"  {line}" for line in await self._lines(first, count)]
        return [*lines, UNANSWERED] if await self._is_open() else lines

    async def _first_shown(self, start: int, count: int, shown: int) -> int:
        """Return the number of the first of the last messages that are shown: an answer comes with its question."""
        first = max(start, count - shown)
        if not shown:
            return first
        begin = max(start, first - MAX_MESSAGES)
        messages = await self._store.log.read(self._place, begin, first + 1)
        return begin + max((n for n, one in enumerate(messages) if one.author.persona is None), default=first - begin)

    async def history(self) -> list[str]:
        """Return the last messages of the conversation; those of the model with its calls and results."""
        start, count = await self._span()
        first = max(start, count - MAX_MESSAGES)
        lines = await self._lines(first, count)
        before = [f"(… {first - start:,} before)"] if first > start else []
        return [*before, *lines] if lines else ["(nothing has been said yet)"]

    async def _lines(self, first: int, end: int) -> list[str]:
        """Return the messages with these numbers, in short."""
        messages = [message for message in await self._store.log.read(self._place, first, end) if not message.deleted]
        turns = await self._store.log.turns(messages)
        hidden = await self.delimiter()
        failed = await self._store.runs.failed(self._place, [one.id for one in messages])
        endings = {run.target: "stopped" if run.why == STOPPED else "no answer" for run in failed}
        return [
            line
            for one in messages
            for line in message_lines(one, [*_clean_turns(turns.get(one.id, ()), hidden)], endings.get(one.id, ""))
        ]

    async def _span(self) -> tuple[int, int]:
        """Return the numbers of the first message of the conversation and of the next message."""
        return await self._store.place_settings.beginning(self._place), await self._store.log.count(self._place)

    async def _is_open(self) -> bool:
        open_here = any(run.place == self._place for run in await self._store.runs.open())
        return open_here or bool(await self._store.inbox.waiting(self._place))


def _clean_turns(turns: Sequence[Turn], hidden: str) -> Iterator[Turn]:
    """Yield the turns without our markup."""
    for turn in turns:
        yield (
            turn
            if turn.role == "user"
            else replace(
                turn,
                parts=tuple(
                    replace(part, text=clean(part.text, delimiter=hidden)) if isinstance(part, Text) else part
                    for part in turn.parts
                ),
            )
        )


class Terminal(Platform):
    """The platform of one screen; a reply is shown unless its text was streamed."""

    name = PLACE.platform
    me = ME
    capabilities = Capabilities(
        idempotency_window=timedelta.max,  # sending again is safe: the same person sees the same screen
        media=frozenset({"document"}),
    )

    def __init__(
        self,
        output: Output,
        display: Display,
        events: EventReader,
        *,
        talk: Talk,
        files: SavedFiles | None = None,
    ) -> None:
        self.failed = False  # whether a message could not be answered
        self._output = output
        self._display = display
        self._events = events
        self._talk = talk
        self._files = files or SavedFiles()

    async def run(self, inbox: Inbox) -> None:
        """Read and apply lines until the person leaves."""
        await self._talk(inbox)

    async def send(self, delivery: Delivery) -> str:
        await self._events.catch_up(delivery)
        if delivery.kind == "error":
            await self._show_error(delivery)
            return uuid4().hex
        if delivery.kind == "notice" and delivery.run_id is None:
            await self._output.show_above_input(partial(self._display.note, *delivery.reply.text.splitlines()))
            return uuid4().hex
        if delivery.kind == "task" and delivery.id.startswith(PREFIX):
            await self._output.show_above_input(partial(self._display.remind, delivery.reply))
            return uuid4().hex
        reply = self._events.unshown(delivery)
        if reply.media:
            reply = await asyncio.to_thread(self._files.save_media, reply)
        if reply.text or reply.media:
            await self._output.show_above_input(partial(self._display.reply, reply))
        return uuid4().hex

    async def _show_error(self, delivery: Delivery) -> None:
        self.failed = True
        failure = self._events.failure_of(delivery)
        error = failure.error if failure else TertuliaError.__name__
        wait = failure.retry_after if failure else None
        display = partial(self._display.error, delivery.reply.text, error=error, retry_after=wait)
        await self._output.show_above_input(display)
