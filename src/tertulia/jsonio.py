"""JSON: encoding and decoding that never fail over what a history holds, and the types of schemas. Pure."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import orjson

from tertulia.errors import InvalidValue, ResponseUnreadable
from tertulia.turns import Turn

_MAX_DEPTH = 60  # levels of a tool's arguments or result; services read a hundred in all


def dumps(value: Any) -> bytes:
    """Encode *value*; what JSON does not have is encoded as its text, lone surrogates as U+FFFD."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        text = json.dumps(_jsonable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()


def dump_items(values: Iterable[Any]) -> bytes:
    """Encode *values*, with commas between them, as bytes to be cached: copied, since orjson's have up to eight times
    the memory of their text.
    """
    return bytes(memoryview(b",".join(map(dumps, values))))


def loads(data: bytes | str) -> Any:
    """Decode *data* into values that can be encoded again; raise ResponseUnreadable."""
    try:
        return msgspec.json.decode(data)  # keeps integers of any size, which orjson rounds
    except (ValueError, RecursionError):
        pass
    try:
        return _jsonable(json.loads(data))  # it takes numbers and lone surrogates that msgspec does not
    except (ValueError, RecursionError) as error:
        raise ResponseUnreadable(f"the service sent what is no JSON: {error}") from error


def object_or_empty(value: Any) -> dict[str, Any]:
    """Return the fields of *value* that are not null; empty if it is no object."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else {}


def list_or_empty(value: Any) -> list[Any]:
    """Return *value* if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def count_or_zero(value: Any) -> int:
    """Return *value* as a count; 0 if it is no number."""
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 2**53 else 0


def error_object(body: bytes) -> dict[str, Any]:
    """Return the object under `error` of a body, also in a list of one; the object itself without one; else its
    text.
    """
    try:
        found = loads(body)
    except ResponseUnreadable:
        return {"message": body[:500].decode("utf-8", "replace")}
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        return {"message": str(found)[:500]}
    error = found.get("error", found)
    return error if isinstance(error, dict) else {"message": str(error)}


def join_items(head: bytes, items: list[bytes], tail: bytes) -> bytes:
    """Join *head*, the items with commas, and *tail*, with one copy: the items may have megabytes."""
    if not items:
        return head + tail
    ends = [*items]
    ends[0] = head + ends[0]
    ends[-1] = ends[-1] + tail
    return b",".join(ends)


def limit_depth(value: Any) -> Any:
    """Return *value* with everything below the depth that services read replaced by a note."""
    return _jsonable(value, _MAX_DEPTH) if deeper_than(value, _MAX_DEPTH) else value


def _jsonable(value: Any, levels: int = 200) -> Any:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict() | list() | tuple() | set() | frozenset() if levels == 0:
            return "[nested too deeply]"
        case dict():
            return {_jsonable(str(key)): _jsonable(item, levels - 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_jsonable(item, levels - 1) for item in value]
        case float():
            return value if abs(value) < float("inf") else None
        case int() if value.bit_length() > 10_000:
            return hex(value)  # more digits than Python writes
        case None | bool() | int():
            return value
        case _:
            return _jsonable(str(value))


def deeper_than(value: Any, levels: int) -> bool:
    """Return whether objects and lists are nested more than *levels* deep."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = (child for one in layer for child in (one.values() if isinstance(one, dict) else one))
        layer = [child for child in inner if isinstance(child, dict | list)]
        if not layer:
            return False
    return bool(layer)


T = TypeVar("T")


def jsonable(turn: Turn) -> Turn:
    """Return the turn as it will be decoded again; itself if JSON holds all of it exactly."""
    try:
        if msgspec.json.decode(msgspec.json.encode(turn), type=Turn) == turn:
            return turn
    except (TypeError, ValueError, RecursionError):
        pass
    return json_copy(turn)


def json_copy(value: T) -> T:
    """Return a copy of *value* as JSON can hold it: broken characters as U+FFFD, keys and unknown values as text."""
    kind = type(value)
    try:
        return msgspec.json.decode(dumps(msgspec.to_builtins(value, enc_hook=_encode_unknown)), type=kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidValue(f"this {kind.__name__} could not be read again from JSON: {error}") from error


def _encode_unknown(value: Any) -> Any:
    if isinstance(value, Iterator | AsyncIterator):
        raise TypeError(f"a tool returns values, not a {type(value).__name__} that is yet to give them")
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def lower_types(schema: Any) -> Any:
    """Return a schema with its types in lower case, as JSON Schema has them."""
    if isinstance(schema, list):
        return [lower_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: lower_types(item) for key, item in schema.items()}
    if isinstance(schema.get("type"), str):
        lowered["type"] = schema["type"].lower()
    return lowered
