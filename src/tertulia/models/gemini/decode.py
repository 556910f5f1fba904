"""From Gemini's JSON to our turns, responses and errors; to caches, files, token counts and vectors. Pure."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from tertulia import errors
from tertulia.jsonio import count_or_zero, dumps, error_object, list_or_empty
from tertulia.models.base import File, Finish, Outcome, Response, Usage
from tertulia.models.gemini.cache_values import Cache
from tertulia.parts import GENERATED_ID_PREFIX, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn
from tertulia.wire.gemini_request import camel, decode_base64
from tertulia.wire.generations import bare

_OUTCOMES: dict[str, Outcome] = {
    "STOP": "complete",
    "MAX_TOKENS": "cut",
    "CONTINUATION": "continue",
    **dict.fromkeys(
        "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
        "IMAGE_RECITATION MODEL_ARMOR ESCALATION".split(),
        "blocked",
    ),
    **dict.fromkeys(
        "MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
        "MISSING_THOUGHT_SIGNATURE".split(),
        "malformed",
    ),
    **dict.fromkeys("OTHER IMAGE_OTHER NO_IMAGE FINISH_REASON_UNSPECIFIED".split(), "other"),
}
_UNAVAILABLE: dict[int, tuple[type[errors.ModelUnavailable], str]] = {  # by HTTP status
    408: (errors.TimedOut, "took too long"),
    429: (errors.RateLimited, "asks to slow down"),
    503: (errors.Overloaded, "is busy"),
    504: (errors.TimedOut, "took too long"),
}
_NUMBERED = {"1": "STOP", "2": "MAX_TOKENS", "3": "SAFETY", "4": "RECITATION", "5": "OTHER"}  # some transports


def decode_turn(content: dict[str, Any], *, model: str | None = None) -> Turn:
    """Decode a content as a turn, with all its parts; *model* made it, if that is known."""
    return _turn(content, model, _digest(content), role="user")


def decode_response(body: dict[str, Any], *, model: str) -> Response:
    """Decode a response, whole or merged from its chunks."""
    fields = _fields(body)
    candidate = _fields(next(iter(list_or_empty(fields.get("candidates"))), None))
    content = candidate.get("content")
    digest = str(fields.get("responseId") or _digest(body))[:12]
    turn = _turn(content if isinstance(content, dict) else {}, model, digest, role="model")
    return Response(
        turn=turn,
        usage=_usage(_fields(fields.get("usageMetadata"))),
        finish=_finish(fields, candidate, turn),
        raw=body,
        answered_by=str(fields.get("modelVersion") or ""),
    )


def merge_chunks(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge the chunks of a stream into the body that a request without streaming would have got."""
    body: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    for chunk in map(_fields, chunks):
        usage = {**body.get("usageMetadata", {}), **_fields(chunk.pop("usageMetadata", None))}
        found = list_or_empty(chunk.pop("candidates", None))
        body.update(chunk)
        if usage:
            body["usageMetadata"] = usage
        if not found:
            continue
        piece = _fields(found[0])
        content = _fields(piece.pop("content", None))
        candidate.update(piece)
        for part in list_or_empty(content.get("parts")):
            _append(parts, _fields(part))
    if candidate or parts:
        said = [part for part in parts if part != {"text": ""}] or parts
        body["candidates"] = [{"content": {"role": "model", "parts": said}, **candidate}]
    return body


