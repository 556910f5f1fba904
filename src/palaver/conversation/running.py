"""A run that survives the end of its process: what is asked, said and done is kept before anything follows from it."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from palaver.agent.calling import failure
from palaver.agent.files import GoneFiles
from palaver.agent.loop import STEPS, after, closing
from palaver.agent.run_context import RunContext
from palaver.agent.saving import savable
from palaver.agent.toolbox import KNOWN, Known, Toolbox
from palaver.conversation.crew import Sleep, foreign
from palaver.conversation.journal import Journal, Run, Runs, ToolRun
from palaver.conversation.ladder import WITHOUT_HANDLES, climb, marked, rungs
from palaver.errors import (
    FileGone,
    HandleGone,
    InvalidValue,
    ModelUnavailable,
    PalaverError,
    RequestRefused,
    ResponseUnreadable,
    seconds_to_wait,
)
from palaver.messages import Message
from palaver.models.base import Finish, Model, Outcome, Response
from palaver.parts import Media, Part, Text, ToolCall, ToolResult
from palaver.prompt.media_markers import markers_in
from palaver.tasks.policy import Policy, sends
from palaver.turns import Prompt, Record, Turn, user

log = logging.getLogger(__name__)


WAITS = 4  # times that one request is tried again after waiting
LONGEST = 60.0  # seconds that are waited at most; who asks for more is not waited for
UNKNOWN_OUTCOME = (
    "unknown outcome: {name} was under way when the program stopped. It may have done its work, in part or in whole, "
    "or not at all. It was not run again."
)

_UNUSABLE: frozenset[Outcome] = frozenset({"blocked", "prompt_blocked", "malformed", "empty", "incomplete"})


class NoAnswer(ResponseUnreadable):
    """A model that was asked in every way we know has said nothing that can be used."""


class Answered(Struct, frozen=True, kw_only=True):
    """A run that came to its answer."""

    run: Run  # with the rungs that were climbed; still open, for the engine to end
    response: Response  # the last one
    turns: tuple[Turn, ...]  # all that the model did and said, and the results of its tools
    markers: frozenset[str] = frozenset()  # what stood for media in what it was asked


class Watch(Protocol):
    def __call__(self, run: Run, piece: Part | Response) -> None:
        """See a piece of what a model says as it comes, then the whole response; and each tool's result."""


