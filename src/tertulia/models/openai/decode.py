"""From OpenAI-compatible JSON to our turns, responses and errors. Pure."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from tertulia import errors
from tertulia.jsonio import count_or_zero, dumps, error_object, list_or_empty, loads, object_or_empty
from tertulia.models.base import Finish, Outcome, Response, Usage
from tertulia.models.stream import CallUnreadable
from tertulia.parts import GENERATED_ID_PREFIX, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn
from tertulia.wire.openai import REASONING, TEXTS

_OUTCOMES: dict[str, Outcome] = {
    "stop": "complete",
    "eos": "complete",
    "tool_calls": "complete",
    "function_call": "complete",
    "length": "cut",
    "model_length": "cut",
    "content_filter": "blocked",
    "error": "malformed",
}
_KNOWN = {"role", "content", "tool_calls", "name", "tool_call_id"}
_STREAMED_TEXTS = {"content", "refusal", *REASONING}  # fields whose fragments are joined
_TOO_LONG = re.compile("context_length_exceeded|exceed_context_size_error")  # as codes and types
_TOO_LONG_WORDS = re.compile(
    r"maximum context length|input token count|exceeds? the available context size|exceed context window"
)
_NO_MODEL = re.compile(
    r"model_not_found|invalid_model\b|unknown_model|model_decommissioned|model_not_supported|DeploymentNotFound"
)
_NO_MODEL_WORDS = re.compile(
    r"\bmodel not exist|not a valid model\b|\b(?:invalid|unknown) model\b(?!s? (?:output|role|turn|response))"
    r"|\bmodel ['\"`]?[^\s'\"`]+['\"`]? (?:does not exist|not found|is not found|has been decommissioned)"
    r"|unexpected model name",
    re.IGNORECASE,
)
_UNAVAILABLE: dict[int, tuple[type[errors.ModelUnavailable], str]] = {  # by HTTP status
    408: (errors.TimedOut, "took too long"),
    429: (errors.RateLimited, "asks to slow down"),
    502: (errors.Overloaded, "is busy"),
    503: (errors.Overloaded, "is busy"),
    504: (errors.TimedOut, "took too long"),
    529: (errors.Overloaded, "is busy"),
}
LONGEST_CALL = 500  # characters of an unreadable call
_AUDIO_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def decode_turn(message: dict[str, Any], *, model: str | None = None) -> Turn:
    """Decode a message as a turn, with all its parts; *model* made it, if that is known."""
    fields = {key: value for key, value in message.items() if value is not None}
    match fields.get("role"):
        case "assistant" | "model":
            return Turn(role="model", parts=tuple(_assistant(fields, _digest(message))), model=model)
        case "tool" | "function":
            return Turn(role="user", parts=(_result(fields),), model=model)
        case _:
            return Turn(role="user", parts=tuple(_content(fields.get("content", ()))), model=model)


def decode_response(body: dict[str, Any], *, model: str) -> Response:
    """Decode a response, whole or merged from its chunks."""
    choice = object_or_empty(next(iter(list_or_empty(body.get("choices"))), None))
    message = object_or_empty(choice.get("message"))
    digest = sha256(str(body["id"]).encode()).hexdigest()[:12] if body.get("id") else _digest(body)
    turn = Turn(role="model", parts=tuple(_assistant(message, digest)), model=model)
    usage = body.get("usage") or object_or_empty(body.get("x_groq")).get("usage")  # Groq's streams may have it there
    return Response(
        turn=turn,
        usage=_usage(usage),
        finish=_finish(choice, message, turn),
        raw=body,
        answered_by=str(body.get("model") or ""),
    )


def merge_chunks(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge the chunks of a stream into the body that a request without streaming would have got."""
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    for chunk in chunks:
        for key, value in chunk.items():
            if key != "choices" and (value or key not in body):
                body[key] = value
        for piece in map(object_or_empty, list_or_empty(chunk.get("choices"))):
            if piece.get("index"):
                continue  # we asked for one answer
            delta = object_or_empty(piece.pop("delta", None)) or object_or_empty(piece.pop("message", None))
            choice.update(piece)
            _merge_delta(message, delta)
    if choice or message:
        if "tool_calls" in message:
            message["tool_calls"] = [_without_index(call) for call in list_or_empty(message["tool_calls"])]
        body["choices"] = [{**choice, "message": message}]
    body.pop("object", None)
    return body


