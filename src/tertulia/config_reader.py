"""Config reader: makes values of TOML tables and environment variables. Pure.

The structs of a config are its schema: their fields are the keys, their types say what is allowed, and a field that is
a struct is a table. A variable takes precedence over the file. Each mistake is one line: it names the line of the file,
or the variable, and says what is allowed there.
"""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import inspect as types

from tertulia.errors import InvalidValue

T = TypeVar("T", bound=Struct)
KeyPath = tuple[str, ...]  # ("limits", "person", "tokens")
Load = Callable[[str], Any]  # imports what "module:name" names

PREFIX = "TERTULIA_"
_SWITCH = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([smhdw])|(second|minute|hour|day|week)s?)", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_BARE = re.compile(r"[\w-]{1,60}", re.ASCII)  # a key that needs no quotes
_MOST_ERRORS = 10  # that are shown at once
_ASSIGNMENT = re.compile(r"\s*([\w.-]+)\s*=\s*([^\s\"'\[{#][^#]*?)\s*(?:#.*)?", re.ASCII)  # of something without quotes
_SECRET = re.compile(r"(?:^|_)(?:token|key|secret|password)$", re.IGNORECASE)


class Key(Struct, frozen=True, kw_only=True):
    """One key of a config: where it is, what it may be, and its default."""

    path: KeyPath
    annotation: Any
    info: Any  # its type, of msgspec.inspect
    default: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The environment variable of the key."""
        return PREFIX + "_".join(self.path).upper()

    @property
    def allowed(self) -> str:
        """What the key may be, in words."""
        return _allowed(self.info)


def keys_of(schema: type[Struct], before: KeyPath = ()) -> Iterator[Key]:
    """Return the keys of a schema, with those of the tables in it."""
    for key in _fields(schema, before):
        if isinstance(key.info, types.StructType):
            yield from keys_of(key.info.cls, key.path)
        else:
            yield key


class ConfigReader:
    """Reads the tables of one file, and the variables that take precedence over them.

    *load* imports what "module:name" names; *renamed* has variables with names of their own, and the key of each.
    """

    def __init__(
        self, text: str, *, file: str, environment: Mapping[str, str], load: Load, renamed: Mapping[str, str] = {}
    ) -> None:
        self._text = text
        self._file = file
        self._environment = environment
        self._load = load
        self._renamed = {key: variable for variable, key in renamed.items()}
        self._errors: list[str] = []
        try:
            self.tables: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
            line = place[1] if place and place[1] else text.count("\n") + 1
            why = str(error).replace(place[0] if place else "", "")
            why = why if why.isprintable() else ascii(why)
            raise InvalidValue(f"{file}:{line}: {why}{_quotes_hint(text, int(line))}") from error
        except (ValueError, RecursionError) as error:  # a number with thousands of digits, or lists in lists in lists
            raise InvalidValue(f"{file}:{_line_of_excess(text)}: a value is too long or nested too deeply") from error

    def read(self, schema: type[T], table: Any, before: KeyPath = ()) -> T:
        """Return the value of a table; a key that neither it nor the environment has gets its default.

        *before* is where the table is. Raise `InvalidValue` with a line for each mistake.
        """
        value = self._read(schema, table, before, known=list(_paths_of(schema, before)))
        if self._errors:
            raise InvalidValue("\n".join(self._errors[:_MOST_ERRORS]))
        return value

    def _read(self, schema: type[T], table: Any, before: KeyPath, *, known: list[KeyPath]) -> T:
        errors = len(self._errors)
        keys = {key.path[-1]: key for key in _fields(schema, before)}
        if not isinstance(table, dict):
            with self._collecting():
                self.refuse(before, table, f"a table: [{_name(before)}]")
            return schema()
        for name in [name for name in table if name not in keys][:_MOST_ERRORS]:
            self._errors.append(self._unknown((*before, name), allowed=list(keys), known=known))
        values: dict[str, Any] = {}
        for name, key in keys.items():
            with self._collecting():
                if isinstance(key.info, types.StructType):
                    values[name] = self._read(key.info.cls, table.get(name, {}), key.path, known=known)
                elif variable := self._variable_of(key.path):
                    values[name] = self._from_variable(variable, key)
                elif name in table:
                    values[name] = self._from_file(table[name], key)
        with self._collecting():
            return self._make(schema, values, before) if len(self._errors) == errors else schema()
        return schema()

    def _make(self, schema: type[T], values: dict[str, Any], before: KeyPath) -> T:
        try:
            return schema(**values)
        except InvalidValue as error:
            guilty = [name for name in values if _is_valid(schema, values, without=name)]
            path = (*before, guilty[0]) if len(guilty) == 1 else before
            raise InvalidValue(f"{self.place_of(path)}: {error}") from error

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Add an error to those that are raised together."""
        try:
            yield
        except InvalidValue as error:
            self._errors.append(str(error))

    def place_of(self, path: KeyPath) -> str:
        """Return the variable that sets a key; else its file and line, or those of the nearest table around it."""
        if variable := self._variable_of(path):
            return variable
        lines = (line_of(self._text, path[:end]) for end in range(len(path), 0, -1))
        return f"{self._file}:{next(filter(None, lines), 1)}"

    def refuse(self, path: KeyPath, value: object, allowed: str) -> NoReturn:
        """Raise `InvalidValue` for a value of the file."""
        raise InvalidValue(f"{self.place_of(path)}: {_name(path)} must be {allowed}, not {_shown(path, value)}")

    def _variable_of(self, path: KeyPath) -> str:
        """Return the variable that sets a key; empty if none does."""
        names = (PREFIX + "_".join(path).upper(), self._renamed.get(".".join(path), ""))
        return next((name for name in names if self._environment.get(name, "").strip()), "")

    def _from_variable(self, variable: str, key: Key) -> Any:
        written = self._environment[variable].strip()
        try:
            return self._convert(_parse(written, key.info), key)
        except (ValueError, RecursionError) as error:
            why = f" ({error})" if isinstance(error, InvalidValue) else ""
            raise InvalidValue(f"{variable} must be {key.allowed}, not {_shown(key.path, written)}{why}") from error

    def _from_file(self, value: Any, key: Key) -> Any:
        try:
            return self._convert(value, key)
        except InvalidValue as error:
            raise InvalidValue(f"{self.place_of(key.path)}: {key.name}: {error}") from error
        except ValueError:
            self.refuse(key.path, value, key.allowed)

    def _convert(self, value: Any, key: Key) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(value)  # no limit holds against nan
        kinds = _members(key.info)
        if any(isinstance(kind, types.VarTupleType) and _is_function(kind.item_type) for kind in kinds):
            if not isinstance(value, list):
                raise ValueError(value)
            return tuple(map(self._load_function, value))
        if any(map(_is_function, kinds)):
            return self._load_function(value)
        if any(isinstance(kind, types.TimeDeltaType) for kind in kinds):
            return parse_duration(value)
        return msgspec.convert(value, key.annotation)  # msgspec.ValidationError is a ValueError

    def _load_function(self, value: object) -> Any:
        if not isinstance(value, str) or ":" not in value:
            raise ValueError(value)
        return self._load(value)

    def _unknown(self, path: KeyPath, *, allowed: list[str], known: list[KeyPath]) -> str:
        """Return the error for an unknown key: what it may be meant to be, or where it belongs."""
        near = get_close_matches(path[-1], allowed, n=1)
        homes = [
            f"in [{_name(one[:-1])}]" if len(one) > 1 else "above the first table"
            for one in known
            if one[-1] == path[-1]
        ]
        if near and (path[-1],) not in known:  # `tools` in [limits] slipped below a table, and is no misspelt `total`
            hint = f", did you mean {near[0]}?"
        else:
            hint = f"; {path[-1]} belongs {' or '.join(homes[:2])}." if homes else "."
        return f"{self.place_of(path)}: there is no key {_name(path)}{hint} Allowed are: {', '.join(allowed)}"


