"""The loop of a run: ask the model, persist, run the tools it calls, ask again, fall back, end."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from palaver.agent.calling import failure
from palaver.agent.files import GoneFiles
from palaver.agent.run_context import RunContext
from palaver.agent.saving import savable
from palaver.agent.toolbox import KNOWN, Known, Toolbox
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
from palaver.models.base import Finish, Model, Outcome, Response, TakesMedia
from palaver.parts import Media, Part, Text, ToolCall, ToolResult
from palaver.prompt.media_markers import markers_in
from palaver.run.fallbacks import FALLBACKS, SAME_PROMPT, WITHOUT_HANDLES, Fallbacks, next_prompt
from palaver.run.journal import NEXT_MODEL, Journal, JournalStore, Run, ToolRun, Tried, response_of, run_context
from palaver.run.model_calls import ModelCalls, closing
from palaver.turns import Layer, Prompt, Record, Turn, shown, user

log = logging.getLogger(__name__)

STEPS = 10  # rounds of tools, after which the model is asked once more without them
LONGEST_WHY = 1000  # characters of what went wrong that are persisted
UNKNOWN_OUTCOME = (
    "unknown outcome: {name} was under way when the program stopped. It may have done its work, in part or in whole, "
    "or not at all. It was not run again."
)

_UNUSABLE: frozenset[Outcome] = frozenset({"blocked", "prompt_blocked", "malformed", "empty", "incomplete"})

REPEATED = (
    "{name} was not run: it was called twice before with these arguments and gave the same result both times. "
    "Answer with what you know."
)

DOWN = (ModelUnavailable, QuotaExhausted, KeyMissing, KeyRefused, ModelUnknown, PlaceRefused)  # another may answer

Objection = Callable[[Response], str | None]  # what the model must be told about a response, if anything


class NoAnswer(ResponseUnreadable):
    """A model that was asked in every way we know has said nothing that can be used."""


class Answered(Struct, frozen=True, kw_only=True):
    """The last event of a run that came to its answer."""

    run: Run  # still open, for the caller to end
    response: Response  # the last one
    turns: tuple[Turn, ...]  # all that the model did and said, and the results of its tools
    tried: tuple[Tried, ...] = ()  # what was asked after something went wrong
    markers: frozenset[str] = frozenset()  # what stood for media in what it was asked


class Stopped(Struct, frozen=True, kw_only=True):
    """A step whose calls were not all run: the run is cancelled, or they may be cut; how they are to be answered."""

    results: Turn


# Pieces as they arrive, each response once it is persisted, the results of each step, and last the answer.
Event = Part | Response | Turn | Stopped | Answered


class Join(Protocol):
    async def __call__(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """The run with the messages it takes on before it asks again, and those as turns."""


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
        gone: GoneFiles | None = None,
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
        self._tool_ended = tool_ended
        self._gone = gone or GoneFiles()
        self._context = context or run_context  # what a tool is told
        self._response: Response | None = None  # to the last prompt

    async def answered(self) -> Answered:
        """Run to the end; what happens on the way is not wanted."""
        async with aclosing(self.run()) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event
        raise AssertionError  # a run ends with an answer, or raises

    async def run(self) -> AsyncGenerator[Event, None]:
        """Yield what happens until the model has answered; a tool that was under way is not run again unless it is
        repeatable."""
        self._began, self._before = asyncio.get_running_loop().time(), self.journal.run.seconds
        while True:
            try:
                async with closing(self._ask()) as events:
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
            ended: dict[int, ToolRun] = {}
            try:
                await self._run_tools(calls, ended)
            except asyncio.CancelledError:
                yield Stopped(results=user(*_with_what_is_known(calls, ended)))
                raise
            if calls:
                yield user(*(tool.result for tool in ended.values() if tool.result is not None))
            if len(calls) < len(response.function_calls) or not (calls or await self._objects(response)):
                yield self._answer(response)
                return
            await self._ask_next()

    def _answer(self, response: Response) -> Answered:
        journal = self.journal
        takes = self._model.takes if isinstance(self._model, TakesMedia) else None
        return Answered(
            run=journal.run,
            response=response,
            turns=journal.turns,
            tried=journal.tried,
            markers=markers_in(journal.asked, takes=takes),
        )

    async def _objects(self, response: Response) -> bool:
        """Whether the model must be told about its response, which is in the journal then; it is told once."""
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
        """Persist one more step, in which the model sees what came of its last one."""
        journal = self.journal
        run, joined = await self._join(journal.run) if self._join else (journal.run, ())
        prompt = self._gone.without(after(journal.asked, *journal.last_turns, *joined))
        self.journal = replace(journal, run=run)
        is_last = journal.rounds >= self._steps or any(map(self._is_repeated, journal.tools_of(journal.step)))
        await self._step(without_tools(prompt) if is_last else prompt)

    async def _step(self, prompt: Prompt, tried: Tried | None = None) -> None:
        """Persist one more step, in which *prompt* is about to be sent."""
        journal, step = self.journal, self.journal.step + 1
        run = replace(journal.run, seconds=self._before + asyncio.get_running_loop().time() - self._began)
        await self._store.ask(run, step, prompt, at=self._now(), tried=tried)
        every = (*journal.tried, *([tried] if tried else []))
        self.journal = replace(journal, run=run, prompt=prompt, step=step, tried=every)

    async def _record(self, record: Record) -> None:
        journal = self.journal
        await self._store.keep(journal.run, journal.step, record)
        self.journal = replace(journal, records=(*journal.records, (journal.step, record)))

    async def _ask(self) -> AsyncGenerator[Event, None]:
        """Get a usable response to what was asked last, from the journal or from the model, by fallbacks if needed."""
        while True:
            trouble: PalaverError
            begun = False
            try:
                if (recorded := self.journal.last_record()) is not None:
                    self._response, usable = response_of(recorded), recorded.valid
                else:
                    async with self._waiting(), closing(self._request()) as pieces:
                        async for piece in pieces:
                            begun = True
                            if not isinstance(piece, Response):
                                yield piece
                                continue
                            self._response = response = replace(piece, turn=savable(piece.turn))
                            usable = await self._keep(response)
                    yield response
                if usable:
                    return
                assert self._response is not None  # noqa: S101 (a request gives one, or raises)
                trouble = self._no_answer(self._response)
                if not self._fallbacks and (cut := self._cut_calls(self._response)):
                    yield Stopped(results=user(*map(_not_run, cut)))
            except (RequestRefused, ResponseUnreadable, HandleGone, *DOWN) as error:
                trouble = error
            await self._fall_back(trouble, begun=begun)

    @property
    def _model(self) -> Model:
        """The model that is asked: the first, until another one was tried."""
        named = next((one.model for one in reversed(self.journal.tried) if one.fallback == NEXT_MODEL), None)
        return next((model for model in self._models if model.name == named), self._models[0])

    @property
    def _next_model(self) -> Model | None:
        return next(iter(self._models[self._models.index(self._model) + 1 :]), None)

    def _request(self) -> AsyncGenerator[Part | Response, None]:
        """Ask the model; it is waited for only where no other is left."""
        waits = 0 if self._next_model else None
        return self._calls.request(self._model, self.journal.asked, waits=waits)

    async def _fall_back(self, trouble: PalaverError, *, begun: bool) -> None:
        """Persist a step with what to ask after *trouble*; raise that where nothing is left to try."""
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
        await self._step(prompt, Tried(step=journal.step + 1, fallback=name, why=why, model=model.name))

    async def _keep(self, response: Response) -> bool:
        """Persist a response; whether it is usable."""
        usable = self._is_usable(response)
        run = self.journal.run.id
        await self._record(Record(turn=response.turn, at=self._now(), valid=usable, raw=response.raw, run=run))
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
        """Calls that would be ours to run, if they were not perhaps cut."""
        if response.finish.outcome != "cut" or not response.valid or not self._may_call:
            return []
        return [call for call in response.function_calls if not self._toolbox.leaves(call)]

    @property
    def _may_call(self) -> bool:
        return self.journal.asked.settings.tool_choice != "none"

    def _is_repeated(self, tool: ToolRun) -> bool:
        return not self._toolbox.allows_identical(tool.call) and self.journal.is_repeated(tool)

    def _no_answer(self, response: Response) -> NoAnswer:
        return NoAnswer(f"{self._model.name} gave no answer that can be used{_because(response.finish)}")

    def _to_run(self, response: Response) -> list[tuple[int, ToolCall]]:
        """The calls that are ours to run, with their numbers; none where tools were switched off."""
        if not self._may_call:
            return []
        calls = enumerate(response.function_calls)
        return [(number, call) for number, call in calls if not self._toolbox.leaves(call)]

    async def _run_tools(self, calls: Sequence[tuple[int, ToolCall]], ended: dict[int, ToolRun]) -> None:
        """Run the calls side by side, but for those with a result; all have one in the journal then, and in *ended*."""
        journal = self.journal
        here = {tool.number: tool for tool in journal.tools_of(journal.step)}
        found: dict[int, ToolRun] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for number, call in calls:
                    group.create_task(self._run_tool(number, call, here.get(number), found))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            ended |= {number: found[number] for number, _ in calls if number in found}
        before = tuple(tool for tool in journal.tools if tool.step != journal.step)
        self.journal = replace(journal, tools=(*before, *(here | ended).values()))

    async def _run_tool(self, number: int, call: ToolCall, noted: ToolRun | None, ended: dict[int, ToolRun]) -> None:
        """Put the call with its result in *ended*: the one that is known, an unknown outcome, or that of a run now."""
        if noted is not None and noted.result is not None:
            ended[number] = noted
            return
        if noted is not None and not self._toolbox.repeats(call):
            unknown = failure(call, UNKNOWN_OUTCOME.format(name=call.name))
            ended[number] = await self._end_tool(noted, unknown)
            return
        begun = ToolRun(step=self.journal.step, number=number, call=call, began_at=self._now())
        if self._is_repeated(begun):
            ended[number] = await self._end_tool(begun, failure(call, REPEATED.format(name=call.name)))
            return
        await self._store.begin_tool(self.journal.run, begun)
        known: Known = []
        token = KNOWN.set(known)
        try:
            (result,) = await self._toolbox.run([call], self._context(self.journal.run, begun))
        except asyncio.CancelledError:
            for _, result in known:  # it ended all the same
                ended[number] = await self._end_tool(begun, result)
            raise
        finally:
            KNOWN.reset(token)
        ended[number] = await self._end_tool(begun, result)

    async def _end_tool(self, begun: ToolRun, result: ToolResult) -> ToolRun:
        ended = replace(begun, result=result, ended_at=self._now())
        await self._store.end_tool(self.journal.run, ended)
        if self._tool_ended:
            self._tool_ended(self.journal.run, ended)
        return ended


def without_tools(prompt: Prompt) -> Prompt:
    """The prompt with tools switched off. They stay declared where the service can be told so: its prefix stays."""
    return replace(prompt, settings=replace(prompt.settings, tool_choice="none"))


def after(prompt: Prompt, *turns: Turn) -> Prompt:
    """The prompt with more turns at its end, as a model is shown them."""
    return replace(prompt, layers=(*prompt.layers, Layer(name="run", turns=tuple(map(shown, turns)))))


def _with_what_is_known(calls: Sequence[tuple[int, ToolCall]], ended: dict[int, ToolRun]) -> Iterator[ToolResult]:
    for number, call in calls:
        known = ended[number].result if number in ended else None
        yield known or failure(call, f"{call.name} was stopped before it finished; what it has done is not known.")


def _not_run(call: ToolCall) -> ToolResult:
    return failure(call, f"{call.name} was not run: the limit of tokens was reached, and the call may be cut.")


def _because(finish: Finish) -> str:
    said = " ".join(filter(None, (finish.outcome, finish.reason, finish.message)))
    return "" if finish == Finish(outcome="other") else f": {said}"
