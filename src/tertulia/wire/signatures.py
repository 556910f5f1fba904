"""Signatures: dropped from turns that another model made, with everything else that only its maker reads. Pure."""

from typing import Any, Literal

from msgspec.structs import replace

from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall
from tertulia.turns import Turn
from tertulia.wire.generations import is_gemini
from tertulia.wire.rules import PLACEHOLDER_SIGNATURE, when_refused

Wire = Literal["gemini", "openai"]

_SIGNATURES = ("thoughtSignature", "thought_signature")


def is_foreign(turn: Turn, model: str) -> bool:
    """Tell whether another model made the turn; a turn without a maker is sent as it is."""
    return turn.model is not None and turn.model.removeprefix("models/") != model.removeprefix("models/")


def requires_signatures(model: str, wire: Wire) -> bool:
    """Tell whether a call without a signature may be refused."""
    return (wire == "gemini" or is_gemini(model)) and when_refused(model, "signature") != "never"


def drop_foreign_signatures(turn: Turn, model: str, wire: Wire) -> Turn:
    """Drop signatures, raw fields and opaque parts of another model; its first call gets a placeholder if required."""
    if turn.model is None and wire == "openai" and not is_gemini(model):
        unsigned = unsigned_parts(turn)  # of an unknown maker, for a model that has none
        return turn if unsigned == turn.parts else replace(turn, parts=unsigned)
    if not is_foreign(turn, model):
        return turn
    parts = [stripped for part in turn.parts if (stripped := _strip_part(part)) is not None]
    first = next((index for index, part in enumerate(parts) if isinstance(part, ToolCall)), None)
    if first is not None and requires_signatures(model, wire):
        parts[first] = replace(parts[first], signature=PLACEHOLDER_SIGNATURE)
    return turn if tuple(parts) == turn.parts else replace(turn, parts=tuple(parts))


def unsigned_parts(turn: Turn) -> tuple[Part, ...]:
    """Return the parts of a turn without signatures for an OpenAI-compatible service; only Gemini models read one.

    A call in a turn of the user stays as it is: it is not sent.
    """
    is_sent = turn.role == "model"
    return tuple(
        part if isinstance(part, ToolCall) and not is_sent else _without_signature(part) for part in turn.parts
    )


def _without_signature(part: Part) -> Part:
    match part:
        case ToolCall(signature=str()) | ToolCall(raw=dict()):
            raw = part.raw and _raw_without_signatures(part.raw)
            return part if raw == part.raw and part.signature is None else replace(part, signature=None, raw=raw)
        case Opaque(raw=dict(raw)) | Text(raw=dict(raw)) | Media(raw=dict(raw)):
            rest = _raw_without_signatures(raw)
            return part if rest == raw else replace(part, raw=rest)
        case _:
            return part


def _raw_without_signatures(raw: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in raw.items() if key not in _SIGNATURES}
    match rest:
        case {"tool_call": dict(call)}:
            rest["tool_call"] = _raw_without_signatures(call)
        case {"extra_content": {"google": _, **others}}:
            rest["extra_content"] = others
    return {key: value for key, value in rest.items() if value or key != "extra_content"}


def _strip_part(part: Part) -> Part | None:
    match part:
        case Opaque():
            return None
        case Text(text="", signature=str()):
            return None  # a part that only carried its signature
        case ToolCall():
            is_plain = part.signature is None and part.raw is None
            return part if is_plain else replace(part, signature=None, raw=None)
        case Thought():
            return Thought(text=part.text)
        case Text() | Media() if part.signature is not None or part.raw is not None:
            return replace(part, signature=None, raw=None)
        case _:
            return part
