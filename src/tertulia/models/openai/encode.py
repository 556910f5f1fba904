"""From our turns to OpenAI-compatible JSON. Pure."""

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from tertulia.characters import one_line
from tertulia.jsonio import dump_items, dumps, join_items, lower_types
from tertulia.models.openai.settings import sent_settings
from tertulia.models.openai.vendors import Vendor, for_model, vendor_of
from tertulia.parts import MAX_LABEL, USUAL_MIME, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Prompt, ToolSpec, Turn
from tertulia.value_cache import cached
from tertulia.wire.openai import REASONING
from tertulia.wire.part_forms import raw_if_unchanged, sent_ids, words_unseen
from tertulia.wire.repair import Receipt
from tertulia.wire.signatures import drop_foreign_signatures

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def encode_request(prompt: Prompt, *, model: str, vendor: Vendor | None = None) -> bytes:
    """Encode a chat-completions request; turns that were encoded before are joined from their cached bytes."""
    vendor = vendor or for_model(vendor_of(model), model)
    key = _key(model, vendor)
    turns = [turn.__dict__.get(key) or _fragment(turn, model, vendor) for turn in prompt.turns]
    fields: list[tuple[bytes, bytes]] = []
    sent = sent_settings(prompt, model, vendor)
    if sent.tools:
        declarations = b",".join(cached(tool, "openai", _declaration) for tool in sent.tools)
        fields.append((b"tools", b"[%b]" % declarations))
    fields += [(name.encode(), dumps(value)) for name, value in sent.fields.items()]
    tail = b"".join(b',"%b":%b' % field for field in fields)
    head = b'{"model":%b,"messages":[' % dumps(model)
    return join_items(head, [*_system(prompt, model), *filter(None, turns)], b"]%b}" % tail)


def as_stream(body: bytes, vendor: Vendor) -> bytes:
    """Return an encoded request as one whose response is streamed."""
    options = b',"stream_options":{"include_usage":true}' if vendor.usage_in_streams else b""
    return b'%b,"stream":true%b}' % (body[:-1], options)


def encode_turn(turn: Turn, *, model: str, vendor: Vendor | None = None) -> bytes:
    """Encode a turn as a JSON array of messages: one, one for each tool result, or none if nothing is sent."""
    return b"[%b]" % _fragment(turn, model, vendor or for_model(vendor_of(model), model))


def _key(model: str, vendor: Vendor) -> str:
    return f"openai {vendor.name} {vendor.audio} {model}"


def _fragment(turn: Turn, model: str, vendor: Vendor) -> bytes:
    """Return the turn's messages as bytes; cached."""

    def encode(turn: Turn) -> bytes:
        parts = drop_foreign_signatures(turn, model, "openai").parts
        messages = _assistant(parts, vendor) if turn.role == "model" else _user(parts, vendor)
        return dump_items(messages)

    return cached(turn, _key(model, vendor), encode)


def _system(prompt: Prompt, model: str) -> Iterator[bytes]:
    if prompt.instruction:
        role = "user" if model.startswith(("o1-mini", "o1-preview")) else "system"
        yield dumps({"role": role, "content": prompt.instruction})


