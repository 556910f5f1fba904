"""Run executor: runs the loop of a run within its timeout, publishes its events, and returns its output.

Live text is the part of streaming responses that may be shown, without our markup.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tertulia.engine.answer_preview import AnswerPreview, AnswerPreviews
from tertulia.engine.background import Slot, foreign_code
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.run_completion import Answer, RunCompletion
from tertulia.engine.shared import Shared
from tertulia.engine.speaker import Speaker
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import InvalidValue, RunTimedOut, reason_of
from tertulia.events import Delta, ResponseReceived, Waiting
from tertulia.media.amounts import MediaAmount
from tertulia.media.attachments import Attachments
from tertulia.messages import Message
from tertulia.models.base import Model, Response
from tertulia.parts import Part, Text, ToolResult
from tertulia.prompt.echoes import MAY_ECHO
from tertulia.prompt.escape import markup
from tertulia.run.cleaner import Cleaner
from tertulia.run.dynamic_layer import DynamicLayer
from tertulia.run.fallbacks import ExpiredFiles
from tertulia.run.journal import Journal, Run, ToolRun
from tertulia.run.loop import RunAnswered, RunLoop, RunOptions, ToolsStopped
from tertulia.run.model_calls import AttemptFailed, ModelCalls, RetryWaits
from tertulia.run.outcome import Kinds, ParsedTexts
from tertulia.run.run_host import RunHost
from tertulia.tasks.blocks import is_fence_of_blocks, may_be_outer_fence
from tertulia.tasks.kinds import KINDS, Kind
from tertulia.toolbox.run_context import RunContext
from tertulia.turns import Prompt, Turn

log = logging.getLogger(__name__)


class Joins(Protocol):
    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Return the run with the messages that it takes in before its next step, and those messages as turns."""
        ...


class Begun(Struct, frozen=True, eq=False):
    """A run whose journal is stored, and what it is executed with."""

    journal: Journal
    target: Message
    dynamic: DynamicLayer | None  # rebuilds the volatile state of its prompts


def as_models(given: Model | Sequence[Model]) -> tuple[Model, ...]:
    models = tuple(given) if isinstance(given, Sequence) else (given,)
    if not models or not all(hasattr(one, "respond") for one in models):
        raise InvalidValue(f"models must be a model or a list of models, not {given!r}")
    if len({one.name for one in models}) < len(models):
        raise InvalidValue("two models of the engine have the same name")
    return models


def live_events(run: Run, piece: Part | Response | AttemptFailed, text: str) -> Iterator[Delta | ResponseReceived]:
    """Return the events of a piece of an answer; *text* is what it adds to the visible text."""
    if text:
        yield Delta(place=run.place, run_id=run.id, part=Text(text=text))
    match piece:
        case Response():
            yield ResponseReceived(place=run.place, run_id=run.id, response=piece)
        case Text() | AttemptFailed():
            pass
        case _:
            yield Delta(place=run.place, run_id=run.id, part=piece)


