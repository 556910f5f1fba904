"""The journal of a run: its prompts, responses and tool runs, from which it is resumed. Pure."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tertulia.context.values import LeftOut
from tertulia.decisions import Decision, Meant
from tertulia.errors import InvalidValue
from tertulia.messages import Place
from tertulia.models.base import Response
from tertulia.models.calls import Call, PromptSize
from tertulia.parts import ToolCall, ToolResult
from tertulia.turns import Prompt, Record, Turn, user
from tertulia.wire.repair import calls_of

NEXT_MODEL = "next model"  # the fallback that asks another model, for the rest of the run

RunStatus = Literal["open", "done", "failed"]


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer to a batch of messages, from its first prompt to its replies."""

    id: str
    place: Place
    target: str  # the id of the message it answers
    taken: tuple[str, ...]  # the ids of all messages it answers, the target among them
    began_at: datetime
    horizon: int  # messages in the place when it began: later ones are not in its prompt; 0 if it never did
    model: str = ""  # that its last step asked
    profile: str = ""
    agent: str = ""  # that answers
    status: RunStatus = "open"
    ended_at: datetime | None = None
    why: str = ""  # the error, if it failed
    seconds: float = 0.0  # of work by all processes, to its end; before that, up to the last step
    resumed: int = 0  # how often it was resumed by another process
    decisions: Mapping[str, Decision] = field(default_factory=dict)  # about what it takes; stored with the messages
    meant: Meant = field(default_factory=dict)  # of what it takes; these wait for them from when the run takes it


class ToolRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call of a step. It has ended when it has a result."""

    step: int
    number: int  # of the call within its step
    call: ToolCall
    began_at: datetime
    result: ToolResult | None = None
    ended_at: datetime | None = None


class FallbackStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that was asked because the step before it failed."""

    step: int
    fallback: str  # its name
    why: str  # the error of the step before
    model: str = ""  # that was asked


class StepProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a run, as far as it went."""

    step: int
    at: datetime  # when its prompt was sent
    model: str = ""  # that was asked
    tried: FallbackStep | None = None  # why it was asked, if the step before failed


class RunProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run with its steps, without prompts and responses."""

    order: int  # later runs have greater ones
    run: Run
    steps: tuple[StepProgress, ...] = ()  # none where its prompts were removed
    tools: tuple[ToolRun, ...] = ()

    def tool(self, step: int, number: int) -> ToolRun | None:
        return next((one for one in self.tools if (one.step, one.number) == (step, number)), None)


class SentPrompt(Struct, frozen=True, kw_only=True):
    """A prompt as it was sent in a step of a run."""

    run_id: str
    step: int
    at: datetime
    model: str
    prompt: Prompt
    left_out: tuple[LeftOut, ...] = ()  # of the context, with source and reason
    tried: FallbackStep | None = None  # why it was sent, if the step before failed
    size: PromptSize = PromptSize()  # as it was when it was sent


class PromptLedger(Protocol):
    """Compares each prompt with the one before it in its place."""

    def measure(self, place: str, prompt: Prompt, model: str) -> PromptSize: ...

    def clear(self) -> None: ...


class PromptStore(Protocol):
    """Prompts that were sent."""

    async def sent(self, run_id: str, step: int) -> SentPrompt | None:
        """Return a prompt as it was sent and what was left out of it; a layer that was removed says so.

        Raise `PromptRemoved` for a run whose prompts had become too old.
        """
        ...

    def remove_old(self, before: datetime, *, at: datetime) -> AsyncIterator[int]:
        """Remove the prompts of runs that ended before *before*, in small transactions.

        After each transaction, yield how many prompts it removed. Open runs keep their prompts.
        """
        ...


class StoredPrompts(PromptStore, Protocol):
    """Prompts that were sent, also for those who look at a store."""

    async def sent_by(self, run_id: str | None = None) -> Sequence[SentPrompt]:
        """Return the prompts of a run, of the last one by default; of each step the last.

        Raise `PromptRemoved` for a run whose prompts had become too old.
        """
        ...

    async def runs(self, prefix: str, *, most: int = 10) -> Sequence[str]:
        """Return the ids of the newest runs that begin with *prefix*."""
        ...


