"""Recorded tools: calls answered from the journal of a run; none is run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tertulia.engine.replay.values import ReplayedTool
from tertulia.jsonio import dumps
from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import ToolRun
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import Tool, Toolbox, tool_failure
from tertulia.turns import ToolSpec

UNKNOWN = "The result of {name} with these arguments is unknown, and it was not run. Answer without it."


class RecordedTools(Toolbox):
    """Answers calls with the results that calls of the same name and arguments had, in order; the last one again."""

    def __init__(self, specs: Iterable[ToolSpec], recorded: Iterable[ToolRun]) -> None:
        super().__init__(Tool(spec=spec, function=_never) for spec in specs)
        self.used: list[ReplayedTool] = []
        self._results: defaultdict[tuple[str, bytes], list[ToolResult]] = defaultdict(list)
        for one in recorded:
            if one.result is not None:
                self._results[_key(one.call)].append(one.result)

    async def run(self, calls: Sequence[ToolCall], context: RunContext | None = None) -> list[ToolResult]:
        return [self._answer(call) for call in calls]

    def _answer(self, call: ToolCall) -> ToolResult:
        known = self._results[_key(call)]
        if not known:
            result = tool_failure(call, UNKNOWN.format(name=call.name))
        else:
            was = known.pop(0) if len(known) > 1 else known[0]
            result = ToolResult(name=call.name, id=call.id, value=was.value, failed=was.failed, media=was.media)
        self.used.append(ReplayedTool(name=call.name, args=call.args, result=result.value, is_known=bool(known)))
        return result


def _key(call: ToolCall) -> tuple[str, bytes]:
    return call.name, dumps(dict(sorted(call.args.items())))


def _never() -> None:
    raise AssertionError  # a recorded call is answered in its place