class Join(Protocol):
    async def __call__(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """The run with the messages it takes on before it asks again, and those as turns."""


Objection = Callable[[Response], str | None]  # what the model must be told about a response, if anything


def new_run(messages: Sequence[Message], target: Message, *, at: datetime, model: str, profile: str) -> Run:
    """A run, not begun yet, that takes *messages* and answers *target*."""
    return Run(
        id=secrets.token_hex(10),
        place=target.place,
        target=target.id,
        taken=tuple(message.id for message in messages),
        began_at=at,
        horizon=0,
        model=model,
        profile=profile,
    )


def turns_of(journal: Journal) -> tuple[Turn, ...]:
    """What the model did and said in a run, and the results of its tools, as they are sent back."""
    return tuple(_turns(journal))


def rungs_of(journal: Journal) -> tuple[str, ...]:
    """What was tried when the model refused or said nothing; for `Run.rungs`."""
    return rungs(journal.prompt)


class Runner:
    """What runs need, and their ways from one journal to the next; everything a run knows is in its journal."""

    def __init__(
        self,
        *,
        runs: Runs,
        model: Model,
        toolbox: Toolbox,
        now: Callable[[], datetime],
        steps: int = STEPS,
        sleep: Sleep = asyncio.sleep,
        calls_off: Policy = sends,
        watch: Watch | None = None,
        join: Join | None = None,
        objection: Objection | None = None,
        worked: Callable[[], None] | None = None,
        gone: GoneFiles | None = None,
        message: Message | None = None,
    ) -> None:
        self._runs = runs
        self._model = model
        self._toolbox = toolbox
        self._now = now
        self._steps = steps
        self._sleep = sleep
        self._calls_off = calls_off
        self._watch = watch
        self._join = join
        self._objection = objection
        self._worked = worked  # hears when a tool has ended
        self._gone = gone or GoneFiles()
        self._message = message  # the one being answered; tools are told of it

    async def run(self, run: Run, prompt: Prompt, *, changes: int | None = None) -> Answered:
        """Begin a run with *prompt* and answer it: ask, run the tools that are called, ask again.

        Where the place has seen other *changes* since the prompt was made, nothing is begun: `Outdated`.
        """
        sent = self._gone.without(prompt)
        first = sent if self._steps > 0 else replace(sent, tools=())
        await self._runs.begin(run, first, at=self._now(), calls_off=self._calls_off, changes=changes)
        return await self._finish(Journal(run=run, prompt=first, records=(), tools=()))

    async def resume(self, journal: Journal) -> Answered:
        """Go on where the journal ends; a tool that was under way is not run again unless it is repeatable."""
        if journal.prompt is None:
            raise InvalidValue(f"run {journal.run.id!r} has asked nothing yet; it is run from its beginning")
        return await self._finish(journal)

    async def _finish(self, journal: Journal) -> Answered:
        while True:
            try:
                journal, response = await self._answered(journal)
            except (RequestRefused, ResponseUnreadable, ModelUnavailable):
                if not _has_objected(journal):
                    raise
                return _answer(journal, _response_of(_said_last(journal)))  # what was said before the objection stands
            calls = self._to_run(journal, response)
            journal = await self._with_results(journal, calls)
            if len(calls) < len(response.function_calls):
                return _answer(journal, response)
            if not calls and (objected := await self._objected(journal, response)) is None:
                return _answer(journal, response)
            journal = await self._ask_next(journal if calls else objected or journal)

    async def _objected(self, journal: Journal, response: Response) -> Journal | None:
        """The journal with what the model must be told about its response; None where there is nothing, or was."""
        if _has_objected(journal):
            last = journal.records[-1]
            return journal if last[1].turn.role == "user" and last[0] == journal.step else None
        words = self._objection(response) if self._objection else None
        if words is None:
            return None
        record = Record(turn=user(words), at=self._now(), run=journal.run.id)
        await self._runs.keep(journal.run, journal.step, record)
        return replace(journal, records=(*journal.records, (journal.step, record)))

    async def _ask_next(self, journal: Journal) -> Journal:
        """The journal with one more step, in which the model sees what came of its last one."""
        run, joined = await self._join(journal.run) if self._join else (journal.run, ())
        prompt = self._gone.without(after(_asked(journal), *_last_turns(journal), *joined))
        asked = prompt if _rounds(journal) < self._steps else replace(prompt, tools=())
        return await self._ask(replace(journal, run=run), asked)

    async def _ask(self, journal: Journal, prompt: Prompt) -> Journal:
        """The journal with one more step, in which *prompt* is about to be sent."""
        step = journal.step + 1
        await self._runs.ask(journal.run, step, prompt, at=self._now())
        return replace(journal, prompt=prompt, step=step)

    async def _answered(self, journal: Journal) -> tuple[Journal, Response]:
        """The response to what was asked last, kept; where it is none that can be used, the ladder is climbed."""
        while True:
            trouble: PalaverError
            try:
                journal, response = await self._response(journal)
                if _kept_here(journal)[-1].valid:
                    return journal, response
                trouble = NoAnswer(f"{self._model.name} gave no answer that can be used{_because(response.finish)}")
            except (RequestRefused, ResponseUnreadable, HandleGone) as error:
                trouble = error
            prompt = self._without_gone(_asked(journal), trouble) or climb(_asked(journal), trouble)
            if prompt is None:
                raise trouble
            log.warning("run %s, %s: %s", journal.run.id, rungs(prompt)[-1], trouble)
            journal = await self._ask(journal, prompt)

    def _without_gone(self, prompt: Prompt, trouble: PalaverError) -> Prompt | None:
        """The prompt without a file that the service no longer has, which no later run asks about either."""
        if not isinstance(trouble, FileGone) or not self._gone.note(trouble, prompt):
            return None
        return marked(self._gone.without(prompt), WITHOUT_HANDLES)

    async def _response(self, journal: Journal) -> tuple[Journal, Response]:
        """What came back in this step: kept before, or asked for and kept now."""
        kept = _kept(journal)
        if kept is not None:
            return journal, kept
        response = await self._respond(journal.run, _asked(journal))
        response = replace(response, turn=savable(response.turn))
        valid = self._is_usable(journal, response)
        record = Record(turn=response.turn, at=self._now(), valid=valid, raw=response.raw, run=journal.run.id)
        await self._runs.keep(journal.run, journal.step, record)
        return replace(journal, records=(*journal.records, (journal.step, record))), response

    async def _respond(self, run: Run, prompt: Prompt) -> Response:
        """The model's response, after as much waiting as helps."""
        for waited in range(WAITS):
            try:
                with foreign(self._model.name):
                    return await self._heard(run, prompt)
            except ModelUnavailable as error:
                asked = seconds_to_wait(error.retry_after)
                seconds = 2.0**waited if asked is None else asked
                if seconds > LONGEST:
                    raise
                log.info("%s; asked again in %g s", error, seconds)
            await self._sleep(seconds)
        with foreign(self._model.name):
            return await self._heard(run, prompt)

    async def _heard(self, run: Run, prompt: Prompt) -> Response:
        """The response; where somebody watches, piece by piece."""
        if self._watch is None:
            return await self._model.respond(prompt)
        response: Response | None = None
        async with closing(self._model.stream(prompt)) as pieces:
            async for piece in pieces:
                self._watch(run, piece)
                if isinstance(piece, Response):
                    response = piece
        if response is None:
            raise ResponseUnreadable(f"{self._model.name} ended its stream without a response")
        return response

    def _is_usable(self, journal: Journal, response: Response) -> bool:
        """Whether it says something, or calls tools that may run; calls may be cut where the tokens ended."""
        if not response.valid or response.finish.outcome in _UNUSABLE:
            return False
        if response.function_calls and _rounds(journal) < self._steps:
            return response.finish.outcome != "cut"
        return any(isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in response.parts)

    def _to_run(self, journal: Journal, response: Response) -> list[tuple[int, ToolCall]]:
        """The calls that are ours to run, with their numbers; none of what came after the last round."""
        if _rounds(journal) > self._steps:
            return []
        calls = enumerate(response.function_calls)
        return [(number, call) for number, call in calls if not self._toolbox.leaves(call)]

    async def _with_results(self, journal: Journal, calls: Sequence[tuple[int, ToolCall]]) -> Journal:
        """The journal with a result for each of the calls, which run side by side unless it is there."""
        here = {tool.number: tool for tool in journal.tools if tool.step == journal.step}
        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(self._ended(journal, one, here.get(one[0]))) for one in calls]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        before = tuple(tool for tool in journal.tools if tool.step != journal.step)
        here |= {tool.number: tool for tool in (task.result() for task in running)}
        return replace(journal, tools=(*before, *here.values()))

    async def _ended(self, journal: Journal, numbered: tuple[int, ToolCall], noted: ToolRun | None) -> ToolRun:
        """The call with its result: the one that is kept, an unknown outcome, or that of running it now."""
        number, call = numbered
        if noted is not None and noted.result is not None:
            return noted
        if noted is not None and not self._toolbox.repeats(call):
            return await self._end(journal, noted, failure(call, UNKNOWN_OUTCOME.format(name=call.name)))
        begun = ToolRun(step=journal.step, number=number, call=call, began_at=self._now())
        await self._runs.begin_tool(journal.run, begun)
        return await self._run(journal, begun)

    async def _run(self, journal: Journal, begun: ToolRun) -> ToolRun:
        """The tool run with its result, which is kept also when the run is cancelled meanwhile, if it is known."""
        known: Known = []
        token = KNOWN.set(known)
        try:
            (result,) = await self._toolbox.run([begun.call], self._context(journal.run, begun))
        except asyncio.CancelledError:
            for _, result in known:
                await self._end(journal, begun, result)
            raise
        finally:
            KNOWN.reset(token)
        return await self._end(journal, begun, result)

    def _context(self, run: Run, begun: ToolRun) -> RunContext:
        return RunContext(
            run_id=run.id,
            step=begun.step,
            call=begun.number,
            now=begun.began_at,
            place=run.place,
            author=self._message.author if self._message else None,
            message=self._message,
            batch=run.taken,
        )

    async def _end(self, journal: Journal, begun: ToolRun, result: ToolResult) -> ToolRun:
        ended = replace(begun, result=result, ended_at=self._now())
        await self._runs.end_tool(journal.run, ended)
        if self._watch:
            self._watch(journal.run, result)
        if self._worked:
            self._worked()
        return ended