def _assistant(parts: tuple[Part, ...], vendor: Vendor) -> Iterator[dict[str, Any]]:
    """Yield one message: text and media as content, calls, and the other fields that the model sent."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    content: list[dict[str, Any]] = []
    message: dict[str, Any] = {}
    others: list[Any] = []  # calls of unknown types
    for part in parts:
        match part:
            case Text(text=text):
                content.append(raw_if_unchanged(part, "openai") or {"type": "text", "text": text})
            case Media():
                content.append(raw_if_unchanged(part, "openai") or {"type": "text", "text": part.words})
            case Thought(text=text, field=str(field)) if field in REASONING:
                message[field] = message.get(field, "") + text
            case Opaque(raw={"type": _}):
                content.append(part.raw)
            case Opaque(raw={"tool_call": call}):
                others.append(call)
            case Opaque(raw=raw):
                message.update(raw)
    if not content and not calls and not message and not others:
        return
    said: dict[str, Any] = {"role": "assistant", "content": _assistant_content(content, calls=bool(calls))}
    if calls or others:
        ids = sent_ids(calls, "openai")
        said["tool_calls"] = [_call(call, name, vendor) for call, name in zip(calls, ids, strict=True)]
        said["tool_calls"] += [_under_vendor_id(call, vendor) for call in others]
    yield {**said, **message}


def _assistant_content(content: list[dict[str, Any]], *, calls: bool) -> str | list[dict[str, Any]] | None:
    if any(part["type"] != "text" or len(part) > 2 or not isinstance(part.get("text"), str) for part in content):
        return content
    if content:
        return "".join(part["text"] for part in content)
    return None if calls else ""


def _call(call: ToolCall, call_id: str, vendor: Vendor) -> Any:
    if call.raw is not None:
        return _under_vendor_id(call.raw, vendor)
    encoded: dict[str, Any] = {
        "id": _vendor_id(call_id, vendor),
        "type": "function",
        "function": {"name": call.name, "arguments": dumps(call.args).decode()},
    }
    if call.signature:
        encoded["extra_content"] = {"google": {"thought_signature": call.signature}}
    return encoded


def _under_vendor_id(call: Any, vendor: Vendor) -> Any:
    if not vendor.nine_character_ids or not isinstance(call, dict) or not isinstance(call.get("id"), str):
        return call
    return {**call, "id": _vendor_id(call["id"], vendor)}


def _vendor_id(call_id: str, vendor: Vendor) -> str:
    """Return the id, or a stable one derived from it if the vendor requires nine characters."""
    if not vendor.nine_character_ids or re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
        return call_id
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in sha256(call_id.encode("utf-8", "replace")).digest()[:9])


def _user(parts: tuple[Part, ...], vendor: Vendor) -> Iterator[dict[str, Any]]:
    """Yield the tool results, a message for each, then one message with everything else."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    for result, call_id in zip(results, sent_ids(results, "openai"), strict=True):
        yield {"role": "tool", "tool_call_id": _vendor_id(call_id, vendor), "content": _result_text(result)}
    content = [_user_part(part, vendor) for part in parts if not isinstance(part, ToolResult | ToolCall)]
    content += [_media(media, vendor) for result in results for media in result.media]
    listed = any(isinstance(part, Text) and part.raw == {"type": "text", "text": part.text} for part in parts)
    match content:
        case []:
            return
        case [{"type": "text", "text": text, **rest}] if not rest and not listed:
            yield {"role": "user", "content": text}
        case _:
            yield {"role": "user", "content": content}


def _user_part(part: Text | Thought | Media | Opaque, vendor: Vendor) -> dict[str, Any]:
    match part:
        case Text(text=text) | Thought(text=text):
            return raw_if_unchanged(part, "openai") or {"type": "text", "text": text}
        case Media():
            return _media(part, vendor)
        case Opaque(raw=raw):
            return raw


def _result_text(result: ToolResult) -> str:
    if result.failed:
        return dumps({"error": result.value}).decode()
    return result.value if isinstance(result.value, str) else dumps(result.value).decode()


def _media(media: Media, vendor: Vendor) -> dict[str, Any]:
    """Return the media itself where the service takes its kind, else the words that stand for it."""
    words = media.words if vendor.images else words_unseen(media)
    return media_itself(media, vendor) or {"type": "text", "text": words}


def media_itself(media: Media, vendor: Vendor) -> dict[str, Any] | None:
    """Return the media in the form of *vendor*; None if it does not take them."""
    mime = _mime(media)
    if mime.startswith("image/"):
        return _image(media, mime) if vendor.images else None
    if mime.startswith("audio/"):
        return _audio(media, mime, vendor)
    if media.data and mime == "application/pdf":
        name = one_line((media.label or "")[:MAX_LABEL] or media.unique_id[:32] or "document").removesuffix(".pdf")
        return {"type": "file", "file": {"filename": f"{name}.pdf", "file_data": _data_uri(mime, media.data)}}
    return raw_if_unchanged(media, "openai")


