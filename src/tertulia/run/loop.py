"""The loop of a run: ask the model, persist the response, run the tools it calls, ask again; fall back when it fails.

**Resuming.** All state of a run is its journal, and each change of it is persisted before anything follows from it: the
prompt before it is sent, the response before its tools run, each tool when it begins and when it ends. So the loop
begins the same way for a new run and for one that a crash interrupted. It looks at the last step of the journal: a
response that is recorded is not asked for again; a tool with a result is not run again; a tool that began without a
result has an unknown outcome, and runs again only if it is repeatable.

**Fallbacks.** A response that cannot be used, or a refusal, leads to one more step with another prompt or another
model. The fallbacks of `run/fallbacks.py` are tried in order, each at most as often as it is listed, until a usable
response comes; then all may be tried again. What was tried is in the journal, so a resumed run goes on with the next.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import (
    FileGone,
    HandleGone,
    KeyMissing,
    KeyRefused,
    ModelUnavailable,
    ModelUnknown,
    PlaceRefused,
    QuotaExhausted,
    RequestRefused,
    ResponseUnreadable,
    TertuliaError,
    reason_of,
)
from tertulia.media.sent_media import sent_media
from tertulia.models.base import Finish, Model, Outcome, Response, TakesMedia
from tertulia.models.calls import Call, priced
from tertulia.models.prices import PRICES, Prices
from tertulia.parts import Media, Part, Text, ToolCall
from tertulia.prompt.echoes import echoes_in
from tertulia.prompt.media_markers import markers_in
from tertulia.run.fallbacks import (
    FALLBACKS,
    SAME_PROMPT,
    UPLOAD_AGAIN,
    WITHOUT_FILE,
    WITHOUT_HANDLES,
    Fallbacks,
    may_be_one_file,
    next_prompt,
)
from tertulia.run.journal import (
    NEXT_MODEL,
    FallbackStep,
    Journal,
    JournalStore,
    Run,
    ToolRun,
    response_of,
)
from tertulia.run.model_calls import LONGEST_WHY, AttemptFailed, ModelCalls, RetryWaits, received_turn
from tertulia.run.run_host import RunHost
from tertulia.run.tool_runs import ToolRuns, cut_call_result, results_after_cancel
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Layer, Prompt, Record, Settings, Turn, cut_turn, user

log = logging.getLogger(__name__)

STEPS = 10  # rounds of tools, after which the model is asked once more without them

_UNUSABLE: frozenset[Outcome] = frozenset({"blocked", "prompt_blocked", "malformed", "empty", "incomplete"})

# Errors after which another model may answer.
MODEL_DOWN = (ModelUnavailable, QuotaExhausted, KeyMissing, KeyRefused, ModelUnknown, PlaceRefused)


class NoAnswer(ResponseUnreadable):
    """No response could be used, after all fallbacks."""


class RunAnswered(Struct, frozen=True, kw_only=True):
    """The last event of a run that has an answer."""

    run: Run  # still open, for the caller to end
    response: Response  # the last one
    turns: tuple[Turn, ...]  # of the model, and the results of its tools
    tried: tuple[FallbackStep, ...] = ()  # in order


class ToolsStopped(Struct, frozen=True, kw_only=True):
    """Results of calls that did not run to their end: the run was cancelled, or the calls may be cut."""

    results: Turn


# Pieces as they arrive, each response once it is persisted, each tool when it has ended, the results of each step, and
# the answer at the end.
RunEvent = Part | Response | AttemptFailed | RetryWaits | ToolRun | Turn | ToolsStopped | RunAnswered


class RunOptions(Struct, frozen=True, kw_only=True):
    steps: int = STEPS
    fallbacks: Fallbacks = FALLBACKS
    prices: Prices = PRICES


class RunLoop:
    """Runs one run from the end of its *journal* to its answer. What it cannot know itself it asks its *host*.

    After `steps` rounds of tools the model is asked once more with tools switched off. The same happens after a call
    whose arguments and result were the same twice before; it is not run a third time. A response that calls a tool
    which the caller is to answer ends the run. `tool_choice="any"` holds for the first round; then it is `"auto"`.

    An unusable response and a refusal lead to the next of the `fallbacks`. After the last one an unusable response
    raises `NoAnswer`. Without fallbacks every valid response is usable, except for calls that may be cut. If one of
    several *models* is down, out of quota or refuses, the next one is asked for the rest of the run. Only the last
    model is retried with waits, and gets all fallbacks. A file that the service lost is uploaded again.
    """

    def __init__(
        self,
        journal: Journal,
        host: RunHost,
        *,
        store: JournalStore,
        models: Sequence[Model],
        toolbox: Toolbox,
        calls: ModelCalls,
        options: RunOptions | None = None,
    ) -> None:
        self.journal = journal
        self._host = host
        self._store = store
        self._models = models
        self._toolbox = toolbox
        self._calls = calls
        self._options = options or RunOptions()
        self._now = calls.now
        self._tools = ToolRuns(store, toolbox, host, now=calls.now)
        self._began = self._before = 0.0  # when it began, by the loop's clock; seconds in earlier processes
        self._sent: Prompt | None = None  # the last prompt with its media
        self._response: Response | None = None  # to the last prompt
        self._call: Call | None = None  # of which it is the response

    async def run_to_end(self) -> RunAnswered:
        """Run to the end and return the answer, without the other events; retries are logged."""
        async with aclosing(self.run()) as events:
            async for event in events:
                if isinstance(event, RunAnswered):
                    return event
                if isinstance(event, RetryWaits):
                    log.info("%s; retried in %g s", event.error, event.seconds)
        raise AssertionError  # a run ends with an answer, or raises

    async def run(self) -> AsyncGenerator[RunEvent, None]:
        """Yield the events of the run until the model has answered."""
        self._began, self._before = asyncio.get_running_loop().time(), self.journal.run.seconds
        await self._change_model()
        while True:
            try:
                async with aclosing(self._ask()) as events:
                    async for event in events:
                        yield event
            except (RequestRefused, ResponseUnreadable, ModelUnavailable):
                if not self.journal.was_corrected:
                    raise
                yield self._answer(self.journal.last_answer())  # the answer before the correction stands
                return
            response = self._response
            assert response is not None  # noqa: S101 (_ask gives one, or raises)
            calls = self._runnable_calls(response)
            try:
                async with aclosing(self._tools.run(self.journal, calls)) as tools:
                    async for tool in tools:
                        self.journal = self.journal.with_tool(tool)
                        yield tool
            except asyncio.CancelledError:
                yield ToolsStopped(results=user(*results_after_cancel(self.journal, calls)))
                raise
            if calls:
                yield user(*self.journal.results_of(self.journal.step))
            if len(calls) < len(response.function_calls) or not (calls or await self._correct(response)):
                yield self._answer(response)
                return
            await self._ask_next()

    def _answer(self, response: Response) -> RunAnswered:
        journal = self.journal
        return RunAnswered(run=self.worked_run, response=response, turns=journal.turns, tried=journal.tried)

    @property
    def worked_run(self) -> Run:
        """The run with the seconds of work until now."""
        seconds = self._before + asyncio.get_running_loop().time() - self._began
        return replace(self.journal.run, seconds=seconds)

    def markers(self) -> frozenset[str]:
        """Return what stood in the last prompt and is for the model alone: words for media, and our own texts."""
        takes = self._model.takes if isinstance(self._model, TakesMedia) else None
        prompt = self._sent or self.journal.last_prompt
        return markers_in(prompt, takes=takes) | echoes_in(prompt)

    async def _correct(self, response: Response) -> bool:
        """Record a correction of a bad response, once a run; return whether the model must be asked again."""
        journal = self.journal
        if journal.was_corrected:
            step, last = journal.records[-1]
            return last.turn.role == "user" and step == journal.step
        text = await self._host.correction(response)
        if text is None:
            return False
        await self._record(Record(turn=user(text), at=self._now(), run=journal.run.id))
        return True

    async def _ask_next(self) -> None:
        """Persist the next step: the prompt with the last response and its results."""
        journal = self.journal
        run, joined = await self._host.join(journal.run)
        prompt = append_turns(journal.last_prompt, *journal.last_turns, *joined)
        prompt = self._host.expired_files.without(prompt)
        prompt = replace(prompt, settings=optional_tools(prompt.settings))
        self.journal = replace(journal, run=run)
        is_last = journal.rounds >= self._options.steps or any(
            self._tools.is_last(journal, tool) for tool in journal.tools_of(journal.step)
        )
        await self._begin_step(without_tools(prompt) if is_last else prompt)

    async def _begin_step(self, prompt: Prompt, tried: FallbackStep | None = None) -> None:
        """Persist a new step before its prompt is sent."""
        prompt = await self._host.refresh(prompt)
        journal, step = self.journal, self.journal.step + 1
        run = replace(self.worked_run, model=tried.model if tried else self._model.name)
        await self._store.ask(run, step, prompt, at=self._now(), tried=tried)
        all_tried = (*journal.tried, *([tried] if tried else []))
        self.journal = replace(journal, run=run, prompt=prompt, step=step, tried=all_tried)

    async def _record(self, record: Record, call: Call | None = None) -> None:
        journal = self.journal
        await self._store.add_record(journal.run, journal.step, record, call=call)
        self.journal = replace(journal, records=(*journal.records, (journal.step, record)))

    async def _ask(self) -> AsyncGenerator[RunEvent, None]:
        """Get a usable response to the last prompt: from the journal, or from the model, with fallbacks if needed."""
        while True:
            trouble: TertuliaError
            has_begun = False  # pieces were yielded
            try:
                if (record := self.journal.last_record()) is not None:
                    response, usable = response_of(record), record.valid
                else:
                    async with self._host.waiting(), aclosing(self._request()) as pieces:
                        async for piece in pieces:
                            has_begun = has_begun or not isinstance(piece, RetryWaits)
                            if not isinstance(piece, Response):
                                yield piece
                                continue
                            response = replace(piece, turn=received_turn(piece.turn))
                            usable = await self._record_response(response)
                    yield response
                self._response = response
                if usable:
                    return
                trouble = NoAnswer(f"{self._model.name} gave no answer that can be used{_reason(response.finish)}")
                if not self._options.fallbacks and (cut := self._cut_calls(response)):
                    yield ToolsStopped(results=user(*map(cut_call_result, cut)))
            except (RequestRefused, ResponseUnreadable, HandleGone, *MODEL_DOWN) as error:
                trouble = error
            await self._fall_back(trouble, has_begun=has_begun)
            if has_begun:
                yield AttemptFailed()

    async def _request(self) -> AsyncGenerator[Part | Response | AttemptFailed | RetryWaits, None]:
        """Send the last prompt with its media."""
        model, prompt = self._model, self.journal.last_prompt
        self._sent = sent = await self._host.attachments.attach(prompt, model)
        retries = 0 if self._next_model else None  # only the last model is waited for
        async with aclosing(self._calls.request(model, sent, retries=retries)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Call):
                    if self._calls.noting:
                        await self._end_call(piece, sent)
                    continue
                if isinstance(piece, Response):
                    self._host.attachments.accept(prompt, sent, model)
                yield piece

    @property
    def _model(self) -> Model:
        """The model that is asked: the first, or the last that a fallback switched to."""
        name = next((one.model for one in reversed(self.journal.tried) if one.fallback == NEXT_MODEL), None)
        return next((model for model in self._models if model.name == name), self._models[0])

    @property
    def _next_model(self) -> Model | None:
        return next(iter(self._models[self._models.index(self._model) + 1 :]), None)

    async def _fall_back(self, trouble: TertuliaError, *, has_begun: bool) -> None:
        """Begin a step with the next fallback after *trouble*; raise *trouble* if none is left."""
        host, model, next_model, prompt = self._host, self._model, self._next_model, self.journal.last_prompt
        found: tuple[str, Prompt] | None
        gone = trouble if isinstance(trouble, FileGone) and not has_begun else None
        if gone and await host.attachments.renew(gone, self._sent or prompt, model):
            found = UPLOAD_AGAIN, prompt
        elif gone and host.expired_files.add(gone, prompt):
            found = WITHOUT_HANDLES, host.expired_files.without(prompt)
        else:
            fallbacks = [] if isinstance(trouble, MODEL_DOWN) else self._options.fallbacks
            fallbacks = [one for one in fallbacks if not next_model or one[0] in SAME_PROMPT]
            found = next_prompt(prompt, trouble, self.journal.tried_since_answer, fallbacks)
            if found and may_be_one_file(found[0], trouble) and self._leave_out(trouble):
                found = WITHOUT_FILE, prompt
        if found is None and next_model:
            found = NEXT_MODEL, replace(prompt, cached=None)
        if found is None:
            raise trouble
        model = next_model if next_model and found[0] == NEXT_MODEL else model
        await self._begin_fallback(*found, why=reason_of(trouble), model=model)

    async def _begin_fallback(self, name: str, prompt: Prompt, *, why: str, model: Model) -> None:
        journal = self.journal
        about = {"place": journal.run.place, "run_id": journal.run.id}
        log.warning("fallback %r is tried: %s", name, why, extra=about)
        tried = FallbackStep(step=journal.step + 1, fallback=name, why=why[:LONGEST_WHY], model=model.name)
        await self._begin_step(prompt, tried)

    async def _change_model(self) -> None:
        """Begin another step if the last one is not answered yet and another model is asked now: the run is resumed
        by a process with other models.
        """
        journal, model = self.journal, self._model
        if journal.run.model in ("", model.name) or journal.last_record() is not None:
            return
        why = f"the run was begun with {journal.run.model}, and is resumed with {model.name}"
        await self._begin_fallback(NEXT_MODEL, replace(journal.last_prompt, cached=None), why=why, model=model)

    def _leave_out(self, trouble: TertuliaError) -> bool:
        """Return whether the same prompt is to be sent with words for media that may have been refused."""
        if self._sent is None or not isinstance(trouble, RequestRefused):
            return False
        prompt, attempt = self.journal.last_prompt, self.journal.tried_since_answer.count(WITHOUT_FILE)
        return self._host.attachments.leave_out(trouble, prompt, self._sent, self._model, attempt=attempt)

    async def _record_response(self, response: Response) -> bool:
        """Persist a response; return whether it is usable."""
        usable = self._is_usable(response)
        record = Record(turn=response.turn, at=self._now(), valid=usable, raw=response.raw, run=self.journal.run.id)
        await self._record(record, self._call)
        return usable

    async def _end_call(self, call: Call, sent: Prompt) -> None:
        """Persist a call without a response; any other goes with its record."""
        run = self.journal.run
        call = replace(call, run=run.id, step=self.journal.step, media=sent_media(sent))
        call = priced(call, self._options.prices)
        self._call = call if call.status == "answered" else None
        try:
            if self._call is None:
                await self._store.add_call(run, call)
        except TertuliaError:
            if call.status != "stopped":
                raise

    def _is_usable(self, response: Response) -> bool:
        """Return whether it has text or media, or calls that may run. Calls may be cut where the token limit was
        reached.
        """
        if not response.valid:
            return False
        if not self._options.fallbacks:
            return not self._cut_calls(response)
        if response.finish.outcome in _UNUSABLE:
            return False
        if response.function_calls and self._may_call:
            return response.finish.outcome != "cut"
        return any(isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in response.parts)

    def _cut_calls(self, response: Response) -> list[ToolCall]:
        """Return the calls of ours that are not run because the token limit was reached and they may be cut."""
        if response.finish.outcome != "cut" or not response.valid:
            return []
        return [call for _, call in self._runnable_calls(response)]

    @property
    def _may_call(self) -> bool:
        return self.journal.last_prompt.settings.tool_choice != "none"

    def _runnable_calls(self, response: Response) -> list[tuple[int, ToolCall]]:
        """Return the calls that we run, with their numbers; none if tools were switched off."""
        if not self._may_call:
            return []
        calls = enumerate(response.function_calls)
        return [(number, call) for number, call in calls if not self._toolbox.is_for_caller(call)]


def without_tools(prompt: Prompt) -> Prompt:
    """Return the prompt with tools switched off. They stay declared, so that the prefix of the request stays."""
    return replace(prompt, settings=replace(prompt.settings, tool_choice="none"))


def optional_tools(settings: Settings) -> Settings:
    """Return the settings after a round of tools: none must be called again."""
    return replace(settings, tool_choice="auto") if settings.tool_choice == "any" else settings


def append_turns(prompt: Prompt, *turns: Turn) -> Prompt:
    """Return the prompt with more turns at its end, long texts cut."""
    return replace(prompt, layers=(*prompt.layers, Layer(name="run", turns=tuple(map(cut_turn, turns)))))


def _reason(finish: Finish) -> str:
    text = " ".join(filter(None, (finish.outcome, finish.reason, finish.message)))
    return "" if finish == Finish(outcome="other") else f": {text}"