def line_of(text: str, path: KeyPath) -> int | None:
    """Return the line in which a key, or the first header of a table or one in it, is written; None for neither."""
    table: KeyPath = ()
    for number, statement, written in _statements(text):
        if statement.lstrip().startswith("["):
            table = _only_path(written)
            if table[: len(path)] == path:
                return number
        elif path[: len(table)] == table and len(path) > len(table) and _has(written, path[len(table) :]):
            return number
    return None


def _quotes_hint(text: str, number: int) -> str:
    """Return what to write in a line whose value is a text without quotes; what may be a secret is not repeated."""
    lines = text.split("\n")[:number]
    written = _ASSIGNMENT.fullmatch(lines[-1].rstrip("\r"))
    if not written or not written[2].isprintable() or _is_toml(written[0]):
        return ""
    key, value = written[1], written[2]
    header = next((line.split() for line in reversed(lines) if line.lstrip().startswith("[")), [])
    is_hidden = is_secret(key) or "platforms" in f"{header}{key}" or len(value) > 60
    return f"; a text needs quotes: {key} = {json.dumps('…' if is_hidden else value, ensure_ascii=False)}"


def _is_toml(line: str) -> bool:
    try:
        tomllib.loads(line)
    except ValueError:
        return False
    return True


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Return the headers, assignments and other lines of a valid text, each with its line and what it means alone."""
    begun, lines = 1, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        lines.append(line)
        try:
            written = tomllib.loads(statement := "\n".join(lines))
        except tomllib.TOMLDecodeError:  # it goes on in the next line
            continue
        yield begun, statement, written
        begun, lines = number + 1, []


def _line_of_excess(text: str) -> int:
    """Return the line of the first statement that is beyond what can be read."""
    line = 1
    try:
        for number, statement, _ in _statements(text):
            line = number + statement.count("\n") + 1
    except (ValueError, RecursionError):
        pass
    return line


def _only_path(written: Any) -> KeyPath:
    """Return the path of the one table that a header declares."""
    path: KeyPath = ()
    while isinstance(written, dict) and written:
        name, written = next(iter(written.items()))
        path = (*path, name)
    return path


def _has(written: Any, path: KeyPath) -> bool:
    for name in path:
        if not isinstance(written, dict) or name not in written:
            return False
        written = written[name]
    return True


def parse_duration(value: object) -> timedelta:
    """Return the time that "30 days", "12h" or a number of seconds means; raise ValueError for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return timedelta(seconds=value)
        written = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
        if not written:
            raise ValueError(value)
        unit = _UNITS[(written[2] or written[3][0]).lower()]
        return timedelta(**{unit: float(written[1])})
    except OverflowError as error:
        raise ValueError(value) from error


