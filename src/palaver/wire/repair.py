"""Making any history legal for a model, on a copy, and saying what was done. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import NothingToSend
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Turn, user
from palaver.wire import openai, pairing
from palaver.wire.foreign import Wire, adapt, wants_signatures
from palaver.wire.gemini import part_faults
from palaver.wire.media import goes_inline, only_results
from palaver.wire.reading import trimmed
from palaver.wire.rules import (
    GEMINI_RULES,
    INLINE_LIMIT,
    PLACEHOLDER_SIGNATURE,
    generation,
    is_gemini,
    refuses,
)

CONTINUE = user("Continue.")


class Receipt(Struct, frozen=True, kw_only=True):
    """One thing that was changed: the rule it would have broken, where it stood, and what was done."""

    rule: str
    where: str
    action: str


class _Fit(Struct, frozen=True):
    """A turn by itself made fit for a model, with what was done to it and what the rest needs to know of it."""

    turn: Turn
    receipts: tuple[tuple[str, str, str], ...]  # rule, place in the turn, action
    visible: bool  # whether anything of it goes on the wire
    calls: int
    results: int
    inline: int  # how much base64 its media take in a request


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

    def fitting(self, turns: Sequence[Turn]) -> list[tuple[int, _Fit]]:
        """The turns that go on the wire, each made fit by itself; that is kept with the turn."""
        key = f"fit {self.wire} {self.model}"
        fits: list[tuple[int, _Fit]] = []
        for index, turn in enumerate(turns):
            fit: _Fit | None = turn.__dict__.get(key)
            if fit is None:
                fit = turn.__dict__[key] = _made_fit(turn, self.model, self.wire)
            for rule, place, action in fit.receipts:
                self.note(rule, f"turns[{index}]{place}", action)
            if fit.visible:
                fits.append((index, fit))
        return fits

    def paired(self, fits: list[tuple[int, _Fit]]) -> list[Turn]:
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
            self.note("unanswered", where, f"{len(calls)} calls without a result were answered as not recorded")
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
        self.note("result-after-call", where, f"{orphans} results without a call were left out")
        return list(self.without_result_parts(turns))

    def without_result_parts(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        for turn in turns:
            parts = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
            rest = turn if len(parts) == len(turn.parts) else replace(turn, parts=parts)
            if _visible(rest, self.wire):
                yield rest

    def flushed(self, tail: list[Turn], where: str, *, first: bool) -> list[Turn]:
        """The model's turns as they can stand together, after a user turn where their calls need one."""
        calls = pairing.calls_of(tail)
        if not calls:
            return tail
        turns = self.merged(tail, where)
        different = pairing.distinct(calls, self.wire)
        if any(new is not old for new, old in zip(different, calls, strict=True)):
            self.note("duplicate-id", where, "calls with one id were told apart by a number")
            turns = list(_with_calls(turns, iter(different)))
        if first and self.wire == "gemini":
            self.note("call-after-user", where, "a user turn `Continue.` was put before the first call")
            return [CONTINUE, *turns]
        return turns

    def merged(self, tail: list[Turn], where: str) -> list[Turn]:
        """Model turns joined where the service wants a call in the same content as what stands beside it."""
        turns: list[Turn] = []
        for turn in tail:
            while turns and self.belongs(turns, turn):
                turn = _join(turns.pop(), turn)
            turns.append(turn)
        if len(turns) < len(tail):
            self.note("call-after-text", where, "model turns that stood apart were joined")
        return turns

    def belongs(self, before: list[Turn], turn: Turn) -> bool:
        if self.wire == "gemini":
            return bool(pairing.calls_of([turn])) and not pairing.calls_of(before[-1:])
        return bool(pairing.calls_of(before))

    def answered(self, calls: list[ToolCall], sent: list[ToolCall], turns: list[Turn], where: str) -> list[Turn]:
        """The user turns after *calls*, which were sent as *sent*, with one result for each of them first."""
        if calls == sent and pairing.paired(sent, turns, self.model, self.wire):
            return turns
        results = pairing.results_of(turns)
        matched = pairing.answer(calls, results)
        lost, orphans = matched.count(None), len(results) - len(matched) + matched.count(None)
        self.note("count", where, _pairing_words(lost, orphans))
        answers = [
            replace(result, id=call.id, name=call.name, raw=None) if result else pairing.unanswered(call)
            for call, result in zip(sent, matched, strict=True)
        ]
        return [user(*answers), *self.without_result_parts(turns)]

    def within_size(self, turns: list[Turn]) -> list[Turn]:
        """The turns with the oldest media as words, so that together they are no more than a request may carry."""
        sizes = [_inline_size(turn) for turn in turns]
        over = sum(sizes) - INLINE_LIMIT
        out = list(turns)
        for index, turn in enumerate(turns):
            if over > 0 and sizes[index]:
                over -= sizes[index]
                out[index] = replace(turn, parts=tuple(_in_words(turn.parts)))
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