def _mime(media: Media) -> str:
    """Return the MIME type of media; by their kind if they have none, or if a voice message is not marked as audio."""
    usual = USUAL_MIME.get(media.media_kind, "")
    return usual if usual.startswith("audio/") and not (media.mime or "").startswith("audio/") else media.mime or usual


def _image(media: Media, mime: str) -> dict[str, Any] | None:
    if received := raw_if_unchanged(media, "openai"):
        return received
    url = _data_uri(mime, media.data) if media.data else media.uri
    return {"type": "image_url", "image_url": {"url": url}} if url else None


def _audio(media: Media, mime: str, vendor: Vendor) -> dict[str, Any] | None:
    if vendor.audio == "none":
        return None
    received = raw_if_unchanged(media, "openai")
    if received and vendor.audio in ("unknown", received["type"]):
        return received
    match vendor.audio:
        case "input_audio":
            return _audio_inside(media, mime)
        case "audio_url":
            return _audio_by_address(media, mime)
        case "string":
            held = b64encode(media.data).decode() if media.data else media.uri
            return {"type": "input_audio", "input_audio": held} if held else None
        case "unknown":
            inside = None if media.uri else _audio_inside(media, mime)
            return inside or _audio_by_address(media, mime)


def _audio_inside(media: Media, mime: str) -> dict[str, Any] | None:
    if not media.data or mime not in _AUDIO_FORMATS:
        return None
    encoded = b64encode(media.data).decode()
    return {"type": "input_audio", "input_audio": {"data": encoded, "format": _AUDIO_FORMATS[mime]}}


def _audio_by_address(media: Media, mime: str) -> dict[str, Any] | None:
    url = media.uri or (_data_uri(mime, media.data) if media.data else None)
    return {"type": "audio_url", "audio_url": {"url": url}} if url else None


def media_receipts(prompt: Prompt, vendor: Vendor) -> list[Receipt]:
    """Return the receipts for media that are sent as words because the vendor does not take them."""
    return [
        Receipt(
            rule="part-type",
            where=f"turns[{number}].parts[{place}]",
            action=f"{kind} became words: the service takes none",
        )
        for number, turn in enumerate(prompt.turns)
        for place, kind in _media_as_words(turn, vendor)
    ]


def _media_as_words(turn: Turn, vendor: Vendor) -> list[tuple[int, str]]:
    """Return the indexes and kinds of the media of a turn that are sent as words; cached."""

    def find(turn: Turn) -> list[tuple[int, str]]:
        return [
            (place, part.media_kind)
            for place, part in enumerate(turn.parts if turn.role == "user" else ())
            if isinstance(part, Media) and (part.data or part.uri) and media_itself(part, vendor) is None
        ]

    return cached(turn, f"worded {vendor.name} {vendor.audio}", find)


def audio_types(prompt: Prompt, vendor: Vendor) -> tuple[str, ...]:
    """Return in which forms the sounds of a prompt are sent, in order, `text` for words; nothing if all are words."""
    sounds = (
        part
        for turn in prompt.turns
        if turn.role == "user"
        for part in turn.parts
        if isinstance(part, Media) and part.has_content and _mime(part).startswith("audio/")
    )
    types = tuple((media_itself(sound, vendor) or {"type": "text"})["type"] for sound in sounds)
    return types if any(one != "text" for one in types) else ()


def _data_uri(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{b64encode(data).decode()}"


def _declaration(tool: ToolSpec) -> bytes:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = lower_types(tool.parameters) or {"type": "object", "properties": {}}
    return dumps({"type": "function", "function": function})
