"""The tool calls of a step: run concurrently, each persisted when it begins and when it ends."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import Journal, JournalStore, Run, ToolRun, is_repeated
from tertulia.run.run_host import RunHost
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


class ToolRuns:
    """Runs the tool calls of a step that have no result yet."""

    def __init__(self, store: JournalStore, toolbox: Toolbox, host: RunHost, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._toolbox = toolbox
        self._host = host
        self._now = now

    async def run(self, journal: Journal, calls: NumberedCalls) -> AsyncGenerator[ToolRun, None]:
        """Run the calls that have no result in the journal; yield each as it ends.

        Where one raises, or the run is cancelled, the others are cancelled. Those that have ended are yielded before
        the error is raised.
        """
        recorded = {tool.number: tool for tool in journal.tools_of(journal.step)}
        ended = {number for number, tool in recorded.items() if tool.result is not None}
        running = {
            asyncio.create_task(self._run(journal, number, call, recorded.get(number)))
            for number, call in calls
            if number not in ended
        }
        trouble: BaseException | None = None  # of the first call that raised
        stopped: asyncio.CancelledError | None = None
        are_cancelled = False
        try:
            while running:
                done: set[asyncio.Task[ToolRun]] = set()
                try:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError as error:
                    stopped = error
                for task in done:
                    if task.cancelled():
                        continue
                    if task.exception() is None:
                        yield task.result()
                    trouble = trouble or task.exception()
                if (trouble or stopped) and not are_cancelled:
                    are_cancelled = True
                    _cancel(running)
        finally:
            _cancel(running)  # nobody reads on
        if trouble or stopped:
            raise trouble or stopped or AssertionError

    def is_last(self, journal: Journal, tool: ToolRun) -> bool:
        """Return whether no tool should run after this one: its call leads nowhere."""
        if self._toolbox.allows_identical(tool.call):
            return False
        return is_repeated(tool, journal.tools) or journal.failed_again(tool)

    async def _run(self, journal: Journal, number: int, call: ToolCall, recorded: ToolRun | None) -> ToolRun:
        """Return the call with its result: "unknown outcome", or that of running it."""
        run = journal.run
        if recorded is not None and not self._toolbox.is_repeatable(call):
            return await self._end(run, recorded, tool_failure(call, UNKNOWN_OUTCOME.format(name=call.name)))
        begun = ToolRun(step=journal.step, number=number, call=call, began_at=self._now())
        if is_repeated(begun, journal.tools) and not self._toolbox.allows_identical(call):
            return await self._end(run, begun, tool_failure(call, REPEATED.format(name=call.name)))
        await self._store.begin_tool(run, begun)
        known: KnownResults = []
        token = RESULTS.set(known)
        try:
            (result,) = await self._toolbox.run([call], self._host.tool_context(run, begun))
            if result.media:
                result = await self._host.store_media(run, result)
        except asyncio.CancelledError:
            if not known:
                raise
            result = known[-1][1]  # it ended before it was cancelled
        finally:
            RESULTS.reset(token)
        return await self._end(run, begun, result)

    async def _end(self, run: Run, begun: ToolRun, result: ToolResult) -> ToolRun:
        ended = replace(begun, result=result, ended_at=self._now())
        await self._store.end_tool(run, ended)
        return ended


def _cancel(tasks: Iterable[asyncio.Task[ToolRun]]) -> None:
    for task in tasks:
        task.cancel()


def results_after_cancel(journal: Journal, calls: NumberedCalls) -> Iterator[ToolResult]:
    """Yield the results of calls of the last step after the run was cancelled; a failure for those without one."""
    recorded = {tool.number: tool.result for tool in journal.tools_of(journal.step)}
    for number, call in calls:
        stopped = f"{call.name} was stopped before it finished; what it has done is not known."
        yield recorded.get(number) or tool_failure(call, stopped)


def cut_call_result(call: ToolCall) -> ToolResult:
    return tool_failure(call, f"{call.name} was not run: the limit of tokens was reached, and the call may be cut.")