def _made_fit(turn: Turn, model: str, wire: Wire) -> _Fit:
    """The turn without what this model may not be sent, each part by itself."""
    receipts: list[tuple[str, str, str]] = []
    adapted = adapt(turn, model, wire)
    if adapted is not turn:
        receipts.extend(_foreign_receipts(turn))
    parts: list[Part] = []
    for place, part in enumerate(adapted.parts):
        kept, rule, action = _clean_part(part, adapted.role, model, wire)
        if action:
            receipts.append((rule, f".parts[{place}]", action))
        if kept is not None:
            parts.append(kept)
    same = len(parts) == len(adapted.parts) and all(a is b for a, b in zip(parts, adapted.parts, strict=True))
    fit = adapted if same else replace(adapted, parts=tuple(parts))
    calls, results = pairing.calls_of([fit]), pairing.results_of([fit])
    return _Fit(fit, tuple(receipts), _visible(fit, wire), len(calls), len(results), _inline_size(fit))


def _foreign_receipts(turn: Turn) -> Iterator[tuple[str, str, str]]:
    for place, part in enumerate(turn.parts):
        if isinstance(part, Opaque):
            yield "foreign", f".parts[{place}]", f"a part only {turn.model} understands was left out"
        elif isinstance(part, Text | Media | Thought | ToolCall) and part.signature:
            yield "foreign", f".parts[{place}]", f"a signature of {turn.model} was left out"


def _clean_part(part: Part, role: str, model: str, wire: Wire) -> tuple[Part | None, str, str]:
    """The part as it may go, or None; with the rule and the words when it changed."""
    match part:
        case Opaque():
            return _clean_opaque(part, role, model, wire)
        case ToolCall() | ToolResult() if role != _role_of(part):
            gone = wire == "gemini"  # the other encoder has no place for it anyway
            return (
                (None, "misplaced-call", "a call or result in a turn of the wrong role was left out")
                if gone
                else (part, "", "")
            )
        case ToolCall():
            return _clean_call(part, model, wire)
        case ToolResult(raw=dict()) if not _raw_result_stands(part, model, wire):
            return replace(part, raw=None), "unknown-field", "fields the service does not know were left out"
        case _:
            return part, "", ""


def _clean_opaque(part: Opaque, role: str, model: str, wire: Wire) -> tuple[Part | None, str, str]:
    if wire == "openai":
        kept = openai.opaque_is_legal(part.raw, role, model)
        return (part, "", "") if kept else (None, "part-type", "a part the service does not know was left out")
    trim = trimmed(part.raw)
    if not _is_plain_data(trim, model):
        return None, "no-data", "a part without data the service knows was left out"
    if trim == part.raw:
        return part, "", ""
    return Opaque(raw=trim), "unknown-field", "fields the service does not know were left out"


def _is_plain_data(raw: dict[str, Any], model: str) -> bool:
    """Whether the part is legal by itself and is neither a call nor a result, which have values of their own."""
    if any(name in raw for name in ("functionCall", "function_call", "functionResponse", "function_response")):
        return False
    return _legal(raw, model)


