"""What of a turn may go to a model that did not make it. Pure."""

from typing import Any, Literal

from msgspec.structs import replace

from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall
from palaver.turns import Turn
from palaver.wire.generations import is_gemini
from palaver.wire.rules import PLACEHOLDER_SIGNATURE, refuses

Wire = Literal["gemini", "openai"]

_SIGNATURES = ("thoughtSignature", "thought_signature")


def made_elsewhere(turn: Turn, model: str) -> bool:
    """Whether another model made the turn; one without a maker is sent as it stands."""
    return turn.model is not None and turn.model.removeprefix("models/") != model.removeprefix("models/")


def wants_signatures(model: str, wire: Wire) -> bool:
    """Whether a call may be refused for want of a signature."""
    return (wire == "gemini" or is_gemini(model)) and refuses(model, "signature") != "never"


def adapt(turn: Turn, model: str, wire: Wire) -> Turn:
    """The turn without what only its maker understands; its first call signed with the placeholder where one is due."""
    if not made_elsewhere(turn, model):
        return _for_strangers(turn) if turn.model is None and wire == "openai" and not is_gemini(model) else turn
    parts = [stripped for part in turn.parts if (stripped := _strip(part)) is not None]
    first = next((index for index, part in enumerate(parts) if isinstance(part, ToolCall)), None)
    if first is not None and wants_signatures(model, wire):
        parts[first] = replace(parts[first], signature=PLACEHOLDER_SIGNATURE)
    return turn if tuple(parts) == turn.parts else replace(turn, parts=tuple(parts))


def unsigned(part: Part) -> Part:
    """The part without a signature that would go on OpenAI's wire, where only a Gemini knows what it is."""
    match part:
        case ToolCall(signature=str()) | ToolCall(raw=dict()):
            raw = part.raw and _unsigned(part.raw)
            return part if raw == part.raw and part.signature is None else replace(part, signature=None, raw=raw)
        case Opaque(raw=dict(raw)) | Text(raw=dict(raw)) | Media(raw=dict(raw)):
            kept = _unsigned(raw)
            return part if kept == raw else replace(part, raw=kept)
        case _:
            return part


def _for_strangers(turn: Turn) -> Turn:
    """A turn of a maker that is not known, for a model that signs nothing."""
    parts = tuple(map(unsigned, turn.parts))
    return turn if parts == turn.parts else replace(turn, parts=parts)


def _unsigned(raw: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in raw.items() if key not in _SIGNATURES}
    match kept:
        case {"tool_call": dict(call)}:
            kept["tool_call"] = _unsigned(call)
        case {"extra_content": {"google": _, **others}}:
            kept["extra_content"] = others
    return {key: value for key, value in kept.items() if value or key != "extra_content"}


def _strip(part: Part) -> Part | None:
    match part:
        case Opaque():
            return None
        case Text(text="", signature=str()):
            return None  # it only carried the signature
        case ToolCall():
            return replace(part, signature=None, raw=None) if part.signature or part.raw is not None else part
        case Thought():
            return Thought(text=part.text)
        case Text() | Media() if part.signature or part.raw is not None:
            return replace(part, signature=None, raw=None)
        case _:
            return part
