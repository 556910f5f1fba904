"""Repair: makes any history legal for a model, on a copy, with a receipt for each change. Pure.

How it works. Each turn is first repaired by itself (`turn_repair`), and the result is cached with the turn. Then turns
are grouped into exchanges: the model's turns, and the user's turns after them. In each exchange every call gets exactly
one result, in the order of the calls and under their ids (`pair_results`): a result without a call is left out, a call
without a result is answered as not recorded. A legal exchange is cached on its first user turn, so that only new
exchanges cost time. At the end come the checks that need the whole history: the size of inline media, and signatures of
the current turn.

Why it is right. A repaired history passes strict `lint`, and repairing it again changes nothing: both are properties in
the tests. Only what `lint` would refuse is changed, and signatures that another model made.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import is_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import NothingToSend
from tertulia.parts import Part, ToolCall, ToolResult
from tertulia.turns import Layer, Prompt, Turn, user
from tertulia.value_cache import cached
from tertulia.wire.generations import is_gemini
from tertulia.wire.part_forms import has_only_results, sent_ids
from tertulia.wire.rules import INLINE_LIMIT, PLACEHOLDER_SIGNATURE, when_refused
from tertulia.wire.signatures import Wire, is_foreign, requires_signatures
from tertulia.wire.turn_repair import RepairedTurn, inline_size, is_visible, media_as_words, repair_turn

CONTINUE = user("Continue.")
NO_RESULT = "No result was recorded for this call."


class Receipt(Struct, frozen=True, kw_only=True):
    """One change: the rule that would have been broken, where, and what was done."""

    rule: str
    where: str
    action: str


def repair(
    turns: Sequence[Turn], model: str, *, wire: Wire | None = None
) -> tuple[tuple[Turn, ...], tuple[Receipt, ...]]:
    """Return turns that the service of *model* accepts, and the receipts of what was changed.

    Deterministic; legal turns are returned as they are. Raises NothingToSend when no turn is left.
    """
    repairer = _Repairer(model, wire or ("gemini" if is_gemini(model) else "openai"))
    legal = repairer.repair(turns)
    return legal, tuple(repairer.receipts)


def repair_prompt(prompt: Prompt, model: str, *, wire: Wire) -> Prompt:
    """Return the prompt with its turns repaired; the same object when nothing had to change."""
    return repair_with_receipts(prompt, model, wire=wire)[0]


def repair_with_receipts(prompt: Prompt, model: str, *, wire: Wire) -> tuple[Prompt, tuple[Receipt, ...]]:
    """Return the prompt with its turns repaired, and the receipts of what was changed."""
    legal, receipts = repair(prompt.turns, model, wire=wire)
    if not receipts:
        return prompt, ()
    layers = (Layer(name="static", instruction=prompt.instruction), Layer(name="buffered", turns=legal))
    return replace(prompt, layers=layers), receipts


class _Repairer:
    def __init__(self, model: str, wire: Wire) -> None:
        self.model = model
        self.wire = wire
        self.paired_key = f"paired {wire} {model}"
        self.receipts: list[Receipt] = []

    def note(self, rule: str, where: str, action: str) -> None:
        self.receipts.append(Receipt(rule=rule, where=where, action=action))

    def repair(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        repaired = self.repair_each(turns)
        out = self.pair(turns, repaired)
        if self.wire == "gemini" and sum(one.inline for one in repaired if one.inline) > INLINE_LIMIT:
            out = self.limit_media(out)
        out = self.sign(out)
        if not out:
            raise NothingToSend("no turn is left that a model could answer")
        return tuple(out) if self.receipts else tuple(turns)

    def repair_each(self, turns: Sequence[Turn]) -> list[RepairedTurn]:
        """Repair each turn by itself; the result is cached with the turn."""
        key, repair = f"repaired {self.wire} {self.model}", partial(repair_turn, model=self.model, wire=self.wire)
        repaired = [turn.__dict__.get(key) or cached(turn, key, repair) for turn in turns]
        changed = [(index, receipt) for index, one in enumerate(repaired) if one.receipts for receipt in one.receipts]
        for index, (rule, place, action) in changed:
            self.note(rule, f"turns[{index}]{place}", action)
        return repaired

    def pair(self, turns: Sequence[Turn], repaired: list[RepairedTurn]) -> list[Turn]:
        """Return the turns that are sent: each call is followed by its result, and no result lacks its call."""
        out: list[Turn] = []
        asked: list[Turn] = []  # the model's turns since the last user turn
        replied: list[Turn] = []  # the user turns after them
        has_tools = False  # whether calls or results are among them
        first = last = 0
        for index, one in enumerate(repaired):
            if not one.is_visible:
                continue
            last = index
            if one.is_user:
                if not replied:
                    first = index
                replied.append(one.turn or turns[index])
            else:
                if replied:
                    asked = self.close_exchange(out, asked, replied, first, has_tools=has_tools)
                    replied, has_tools = [], bool(asked)
                asked.append(one.turn or turns[index])
            if one.has_tools:
                has_tools = True
        if replied:
            asked = self.close_exchange(out, asked, replied, first, has_tools=has_tools)
        return out + self.end_with_user(asked, f"turns[{last}]", first=not out)

    def close_exchange(
        self, out: list[Turn], asked: list[Turn], replied: list[Turn], first: int, *, has_tools: bool
    ) -> list[Turn]:
        """Add the model's turns and the user's turns after them to *out*; return the model's turns that still wait."""
        if not has_tools or (out and self.is_cached_pair(asked, replied)):
            out += asked
            out += replied
            return []
        where = f"turns[{first}]"
        calls = calls_of(asked)
        answers = replied if calls else self.without_results(replied, where)
        if not answers:
            return asked
        receipts = len(self.receipts)
        sent = self.prepare_calls(asked, where, first=not out)
        out += sent
        out += self.put_results_first(calls, calls_of(sent), answers, where) if calls else answers
        if answers is replied and len(self.receipts) == receipts:
            self.cache_pair(asked, replied)
        return []

    def is_cached_pair(self, asked: list[Turn], replied: list[Turn]) -> bool:
        """Tell whether these same objects were found to be paired before; cached with the first user turn."""
        known: tuple[Turn, ...] | None = replied[0].__dict__.get(self.paired_key)
        if known is None or len(known) != len(asked) + len(replied) - 1:
            return False
        return all(map(is_, known, chain(asked, replied[1:])))

    def cache_pair(self, asked: list[Turn], replied: list[Turn]) -> None:
        replied[0].__dict__[self.paired_key] = (*asked, *replied[1:])

    def end_with_user(self, tail: list[Turn], where: str, *, first: bool) -> list[Turn]:
        sent = self.prepare_calls(tail, where, first=first)
        calls = calls_of(sent)
        if calls:
            self.note("unanswered", where, f"{_counted(len(calls), 'call')} without a result answered as not recorded")
            return [*sent, user(*map(missing_result, calls))]
        if tail and self.wire == "gemini" and when_refused(self.model, "ends-with-model") != "never":
            self.note("ends-with-model", where, "a user turn `Continue.` was added")
            return [*sent, CONTINUE]
        return sent

    def without_results(self, turns: list[Turn], where: str) -> list[Turn]:
        """Leave out results that answer no call."""
        orphans = len(results_of(turns))
        if not orphans:
            return turns
        self.note("result-after-call", where, f"{_counted(orphans, 'result')} without a call left out")
        return list(self.without_result_parts(turns))

    def without_result_parts(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        for turn in turns:
            parts = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
            rest = turn if len(parts) == len(turn.parts) else replace(turn, parts=parts)
            if is_visible(rest, self.wire):
                yield rest

    def prepare_calls(self, tail: list[Turn], where: str, *, first: bool) -> list[Turn]:
        """Join the model's turns, give calls distinct ids, and put a user turn before them where one is required."""
        if not calls_of(tail):
            return tail
        turns = self.join_calls(tail, where)
        calls = calls_of(turns)
        different = with_distinct_ids(calls, self.wire)
        if any(new is not old for new, old in zip(different, calls, strict=True)):
            self.note("duplicate-id", where, "calls with one id were told apart by a number")
            new_calls = iter(different)
            turns = [
                replace(
                    turn, parts=tuple(next(new_calls) if isinstance(part, ToolCall) else part for part in turn.parts)
                )
                for turn in turns
            ]
        if first and self.wire == "gemini":
            self.note("call-after-user", where, "a user turn `Continue.` was put before the first call")
            return [CONTINUE, *turns]
        return turns

    def join_calls(self, tail: list[Turn], where: str) -> list[Turn]:
        """Join model turns from the first call on, where nothing may stand between a call and its result."""
        first = next(index for index, turn in enumerate(tail) if calls_of([turn]))
        if self.wire == "gemini" or first == len(tail) - 1:
            return tail
        joined = tail[first]
        for turn in tail[first + 1 :]:
            joined = _join(joined, turn, self.model)
        self.note("unanswered", where, "model turns that stood apart were joined")
        return [*tail[:first], joined]

    def put_results_first(
        self, calls: list[ToolCall], sent: list[ToolCall], turns: list[Turn], where: str
    ) -> list[Turn]:
        """Return the user turns after *calls*, sent as *sent*, with one result for each call first."""
        if calls == sent and is_paired(sent, turns, self.model, self.wire):
            return turns
        results = results_of(turns)
        matched = pair_results(calls, results)
        lost, orphans = matched.count(None), len(results) - len(matched) + matched.count(None)
        self.note("count", where, _pairing_words(lost, orphans, len(results)))
        answers = [
            replace(result, id=call.id, name=call.name, raw=None) if result else missing_result(call)
            for call, result in zip(sent, matched, strict=True)
        ]
        return [user(*answers), *self.without_result_parts(turns)]

    def limit_media(self, turns: list[Turn]) -> list[Turn]:
        """Turn the oldest media into words until the request is small enough."""
        sizes = [inline_size(turn) for turn in turns]
        over = sum(sizes) - INLINE_LIMIT
        out = list(turns)
        for index, turn in enumerate(turns):
            if over > 0 and sizes[index]:
                over -= sizes[index]
                out[index] = replace(turn, parts=tuple(media_as_words(turn.parts)))
                self.note("payload-size", f"turn {index} of those sent", "media became words to keep the request small")
        return out

    def sign(self, turns: list[Turn]) -> list[Turn]:
        """Put the placeholder on calls of the current turn that have no signature."""
        if not requires_signatures(self.model, self.wire):
            return turns
        start = next((index + 1 for index in reversed(range(len(turns))) if self.starts_turn(turns[index])), 0)
        return turns[:start] + [self.sign_turn(turn, index) for index, turn in enumerate(turns[start:], start)]

    def starts_turn(self, turn: Turn) -> bool:
        """Tell whether a new turn of the conversation begins after it: a user turn with anything but results."""
        return turn.role == "user" and not has_only_results(turn, self.model, self.wire)

    def sign_turn(self, turn: Turn, index: int) -> Turn:
        first = next((place for place, part in enumerate(turn.parts) if isinstance(part, ToolCall)), None)
        call = turn.parts[first] if first is not None else None
        if turn.role != "model" or not isinstance(call, ToolCall) or call.signature:
            return turn
        self.note("signature", f"turn {index} of those sent", "a call without a signature got the placeholder")
        parts = list(turn.parts)
        parts[first or 0] = replace(call, signature=PLACEHOLDER_SIGNATURE, raw=None)
        return replace(turn, parts=tuple(parts))


def _join(one: Turn, other: Turn, model: str) -> Turn:
    """Join two turns; the result is *model*'s if either is, and only its first call keeps a placeholder signature."""
    own = any(turn.model is not None and not is_foreign(turn, model) for turn in (one, other))
    maker = one.model if one.model == other.model else model if own else None
    after = other.parts if not calls_of([one]) else tuple(map(_without_placeholder, other.parts))
    return Turn(role=one.role, parts=one.parts + after, model=maker)


def _without_placeholder(part: Part) -> Part:
    if isinstance(part, ToolCall) and part.signature == PLACEHOLDER_SIGNATURE:
        return replace(part, signature=None, raw=None)
    return part


def _pairing_words(lost: int, orphans: int, results: int) -> str:
    done = ["results were put in the order of their calls, under their ids"] if results > orphans else []
    if lost:
        done.append(f"{_counted(lost, 'call')} without a result answered as not recorded")
    if orphans > 0:
        done.append(f"{_counted(orphans, 'result')} without a call left out")
    return "; ".join(done)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


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