def _paths_of(schema: type[Struct], before: KeyPath = ()) -> Iterator[KeyPath]:
    """Return the paths of all keys and tables."""
    for key in _fields(schema, before):
        yield key.path
        if isinstance(key.info, types.StructType):
            yield from _paths_of(key.info.cls, key.path)


def _fields(schema: type[Struct], before: KeyPath) -> Iterator[Key]:
    info = types.type_info(schema)
    assert isinstance(info, types.StructType)  # noqa: S101 (of a struct)
    hints = get_type_hints(schema, include_extras=True)
    for field in info.fields:
        path = (*before, field.name)
        yield Key(path=path, annotation=hints[field.name], info=field.type, default=field.default)


def _members(info: Any) -> tuple[Any, ...]:
    return info.types if isinstance(info, types.UnionType) else (info,)


def _is_function(info: Any) -> bool:
    return any(isinstance(one, types.CustomType | types.AnyType) for one in _members(info))


def _allowed(info: Any) -> str:
    match info:
        case types.UnionType(types=members):
            return " or ".join(_allowed(one) for one in members if not isinstance(one, types.NoneType))
        case types.BoolType():
            return "true or false"
        case types.IntType(ge=None, le=None):
            return "a whole number"
        case types.FloatType(ge=None, le=None):
            return "a number"
        case types.IntType(ge=low, le=high) | types.FloatType(ge=low, le=high):
            kind = "whole number" if isinstance(info, types.IntType) else "number"
            return f"a {kind} from {low:g}" + (f" to {high:g}" if high is not None else " on")
        case types.LiteralType(values=values):
            return "one of " + ", ".join(map(str, values))
        case types.TimeDeltaType():
            return 'a time such as "30 days" or "12h"'
        case types.CustomType():
            return 'a function, as "module:name"'
        case types.VarTupleType(item_type=item) if _is_function(item):
            return 'a list of functions, each as "module:name"'
        case types.VarTupleType(item_type=types.StructType(fields=fields)):
            return f"a list of tables with {', '.join(field.name for field in fields)} (in a variable: as JSON)"
        case types.StrType():
            return "a text"
        case types.DictType():
            return "a table (in a variable: as JSON)"
        case _:
            return "a list of texts"


def _parse(written: str, info: Any) -> Any:
    """Return the value that a variable's text means for a key of that type."""
    for kind in _members(info):
        match kind:
            case types.BoolType():
                return _SWITCH.get(written.casefold(), written)
            case types.VarTupleType(item_type=types.StructType()):
                return msgspec.json.decode(written)
            case types.VarTupleType() | types.FrozenSetType():
                return [item.strip() for item in written.split(",") if item.strip()]
            case types.DictType():
                return msgspec.json.decode(written)  # msgspec.DecodeError is a ValueError
            case types.IntType() if re.fullmatch(r"[+-]?\d{1,18}", written, re.ASCII):
                return int(written)
            case types.FloatType() | types.TimeDeltaType() if re.fullmatch(r"[+-]?\d{1,18}(\.\d+)?", written, re.ASCII):
                return float(written)
    return written


def _is_valid(schema: type[Struct], values: Mapping[str, Any], *, without: str) -> bool:
    try:
        schema(**{name: value for name, value in values.items() if name != without})
    except InvalidValue:
        return False
    return True


def is_secret(name: str) -> bool:
    """Return whether the value of a key with that name is never shown."""
    return _SECRET.search(name) is not None


def _name(path: KeyPath) -> str:
    """Return a key as it is written in the file, on one line, cut."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part[:60]) for part in path)


def _shown(path: KeyPath, value: object) -> str:
    """Return a value for an error, cut; that of a secret is left out."""
    is_option = path[0] == "platforms" and path[-1] != "use" and not isinstance(value, int | float)
    if is_option or any(map(is_secret, path)):
        return "what is there"
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value)):
        return "a table" if isinstance(value, dict) else "a list of tables"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
