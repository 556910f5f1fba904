"""Encodes values as JSON text and decodes them, without loss. Pure."""

import json
import math
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from tertulia.context.values import LeftOut
from tertulia.engine.limits import Cap
from tertulia.engine.store_protocols import SettingValue
from tertulia.errors import InvalidValue, StoreBroken
from tertulia.messages import Author, Message, Place, Quote, Reply
from tertulia.models.gemini.cache_values import CacheFingerprint
from tertulia.parts import Part, ToolCall, ToolResult
from tertulia.run.chat_values import HistoryEntry, OpenExchange
from tertulia.tasks.task import Task
from tertulia.turns import Layer, Settings, ToolSpec, Turn

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

_SHARED = 8192  # decoded values of one type
_SURROGATE = re.compile("[\ud800-\udfff]")  # of a character: UTF-8 has no word for it


class JsonType(Generic[T]):
    """Decoder of one type of value."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def loads(self, text: str) -> T:
        try:
            found: T = self._decode(text)
            return found
        except (msgspec.MsgspecError, UnicodeEncodeError):
            pass
        try:
            again: T = msgspec.convert(json.loads(text), self._kind)
            return again
        except (ValueError, RecursionError) as error:
            raise StoreBroken(f"it holds something that cannot be read: {error}") from error


class SharedType(JsonType[T]):
    """Decodes equal texts to one object, on which caches may be held; so nothing has to be told of a change."""

    def __init__(self, kind: Any) -> None:
        super().__init__(kind)
        self._shared = lru_cache(_SHARED)(super().loads)

    def loads(self, text: str) -> T:
        return self._shared(text)

    def clear(self) -> None:
        self._shared.cache_clear()


PARTS = JsonType[tuple[Part, ...]](tuple[Part, ...])
QUOTE = JsonType[Quote](Quote)
AUTHOR = SharedType[Author](Author)
PLACE = SharedType[Place](Place)
MESSAGE = JsonType[Message](Message)
TURN = JsonType[Turn](Turn)
TURNS = JsonType[tuple[Turn, ...]](tuple[Turn, ...])
CALL = JsonType[ToolCall](ToolCall)
RESULT = JsonType[ToolResult](ToolResult)
LAYER = JsonType[Layer](Layer)
TOOLS = JsonType[tuple[ToolSpec, ...]](tuple[ToolSpec, ...])
REPLY = JsonType[Reply](Reply)
TASK = JsonType[Task](Task)
STRINGS = JsonType[tuple[str, ...]](tuple[str, ...])
ENTRY = JsonType[HistoryEntry](HistoryEntry)
EXCHANGE = JsonType[OpenExchange](OpenExchange)
FINGERPRINT = JsonType[CacheFingerprint](CacheFingerprint)
LEFT_OUT = JsonType[tuple[LeftOut, ...]](tuple[LeftOut, ...])
SETTING_VALUE = JsonType[SettingValue](SettingValue)
CAP = JsonType[Cap](Cap)
ANY = JsonType[Any](Any)
_SETTINGS = JsonType[Settings](Settings)
_SHARED_TYPES: dict[Any, SharedType[Any]] = {Author: AUTHOR, Place: PLACE}


_Codec = tuple[str, str, Callable[[Any], Any] | None, Callable[[Any], Any] | None]  # field, column, encode, decode


class Columns(Generic[S]):
    """Fields of a struct as columns: times in ISO form, truth values as 0 and 1, what has no type of SQL as JSON.

    The fields are named in a text; one whose column has another name is `run=run_id`. *Others* are only read: by an
    expression, or as structs of their own columns, of which the first is NULL where there is none; those of the same
    table are written too.
    """

    def __init__(self, kind: type[S], fields: str, table: str = "", /, **others: "str | Columns[Any]") -> None:
        types = {one.name: one.type for one in msgspec.structs.fields(kind)}
        pairs = [(name, column or name) for name, _, column in (one.partition("=") for one in fields.split())]
        codecs: list[_Codec] = [(name, column, *_codec(types[name])) for name, column in pairs]
        read = [(name, sql) for name, sql in others.items() if isinstance(sql, str)]
        self._kind = kind
        self._decoders = [(name, decode) for name, _, _, decode in codecs]
        self._decoders += [(name, _codec(types[name])[1]) for name, _ in read]
        self._nested = [(name, columns) for name, columns in others.items() if isinstance(columns, Columns)]
        read_columns = [sql for _, sql in read] + [str(columns) for _, columns in self._nested]
        self._encode = _encoder(codecs, [(name, columns) for name, columns in self._nested if columns.alias == table])
        self.names = [column for _, column in pairs]
        self.count: int = len(self._decoders) + sum(columns.count for _, columns in self._nested)
        self.alias: str = table
        prefix = f"{table}." if table else ""
        self._text = ", ".join([*(f"{prefix}{name}" for name in self.names), *read_columns])

    def __str__(self) -> str:
        return self._text

    def encode(self, value: S) -> dict[str, Any]:
        """Return the values of the columns, by their names."""
        return self._encode(value)

    def decode(self, values: Iterable[Any], **fields: Any) -> S:
        """Return the struct of the next values, those of the columns, with other fields as they are given."""
        rest = iter(values)
        for (name, decode), value in zip(self._decoders, rest, strict=False):
            if value is not None:
                fields[name] = value if decode is None else decode(value)
        for name, columns in self._nested:
            own = list(islice(rest, columns.count))
            fields[name] = None if own[0] is None else columns.decode(own)
        try:
            return msgspec.convert(fields, self._kind)
        except msgspec.ValidationError as error:
            raise StoreBroken(f"it holds something that cannot be read: {error}") from error


def _encoder(codecs: Iterable[_Codec], nested: "Iterable[tuple[str, Columns[Any]]]") -> Callable[[Any], dict[str, Any]]:
    """Return a function that encodes the fields of a struct, compiled as those of `dataclasses` are: it runs often."""
    encoders: dict[str, Any] = {f"encode_{name}": encode for name, _, encode, _ in codecs if encode}
    fields = [
        f"{column!r}: " + (f"None if v.{name} is None else encode_{name}(v.{name})" if encode else f"v.{name}")
        for name, column, encode, _ in codecs
    ]
    for name, columns in nested:
        encoders |= {f"encode_{name}": columns.encode, f"no_{name}": dict.fromkeys(columns.names)}
        fields.append(f"**(no_{name} if v.{name} is None else encode_{name}(v.{name}))")
    made: Callable[[Any], dict[str, Any]] = eval(f"lambda v: {{{', '.join(fields)}}}", encoders)  # noqa: S307
    return made


def clear_shared() -> None:
    """Forget the values that texts were decoded to: they may be of somebody who was forgotten."""
    for one in _SHARED_TYPES.values():
        one.clear()


def dumps(value: Any) -> str:
    """Encode *value* as JSON; lone surrogates, NaN and Infinity are written as Python's `json` does."""
    return dump_bytes(value).decode()