class LiveText:
    """One response. Task blocks in a fence are not shown: they become replies."""

    def __init__(
        self, delimiter: str, *, kinds: Mapping[str, Kind] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self.shown = ""
        self._kinds = kinds
        self._cleaner = Cleaner(delimiter=delimiter, kinds=kinds, markers=markers)
        self._held: str | None = ""  # the start, until it is known whether a fence of blocks begins there
        self._in_fence: str | None = None  # the cleaned text, if one begins
        self._raw: list[str] = []  # the text as it came: by it the replies are found, also those in a fence
        self._blank = ""  # at the end; shown when text follows

    def feed(self, text: str) -> str:
        """Return what may be shown now."""
        self._raw.append(text)
        return self._show(self._cleaner.feed(text))

    def finish(self) -> str:
        """Return what was held back: the text has ended."""
        return self._show(self._cleaner.finish(), ended=True)

    def _show(self, text: str, *, ended: bool = False) -> str:
        if self._held is not None:
            self._held += text
            is_fence = may_be_outer_fence(f"{self._held}\n" if ended else self._held, self._kinds)
            if is_fence is None and not ended:
                return ""
            text, self._held = self._held, None
            self._in_fence = "" if is_fence else None
        if self._in_fence is None:
            return self._hold_blank_end(text)
        self._in_fence += text
        if not ended:
            return ""
        return "" if is_fence_of_blocks("".join(self._raw), self._kinds) else self._hold_blank_end(self._in_fence)

    def _hold_blank_end(self, text: str) -> str:
        text = self._blank + text
        shown = text.rstrip()
        self._blank = text[len(shown) :]
        self.shown += shown
        return shown


class LiveTexts:
    """The texts of all responses of a run. *begin* returns a new `LiveText` for each."""

    def __init__(self, begin: Callable[[], LiveText]) -> None:
        self._begin = begin
        self._ended: list[str] = []
        self._is_response_last = False  # the last piece was a response
        self._live: LiveText | None = None

    @property
    def text(self) -> str:
        """The shown text of each usable response, and of the one that streams in."""
        texts = [*self._ended, self._live.shown if self._live else ""]
        return "\n\n".join(text for text in texts if text.strip())

    def feed(self, piece: Part | Response | AttemptFailed) -> str:
        """Add a piece; return what may be shown now."""
        if isinstance(piece, AttemptFailed):
            if self._is_response_last:
                self._ended.pop()  # it was not usable
            self._live, self._is_response_last = None, False
            return ""
        live = self._live = self._live or self._begin()
        self._is_response_last = isinstance(piece, Response)
        if not isinstance(piece, Response):
            return live.feed(piece.text) if isinstance(piece, Text) else ""
        rest = live.finish()
        self._ended.append(live.shown)
        self._live = None
        return rest


class RunExecutor:
    """Executes the runs of all places."""

    def __init__(
        self,
        shared: Shared,
        completion: RunCompletion,
        previews: AnswerPreviews,
        tasks: TaskWorker,
        *,
        kinds: Kinds,
        attachments: Attachments,
        media: ContextMedia,
        media_limits: MediaAmount,
    ) -> None:
        self.expired_files = ExpiredFiles()
        self.retries: dict[str, datetime] = {}  # when each model that failed is or was asked again
        self.completion = completion
        self.kinds = kinds
        self.media = media
        self._shared = shared
        self.identity = shared.identity
        self._limits = shared.limits
        self._events = shared.events
        self._now = shared.now
        self._previews = previews
        self._tasks = tasks
        self._attachments = attachments
        self._media_limits = media_limits  # of one request

    async def execute(self, begun: Begun, speaker: Speaker, slot: Slot, *, joins: Joins | None = None) -> Answer:
        """Run from the end of the journal to the model's answer; return the run, its output and its target.

        The *slot* is released during model calls. *joins* takes new messages into the run.
        """
        journal, target, shared = begun.journal, begun.target, self._shared
        place, delimiter = journal.run.place, await shared.delimiters.get(journal.run.place)
        is_watched = self._events.has_readers or self._previews.is_visible(place)
        attachments = self._attachments.for_run(partial(markup, delimiter=delimiter), limits=self._media_limits)
        host = _EngineHost(self, begun, slot, attachments, joins)
        loop = RunLoop(
            journal,
            host,
            store=shared.store.runs,
            models=speaker.models,
            toolbox=speaker.toolbox,
            calls=ModelCalls(
                streaming=is_watched, timeout=self._limits.value.call_timeout, sleep=shared.sleep, now=self._now
            ),
            options=RunOptions(prices=shared.behavior.prices),
        )
        live = LiveTexts(lambda: LiveText(delimiter, kinds=self.kinds, markers=loop.markers())) if is_watched else None
        async with self._previews.show(journal.run, target) as preview:
            with foreign_code(speaker.models[0].name):
                answer = await self._run_within_timeout(loop, live, preview)
        written = (part.text for turn in answer.turns for part in turn.parts if isinstance(part, Text))
        markers = loop.markers() if any(map(MAY_ECHO.search, written)) else frozenset()
        return answer.run, await self.completion.make_output(answer, target, host.texts, markers=markers), target

    async def _run_within_timeout(
        self, loop: RunLoop, live: LiveTexts | None, preview: AnswerPreview | None
    ) -> RunAnswered:
        limit = asyncio.timeout(self._limits.value.run_timeout - loop.journal.run.seconds)
        try:
            async with limit:
                return await self._run_loop(loop, live, preview)
        except TimeoutError:
            if not limit.expired():
                raise
        raise RunTimedOut(f"the run took longer than {self._limits.value.run_timeout:g} seconds")

    async def _run_loop(self, loop: RunLoop, live: LiveTexts | None, preview: AnswerPreview | None) -> RunAnswered:
        """Return the answer of a run; publish its other events. *live* is what somebody sees of its texts."""
        run = loop.journal.run
        try:
            async with aclosing(loop.run()) as events:
                async for event in events:
                    match event:
                        case RunAnswered():
                            return event
                        case ToolRun():
                            self._end_tool(run, event)
                        case RetryWaits():
                            self._publish_retry(run, event)
                        case Turn() | ToolsStopped():
                            pass
                        case _ if live:
                            self._publish_piece(run, event, live, preview)
        finally:
            self._events.discard(run.id)
        raise AssertionError  # the loop ends with an answer, or raises

    def _publish_piece(
        self, run: Run, piece: Part | Response | AttemptFailed, live: LiveTexts, preview: AnswerPreview | None
    ) -> None:
        text = live.feed(piece)
        for seen in live_events(run, piece, text):
            self._events.publish(seen)
        if isinstance(piece, AttemptFailed):
            self._events.discard(run.id)
        if text and preview:
            preview.show(live.text)

    def _end_tool(self, run: Run, tool: ToolRun) -> None:
        self._tasks.wake()  # a tool may have added a task
        result, took = tool.result, (tool.ended_at or self._now()) - tool.began_at
        how = f"failed: {result.value!s:.200}" if result and result.failed else "done"
        about = {"place": run.place, "run_id": run.id}
        log.info("tool %s, %d ms, %s", tool.call.name, took / timedelta(milliseconds=1), how, extra=about)

    def _publish_retry(self, run: Run, retry: RetryWaits) -> None:
        self.retries[retry.model] = self._now() + timedelta(seconds=retry.seconds)
        if not self._events.has_readers:
            about = {"place": run.place, "run_id": run.id}
            log.info("%s; retried in %g s", retry.error, retry.seconds, extra=about)
        why = reason_of(retry.error)
        self._events.publish(Waiting(place=run.place, run_id=run.id, seconds=retry.seconds, why=why))


class _EngineHost(RunHost):
    """What the loop of a run asks of the engine."""

    def __init__(
        self, executor: RunExecutor, begun: Begun, slot: Slot, attachments: Attachments, joins: Joins | None
    ) -> None:
        super().__init__(attachments=attachments, expired_files=executor.expired_files)
        self.texts = ParsedTexts(executor.kinds)
        self._executor = executor
        self._begun = begun
        self._target = begun.target
        self._slot = slot
        self._joins = joins

    def waiting(self) -> AbstractAsyncContextManager[None]:
        return self._slot.release()

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        if self._joins is None:
            return run, ()
        async with self._slot.release():  # media in messages that join may have to be described first
            return await self._joins.join(run)

    async def refresh(self, prompt: Prompt) -> Prompt:
        dynamic = self._begun.dynamic
        return await dynamic.refresh(prompt) if dynamic else prompt

    async def correction(self, response: Response) -> str | None:
        return await self._executor.completion.correction(self.texts, self._begun.journal.run, response)

    def tool_context(self, run: Run, tool: ToolRun) -> RunContext:
        target, context = self._target, super().tool_context(run, tool)
        seen_by = self._executor.identity.seen_by(run.agent)
        context = replace(context, agent=run.agent, seen_by=seen_by)
        return replace(context, place=run.place, author=target.author, message=target, batch=run.taken)

    async def store_media(self, run: Run, result: ToolResult) -> ToolResult:
        return await self._executor.media.add_files_to_result(run, result)