class Journal(Struct, frozen=True, kw_only=True):
    """All state of a run."""

    run: Run
    prompt: Prompt | None  # of the last step
    step: int = 0  # the last
    records: tuple[tuple[int, Record], ...] = ()  # each with its step, in order
    tools: tuple[ToolRun, ...] = ()
    tried: tuple[FallbackStep, ...] = ()  # in order

    @property
    def tried_since_answer(self) -> list[str]:
        """The fallbacks tried since the last usable response, for the model that is asked now."""
        last_answer = max((step for step, record in self.records if record.valid), default=-1)
        names = [one.fallback for one in self.tried if one.step > last_answer]
        switched = max((number for number, name in enumerate(names) if name == NEXT_MODEL), default=-1)
        return names[switched + 1 :]

    @property
    def last_prompt(self) -> Prompt:
        """The prompt of the last step."""
        if self.prompt is None:
            raise InvalidValue(f"run {self.run.id!r} has asked nothing yet; it is run from its beginning")
        return self.prompt

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The valid turns of the model, each followed by the results of its tools."""
        turns: list[Turn] = []
        for step, record in self.records:
            if record.valid:
                turns.append(record.turn)
                if results := self.results_of(step):
                    turns.append(user(*results))
        return tuple(turns)

    @property
    def last_turns(self) -> tuple[Turn, ...]:
        """The last turn of the model, and the turns after it."""
        turns = self.turns
        last = max(number for number, turn in enumerate(turns) if turn.role == "model")
        return turns[last:]

    @property
    def rounds(self) -> int:
        """The number of usable responses that called tools."""
        return sum(record.valid and bool(calls_of([record.turn])) for _, record in self.records)

    @property
    def was_corrected(self) -> bool:
        """Whether the model was told about a bad response of this run; that happens once."""
        return any(record.turn.role == "user" for _, record in self.records)

    def last_record(self) -> Record | None:
        """Return the record of the response of the last step."""
        return next(
            (record for step, record in reversed(self.records) if step == self.step and record.turn.role == "model"),
            None,
        )

    def last_answer(self) -> Response:
        """Return the last usable response."""
        return response_of(next(one for _, one in reversed(self.records) if one.valid and one.turn.role == "model"))

    def tools_of(self, step: int) -> list[ToolRun]:
        return [tool for tool in self.tools if tool.step == step]

    def results_of(self, step: int) -> list[ToolResult]:
        """Return the results that the tools of a step have, in the order of their calls."""
        tools = sorted(self.tools_of(step), key=lambda tool: tool.number)
        return [tool.result for tool in tools if tool.result is not None]

    def with_tool(self, tool: ToolRun) -> "Journal":
        """Return the journal with a tool run of the last step as it is now."""
        others = (one for one in self.tools if (one.step, one.number) != (tool.step, tool.number))
        return replace(self, tools=tuple(sorted((*others, tool), key=lambda one: (one.step, one.number))))

    def failed_again(self, tool: ToolRun) -> bool:
        """Return whether a call failed as it did before, with the same arguments."""
        result = tool.result
        if result is None or not result.failed:
            return False
        return any(one.failed and one.value == result.value for one in _earlier_results(tool, self.tools))


def is_repeated(tool: ToolRun, tools: Iterable[ToolRun]) -> bool:
    """Return whether the last two calls of earlier steps with the same arguments had the same result."""
    results = [
        (one.value, one.failed, [media.sha256 or media.uri for media in one.media])
        for one in _earlier_results(tool, tools)
    ]
    return len(results) > 1 and results[-1] == results[-2]


def _earlier_results(tool: ToolRun, tools: Iterable[ToolRun]) -> Iterator[ToolResult]:
    """Yield the results of calls of earlier steps with the same arguments."""
    for one in tools:
        if one.step < tool.step and one.result and (one.call.name, one.call.args) == (tool.call.name, tool.call.args):
            yield one.result


class JournalStore(Protocol):
    """Persists the steps of runs, each before anything follows from it."""

    async def ask(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> None:
        """Persist a prompt before it is sent to `run.model`, its fallback, and the messages that the run has taken
        in.
        """
        ...

    async def add_record(self, run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
        """Persist a record, and the call of which it is the response."""
        ...

    async def add_call(self, run: Run, call: Call) -> None:
        """Persist a call without a response."""
        ...

    async def begin_tool(self, run: Run, tool: ToolRun) -> None: ...

    async def end_tool(self, run: Run, tool: ToolRun) -> None: ...


class InMemoryJournal:
    """Persists nothing: the journal is lost when its loop ends."""

    async def ask(
        self, run: Run, step: int, prompt: Prompt, *, at: datetime, tried: FallbackStep | None = None
    ) -> None:
        pass

    async def add_record(self, run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
        pass

    async def add_call(self, run: Run, call: Call) -> None:
        pass

    async def begin_tool(self, run: Run, tool: ToolRun) -> None:
        pass

    async def end_tool(self, run: Run, tool: ToolRun) -> None:
        pass


def response_of(record: Record) -> Response:
    """Return the response of a record. Its finish is not stored; `valid` of the record replaces it."""
    return Response(turn=record.turn, raw=record.raw or {})
