"""The form in which a part is sent: its raw form or its fields, its id, media as they are or as words. Pure.

`raw` is a part in its service's own form. It is sent, so it overrides the fields beside it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import orjson
from msgspec.structs import replace

from tertulia.jsonio import deeper_than
from tertulia.parts import (
    GENERATED_ID_PREFIX,
    USUAL_MIME,
    Media,
    Opaque,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    is_generated_id,
)
from tertulia.turns import Turn
from tertulia.wire import openai
from tertulia.wire.gemini import part_violations
from tertulia.wire.gemini_request import decode_base64, field
from tertulia.wire.generations import generation
from tertulia.wire.media_limits import SPELLINGS
from tertulia.wire.rules import GEMINI_RULES, PART_DEEPEST, when_mime_refused, when_refused
from tertulia.wire.signatures import Wire

_WITHIN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


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


def sent_ids(parts: Sequence[ToolCall | ToolResult], wire: Wire) -> list[str]:
    """Return the ids as they go on the wire; Gemini sees none of ours, OpenAI-compatible services need one on each."""
    if wire == "gemini":
        return ["" if not part.id or is_generated_id(part.id) else part.id for part in parts]
    return [part.id or f"{GENERATED_ID_PREFIX}{index}" for index, part in enumerate(parts)]


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
    [sent_id] = sent_ids([part], wire)
    return part.name, sent_id, part.signature if isinstance(part, ToolCall) else None


def gemini_mime(media: Media) -> str | None:
    """Return the MIME type that Gemini is sent; None if it is not known."""
    mime = media.mime or (USUAL_MIME.get(media.media_kind) if media.data else None)
    return SPELLINGS.get(mime.lower(), mime.lower()) if mime else None


def is_sent_inline(media: Media) -> bool:
    """Return whether Gemini gets the bytes themselves."""
    mime = gemini_mime(media)
    return bool(media.data and mime) and when_mime_refused(mime or "") == "never"


def is_sent_to_gemini(media: Media) -> bool:
    """Return whether Gemini gets the media, in bytes or by address; else it gets words."""
    mime = gemini_mime(media)
    return is_sent_inline(media) or (bool(media.uri) and (mime is None or when_mime_refused(mime) == "never"))


def words_unseen(media: Media) -> str:
    """Return the words for media before a model that takes none."""
    return "\n".join(filter(None, (media.words, unseen_note(media))))


def unseen_note(media: Media) -> str:
    """Return what a model that takes no media is told of those that nothing describes.

    A small model invents what is on a photo otherwise; said once for all in the instruction, it answers so to anything.
    """
    if media.rendered_text or media.label or media.same_as or media.media_kind not in USUAL_MIME:
        return ""
    sense = "hear" if media.media_kind in ("voice", "audio", "music") else "see"
    kind = media.kind_word.replace("_", " ")
    return f"(This {kind} has no description, and you read text only: say that you cannot {sense} it.)"


def fits_in_result(media: Media, model: str) -> bool:
    """Return whether Gemini takes the media inside the tool's result it came with."""
    return (
        is_sent_inline(media)
        and gemini_mime(media) in _WITHIN_RESULTS
        and when_refused(model, "result-parts") == "never"
    )


def file_uris(turns: Iterable[Turn]) -> list[str]:
    """Return the URIs of the media that are sent by URI, in order."""
    return [
        one.uri
        for turn in turns
        for part in turn.parts
        for one in media_of(part)
        if one.uri and not is_sent_inline(one)
    ]


def is_file(uri: str, file: str) -> bool:
    """Return whether *uri* is the address of an uploaded file with the id *file*."""
    return bool(file) and (uri == file or re.search(rf"(?:^|/)files/{re.escape(file)}(?:$|[/?])", uri) is not None)


def without_expired_files(turn: Turn, gone: Set[str]) -> Turn:
    """Return the turn without the URIs that are *gone*: such media are sent as bytes, or as words."""
    parts = tuple(_without_file(part, gone) for part in turn.parts)
    same = all(new is old for new, old in zip(parts, turn.parts, strict=True))
    return turn if same else replace(turn, parts=parts)


def media_of(part: Part) -> tuple[Media, ...]:
    """Return the media of a part or of a tool's result."""
    if isinstance(part, Media):
        return (part,)
    return part.media if isinstance(part, ToolResult) else ()


def _without_file(part: Part, gone: Set[str]) -> Part:
    if not any(one.uri in gone for one in media_of(part)):
        return part
    if isinstance(part, Media):
        return replace(part, uri=None, raw=None)
    assert isinstance(part, ToolResult)  # noqa: S101 (nothing else holds media)
    media = tuple(replace(one, uri=None, raw=None) if one.uri in gone else one for one in part.media)
    return replace(part, media=media, raw=None)


def has_only_results(turn: Turn, model: str, wire: Wire) -> bool:
    """Return whether only results are left of the turn once it is encoded: no media are sent beside them."""
    return all(
        isinstance(part, ToolResult) and not any(True for _ in media_beside_result(part, model, wire))
        for part in turn.parts
    )


def media_beside_result(result: ToolResult, model: str, wire: Wire) -> Iterator[Media]:
    """Yield the media of a result that are sent beside it. A result that is sent raw keeps its media inside."""
    if wire == "gemini" and result.raw is not None:
        return
    yield from (media for media in result.media if wire == "openai" or not fits_in_result(media, model))
