"""The loop of a run: ask the model, persist, run the tools it calls, ask again, fall back, end."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import (
    FileGone,
    HandleGone,
    KeyMissing,
    KeyRefused,
    ModelUnavailable,
    ModelUnknown,
    PalaverError,
    PlaceRefused,
    QuotaExhausted,
    RequestRefused,
    ResponseUnreadable,
)
from palaver.jsonio import jsonable
from palaver.models.base import Finish, Model, Outcome, Response, TakesMedia
from palaver.models.prices import PRICES, Prices
from palaver.parts import Media, Part, Text, ToolCall
from palaver.prompt.media_markers import markers_in
from palaver.run.expired_files import ExpiredFiles
from palaver.run.fallbacks import FALLBACKS, SAME_PROMPT, WITHOUT_HANDLES, Fallbacks, next_prompt
from palaver.run.journal import (
    NEXT_MODEL,
    CallCost,
    FallbackStep,
    Journal,
    JournalStore,
    Run,
    ToolRun,
    call_cost,
    response_of,
    run_context,
)
from palaver.run.model_calls import AttemptFailed, ModelCalls
from palaver.run.tool_runs import EndedToolRuns, ToolRuns, cut_call_result, results_after_cancel
from palaver.toolbox.run_context import RunContext
from palaver.toolbox.toolbox import Toolbox
from palaver.turns import Layer, Prompt, Record, Turn, cut_turn, user

log = logging.getLogger(__name__)

STEPS = 10  # rounds of tools, after which the model is asked once more without them
LONGEST_WHY = 1000  # characters of what went wrong that are persisted

_UNUSABLE: frozenset[Outcome] = frozenset({"blocked", "prompt_blocked", "malformed", "empty", "incomplete"})

DOWN = (ModelUnavailable, QuotaExhausted, KeyMissing, KeyRefused, ModelUnknown, PlaceRefused)  # another may answer

Objection = Callable[[Response], str | None]  # what the model must be told about a response, if anything


class NoAnswer(ResponseUnreadable):
    """A model that was asked in every way we know has said nothing that can be used."""


class RunAnswered(Struct, frozen=True, kw_only=True):
    """The last event of a run that came to its answer."""

    run: Run  # still open, for the caller to end
    response: Response  # the last one
    turns: tuple[Turn, ...]  # all that the model did and said, and the results of its tools
    tried: tuple[FallbackStep, ...] = ()  # what was asked after something went wrong


class ToolsStopped(Struct, frozen=True, kw_only=True):
    """Results for calls that were not run: the run was cancelled, or the calls may be cut."""

    results: Turn


# Pieces as they arrive, each response once it is persisted, the results of each step, and last the answer.
RunEvent = Part | Response | AttemptFailed | Turn | ToolsStopped | RunAnswered


class Join(Protocol):
    async def __call__(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Return the run with the messages that it takes before its next step, and those messages as turns."""


