"""Repair of one turn by itself: parts that a model may not be sent are changed or left out. Pure."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn
from tertulia.wire import openai
from tertulia.wire.gemini import size_within
from tertulia.wire.gemini_request import field, without_unknown_fields
from tertulia.wire.part_forms import (
    is_legal_part,
    is_sent_inline,
    media_beside_result,
    raw_if_unchanged,
    sent_call,
    sent_opaque,
    sent_result,
)
from tertulia.wire.rules import when_refused
from tertulia.wire.signatures import Wire, drop_foreign_signatures, unsigned_parts

OPAQUE_MEDIA = "[media]"  # stands for media that only its maker can read

_UNKNOWN = "fields the service does not know were left out"


class RepairedTurn(Struct, frozen=True):
    """A turn that a model may be sent, its receipts, and what `repair` asks about it."""

    turn: Turn | None  # None: the turn as it is, which has this in its cache, and is freed with its last reference
    receipts: tuple[tuple[str, str, str], ...]  # rule, place in the turn, action
    is_visible: bool  # whether anything of it goes on the wire
    is_user: bool
    has_tools: bool  # whether calls or results are in it
    inline: int  # how much base64 its media take in a request


def repair_turn(turn: Turn, model: str, wire: Wire) -> RepairedTurn:
    """Repair each part of a turn by itself.

    Some changes have no receipt: the request stays the same, and a call or result is only decoded from its raw form.
    """
    adapted = drop_foreign_signatures(turn, model, wire)
    receipts = [] if adapted is turn else list(_foreign_receipts(turn))
    cleaned: list[tuple[Part, Part]] = []  # before and after repair
    for place, part in enumerate(adapted.parts):
        sendable, rule, action = _clean_part(part, adapted, model, wire)
        if action:
            receipts.append((rule, f".parts[{place}]", action))
        if sendable is not None:
            cleaned.append((part, sendable))
    if _is_misplaced(cleaned, model, wire):
        receipts.append(("text-after-results", "", "results were separated from the other parts"))
    if wire == "openai":  # its encoder puts a call that was opaque after all other parts
        cleaned.sort(key=lambda change: isinstance(change[0], Opaque) and isinstance(change[1], ToolCall))
    parts = [part for _, part in cleaned]
    same = len(parts) == len(adapted.parts) and all(a is b for a, b in zip(parts, adapted.parts, strict=True))
    repaired = adapted if same else replace(adapted, parts=tuple(parts))
    changed = None if repaired is turn else repaired
    has_tools = any(isinstance(part, ToolCall | ToolResult) for part in repaired.parts)
    return RepairedTurn(
        changed, tuple(receipts), is_visible(repaired, wire), repaired.role == "user", has_tools, inline_size(repaired)
    )


def _is_misplaced(cleaned: list[tuple[Part, Part]], model: str, wire: Wire) -> bool:
    """Tell whether the encoder would put a result that was opaque beside a part that may not be there."""
    opaque = any(isinstance(was, Opaque) and isinstance(part, ToolResult) for was, part in cleaned)
    if not opaque or when_refused(model, "text-after-results") == "never":
        return False
    before = after = ""  # the two contents it makes, a letter a part: r for a result
    answered = False
    for was, part in cleaned:
        answered = answered or isinstance(was, ToolResult)
        letter = "r" if isinstance(part, ToolResult) else "."
        if answered and not isinstance(was, ToolResult):
            after += letter
        else:
            before += letter
        if isinstance(part, ToolResult):
            after += "." * len(list(media_beside_result(part, model, wire)))
    return "r." in before or "r." in after or ("." in before and "r" in after)


def _foreign_receipts(turn: Turn) -> Iterator[tuple[str, str, str]]:
    for place, (part, unsigned) in enumerate(zip(turn.parts, unsigned_parts(turn), strict=True)):
        if turn.model is None:
            if unsigned is not part:
                yield "foreign", f".parts[{place}]", "a signature of an unknown maker was left out"
        elif isinstance(part, Opaque):
            yield "foreign", f".parts[{place}]", f"a part only {turn.model} understands was left out"
        elif isinstance(part, Text | Media | Thought | ToolCall) and part.signature is not None:
            yield "foreign", f".parts[{place}]", f"a signature of {turn.model} was left out"


def _clean_part(part: Part, turn: Turn, model: str, wire: Wire) -> tuple[Part | None, str, str]:
    """Return the part as it may be sent, or None; the rule and the action where that changes what is sent."""
    match part:
        case Opaque():
            sendable, rule, action = _clean_opaque(part, turn, model, wire)
        case Text(raw=dict()) | Thought(raw=dict()) | Media(raw=dict()):
            sendable, rule, action = _clean_received(part, turn, model, wire)
        case ToolCall():
            sendable, rule, action = _clean_call(part, model, wire)
        case ToolResult(raw=dict()):
            sent = sent_result(part, model, wire)
            known = sent is not None
            sendable, rule, action = (sent, "", "") if known else (replace(part, raw=None), "unknown-field", _UNKNOWN)
        case _:
            sendable, rule, action = part, "", ""
    role = "model" if isinstance(sendable, ToolCall) else "user"
    if not isinstance(sendable, ToolCall | ToolResult) or turn.role == role:
        return sendable, rule, action
    if wire == "openai":
        return None, "", ""  # the encoder has no place for it anyway
    return None, "misplaced-call", "a call or result in a turn of the wrong role was left out"


def _clean_opaque(part: Opaque, turn: Turn, model: str, wire: Wire) -> tuple[Part | None, str, str]:
    if not part.raw and (wire == "gemini" or turn.role == "model"):
        return None, "", ""  # nothing goes for nothing
    if wire == "openai":
        known = openai.opaque_is_legal(part.raw, turn.role, model, own=turn.model is not None)
        sendable = sent_opaque(part, wire) if known else None
        return (sendable, "", "") if sendable else (None, "part-type", "a part the service does not know was left out")
    trim = without_unknown_fields(part.raw)
    if not is_legal_part(trim, model):
        return None, "no-data", "a part without data the service knows was left out"
    if trim == part.raw:
        return sent_opaque(part, wire), "", ""
    return sent_opaque(Opaque(raw=trim), wire), "unknown-field", _UNKNOWN


def _clean_received(
    part: Text | Thought | Media, turn: Turn, model: str, wire: Wire
) -> tuple[Text | Thought | Media, str, str]:
    """Return the part with as much of its raw form as the service accepts."""
    raw = raw_if_unchanged(part, wire)
    if raw is None:
        return replace(part, raw=None), "", ""  # the encoder goes by the fields, too
    if wire == "openai":
        legal = openai.opaque_is_legal(raw, turn.role, model, own=turn.model is not None)
        return (part, "", "") if legal else (replace(part, raw=None), "unknown-field", _UNKNOWN)
    trim = without_unknown_fields(raw)
    sendable = trim if is_legal_part(trim, model) else None
    return (part, "", "") if sendable == raw else (replace(part, raw=sendable), "unknown-field", _UNKNOWN)


def _clean_call(call: ToolCall, model: str, wire: Wire) -> tuple[Part, str, str]:
    if call.raw is not None:
        sent = sent_call(call, model, wire)
        if sent is not None:
            return sent, "", ""
        sendable, rule, action = _clean_call(replace(call, raw=None), model, wire)
        return sendable, rule or "unknown-field", action or _UNKNOWN
    name = openai.legal_name(call.name) if wire == "openai" else call.name or "unknown_function"
    if name == call.name:
        return call, "", ""
    return replace(call, name=name), "call-name", f"a call was renamed {name}"


def is_visible(turn: Turn, wire: Wire) -> bool:
    """Tell whether any part of the turn is sent."""
    if wire == "gemini":
        return bool(turn.parts)
    if turn.role == "user":
        return any(not isinstance(part, ToolCall) for part in turn.parts)
    return any(
        part.field in openai.REASONING if isinstance(part, Thought) else not isinstance(part, ToolResult)
        for part in turn.parts
    )


def inline_size(turn: Turn) -> int:
    """Return the size of the turn's media in a request, as base64."""
    size = 0
    for part in turn.parts:
        match part:
            case Media():
                size += _base64_size(part)
            case ToolResult(raw=dict(raw)):
                size += size_within(field(raw, "functionResponse"))
            case ToolResult(media=media):
                size += sum(map(_base64_size, media))
            case Opaque(raw=raw):
                blob = field(raw, "inlineData")
                data = field(blob, "data") if isinstance(blob, dict) else None
                size += len(data) if isinstance(data, str) else 0
    return size


def _base64_size(media: Media) -> int:
    return (len(media.data or b"") + 2) // 3 * 4 if is_sent_inline(media) else 0


def media_as_words(parts: Iterable[Part]) -> Iterator[Part]:
    """Replace inline media by words."""
    for part in parts:
        match part:
            case Media(data=bytes()):
                yield Text(text=part.words)
            case ToolResult(media=media, raw=raw) if media or raw is not None:
                yield replace(part, media=tuple(replace(one, data=None, uri=None) for one in media), raw=None)
            case Opaque(raw=raw) if field(raw, "inlineData") is not None:
                yield Text(text=OPAQUE_MEDIA)
            case _:
                yield part