def _merge_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            for call in map(object_or_empty, list_or_empty(value)):
                _merge_call(message.setdefault("tool_calls", []), call)
        elif isinstance(value, str) and key in _STREAMED_TEXTS and isinstance(message.get(key, ""), str):
            message[key] = message.get(key, "") + value
        elif key == "content" and isinstance(value, str | list) and isinstance(message.get(key, ""), str | list):
            message[key] = _as_list(message.get(key, "")) + _as_list(value)
        elif isinstance(value, list) and isinstance(message.get(key, []), list):
            message[key] = message.get(key, []) + value
        else:
            message[key] = value


def _as_list(content: str | list[Any]) -> list[Any]:
    """Return content as a list of parts; some services begin with parts and continue with text."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _merge_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    """Add a fragment of a call to the call with its index, or without an index to the last call.

    A new id with a name begins a new call, whatever the index: Gemini gives all calls the same one.
    """
    index, call_id = delta.get("index"), delta.get("id")
    known = next((call for call in reversed(calls) if index is not None and call.get("index") == index), None)
    if known and call_id and call_id != known.get("id") and object_or_empty(delta.get("function")).get("name"):
        known = None
    if index is None and calls and (not call_id or calls[-1].get("id") == call_id):
        known = calls[-1]
    if known is None:
        calls.append({**delta, "function": {"arguments": "", **object_or_empty(delta.get("function"))}})
        return
    function = known["function"]
    for key, value in object_or_empty(delta.get("function")).items():
        if key == "arguments" and isinstance(value, str) and isinstance(function.get(key), str):
            function[key] += value
        else:
            function[key] = value or function.get(key)
    known.update({key: value for key, value in delta.items() if value and key not in {"function", "index"}})


def _without_index(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index" and value is not None}


def decode_error(status: int, body: bytes, headers: Mapping[str, str], *, about: str = "") -> errors.TertuliaError:
    """Decode an error of the service; *about* is the model that was asked. Its text is checked before the status."""
    error = error_object(body)
    message = " ".join(str(error.get("message") or error.get("detail") or f"HTTP {status}").split())
    code = str(error.get("code") or "")
    kind = f"{code} {error.get('type') or ''}"
    retry_after = _retry_after(message, headers, list_or_empty(error.get("details")))
    if status == 401 or "invalid_api_key" in kind or "API key not valid" in message:
        return errors.KeyRefused(f"the service does not accept the key: {message}")
    if _TOO_LONG.search(kind) or _TOO_LONG_WORDS.search(message):
        return errors.ContextTooLong(f"the request is too long for {about}: {message}")
    if status < 429 and (_NO_MODEL.search(kind) or _NO_MODEL_WORDS.search(message)):
        return errors.ModelUnknown(f"the service does not know {about or 'that model'}: {message}")
    if code == "tool_use_failed":  # Groq
        written = str(error.get("failed_generation") or "")[:LONGEST_CALL]
        finish = Finish(outcome="malformed", reason=code, message=written)
        return CallUnreadable(f"{about} wrote a call that the service could not read: {message}", finish=finish)
    if "insufficient_quota" in kind or status == 402:
        return errors.QuotaExhausted(f"the account's quota is used up: {message}")
    if status in _UNAVAILABLE or status >= 500:
        error_type, fault = _UNAVAILABLE.get(status, (errors.ServiceFault, "failed"))
        return error_type(f"the service {fault} ({status}): {message}", retry_after=retry_after)
    if status == 403:
        return errors.KeyRefused(f"the service does not let this key do that: {message}")
    if status == 404:
        return errors.ModelUnknown(f"the service does not know {about or 'that'}: {message}")
    return errors.RequestRefused(f"the service refused the request ({status}): {message}")


def in_band_error(answer: dict[str, Any], *, about: str = "") -> errors.TertuliaError:
    """Decode an error that came with status 200, or within a stream."""
    code = str(object_or_empty(answer["error"]).get("code"))
    return decode_error(int(code) if re.fullmatch(r"[45]\d\d", code) else 500, dumps(answer), {}, about=about)


def _retry_after(message: str, headers: Mapping[str, str], details: list[Any]) -> float | None:
    stated = re.search(r"(?:retry|try again) in ([\d.]+)\s*(ms|s)", message)
    candidates = [
        (headers.get("retry-after-ms", ""), 1000.0),
        (headers.get("retry-after", ""), 1.0),
        *((str(object_or_empty(detail).get("retryDelay", "")).removesuffix("s"), 1.0) for detail in details),
        (stated[1] if stated else "", 1000.0 if stated and stated[2] == "ms" else 1.0),
    ]
    for text, divisor in candidates:
        if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
            return float(text) / divisor
    return None


def _digest(value: Any) -> str:
    return sha256(dumps(value)).hexdigest()[:12]


def _assistant(message: dict[str, Any], digest: str) -> Iterator[Part]:
    thought = next((field for field in REASONING if isinstance(message.get(field), str) and message[field]), None)
    if thought:
        yield Thought(text=message[thought], field=thought)
    yield from _content(message.get("content", ()))
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        yield _call(call, f"{GENERATED_ID_PREFIX}{digest}-{index}")
    known = _KNOWN | {thought}
    rest = {key: value for key, value in message.items() if key not in known and value not in ("", [], {})}
    if rest:
        yield Opaque(raw=rest)


def _content(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        yield from [Text(text=content)] if content else []
    elif isinstance(content, dict):
        yield Text(text=dumps(content).decode())  # some services send JSON answers as an object
    else:
        yield from (_part(part) for part in list_or_empty(content))


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Text(text=part)
    if not isinstance(part, dict):
        return Text(text=str(part))
    fields = object_or_empty(part)
    decoded = _known_part(fields.get("type"), fields)
    if decoded is None:
        return Opaque(raw=part)
    return decoded if _says_all(fields) else replace(decoded, raw=part)


def _known_part(kind: Any, fields: dict[str, Any]) -> Text | Media | None:
    """Return the text or the media of a part, whatever other fields it has; None if its type is unknown."""
    if not isinstance(kind, str | None):
        return None
    if kind is None or kind in TEXTS:
        return Text(text=fields["text"]) if isinstance(fields.get("text"), str) else None
    match kind, fields.get(kind):
        case "image_url", {"url": str(url)}:
            return _from_url(url, "photo")
        case "audio_url" | "video_url", {"url": str(url)}:
            return _from_url(url, kind.removesuffix("_url"))
        case "input_audio", {"data": str(data), "format": str(form)} if form in _AUDIO_MIMES:
            return _from_data(data, _AUDIO_MIMES[form], "audio")
        case _:
            return None


def _says_all(fields: dict[str, Any]) -> bool:
    """Return whether our value holds all fields of a part."""
    kind = fields.get("type", "text")
    if kind in TEXTS:
        return kind == "text" and fields.keys() <= {"type", "text"}
    inner = {"data", "format"} if kind == "input_audio" else {"url"}
    return fields.keys() == {"type", kind} and fields[kind].keys() == inner


def _from_url(url: str, kind: str) -> Media | None:
    inline = re.fullmatch(r"data:([\w.+/-]+);base64,([A-Za-z0-9+/=]+)", url)
    if inline:
        return _from_data(inline[2], inline[1], kind)
    return None if url.startswith("data:") else Media(media_kind=kind, unique_id=url, uri=url, mime=_mime_of(kind, url))


def _mime_of(kind: str, url: str) -> str | None:
    """Return the MIME type of an image by its URL, JPEG if the URL does not tell: some services require one."""
    ending = url.partition("?")[0].rpartition(".")[2].lower()
    known = {"png": "image/png", "webp": "image/webp", "gif": "image/gif"}
    return known.get(ending, "image/jpeg") if kind == "photo" else None


def _from_data(data: str, mime: str, kind: str) -> Media | None:
    try:
        decoded = b64decode(data, validate=True)
    except binascii.Error:
        return None
    if not decoded:
        return None
    return Media(media_kind=kind, unique_id=sha256(decoded).hexdigest()[:32], mime=mime, data=decoded)


def _call(call: Any, ours: str) -> Part:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return Opaque(raw={"tool_call": call})
    text = function.get("arguments")
    args = _arguments(text)
    signature = _signature(call)
    plain = text == dumps(args).decode() and function.keys() <= {"name", "arguments"}
    extra = call.get("extra_content") in (None, {"google": {"thought_signature": signature}})
    known = extra and object_or_empty(call).keys() <= {"id", "type", "function", "index", "extra_content"}
    call_id = str(call.get("id") or "") or ours
    return ToolCall(
        name=function["name"],
        args=args or {},
        id=call_id,
        signature=signature,
        broken=None if args is not None or not text else str(text),
        raw=None if plain and known else _without_index({**call, "id": call_id}),
    )


def _arguments(text: Any) -> dict[str, Any] | None:
    """Decode the arguments of a call; None if they are no JSON object."""
    if isinstance(text, dict):
        return text
    try:
        found = loads(text) if isinstance(text, str) and text.strip() else {}
    except errors.ResponseUnreadable:
        return None
    return found if isinstance(found, dict) else None


def _signature(call: dict[str, Any]) -> str | None:
    match call.get("extra_content"):
        case {"google": {"thought_signature": str(signature)}}:
            return signature
        case _:
            return None


def _result(message: dict[str, Any]) -> ToolResult:
    content = message.get("content", "")
    if isinstance(content, list):
        texts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    name = message.get("name")
    return ToolResult(name=str(name or ""), value=content, id=str(message.get("tool_call_id") or "") or None)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()

    def count(*path: str) -> int:
        value: Any = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return count_or_zero(value)

    prompt, completion, total = count("prompt_tokens"), count("completion_tokens"), count("total_tokens")
    thought = count("completion_tokens_details", "reasoning_tokens")
    apart = total >= prompt + completion + thought  # most services count thoughts within the completion, some beside it
    return Usage(
        input=prompt,
        cached=count("prompt_tokens_details", "cached_tokens") or count("prompt_cache_hit_tokens"),
        written=count("prompt_tokens_details", "cache_write_tokens"),
        output=completion if apart else max(completion - thought, 0),
        thought=thought,
    )


def _finish(choice: dict[str, Any], message: dict[str, Any], turn: Turn) -> Finish:
    if not choice:
        return Finish(outcome="empty", reason="NO_CHOICES")
    reason = str(choice.get("finish_reason") or "")
    refusal = message.get("refusal") or _refusal_in(message.get("content"))
    if refusal:
        return Finish(outcome="blocked", reason="refusal", message=str(refusal))
    outcome = _OUTCOMES.get(reason, "other") if reason else "complete"
    silent = all(isinstance(part, Text) and not part.text for part in turn.parts)
    return Finish(outcome="empty" if outcome == "complete" and silent else outcome, reason=reason)


def _refusal_in(content: Any) -> str:
    """Return the text of the refusals among the parts of a content."""
    parts = [object_or_empty(part) for part in list_or_empty(content)]
    return "".join(part["refusal"] for part in parts if isinstance(part.get("refusal"), str))
