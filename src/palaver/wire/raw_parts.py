"""Raw parts: what a part says in its service's own form. `raw` is sent, so it overrides the fields beside it. Pure."""

from typing import Any

import orjson

from palaver.jsonio import deeper_than
from palaver.parts import Media, Opaque, Text, Thought, ToolCall, ToolResult
from palaver.wire import openai, pairing
from palaver.wire.gemini import part_violations
from palaver.wire.gemini_request import decode_base64, field
from palaver.wire.generations import generation
from palaver.wire.rules import GEMINI_RULES, PART_DEEPEST
from palaver.wire.signatures import Wire


def is_legal_part(part: dict[str, Any], model: str) -> bool:
    """Tell whether a part of a Gemini content is legal by itself."""
    if deeper_than(part, PART_DEEPEST):
        return False
    return all(GEMINI_RULES[violation.rule].when(generation(model)) == "never" for violation in part_violations(part))


def raw_if_unchanged(part: Text | Thought | Media, wire: Wire) -> dict[str, Any] | None:
    """Return the raw form of a part, if this is its service's wire and its fields still say the same."""
    if part.raw is None:
        return None
    same = _same_on_gemini(part, part.raw) if wire == "gemini" else _same_on_openai(part, part.raw)
    return part.raw if same else None


def _same_on_gemini(part: Text | Thought | Media, raw: dict[str, Any]) -> bool:
    if "type" in raw or field(raw, "thoughtSignature") != part.signature:
        return False
    inline, file = field(raw, "inlineData"), field(raw, "fileData")
    if isinstance(part, Text | Thought):
        return field(raw, "text") == part.text and bool(field(raw, "thought")) == isinstance(part, Thought)
    if isinstance(inline, dict):
        data = field(inline, "data")
        return isinstance(data, str) and field(inline, "mimeType") == part.mime and decode_base64(data) == part.data
    return isinstance(file, dict) and part.data is None and field(file, "fileUri") == part.uri


def _same_on_openai(part: Text | Thought | Media, raw: dict[str, Any]) -> bool:
    kind = raw.get("type")
    inner = raw.get(kind) if isinstance(kind, str) else None
    if isinstance(part, Text):
        return kind in openai.TEXTS and raw.get("text") == part.text
    if isinstance(part, Thought) or not isinstance(inner, dict):
        return False
    url, data = inner.get("url"), inner.get("data")
    if isinstance(url, str) and not url.startswith("data:"):
        return url == part.uri
    encoded = url.partition(",")[2] if isinstance(url, str) else data
    return isinstance(encoded, str) and part.data is not None and decode_base64(encoded) == part.data


def sent_call(call: ToolCall, model: str, wire: Wire) -> ToolCall | None:
    """Return the call that `raw` says, the same object where they agree; None where `raw` is illegal or no call."""
    raw = call.raw or {}
    if wire == "openai":
        decoded = decode_openai_call(raw, call.name) if _is_legal_call(raw) else None
    else:
        found = decode_gemini_part(raw) if is_legal_part(raw, model) else None
        decoded = found if isinstance(found, ToolCall) else None
    return call if decoded and _sent_content(call, wire) == _sent_content(decoded, wire) else decoded


def sent_result(result: ToolResult, model: str, wire: Wire) -> ToolResult | None:
    """Return the result that `raw` says; OpenAI-compatible services are not sent the `raw` of a result."""
    if wire == "openai":
        return result
    raw = result.raw or {}
    decoded = decode_gemini_part(raw) if is_legal_part(raw, model) else None
    if not isinstance(decoded, ToolResult):
        return None
    return result if _sent_content(result, wire) == _sent_content(decoded, wire) else decoded


def sent_opaque(part: Opaque, wire: Wire) -> Opaque | ToolCall | ToolResult | None:
    """Return a legal opaque part, as a call or a result where the service reads one in it."""
    if wire == "gemini":
        return decode_gemini_part(part.raw) or part
    call = part.raw.get("tool_call") if "type" not in part.raw else None
    if call is None:
        return part
    return decode_openai_call(call, "custom") if isinstance(call, dict) and _is_legal_call(call) else None


def decode_gemini_part(raw: dict[str, Any]) -> ToolCall | ToolResult | None:
    """Decode the call or the result in a legal part of a Gemini content."""
    call, result = field(raw, "functionCall"), field(raw, "functionResponse")
    if isinstance(call, dict):
        return ToolCall(
            name=call["name"],
            args=call.get("args") or {},
            id=call.get("id"),
            signature=field(raw, "thoughtSignature"),
            raw=raw,
        )
    if isinstance(result, dict):
        return ToolResult(name=result["name"], value=result["response"], id=result.get("id"), raw=raw)
    return None


def decode_openai_call(raw: dict[str, Any], name: str) -> ToolCall:
    """Decode a legal tool call of an OpenAI-compatible message; *name* where it has no legal name."""
    function, custom = raw.get("function"), raw.get("custom")
    inner: dict[str, Any] = next((one for one in (function, custom) if isinstance(one, dict)), {})
    named = inner.get("name")
    return ToolCall(
        name=openai.legal_name(named if isinstance(named, str) else name),
        args=_arguments(inner),
        id=raw["id"],
        signature=openai.signature_of(raw),
        raw=raw,
    )


def _arguments(inner: dict[str, Any]) -> dict[str, Any]:
    """Return a function's arguments; the text of a custom tool is its `input`."""
    text = inner.get("arguments")
    if isinstance(text, str) and openai.is_json_object(text):
        found: dict[str, Any] = orjson.loads(text)
        return found
    return {"input": inner["input"]} if "input" in inner else {}


def _is_legal_call(raw: dict[str, Any]) -> bool:
    return not deeper_than(raw, PART_DEEPEST) and openai.call_is_legal(raw)


def _sent_content(part: ToolCall | ToolResult, wire: Wire) -> tuple[str, str, str | None]:
    [sent_id] = pairing.sent_ids([part], wire)
    return part.name, sent_id, part.signature if isinstance(part, ToolCall) else None
