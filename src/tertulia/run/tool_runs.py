"""The tool calls of a step: run concurrently, each persisted when it begins and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import Journal, JournalStore, Run, ToolRun, is_repeated
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import RESULTS, KnownResults, Toolbox, tool_failure

UNKNOWN_OUTCOME = (
    "unknown outcome: {name} was under way when the program stopped. It may have done its work, in part or in whole, "
    "or not at all. It was not run again."
)
REPEATED = (
    "{name} was not run: it was called twice before with these arguments and gave the same result both times. "
    "Answer with what you know."
)

NumberedCalls = Sequence[tuple[int, ToolCall]]  # with their numbers in the step
EndedToolRuns = dict[int, ToolRun]
StoreMedia = Callable[[Run, ToolResult], Awaitable[ToolResult]]  # returns the result with files in place of bytes


class ToolRuns:
    """Runs the tool calls of a step that have no result yet."""

    def __init__(
        self,
        store: JournalStore,
        toolbox: Toolbox,
        *,
        now: Callable[[], datetime],
        context: Callable[[Run, ToolRun], RunContext],
        ended: Callable[[Run, ToolRun], None] | None = None,
        store_media: StoreMedia | None = None,
    ) -> None:
        self._store = store
        self._toolbox = toolbox
        self._now = now
        self._context = context
        self._ended = ended
        self._store_media = store_media

    async def run(self, journal: Journal, calls: NumberedCalls, ended: EndedToolRuns) -> Journal:
        """Return the journal with a result for each call; run those without one. *ended* is filled also on errors."""
        recorded = {tool.number: tool for tool in journal.tools_of(journal.step)}
        found: EndedToolRuns = {}
        try:
            async with asyncio.TaskGroup() as group:
                for number, call in calls:
                    group.create_task(self._run(journal, number, call, recorded.get(number), found))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            ended |= {number: found[number] for number, _ in calls if number in found}
        before = tuple(tool for tool in journal.tools if tool.step != journal.step)
        return replace(journal, tools=(*before, *(recorded | ended).values()))

    def is_repeated(self, journal: Journal, tool: ToolRun) -> bool:
        """Return whether a call is not run because it had the same result twice."""
        return not self._toolbox.allows_identical(tool.call) and is_repeated(tool, journal.tools)

    def is_last(self, journal: Journal, tool: ToolRun) -> bool:
        """Return whether no tool should run after this one: its call leads nowhere."""
        if self._toolbox.allows_identical(tool.call):
            return False
        return is_repeated(tool, journal.tools) or journal.failed_again(tool)

    async def _run(
        self, journal: Journal, number: int, call: ToolCall, recorded: ToolRun | None, ended: EndedToolRuns
    ) -> None:
        """Put the call with its result in *ended*: the recorded one, "unknown outcome", or the result of running it."""
        run = journal.run
        if recorded is not None and recorded.result is not None:
            ended[number] = recorded
            return
        if recorded is not None and not self._toolbox.is_repeatable(call):
            ended[number] = await self._end(run, recorded, tool_failure(call, UNKNOWN_OUTCOME.format(name=call.name)))
            return
        begun = ToolRun(step=journal.step, number=number, call=call, began_at=self._now())
        if self.is_repeated(journal, begun):
            ended[number] = await self._end(run, begun, tool_failure(call, REPEATED.format(name=call.name)))
            return
        await self._store.begin_tool(run, begun)
        known: KnownResults = []
        token = RESULTS.set(known)
        try:
            (result,) = await self._toolbox.run([call], self._context(run, begun))
            if result.media and self._store_media:
                result = await self._store_media(run, result)
        except asyncio.CancelledError:
            for _, result in known:  # it ended before it was cancelled
                ended[number] = await self._end(run, begun, result)
            raise
        finally:
            RESULTS.reset(token)
        ended[number] = await self._end(run, begun, result)

    async def _end(self, run: Run, begun: ToolRun, result: ToolResult) -> ToolRun:
        ended = replace(begun, result=result, ended_at=self._now())
        await self._store.end_tool(run, ended)
        if self._ended:
            self._ended(run, ended)
        return ended


def results_after_cancel(calls: NumberedCalls, ended: EndedToolRuns) -> Iterator[ToolResult]:
    """Yield the results of calls after the run was cancelled; a failure for those without one."""
    for number, call in calls:
        known = ended[number].result if number in ended else None
        yield known or tool_failure(call, f"{call.name} was stopped before it finished; what it has done is not known.")


def cut_call_result(call: ToolCall) -> ToolResult:
    return tool_failure(call, f"{call.name} was not run: the limit of tokens was reached, and the call may be cut.")
