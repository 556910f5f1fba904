"""The terminal as a platform: the conversation as it changes, and replies."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from msgspec.structs import replace

from tertulia import errors
from tertulia.engine.view import View, ViewUpdate
from tertulia.errors import TertuliaError
from tertulia.events import (
    Delta,
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
    Waiting,
)
from tertulia.memory.retrieval.terms import term_set, words
from tertulia.memory.values import is_current
from tertulia.messages import Reply
from tertulia.models.base import Response, Usage
from tertulia.parts import Media, Text
from tertulia.platform import Capabilities, Delivery, Inbox, Platform
from tertulia.platforms.terminal.output import Display, Output
from tertulia.platforms.terminal.saved_files import SavedFiles
from tertulia.platforms.terminal.setup import ME, PLACE
from tertulia.platforms.terminal.text import MAX_ERROR, one_line
from tertulia.run.journal import is_repeated
from tertulia.tasks.reminders import PREFIX

MAX_LAG = 5.0  # seconds that a reply waits for earlier events
AGAIN = "the same call again; it was not run"
Talk = Callable[[Inbox], Awaitable[None]]  # reads lines and applies them


class UpdateDisplay:
    """Shows the updates of a view as they come, and remembers what is on the screen.

    It shows the answer as it streams, tools, retries, and trouble with the store.
    """

    def __init__(self, output: Output, display: Display, view: View) -> None:
        self.view = view  # as it was shown last
        self.stuck = asyncio.Event()  # the store cannot be written
        self.broken: errors.StoreBroken | None = None  # the file of the store is damaged
        self.prompts: deque[tuple[str, int]] = deque(maxlen=2)  # the run and step of the last requests
        self.usage: Usage | None = None  # of the last response
        self._output = output
        self._display = display
        self._changed = asyncio.Condition()
        self._shown_run = ""  # the run whose text is all on the screen
        self._shown = ""  # what is on the screen of that run
        self._text = ""  # by the response that streams
        self._last_step = -1  # the step of the last response
        self._failed: dict[str, RunFailed] = {}  # by run, until it is shown
        self._recalled_texts: set[str] = set()  # the texts recalled last

    def begin(self, view: View) -> None:
        """Begin with a view. A run that an earlier process left in its first step does not start again, but streams."""
        self.view = view
        for one in view.runs:
            if one.run.status == "open" and len(one.steps) == 1 and not one.tools:
                self._follow(one.run.id)

    async def run(self, updates: AsyncIterator[ViewUpdate]) -> None:
        """Show updates until they end."""
        async for update in updates:
            self.view = update.view
            if update.event:
                self._handle(update.event)
            async with self._changed:
                self._changed.notify_all()

    async def reach(self, is_reached: Callable[[View], bool]) -> None:
        """Wait until the view has come so far, at most for `MAX_LAG`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_LAG), self._changed:
                await self._changed.wait_for(lambda: is_reached(self.view))

    def unshown(self, delivery: Delivery) -> Reply:
        """Return what was not shown as it streamed: the whole reply, or files, and lines that are links to them."""
        reply = delivery.reply
        if not delivery.streamed or delivery.run_id != self._shown_run or not self._shown:
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

    def _handle(self, event: Event) -> None:
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
            case ToolFinished():
                self._tool(event)
            case FallbackTried():
                self._fallback(event)
            case Waiting():
                self._output.notify(partial(self._display.retry, one_line(event.why, MAX_ERROR), event.seconds))
            case RunFailed():
                self._failed[event.run_id] = event
            case Recalled():
                self._show_recalled(event)
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

    def _tool(self, event: ToolFinished) -> None:
        run = self.view.run(event.run_id)
        tool = run.tool(event.step, event.call) if run else None
        if not run or not tool or not tool.result or not tool.ended_at or not self._output.is_streaming:
            return
        is_again = tool.result.failed and is_repeated(tool, run.tools)
        result = replace(tool.result, value=AGAIN) if is_again else tool.result  # it says more, to the model
        seconds = (tool.ended_at - tool.began_at).total_seconds()
        self._output.show(partial(self._display.piece, result, seconds))

    def _fallback(self, event: FallbackTried) -> None:
        if self._last_step == event.step - 1:  # the reason was shown
            self._note("asked again")
            return
        run = self.view.run(event.run_id)
        why = next((one.tried.why for one in run.steps if one.tried and one.step == event.step), "") if run else ""
        self._note(f"{why}; asked again, differently")

    def _show_recalled(self, event: Recalled) -> None:
        """Show the recalled texts that share a word with the message, and were not shown for the one before."""
        message = self.view.message(event.message_id)
        asked = _gist(message.text if message else "")
        fitting = [text for text in event.texts if _gist(text) & asked]
        fresh = [text for text in fitting if text not in self._recalled_texts]
        self._recalled_texts = set(fitting)
        if fresh:
            self._output.notify(partial(self._display.recollections, fresh))

    def _learned_facts(self, fact_ids: Sequence[str]) -> Callable[[], None] | None:
        """Return what shows the learned facts that are still current; None if there are none."""
        facts = [fact for fact in self.view.facts if fact.id in fact_ids and is_current(fact, datetime.now(UTC))]
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
        updates: UpdateDisplay,
        *,
        talk: Talk,
        files: SavedFiles | None = None,
    ) -> None:
        self.failed = False  # whether a message could not be answered
        self._output = output
        self._display = display
        self._updates = updates
        self._talk = talk
        self._files = files or SavedFiles()

    async def run(self, inbox: Inbox) -> None:
        """Read and apply lines until the person leaves."""
        await self._talk(inbox)

    async def send(self, delivery: Delivery) -> str:
        await self._updates.reach(lambda view: view.delivery(delivery.id) is not None)
        if delivery.kind == "error":
            await self._show_error(delivery)
            return uuid4().hex
        if delivery.kind == "notice" and delivery.run_id is None:
            await self._output.show_above_input(partial(self._display.note, *delivery.reply.text.splitlines()))
            return uuid4().hex
        if delivery.kind == "task" and delivery.id.startswith(PREFIX):
            await self._output.show_above_input(partial(self._display.remind, delivery.reply))
            return uuid4().hex
        reply = self._updates.unshown(delivery)
        if reply.media:
            reply = await asyncio.to_thread(self._files.save_media, reply)
        if reply.text or reply.media:
            await self._output.show_above_input(partial(self._display.reply, reply))
        return uuid4().hex

    async def _show_error(self, delivery: Delivery) -> None:
        self.failed = True
        failure = self._updates.failure_of(delivery)
        error = failure.error if failure else TertuliaError.__name__
        wait = failure.retry_after if failure else None
        display = partial(self._display.error, delivery.reply.text, error=error, retry_after=wait)
        await self._output.show_above_input(display)