def _asked(journal: Journal) -> Prompt:
    if journal.prompt is None:
        raise InvalidValue(f"run {journal.run.id!r} has asked nothing yet")
    return journal.prompt


def _answer(journal: Journal, response: Response) -> Answered:
    run = replace(journal.run, rungs=rungs_of(journal))
    return Answered(run=run, response=response, turns=turns_of(journal), markers=markers_in(_asked(journal)))


def _kept(journal: Journal) -> Response | None:
    """The response that was kept in the last step."""
    said = _kept_here(journal)
    return _response_of(said[-1]) if said else None


def _kept_here(journal: Journal) -> list[Record]:
    return [record for step, record in journal.records if step == journal.step and record.turn.role == "model"]


def _response_of(record: Record) -> Response:
    """The response that was kept; how it ended is known by whether it is valid."""
    return Response(turn=record.turn, raw=record.raw or {})


def _said_last(journal: Journal) -> Record:
    return next(record for _, record in reversed(journal.records) if record.valid and record.turn.role == "model")


def _has_objected(journal: Journal) -> bool:
    """Whether the model was told about a response of this run; it is told once."""
    return any(record.turn.role == "user" for _, record in journal.records)


def _last_turns(journal: Journal) -> list[Turn]:
    """What the model said last, and what came of it."""
    turns = list(_turns(journal))
    last = max(number for number, turn in enumerate(turns) if turn.role == "model")
    return turns[last:]


def _rounds(journal: Journal) -> int:
    """How many responses that can be used have called tools."""
    return sum(record.valid and _calls(record.turn) for _, record in journal.records)


def _calls(turn: Turn) -> bool:
    return any(isinstance(part, ToolCall) for part in turn.parts)


def _turns(journal: Journal) -> Iterator[Turn]:
    for step, record in journal.records:
        if not record.valid:
            continue
        yield record.turn
        done = sorted((tool for tool in journal.tools if tool.step == step), key=lambda tool: tool.number)
        results = [tool.result for tool in done if tool.result is not None]
        if results:
            yield user(*results)


def _because(finish: Finish) -> str:
    said = " ".join(filter(None, (finish.outcome, finish.reason, finish.message)))
    return "" if finish == Finish(outcome="other") else f": {said}"