def _legal(part: dict[str, Any], model: str) -> bool:
    return all(GEMINI_RULES[fault.rule].when(generation(model)) == "never" for fault in part_faults(part))


def _clean_call(call: ToolCall, model: str, wire: Wire) -> tuple[Part | None, str, str]:
    if call.raw is not None and not _raw_call_stands(call, model, wire):
        kept, rule, action = _clean_call(replace(call, raw=None), model, wire)
        return kept, rule or "unknown-field", action or "fields the service does not know were left out"
    name = call.name or "unknown_function"
    if wire == "openai" and not openai.NAME.fullmatch(name):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]
    if name == call.name:
        return call, "", ""
    return replace(call, name=name, raw=None), "call-name", f"a call was renamed {name}"


def _raw_call_stands(call: ToolCall, model: str, wire: Wire) -> bool:
    """Whether the call as received is legal and says what its fields say."""
    raw = call.raw or {}
    if wire == "openai":
        return openai.raw_call_says(raw, call)
    inner = trimmed(raw).get("functionCall")
    if not isinstance(inner, dict) or not _legal(raw, model):
        return False
    signature = raw.get("thoughtSignature", raw.get("thought_signature"))
    [call_id] = pairing.sent_ids([call], wire)
    return (inner.get("name"), inner.get("id") or "", signature) == (call.name, call_id, call.signature)


def _raw_result_stands(result: ToolResult, model: str, wire: Wire) -> bool:
    raw = result.raw or {}
    inner = trimmed(raw).get("functionResponse")
    if wire == "openai" or not isinstance(inner, dict) or not _legal(raw, model):
        return wire == "openai"
    [call_id] = pairing.sent_ids([result], wire)
    return (inner.get("name"), inner.get("id") or "") == (result.name, call_id)


def _with_calls(turns: Iterable[Turn], calls: Iterator[ToolCall]) -> Iterator[Turn]:
    """The turns with their calls, in order, taken from *calls*."""
    for turn in turns:
        yield replace(turn, parts=tuple(next(calls) if isinstance(part, ToolCall) else part for part in turn.parts))


def _join(one: Turn, other: Turn) -> Turn:
    maker = one.model if one.model == other.model else None
    return Turn(role=one.role, parts=one.parts + other.parts, model=maker)


def _role_of(part: ToolCall | ToolResult) -> str:
    return "model" if isinstance(part, ToolCall) else "user"


def _visible(turn: Turn, wire: Wire) -> bool:
    """Whether anything of the turn goes on the wire."""
    if wire == "gemini":
        return bool(turn.parts)
    if turn.role == "user":
        return any(not isinstance(part, ToolCall) for part in turn.parts)
    return any(not isinstance(part, ToolResult | Thought) or _kept_thought(part) for part in turn.parts)


def _kept_thought(part: Part) -> bool:
    return isinstance(part, Thought) and part.field is not None


def _pairing_words(lost: int, orphans: int) -> str:
    done = ["results were put in the order of their calls, under their ids"]
    if lost:
        done.append(f"{lost} calls without a result were answered as not recorded")
    if orphans > 0:
        done.append(f"{orphans} results without a call were left out")
    return "; ".join(done)


def _inline_size(turn: Turn) -> int:
    """How much base64 the turn's media take in a request."""
    size = 0
    for part in turn.parts:
        match part:
            case Media():
                size += _base64_size(part)
            case ToolResult(media=media):
                size += sum(map(_base64_size, media))
            case Opaque(raw=raw):
                blob = trimmed(raw).get("inlineData")
                size += len(blob.get("data", "")) if isinstance(blob, dict) else 0
    return size


def _base64_size(media: Media) -> int:
    return (len(media.data or b"") + 2) // 3 * 4 if goes_inline(media) else 0


def _in_words(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        match part:
            case Media(data=bytes()):
                yield Text(text=part.words)
            case ToolResult(media=media) if media:
                yield replace(part, media=(), raw=None)
            case Opaque(raw=raw) if "inlineData" in trimmed(raw):
                yield Text(text="[media]")
            case _:
                yield part