def dump_bytes(value: Any) -> bytes:
    """Encode *value* as JSON in UTF-8."""
    try:
        data = msgspec.json.encode(value)
        if b"null" not in data or _is_finite(value):  # msgspec says null for a number that is none
            return data
    except UnicodeEncodeError:
        pass
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"{type(value).__name__} holds something that cannot be kept: {error}") from error
    return _dumps_python(value).encode()


def clean(text: str) -> str:
    """Replace what a text column cannot hold (NUL, lone surrogates); for columns that no value is decoded from."""
    if "\0" not in text:
        try:
            text.isascii() or text.encode()
            return text
        except UnicodeEncodeError:
            pass
    return text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def validate_id(text: str, what: str) -> str:
    """Return *text* if it can be stored unchanged, as an id must; else raise `InvalidValue`."""
    if isinstance(text, str) and text.isascii() and "\0" not in text:
        return text
    if not isinstance(text, str) or clean(text) != text:
        article = "an" if what[0] in "aeiou" else "a"
        raise InvalidValue(f"{text!r} cannot be kept as the id of {article} {what}")
    return text


def load_settings(text: str) -> Settings:
    """Decode settings. A temperature of 1 stays an integer: 1.0 would be another request."""
    read = _SETTINGS.loads(text)
    given = ANY.loads(text)
    whole = {name: given[name] for name in ("temperature", "top_p") if isinstance(given.get(name), int)}
    return msgspec.structs.replace(read, **whole) if whole else read


def parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def format_time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _dumps_python(value: Any) -> str:
    try:
        text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=False)
        return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidValue(f"{type(value).__name__} holds something that cannot be kept: {error}") from error


def _is_finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list() | tuple():
            return all(map(_is_finite, value))
        case Struct():
            return all(_is_finite(getattr(value, name)) for name in value.__struct_fields__)
        case _:
            return True


def _codec(kind: Any) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
    """Return how values of a type are encoded and decoded; None: as they are."""
    is_union = get_origin(kind) in (Union, UnionType)
    kinds = [one for one in get_args(kind) if one is not NoneType] if is_union else [kind]
    one = kinds[0] if len(kinds) == 1 else kind
    if one is str or get_origin(one) is Literal:
        return clean, None
    if one in (int, float):
        return None, None
    if one is bool:
        return int, bool
    if one in (datetime, date):
        return one.isoformat, one.fromisoformat
    if one in _SHARED_TYPES:
        return dumps, _SHARED_TYPES[one].loads
    return dumps, JsonType[Any](one).loads