class RunLoop:
    """One run, from where its *journal* ends to its answer. Everything it knows is in the journal.

    After *steps* rounds of tools the model is asked once more, with tools switched off; so it is once it makes a call
    whose arguments and result were the same twice before, which is not run a third time. A response that calls a tool
    which the caller is to answer ends the run.

    An unusable response and a refusal lead to the next of the *fallbacks*; at their end, an unusable response raises
    `NoAnswer`. Without fallbacks every response that is valid is usable, but for calls that may be cut. Where one of
    several *models* is down, out of quota or refuses, the next is asked for the rest of the run; only the last is
    waited for, and only for it all fallbacks are tried. Files that are *gone* are not asked about.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        store: JournalStore,
        models: Sequence[Model],
        toolbox: Toolbox,
        now: Callable[[], datetime],
        steps: int = STEPS,
        fallbacks: Fallbacks = FALLBACKS,
        calls: ModelCalls | None = None,
        waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        join: Join | None = None,
        objection: Objection | None = None,
        tool_ended: Callable[[Run, ToolRun], None] | None = None,
        gone: ExpiredFiles | None = None,
        prices: Prices = PRICES,
        context: Callable[[Run, ToolRun], RunContext] | None = None,
    ) -> None:
        self.journal = journal
        self._store = store
        self._models = models
        self._toolbox = toolbox
        self._now = now
        self._steps = steps
        self._fallbacks = fallbacks
        self._calls = calls or ModelCalls()
        self._waiting = waiting  # entered for as long as a model is waited for
        self._began = self._before = 0.0  # by the clock of the event loop; seconds of earlier processes
        self._join = join
        self._objection = objection
        self._gone = gone or ExpiredFiles()
        self._prices = prices
        self._tools = ToolRuns(store, toolbox, now=now, context=context or run_context, ended=tool_ended)
        self._response: Response | None = None  # to the last prompt

    async def run_to_end(self) -> RunAnswered:
        """Run to the end and return the answer, without the events on the way."""
        async with aclosing(self.run()) as events:
            async for event in events:
                if isinstance(event, RunAnswered):
                    return event
        raise AssertionError  # a run ends with an answer, or raises

    async def run(self) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens until the model has answered; a tool that was under way is not run again unless it is
        repeatable."""
        self._began, self._before = asyncio.get_running_loop().time(), self.journal.run.seconds
        while True:
            try:
                async with aclosing(self._ask()) as events:
                    async for event in events:
                        yield event
            except (RequestRefused, ResponseUnreadable, ModelUnavailable):
                if not self.journal.has_objected:
                    raise
                yield self._answer(self.journal.last_answer())  # what was said before the objection stands
                return
            response = self._response
            assert response is not None  # noqa: S101 (_ask gives one, or raises)
            calls = self._to_run(response)
            ended: EndedToolRuns = {}
            try:
                if calls:
                    self.journal = await self._tools.run(self.journal, calls, ended)
            except asyncio.CancelledError:
                yield ToolsStopped(results=user(*results_after_cancel(calls, ended)))
                raise
            if calls:
                yield user(*(tool.result for tool in ended.values() if tool.result is not None))
            if len(calls) < len(response.function_calls) or not (calls or await self._objects(response)):
                yield self._answer(response)
                return
            await self._ask_next()

    def _answer(self, response: Response) -> RunAnswered:
        journal = self.journal
        return RunAnswered(run=journal.run, response=response, turns=journal.turns, tried=journal.tried)

    def markers(self) -> frozenset[str]:
        """Return the words that stood for media in the last prompt."""
        takes = self._model.takes if isinstance(self._model, TakesMedia) else None
        return markers_in(self.journal.asked, takes=takes)

    async def _objects(self, response: Response) -> bool:
        """Whether the model must be told that its response has bad blocks. That is recorded, and happens once a run."""
        journal = self.journal
        if journal.has_objected:
            step, last = journal.records[-1]
            return last.turn.role == "user" and step == journal.step
        words = self._objection(response) if self._objection else None
        if words is None:
            return False
        await self._record(Record(turn=user(words), at=self._now(), run=journal.run.id))
        return True

    async def _ask_next(self) -> None:
        """Persist the next step: a prompt that shows the model the results of its last response."""
        journal = self.journal
        run: Run = journal.run
        joined: tuple[Turn, ...] = ()
        if self._join:
            async with self._waiting():  # media that joins may have to be described first
                run, joined = await self._join(run)
        prompt = self._gone.without(after(journal.asked, *journal.last_turns, *joined))
        self.journal = replace(journal, run=run)
        is_last = journal.rounds >= self._steps or any(
            self._tools.is_repeated(journal, tool) for tool in journal.tools_of(journal.step)
        )
        await self._step(without_tools(prompt) if is_last else prompt)

    async def _step(self, prompt: Prompt, tried: FallbackStep | None = None) -> None:
        """Persist one more step, in which *prompt* is about to be sent."""
        journal, step = self.journal, self.journal.step + 1
        run = replace(journal.run, seconds=self._before + asyncio.get_running_loop().time() - self._began)
        await self._store.ask(run, step, prompt, at=self._now(), tried=tried)
        every = (*journal.tried, *([tried] if tried else []))
        self.journal = replace(journal, run=run, prompt=prompt, step=step, tried=every)

    async def _record(self, record: Record, spent: CallCost | None = None) -> None:
        journal = self.journal
        await self._store.add_record(journal.run, journal.step, record, spent=spent)
        self.journal = replace(journal, records=(*journal.records, (journal.step, record)))

    async def _ask(self) -> AsyncGenerator[RunEvent, None]:
        """Get a usable response to the last prompt: from the journal, or from the model, by fallbacks if needed."""
        while True:
            trouble: PalaverError
            begun = False
            try:
                if (recorded := self.journal.last_record()) is not None:
                    self._response, usable = response_of(recorded), recorded.valid
                else:
                    async with self._waiting(), aclosing(self._request()) as pieces:
                        async for piece in pieces:
                            begun = True
                            if not isinstance(piece, Response):
                                yield piece
                                continue
                            self._response = response = replace(piece, turn=jsonable(piece.turn))
                            usable = await self._keep(response)
                    yield response
                if usable:
                    return
                assert self._response is not None  # noqa: S101 (a request gives one, or raises)
                trouble = self._no_answer(self._response)
                if not self._fallbacks and (cut := self._cut_calls(self._response)):
                    yield ToolsStopped(results=user(*map(cut_call_result, cut)))
            except (RequestRefused, ResponseUnreadable, HandleGone, *DOWN) as error:
                trouble = error
            await self._fall_back(trouble, begun=begun)
            if begun:
                yield AttemptFailed()

    @property
    def _model(self) -> Model:
        """The model that is asked: the first, until another one was tried."""
        named = next((one.model for one in reversed(self.journal.tried) if one.fallback == NEXT_MODEL), None)
        return next((model for model in self._models if model.name == named), self._models[0])

    @property
    def _next_model(self) -> Model | None:
        return next(iter(self._models[self._models.index(self._model) + 1 :]), None)

    def _request(self) -> AsyncGenerator[Part | Response | AttemptFailed, None]:
        """Ask the model; it is waited for only where no other is left."""
        retries = 0 if self._next_model else None
        return self._calls.request(self._model, self.journal.asked, retries=retries)

    async def _fall_back(self, trouble: PalaverError, *, begun: bool) -> None:
        """Persist a step with the next fallback after *trouble*; raise *trouble* where none is left."""
        journal, following = self.journal, self._next_model
        found: tuple[str, Prompt] | None
        if isinstance(trouble, FileGone) and not begun and self._gone.note(trouble, journal.asked):
            found = WITHOUT_HANDLES, self._gone.without(journal.asked)
        else:
            helping = [] if isinstance(trouble, DOWN) else self._fallbacks
            helping = [one for one in helping if not following or one[0] in SAME_PROMPT]
            found = next_prompt(journal.asked, trouble, journal.tried_since_answer, helping)
        if found is None and following:
            found = NEXT_MODEL, replace(journal.asked, cached=None)
        if found is None:
            raise trouble
        name, prompt = found
        log.warning("run %s, %s: %s", journal.run.id, name, trouble)
        model = following if following and name == NEXT_MODEL else self._model
        why = str(trouble)[:LONGEST_WHY]
        await self._step(prompt, FallbackStep(step=journal.step + 1, fallback=name, why=why, model=model.name))

    async def _keep(self, response: Response) -> bool:
        """Persist a response; whether it is usable."""
        usable = self._is_usable(response)
        run, name = self.journal.run.id, self._model.name
        record = Record(turn=response.turn, at=self._now(), valid=usable, raw=response.raw, run=run)
        await self._record(record, call_cost(name, response.usage, self._prices))
        return usable

    def _is_usable(self, response: Response) -> bool:
        """Whether it says something, or calls tools that may run; calls may be cut where the tokens ended."""
        if not response.valid:
            return False
        if not self._fallbacks:
            return not self._cut_calls(response)
        if response.finish.outcome in _UNUSABLE:
            return False
        if response.function_calls and self._may_call:
            return response.finish.outcome != "cut"
        return any(isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in response.parts)

    def _cut_calls(self, response: Response) -> list[ToolCall]:
        """Return the calls that we would run, but that may be cut because the tokens ended."""
        if response.finish.outcome != "cut" or not response.valid or not self._may_call:
            return []
        return [call for call in response.function_calls if not self._toolbox.is_for_caller(call)]

    @property
    def _may_call(self) -> bool:
        return self.journal.asked.settings.tool_choice != "none"

    def _no_answer(self, response: Response) -> NoAnswer:
        return NoAnswer(f"{self._model.name} gave no answer that can be used{_because(response.finish)}")

    def _to_run(self, response: Response) -> list[tuple[int, ToolCall]]:
        """The calls that are ours to run, with their numbers; none where tools were switched off."""
        if not self._may_call:
            return []
        calls = enumerate(response.function_calls)
        return [(number, call) for number, call in calls if not self._toolbox.is_for_caller(call)]


def without_tools(prompt: Prompt) -> Prompt:
    """The prompt with tools switched off. They stay declared where the service can be told so: its prefix stays."""
    return replace(prompt, settings=replace(prompt.settings, tool_choice="none"))


def after(prompt: Prompt, *turns: Turn) -> Prompt:
    """The prompt with more turns at its end, as a model is shown them."""
    return replace(prompt, layers=(*prompt.layers, Layer(name="run", turns=tuple(map(cut_turn, turns)))))


def _because(finish: Finish) -> str:
    said = " ".join(filter(None, (finish.outcome, finish.reason, finish.message)))
    return "" if finish == Finish(outcome="other") else f": {said}"