def _append(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Append a part of a stream. Text is joined to the text before; a part with a signature stays by itself."""
    if parts and _is_plain_text(parts[-1]) and _is_plain_text(part) and parts[-1].get("thought") == part.get("thought"):
        parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)


def _is_plain_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


def decode_error(status: int, body: bytes, *, about: str = "") -> errors.TertuliaError:
    """Decode an error of the service; *about* is the model, or the cache or file, that the request was about.

    The text of the service is checked first, then the status: the same status has several meanings.
    """
    error = error_object(body)
    message = " ".join(str(error.get("message") or f"HTTP {status}").split())
    details = [detail for detail in list_or_empty(error.get("details")) if isinstance(detail, dict)]
    retry_after = _retry_after(message, details)
    by_words = _error_by_words(status, message, details, about=about)
    if by_words is not None:
        return by_words
    if status == 429 and retry_after is None and b"PerDay" in dumps(details):
        return errors.QuotaExhausted(f"Gemini's quota for today is used up: {message}")
    if status in _UNAVAILABLE or status >= 500:
        kind, fault = _UNAVAILABLE.get(status, (errors.ServiceFault, "failed"))
        return kind(f"Gemini {fault} ({status}): {message}", retry_after=retry_after)
    if status == 403:
        return errors.KeyRefused(f"Gemini does not let this key do that: {message}")
    if status == 404:
        return errors.ModelUnknown(f"Gemini does not know {about}: {message}" if about else message)
    return errors.RequestRefused(f"Gemini refused the request ({status}): {message}")


def _error_by_words(
    status: int, message: str, details: list[dict[str, Any]], *, about: str
) -> errors.TertuliaError | None:
    """Return the error that the text of the service identifies; None if only the status can."""
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details) or status == 401:
        return errors.KeyRefused(f"Gemini does not accept the key: {message}")
    if "CachedContent not found" in message or (status == 404 and about.startswith("cachedContents/")):
        return errors.CacheGone(f"{about}: {message}")
    if re.search(r"access the File|not in an ACTIVE state", message) or (status == 404 and about.startswith("files/")):
        with_ids = re.search(r"\bFile (\S+)", message)
        file = with_ids[1] if with_ids else about.removeprefix("files/") if about.startswith("files/") else ""
        return errors.FileGone(message, file=file, for_now="not in an ACTIVE state" in message)
    if status == 409:
        return errors.FileExists(f"Gemini refused the request (409): {message}")
    if "User location is not supported" in message:
        return errors.PlaceRefused(message)
    if "input token count" in message:
        return errors.ContextTooLong(f"Gemini refused the request ({status}): {message}")
    if status == 400 and "unexpected model name" in message:
        return errors.ModelUnknown(f"Gemini does not know {about}: {message}")
    return None


def _retry_after(message: str, details: list[dict[str, Any]]) -> float | None:
    delays = [str(detail.get("retryDelay", "")) for detail in details]
    found = re.search(r"retry in ([\d.]+)s", message)
    for delay in [*delays, f"{found[1]}s" if found else ""]:
        if re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object in camelCase, without nulls."""
    if not isinstance(value, dict):
        return {}
    return {camel(key): item for key, item in value.items() if item is not None}


def _plain(value: Any) -> Any:
    """Return a value of google-genai's `model_dump()` as JSON has it: base64 for bytes, and names for enums."""
    kind = type(value)
    if kind is str:  # nearly all values
        return value
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is bytes:
        return b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value


def _digest(value: Any) -> str:
    return sha256(dumps(value)).hexdigest()[:12]


def _turn(content: dict[str, Any], model: str | None, digest: str, *, role: str) -> Turn:
    fields = _fields(content)
    given_role = str(fields.get("role") or role).lower()
    raw = fields.get("parts") or []
    parts = [_part(part) for part in (raw if isinstance(raw, list) else [raw])]
    with_ids = tuple(_with_id(part, f"{GENERATED_ID_PREFIX}{digest}-{index}") for index, part in enumerate(parts))
    return Turn(role="model" if given_role in {"model", "assistant"} else "user", parts=with_ids, model=model)


def _with_id(part: Part, ours: str) -> Part:
    """Give a call without an id one of ours, so that its result can be paired with it."""
    if not isinstance(part, ToolCall) or part.id:
        return part
    return ToolCall(name=part.name, args=part.args, id=ours, signature=part.signature, raw=part.raw)


def _part(part: Any) -> Part:
    if not isinstance(part, dict):
        return Text(text=part) if isinstance(part, str) else Opaque(raw={"text": str(part)})
    part = _plain(part)
    fields = _fields(part)
    signature = fields.pop("thoughtSignature", None)
    thought = fields.pop("thought", False)
    unexpected = not isinstance(signature, str | None) or not isinstance(thought, bool)
    signed = signature if isinstance(signature, str) else None
    decoded = _known_part(part, fields, signed, thought=bool(thought), extra=unexpected or len(fields) > 1)
    return Opaque(raw=part) if decoded is None else decoded


def _known_part(
    part: dict[str, Any], fields: dict[str, Any], signature: str | None, *, thought: bool, extra: bool
) -> Part | None:
    """Decode a part by its data field; None if the field is unknown. With *extra* fields it has *part* as its `raw`."""
    raw = part if extra else None
    match fields:
        case {"functionCall": dict(call)}:
            return _call(part, call, signature, extra=thought or extra)
        case {"functionResponse": dict(result)} if not thought and not signature:
            return _result(part, result, extra=extra)
        case {"text": str(text)}:
            kind = Thought if thought else Text
            return kind(text=text, signature=signature, raw=raw)
        case {"inlineData": dict(blob)}:
            return _inline(_fields(blob), signature, part, extra=extra or thought)
        case {"fileData": dict(file)}:
            return _file(_fields(file), signature, part, extra=extra or thought)
        case {} if not fields and (signature or thought):
            return Thought(text="", signature=signature) if thought else Text(text="", signature=signature)
        case _:
            return None


def _call(part: dict[str, Any], call: dict[str, Any], signature: str | None, *, extra: bool) -> Part | None:
    fields = _fields(call)
    args = fields.get("args", {})
    if not isinstance(args, dict):
        return None
    more = extra or "args" not in fields or not fields.keys() <= {"id", "name", "args"}
    return ToolCall(
        name=str(fields.get("name", "")),
        args=args,
        id=_text(fields.get("id")),
        signature=signature,
        raw=part if more else None,
    )


def _result(part: dict[str, Any], result: dict[str, Any], *, extra: bool) -> Part | None:
    fields = _fields(result)
    media = [
        _inline(_fields(_fields(item).get("inlineData")), None, item, extra=False)
        for item in list_or_empty(fields.get("parts"))
    ]
    known = fields.keys() <= {"id", "name", "response", "parts"} and isinstance(fields.get("response"), dict)
    whole = all(item is not None and item.raw is None for item in media)
    return ToolResult(
        name=str(fields.get("name", "")),
        value=fields.get("response"),
        id=_text(fields.get("id")),
        media=tuple(replace(item, raw=None) for item in media if item),
        raw=None if known and whole and not extra else part,
    )


def _text(value: Any) -> str | None:
    return str(value) if value else None


def _inline(blob: dict[str, Any], signature: str | None, part: Any, *, extra: bool) -> Media | None:
    match blob:
        case {"data": str(text), "mimeType": str(mime)}:
            data = decode_base64(text)
        case _:
            return None
    if not data:
        return None
    unique = sha256(data).hexdigest()[:32]
    raw = part if extra or len(blob) > 2 else None
    return Media(media_kind=_kind(mime), unique_id=unique, mime=mime, data=data, signature=signature, raw=raw)


def _file(file: dict[str, Any], signature: str | None, part: Any, *, extra: bool) -> Media | None:
    uri, mime = file.get("fileUri"), file.get("mimeType")
    if not isinstance(uri, str) or not uri or not isinstance(mime, str | None):
        return None
    raw = part if extra or file.keys() - {"fileUri", "mimeType"} else None
    return Media(media_kind=_kind(mime or ""), unique_id=uri, mime=mime, uri=uri, signature=signature, raw=raw)


def _kind(mime: str) -> str:
    return {"image": "photo", "audio": "audio", "video": "video"}.get(mime.partition("/")[0], "document")


def _usage(usage: dict[str, Any]) -> Usage:
    def count(name: str) -> int:
        return count_or_zero(usage.get(name))

    return Usage(
        input=count("promptTokenCount") + count("toolUsePromptTokenCount"),
        cached=count("cachedContentTokenCount"),
        output=count("candidatesTokenCount"),
        thought=count("thoughtsTokenCount"),
    )


def _finish(fields: dict[str, Any], candidate: dict[str, Any], turn: Turn) -> Finish:
    feedback = _fields(fields.get("promptFeedback"))
    if not candidate:
        if feedback.get("blockReason"):
            message = str(feedback.get("blockReasonMessage", ""))
            return Finish(outcome="prompt_blocked", reason=str(_plain(feedback["blockReason"])), message=message)
        return Finish(outcome="empty", reason="NO_CANDIDATES")
    reason = str(_plain(candidate.get("finishReason", "")))
    reason = _NUMBERED.get(reason, reason)
    outcome = _OUTCOMES.get(reason, "other") if reason else "complete"
    silent = all(isinstance(part, Text) and not part.text for part in turn.parts)
    if outcome == "complete" and silent:
        outcome = "empty"
    return Finish(outcome=outcome, reason=reason, message=str(candidate.get("finishMessage", "")))


@contextmanager
def unreadable_without(what: str) -> Iterator[None]:
    """Raise ResponseUnreadable with *what* if the block does not find it in an answer."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise errors.ResponseUnreadable(f"Gemini sent no {what} that we can read: {error!r}") from error


@unreadable_without("vectors")
def decode_vectors(body: Any, number: int) -> list[list[float]]:
    vectors = [[float(value) for value in embedding["values"]] for embedding in body["embeddings"]]
    if len(vectors) != number:
        raise ValueError(f"{len(vectors)} for {number} texts")
    return vectors


@unreadable_without("number of tokens")
def decode_count(body: Any) -> int:
    return int(body.get("totalTokens") or 0)


@unreadable_without("cache")
def decode_cache(body: Any) -> Cache:
    return Cache(
        name=body["name"],
        model=bare(body.get("model", "")),
        expires_at=datetime.fromisoformat(_microseconds(body["expireTime"])),
        tokens=int(body.get("usageMetadata", {}).get("totalTokenCount", 0)),
        label=str(body.get("displayName") or ""),
    )


@unreadable_without("list of caches")
def decode_caches(body: Any) -> tuple[list[Cache], str]:
    """Return a page of caches, and the token of the next one."""
    return [decode_cache(one) for one in body.get("cachedContents") or ()], str(body.get("nextPageToken") or "")


_FILE_NAME = re.compile(r"files/[\w-]+")


@unreadable_without("file")
def decode_file(body: Any) -> File:
    expires = body.get("expirationTime")
    name, uri, mime, state = body["name"], body["uri"], body.get("mimeType") or "", body.get("state") or "ACTIVE"
    if not all(isinstance(one, str) for one in (name, uri, mime, state)) or not _FILE_NAME.fullmatch(name):
        raise ValueError(f"the file {name!r:.80}")
    return File(
        name=name,
        uri=uri,
        mime=mime,
        state=state,
        expires_at=datetime.fromisoformat(_microseconds(expires)) if expires else None,
        size=int(body.get("sizeBytes") or 0),
    )


def _microseconds(stamp: str) -> str:
    """Cut the nanoseconds of a time stamp to the microseconds that Python reads."""
    seconds, dot, fraction = stamp.removesuffix("Z").partition(".")
    return f"{seconds}{dot}{fraction[:6].ljust(6, '0') if dot else ''}+00:00"
