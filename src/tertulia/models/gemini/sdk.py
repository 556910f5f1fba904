"""Requests through the user's own google-genai client; conversion between SDK contents and turns."""

import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from google.genai import types
from google.genai.errors import APIError

from tertulia import errors
from tertulia.jsonio import dumps, loads, object_or_empty
from tertulia.models.gemini.decode import decode_error, decode_turn
from tertulia.models.gemini.encode import encode_turn
from tertulia.models.key_mask import Mask, mask_for
from tertulia.turns import Turn
from tertulia.wire.gemini_request import without_unknown_fields
from tertulia.wire.rules import PLACEHOLDER_SIGNATURE


def to_contents(turns: Sequence[Turn], *, model: str) -> list[types.Content]:
    """Convert turns to contents of the SDK, for *model*; parts that the SDK does not have are omitted."""
    return list(_contents(content for turn in turns for content in loads(encode_turn(turn, model=model))))


def from_contents(
    contents: types.ContentListUnion | types.ContentListUnionDict, *, model: str | None = None
) -> list[Turn]:
    """Convert contents as the SDK takes them (objects, dicts or texts) to turns; *model* made those of the model."""
    listed = contents if isinstance(contents, list | tuple) else [contents]
    read = [_content(content, f"contents[{number}]") for number, content in enumerate(listed)]
    return [decode_turn(content, model=model if content.get("role") == "model" else None) for content in read]


def _content(content: Any, where: str) -> dict[str, Any]:
    """Return a content as the service writes it; a single part becomes a user content."""
    found = _plain(content)
    if isinstance(found, str):
        found = {"text": found}
    if not isinstance(found, dict):
        raise errors.InvalidValue(f"{where} is {content!r:.80}; it should be a content: an object, a dict or a text")
    return found if "parts" in found or "role" in found else {"role": "user", "parts": [found]}


def _plain(value: Any) -> Any:
    """Convert *value* to values of JSON, bytes to standard base64."""
    if isinstance(value, types.Content):
        return _dump(value)
    if isinstance(value, types.Part):
        return _dump(types.Content(parts=[value]))["parts"][0]
    match value:
        case bytes():
            return b64encode(value).decode()
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


class GeminiSdkClient:
    """Sends our encoded requests through a `genai.Client`."""

    def __init__(self, client: Any) -> None:
        if not hasattr(client, "aio"):
            raise errors.InvalidValue("client= takes a google.genai.Client")
        self._models = client.aio.models
        key = getattr(getattr(client, "_api_client", None), "api_key", None)
        self.mask = mask_for((key,) if isinstance(key, str) else ())

    async def generate(self, model: str, body: bytes) -> dict[str, Any]:
        arguments = _arguments(body)
        with as_our_errors(model, self.mask):
            response = await self._models.generate_content(model=model, **arguments)
        return self._mask(_dump(response))

    async def stream(self, model: str, body: bytes) -> AsyncGenerator[dict[str, Any], None]:
        arguments = _arguments(body)
        with as_our_errors(model, self.mask):
            async for chunk in await self._models.generate_content_stream(model=model, **arguments):
                yield self._mask(_dump(chunk))

    def _mask(self, found: dict[str, Any]) -> dict[str, Any]:
        written = dumps(found)
        masked = self.mask(written)
        return found if masked == written else object_or_empty(loads(masked))


def _arguments(body: bytes) -> dict[str, Any]:
    """Return the body of a request as arguments of the SDK, which flatten the generation config."""
    fields = loads(body)
    contents = list(_contents(fields.pop("contents")))
    config = {**fields.pop("generationConfig", {}), **fields, "automaticFunctionCalling": {"disable": True}}
    return {"contents": contents, "config": types.GenerateContentConfig.model_validate(config)}


def _contents(contents: Iterable[dict[str, Any]]) -> Iterator[types.Content]:
    for content in contents:
        parts = [part for found in content["parts"] if (part := _part(found)) is not None]
        if parts:
            yield types.Content(role=content["role"], parts=parts)


def _part(part: dict[str, Any]) -> types.Part | None:
    """Return the part as the SDK has it; None if the SDK does not know it."""
    known = {name: value for name, value in without_unknown_fields(part).items() if value is not None}
    try:
        return types.Part.model_validate(_with_bytes(known)) if known else None
    except ValueError:
        return None


def _with_bytes(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part with bytes where JSON has base64."""
    converted = dict(part)
    if isinstance(part.get("thoughtSignature"), str):
        converted["thoughtSignature"] = _bytes(part["thoughtSignature"])
    if isinstance(part.get("inlineData"), dict):
        converted["inlineData"] = {**part["inlineData"], "data": _bytes(str(part["inlineData"].get("data", "")))}
    return converted


def _bytes(text: str) -> bytes:
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    if text == PLACEHOLDER_SIGNATURE:
        return text.encode()
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return text.encode()  # not base64: the SDK encodes it once more; there is no other way


def _dump(value: Any) -> dict[str, Any]:
    """Return an object of the SDK as the service wrote it: camelCase, standard base64."""
    found: dict[str, Any] = value.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response", "parsed"}
    )
    contents = [found, *(candidate.get("content") for candidate in found.get("candidates", []))]
    for content in contents:
        for part in (content or {}).get("parts") or []:
            _standard_base64(part)
    return found


def _standard_base64(part: dict[str, Any]) -> None:
    if part.get("thoughtSignature"):
        signature = _bytes(part["thoughtSignature"])
        ours = signature == PLACEHOLDER_SIGNATURE.encode()
        part["thoughtSignature"] = PLACEHOLDER_SIGNATURE if ours else b64encode(signature).decode()
    if part.get("inlineData"):
        part["inlineData"]["data"] = b64encode(_bytes(part["inlineData"]["data"])).decode()


@contextmanager
def as_our_errors(model: str, mask: Mask) -> Iterator[None]:
    try:
        yield
    except APIError as error:
        answer = mask(_error_body(error))
        raise decode_error(int(error.code or 500), answer, about=model) from mask.error(error)
    except _errors(TimeoutError, "TimeoutException") as error:
        raise errors.TimedOut(f"no answer in time from {model}") from error
    except ValueError as error:
        raise errors.ResponseUnreadable(f"the SDK could not read the answer of {model}: {mask.error(error)}") from error
    except _errors(OSError, "TransportError", "ClientError") as error:
        raise errors.ConnectionLost(f"no connection for {model}, or it broke off: {mask.error(error)}") from error


def _errors(own: type[Exception], *names: str) -> tuple[type[Exception], ...]:
    """Return *own*, and the errors of these names in the HTTP libraries that the SDK may use, if they are loaded."""
    loaded = [sys.modules.get(library) for library in ("httpx2", "httpx", "aiohttp")]
    return (own, *(getattr(library, name) for library in loaded for name in names if hasattr(library, name)))


def _error_body(error: APIError) -> bytes:
    """Return the body of an error; of a stream, the SDK gives it as undecoded text in the message."""
    message = error.message or ""
    if message.lstrip().startswith(("{", "[")):
        return message.encode()
    details = error.details
    return dumps(details if isinstance(details, dict) and "error" in details else {"error": details})
