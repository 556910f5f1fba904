"""A turn by itself made fit for a model, and what the rest needs to know of it. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.turns import Turn
from palaver.wire import openai, pairing
from palaver.wire.foreign import Wire, adapt
from palaver.wire.gemini import part_faults
from palaver.wire.media import goes_inline
from palaver.wire.reading import deeper_than, field, trimmed
from palaver.wire.rules import DEEPEST, GEMINI_RULES, generation


class Fit(Struct, frozen=True):
    """A turn by itself made fit for a model, with what was done to it and what the rest needs to know of it."""

    turn: Turn
    receipts: tuple[tuple[str, str, str], ...]  # rule, place in the turn, action
    visible: bool  # whether anything of it goes on the wire
    calls: int
    results: int
    inline: int  # how much base64 its media take in a request


def made_fit(turn: Turn, model: str, wire: Wire) -> Fit:
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
    return Fit(fit, tuple(receipts), visible(fit, wire), len(calls), len(results), inline_size(fit))


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
    if field(raw, "functionCall") is not None or field(raw, "functionResponse") is not None:
        return False
    return _legal(raw, model)


def _legal(part: dict[str, Any], model: str) -> bool:
    if deeper_than(part, DEEPEST - 10):
        return False
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
    inner = field(raw, "functionCall")
    if not isinstance(inner, dict) or not _legal(raw, model):
        return False
    [call_id] = pairing.sent_ids([call], wire)
    said = (inner.get("name"), inner.get("id") or "", field(raw, "thoughtSignature"))
    return said == (call.name, call_id, call.signature)


def _raw_result_stands(result: ToolResult, model: str, wire: Wire) -> bool:
    raw = result.raw or {}
    inner = field(raw, "functionResponse")
    if wire == "openai" or not isinstance(inner, dict) or not _legal(raw, model):
        return wire == "openai"
    [call_id] = pairing.sent_ids([result], wire)
    return (inner.get("name"), inner.get("id") or "") == (result.name, call_id)


def _role_of(part: ToolCall | ToolResult) -> str:
    return "model" if isinstance(part, ToolCall) else "user"


def visible(turn: Turn, wire: Wire) -> bool:
    """Whether anything of the turn goes on the wire."""
    if wire == "gemini":
        return bool(turn.parts)
    if turn.role == "user":
        return any(not isinstance(part, ToolCall) for part in turn.parts)
    return any(not isinstance(part, ToolResult | Thought) or _kept_thought(part) for part in turn.parts)


def _kept_thought(part: Part) -> bool:
    return isinstance(part, Thought) and part.field in openai.REASONING


def inline_size(turn: Turn) -> int:
    """How much base64 the turn's media take in a request."""
    size = 0
    for part in turn.parts:
        match part:
            case Media():
                size += _base64_size(part)
            case ToolResult(media=media):
                size += sum(map(_base64_size, media))
            case Opaque(raw=raw):
                blob = field(raw, "inlineData")
                data = field(blob, "data") if isinstance(blob, dict) else None
                size += len(data) if isinstance(data, str) else 0
    return size


def _base64_size(media: Media) -> int:
    return (len(media.data or b"") + 2) // 3 * 4 if goes_inline(media) else 0


def in_words(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        match part:
            case Media(data=bytes()):
                yield Text(text=part.words)
            case ToolResult(media=media) if media:
                yield replace(part, media=tuple(replace(one, data=None, uri=None) for one in media), raw=None)
            case Opaque(raw=raw) if field(raw, "inlineData") is not None:
                yield Text(text="[media]")
            case _:
                yield part
