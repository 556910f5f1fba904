"""Making any history legal for a model, on a copy, and saying what was done. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import NothingToSend
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Turn, user
from palaver.wire import pairing
from palaver.wire.fit import Fit, in_words, inline_size, made_fit, visible
from palaver.wire.foreign import Wire, made_elsewhere, wants_signatures
from palaver.wire.generations import is_gemini
from palaver.wire.media import only_results
from palaver.wire.rules import INLINE_LIMIT, PLACEHOLDER_SIGNATURE, refuses

CONTINUE = user("Continue.")


class Receipt(Struct, frozen=True, kw_only=True):
    """One thing that was changed: the rule it would have broken, where it stood, and what was done."""

    rule: str
    where: str
    action: str


def repair(
    turns: Sequence[Turn], model: str, *, wire: Wire | None = None
) -> tuple[tuple[Turn, ...], tuple[Receipt, ...]]:
    """*turns* as a sequence whose request *model*'s service accepts, and the receipts of what was changed.

    Deterministic, and doing nothing to what is legal already. Raises NothingToSend when no turn is left.
    """
    spoken = wire or ("gemini" if is_gemini(model) else "openai")
    repairer = _Repairer(model, spoken)
    repaired = repairer.repair(turns)
    return repaired, tuple(repairer.receipts)


def repaired(prompt: Prompt, model: str, *, wire: Wire) -> Prompt:
    """The prompt as it can be sent; itself when nothing had to change."""
    legal, receipts = repair(prompt.turns, model, wire=wire)
    if not receipts:
        return prompt
    layers = (Layer(name="static", instruction=prompt.instruction), Layer(name="buffered", turns=legal))
    return replace(prompt, layers=layers)


class _Repairer:
    def __init__(self, model: str, wire: Wire) -> None:
        self.model = model
        self.wire = wire
        self.receipts: list[Receipt] = []

    def note(self, rule: str, where: str, action: str) -> None:
        self.receipts.append(Receipt(rule=rule, where=where, action=action))

    def repair(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        fitting = self.fitting(turns)
        paired = self.paired(fitting)
        if self.wire == "gemini" and sum(fit.inline for _, fit in fitting) > INLINE_LIMIT:
            paired = self.within_size(paired)
        signed = self.signed(paired)
        if not signed:
            raise NothingToSend("no turn is left that a model could answer")
        return tuple(signed) if self.receipts else tuple(turns)

    def fitting(self, turns: Sequence[Turn]) -> list[tuple[int, Fit]]:
        """The turns that go on the wire, each made fit by itself; that is kept with the turn."""
        key = f"fit {self.wire} {self.model}"
        fits: list[tuple[int, Fit]] = []
        for index, turn in enumerate(turns):
            fit: Fit | None = turn.__dict__.get(key)
            if fit is None:
                fit = turn.__dict__[key] = made_fit(turn, self.model, self.wire)
            for rule, place, action in fit.receipts:
                self.note(rule, f"turns[{index}]{place}", action)
            if fit.visible:
                fits.append((index, fit))
        return fits

    def paired(self, fits: list[tuple[int, Fit]]) -> list[Turn]:
        """Every call followed by its result, and no result without its call."""
        out: list[Turn] = []
        said: list[Turn] = []  # the model's turns since the last user turn
        heard: list[Turn] = []  # the user turns after them
        busy = False  # whether calls or results are among them
        first = 0
        for index, fit in fits:
            if fit.turn.role == "user":
                if not heard:
                    first = index
                heard.append(fit.turn)
                busy = busy or fit.results > 0
                continue
            if heard:
                said = self.closed(out, said, heard, first, busy=busy)
                heard, busy = [], bool(said)
            said.append(fit.turn)
            busy = busy or fit.calls > 0
        if heard:
            said = self.closed(out, said, heard, first, busy=busy)
        last = fits[-1][0] if fits else 0
        return out + self.ending(said, f"turns[{last}]", first=not out)

    def closed(self, out: list[Turn], said: list[Turn], heard: list[Turn], first: int, *, busy: bool) -> list[Turn]:
        """Add the model's turns and the user's after them to *out*; what of the model's still waits is returned."""
        if not busy:
            out += said
            out += heard
            return []
        where = f"turns[{first}]"
        calls = pairing.calls_of(said)
        answers = heard if calls else self.without_results(heard, where)
        if not answers:
            return said
        sent = self.flushed(said, where, first=not out)
        out += sent
        out += self.answered(calls, pairing.calls_of(sent), answers, where) if calls else answers
        return []

    def ending(self, tail: list[Turn], where: str, *, first: bool) -> list[Turn]:
        sent = self.flushed(tail, where, first=first)
        calls = pairing.calls_of(sent)
        if calls:
            self.note("unanswered", where, f"{_counted(len(calls), 'call')} without a result answered as not recorded")
            return [*sent, user(*map(pairing.unanswered, calls))]
        if tail and self.wire == "gemini" and refuses(self.model, "ends-with-model") != "never":
            self.note("ends-with-model", where, "a user turn `Continue.` was added")
            return [*sent, CONTINUE]
        return sent

    def without_results(self, turns: list[Turn], where: str) -> list[Turn]:
        """The turns without results, which answer no call here."""
        orphans = len(pairing.results_of(turns))
        if not orphans:
            return turns
        self.note("result-after-call", where, f"{_counted(orphans, 'result')} without a call left out")
        return list(self.without_result_parts(turns))

    def without_result_parts(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        for turn in turns:
            parts = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
            rest = turn if len(parts) == len(turn.parts) else replace(turn, parts=parts)
            if visible(rest, self.wire):
                yield rest

    def flushed(self, tail: list[Turn], where: str, *, first: bool) -> list[Turn]:
        """The model's turns as they can stand together, after a user turn where their calls need one."""
        if not pairing.calls_of(tail):
            return tail
        turns = self.merged(tail, where)
        calls = pairing.calls_of(turns)
        different = pairing.distinct(calls, self.wire)
        if any(new is not old for new, old in zip(different, calls, strict=True)):
            self.note("duplicate-id", where, "calls with one id were told apart by a number")
            turns = list(_with_calls(turns, iter(different)))
        if first and self.wire == "gemini":
            self.note("call-after-user", where, "a user turn `Continue.` was put before the first call")
            return [CONTINUE, *turns]
        return turns

    def merged(self, tail: list[Turn], where: str) -> list[Turn]:
        """Model turns from the first call on joined where nothing may stand between a call and its result."""
        first = next(index for index, turn in enumerate(tail) if pairing.calls_of([turn]))
        if self.wire == "gemini" or first == len(tail) - 1:
            return tail
        joined = tail[first]
        for turn in tail[first + 1 :]:
            joined = _join(joined, turn, self.model)
        self.note("unanswered", where, "model turns that stood apart were joined")
        return [*tail[:first], joined]

    def answered(self, calls: list[ToolCall], sent: list[ToolCall], turns: list[Turn], where: str) -> list[Turn]:
        """The user turns after *calls*, which were sent as *sent*, with one result for each of them first."""
        if calls == sent and pairing.paired(sent, turns, self.model, self.wire):
            return turns
        results = pairing.results_of(turns)
        matched = pairing.answer(calls, results)
        lost, orphans = matched.count(None), len(results) - len(matched) + matched.count(None)
        self.note("count", where, _pairing_words(lost, orphans, len(results)))
        answers = [
            replace(result, id=call.id, name=call.name, raw=None) if result else pairing.unanswered(call)
            for call, result in zip(sent, matched, strict=True)
        ]
        return [user(*answers), *self.without_result_parts(turns)]

    def within_size(self, turns: list[Turn]) -> list[Turn]:
        """The turns with the oldest media as words, so that together they are no more than a request may carry."""
        sizes = [inline_size(turn) for turn in turns]
        over = sum(sizes) - INLINE_LIMIT
        out = list(turns)
        for index, turn in enumerate(turns):
            if over > 0 and sizes[index]:
                over -= sizes[index]
                out[index] = replace(turn, parts=tuple(in_words(turn.parts)))
                self.note("payload-size", f"turn {index} of those sent", "media became words to keep the request small")
        return out

    def signed(self, turns: list[Turn]) -> list[Turn]:
        """The turns with the placeholder on calls of the current turn that have no signature."""
        if not wants_signatures(self.model, self.wire):
            return turns
        start = next((index + 1 for index in reversed(range(len(turns))) if self.asks(turns[index])), 0)
        return turns[:start] + [self.sign(turn, index) for index, turn in enumerate(turns[start:], start)]

    def asks(self, turn: Turn) -> bool:
        """Whether a new turn of the conversation begins after it: a user turn with anything but results."""
        return turn.role == "user" and not only_results(turn, self.model, self.wire)

    def sign(self, turn: Turn, index: int) -> Turn:
        first = next((place for place, part in enumerate(turn.parts) if isinstance(part, ToolCall)), None)
        call = turn.parts[first] if first is not None else None
        if turn.role != "model" or not isinstance(call, ToolCall) or call.signature:
            return turn
        self.note("signature", f"turn {index} of those sent", "a call without a signature got the placeholder")
        parts = list(turn.parts)
        parts[first or 0] = replace(call, signature=PLACEHOLDER_SIGNATURE, raw=None)
        return replace(turn, parts=tuple(parts))


def _with_calls(turns: Iterable[Turn], calls: Iterator[ToolCall]) -> Iterator[Turn]:
    """The turns with their calls, in order, taken from *calls*."""
    for turn in turns:
        yield replace(turn, parts=tuple(next(calls) if isinstance(part, ToolCall) else part for part in turn.parts))


def _join(one: Turn, other: Turn, model: str) -> Turn:
    """The two as one, *model*'s if either is; of their calls only the first keeps a placeholder for a signature."""
    own = any(turn.model is not None and not made_elsewhere(turn, model) for turn in (one, other))
    maker = one.model if one.model == other.model else model if own else None
    after = other.parts if not pairing.calls_of([one]) else tuple(map(_without_placeholder, other.parts))
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
