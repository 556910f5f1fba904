"""Values as JSON can hold them exactly, so that what is kept can be saved and read again. Pure."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

import msgspec

from palaver.errors import InvalidValue
from palaver.models.json import dumps
from palaver.turns import Turn

T = TypeVar("T")


def savable(turn: Turn) -> Turn:
    """The turn as it will be read again; itself where JSON holds all of it exactly."""
    try:
        if msgspec.json.decode(msgspec.json.encode(turn), type=Turn) == turn:
            return turn
    except (TypeError, ValueError, RecursionError):
        pass
    return plain(turn)


def plain(value: T) -> T:
    """*value* in plain values: broken characters as U+FFFD, keys as text, what JSON has no word for as its text."""
    kind = type(value)
    try:
        return msgspec.json.decode(dumps(msgspec.to_builtins(value, enc_hook=_simpler)), type=kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidValue(f"this {kind.__name__} could not be read again from JSON: {error}") from error


def _simpler(value: Any) -> Any:
    if isinstance(value, Iterator | AsyncIterator):
        raise TypeError(f"a tool returns values, not a {type(value).__name__} that is yet to give them")
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
