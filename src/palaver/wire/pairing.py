"""Which result answers which call. Pure."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from palaver.parts import OURS, ToolCall, ToolResult, is_ours
from palaver.turns import Turn
from palaver.wire.foreign import Wire
from palaver.wire.media import only_results

NO_RESULT = "No result was recorded for this call."


def calls_of(turns: Iterable[Turn]) -> list[ToolCall]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]


def results_of(turns: Iterable[Turn]) -> list[ToolResult]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolResult)]


def sent_ids(parts: Sequence[ToolCall | ToolResult], wire: Wire) -> list[str]:
    """The ids as they go on the wire; Gemini sees none of ours, OpenAI-compatible services need one on each."""
    if wire == "gemini":
        return ["" if not part.id or is_ours(part.id) else part.id for part in parts]
    return [part.id or f"{OURS}{index}" for index, part in enumerate(parts)]


def distinct(calls: list[ToolCall], wire: Wire) -> list[ToolCall]:
    """The calls, a repeated id made different by a number."""
    taken: set[str] = {""}
    changed: list[ToolCall] = []
    for call, call_id in zip(calls, sent_ids(calls, wire), strict=True):
        name, number = call_id, 2
        while name and name in taken:
            name, number = f"{call_id}-{number}", number + 1
        taken.add(name)
        changed.append(call if name == call_id else replace(call, id=name, raw=None))
    return changed


def answer(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[ToolResult | None]:
    """For each call its result: by id, then by name in order, then a nameless one in order."""
    left = list(results)
    found: dict[int, ToolResult] = {}

    def take(fits: Callable[[ToolCall, ToolResult], bool]) -> None:
        for index, call in enumerate(calls):
            result = next((one for one in left if index not in found and fits(call, one)), None)
            if result is not None:
                found[index] = result
                left.remove(result)

    take(lambda call, result: bool(call.id) and call.id == result.id)
    take(lambda call, result: call.name == result.name)
    take(lambda _, result: not result.name)
    return [found.get(index) for index in range(len(calls))]


def unanswered(call: ToolCall) -> ToolResult:
    """The honest result of a call whose own was never kept."""
    return ToolResult(id=call.id, name=call.name, value=NO_RESULT, failed=True)


def paired(calls: Sequence[ToolCall], answers: Sequence[Turn], model: str, wire: Wire) -> bool:
    """Whether the user turns after the calls answer them as the service wants: all, by id, before anything else."""
    results = results_of(answers)
    last = max((index for index, turn in enumerate(answers) if results_of([turn])), default=-1)
    if not all(only_results(turn, model, wire) for turn in answers[:last]):
        return False
    if wire == "gemini":
        same_ids = sorted(sent_ids(results, wire)) == sorted(sent_ids(calls, wire))
        return same_ids and sorted(one.name for one in results) == sorted(one.name for one in calls)
    ids = [name for turn in answers for name in sent_ids(results_of([turn]), wire)]
    return sorted(ids) == sorted(sent_ids(calls, wire))
