"""JSON as it goes on the wire: fast, and never failing over what a history happens to hold. Pure."""

import json
from typing import Any

import orjson

from palaver.errors import ResponseUnreadable


def dumps(value: Any) -> bytes:
    """*value* as JSON; what JSON cannot say is written as its text, and broken characters as U+FFFD."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def loads(data: bytes | str) -> Any:
    """What *data* says, or ResponseUnreadable."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data)  # numbers that orjson does not take
    except ValueError as error:
        raise ResponseUnreadable(f"the service sent what is no JSON: {error}") from error


def _plain(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {_plain(str(key)): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case float():
            return value if abs(value) < float("inf") else None
        case None | bool() | int():
            return value
        case _:
            return _plain(str(value))
