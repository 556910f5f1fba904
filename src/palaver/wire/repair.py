"""Making any history legal for a model, on a copy, and saying what was done. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import NothingToSend
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Turn, user
from palaver.wire import pairing
from palaver.wire.fit import Fit, in_words, inline_size, made_fit, visible
from palaver.wire.foreign_turns import Wire, made_elsewhere, wants_signatures
from palaver.wire.generations import is_gemini
from palaver.wire.media_support import only_results
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
        self.paired_key = f"paired {wire} {model}"
        self.receipts: list[Receipt] = []

    def note(self, rule: str, where: str, action: str) -> None:
        self.receipts.append(Receipt(rule=rule, where=where, action=action))

    def repair(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        fits = self.fits(turns)
        paired = self.paired(fits)
        if self.wire == "gemini" and sum(fit.inline for fit in fits if fit.inline) > INLINE_LIMIT:
            paired = self.within_size(paired)
        signed = self.signed(paired)
        if not signed:
            raise NothingToSend("no turn is left that a model could answer")
        return tuple(signed) if self.receipts else tuple(turns)

    def fits(self, turns: Sequence[Turn]) -> list[Fit]:
        """The turns, each made fit by itself; that is kept with the turn."""
        key = f"fit {self.wire} {self.model}"
        fits = [turn.__dict__.get(key) or self.made_fit(turn, key) for turn in turns]
        changed = [(index, receipt) for index, fit in enumerate(fits) if fit.receipts for receipt in fit.receipts]
        for index, (rule, place, action) in changed:
            self.note(rule, f"turns[{index}]{place}", action)
        return fits

    def made_fit(self, turn: Turn, key: str) -> Fit:
        fit = turn.__dict__[key] = made_fit(turn, self.model, self.wire)
        return fit

    def paired(self, fits: list[Fit]) -> list[Turn]:
        """The turns that go on the wire: every call followed by its result, and no result without its call."""
        out: list[Turn] = []
        said: list[Turn] = []  # the model's turns since the last user turn
        heard: list[Turn] = []  # the user turns after them
        has_tools = False  # whether calls or results are among them
        first = last = 0
        for index, fit in enumerate(fits):
            if not fit.visible:
                continue
            last = index
            if fit.is_user:
                if not heard:
                    first = index
                heard.append(fit.turn)
            else:
                if heard:
                    said = self.closed(out, said, heard, first, has_tools=has_tools)
                    heard, has_tools = [], bool(said)
                said.append(fit.turn)
            if fit.has_tools:
                has_tools = True
        if heard:
            said = self.closed(out, said, heard, first, has_tools=has_tools)
        return out + self.ending(said, f"turns[{last}]", first=not out)

    def closed(
        self, out: list[Turn], said: list[Turn], heard: list[Turn], first: int, *, has_tools: bool
    ) -> list[Turn]:
        """Add the model's turns and the user's after them to *out*; what of the model's still waits is returned."""
        if not has_tools or (out and self.known_as_paired(said, heard)):
            out += said
            out += heard
            return []
        where = f"turns[{first}]"
        calls = pairing.calls_of(said)
        answers = heard if calls else self.without_results(heard, where)
        if not answers:
            return said
        receipts = len(self.receipts)
        sent = self.flushed(said, where, first=not out)
        out += sent
        out += self.answered(calls, pairing.calls_of(sent), answers, where) if calls else answers
        if answers is heard and len(self.receipts) == receipts:
            self.remember_as_paired(said, heard)
        return []

    def known_as_paired(self, said: list[Turn], heard: list[Turn]) -> bool:
        """Whether these very turns were found to be paired before; the first of the user's remembers the others."""
        known: tuple[Turn, ...] | None = heard[0].__dict__.get(self.paired_key)
        if known is None or len(known) != len(said) + len(heard) - 1:
            return False
        return all(map(is_, known, chain(said, heard[1:])))

    def remember_as_paired(self, said: list[Turn], heard: list[Turn]) -> None:
        heard[0].__dict__[self.paired_key] = (*said, *heard[1:])

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
