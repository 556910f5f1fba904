"""Which result answers which call. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from palaver.parts import ToolCall, ToolResult
from palaver.turns import Turn
from palaver.wire.part_forms import has_only_results, sent_ids
from palaver.wire.signatures import Wire

NO_RESULT = "No result was recorded for this call."


def calls_of(turns: Iterable[Turn]) -> list[ToolCall]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]


def results_of(turns: Iterable[Turn]) -> list[ToolResult]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolResult)]


def with_distinct_ids(calls: list[ToolCall], wire: Wire) -> list[ToolCall]:
    """Return the calls, with a number added to a repeated id."""
    taken: set[str] = {""}
    numbers: Counter[str] = Counter()
    changed: list[ToolCall] = []
    for call, call_id in zip(calls, sent_ids(calls, wire), strict=True):
        name = call_id
        while name and name in taken:
            numbers[call_id] += 1
            name = f"{call_id}-{numbers[call_id] + 1}"
        taken.add(name)
        changed.append(call if name == call_id else _with_id(name, call, wire))
    return changed


def _with_id(name: str, call: ToolCall, wire: Wire) -> ToolCall:
    """Return the call under another id; one of a kind we do not know stays of that kind."""
    raw = {**call.raw, "id": name} if call.raw is not None and wire == "openai" else None
    return replace(call, id=name, raw=raw)


def pair_results(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[ToolResult | None]:
    """Return the result of each call: matched by id, then by name in order, then a nameless one in order."""
    found: dict[int, ToolResult] = {}
    left: list[ToolResult] = list(results)

    def take(call_key: Callable[[ToolCall], Any], result_key: Callable[[ToolResult], Any]) -> None:
        """Give calls without a result, in order, the remaining results with the same key."""
        nonlocal left
        waiting: dict[Any, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            if index not in found and call_key(call) is not None:
                waiting[call_key(call)].append(index)
        rest = []
        for result in left:
            if waiting.get(result_key(result)):
                found[waiting[result_key(result)].popleft()] = result
            else:
                rest.append(result)
        left = rest

    take(lambda call: call.id or None, lambda result: result.id or "")
    take(lambda call: call.name, lambda result: result.name)
    take(lambda _: "", lambda result: result.name)
    return [found.get(index) for index in range(len(calls))]


def missing_result(call: ToolCall) -> ToolResult:
    """Return the result "not recorded", for a call whose result is not in the history."""
    return ToolResult(id=call.id, name=call.name, value=NO_RESULT, failed=True)


def is_paired(calls: Sequence[ToolCall], answers: Sequence[Turn], model: str, wire: Wire) -> bool:
    """Return whether the user turns after the calls answer them as the service wants: all, by id, before
    anything else.
    """
    results = results_of(answers)
    last = max((index for index, turn in enumerate(answers) if results_of([turn])), default=-1)
    if not all(has_only_results(turn, model, wire) for turn in answers[:last]):
        return False
    if wire == "gemini":
        strange = Counter(filter(None, sent_ids(results, wire))) - Counter(filter(None, sent_ids(calls, wire)))
        return not strange and sorted(one.name for one in results) == sorted(one.name for one in calls)
    ids = [name for turn in answers for name in sent_ids(results_of([turn]), wire)]
    return sorted(ids) == sorted(sent_ids(calls, wire))
