"""Examples: a value that fits a JSON schema, always the same one for the same seed. Pure."""

import hashlib
import math
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

Schema = Mapping[str, Any]

_DEEP = 5  # from here on only what is required, so that recursive schemas end
_ATTEMPTS = 64
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jasper", "kelp", "lumen")
_FORMATS = {
    "date-time": "2026-11-{:02d}T09:30:00Z",
    "date": "2026-11-{:02d}",
    "time": "09:{:02d}:00Z",
    "duration": "PT{:d}M",
    "email": "person{:02d}@example.com",
    "hostname": "host{:02d}.example.com",
    "ipv4": "192.0.2.{:d}",
    "ipv6": "2001:db8::{:d}",
    "uri": "https://example.com/{:02d}",
    "url": "https://example.com/{:02d}",
    "uri-reference": "/{:02d}",
    "uuid": "00000000-0000-4000-8000-0000000000{:02d}",
}
_LARGEST = 1_000  # items of a list, or characters of a text, that anybody asks for in earnest
_HINTS = {
    "object": ("properties", "additionalProperties", "required", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_WORD = string.ascii_lowercase + string.digits + string.ascii_uppercase + "_"
_ANY = string.ascii_lowercase + string.digits + " -_.,"
_ESCAPES = {"d": string.digits, "w": _WORD, "s": " ", "D": "abcxyz-", "W": "-. ", "S": _WORD}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
_QUANTIFIER = re.compile(r"\{(\d+)(,?)(\d*)\}[?+]?|([*+?])[?+]?")
_OPENING = re.compile(r"\((\?:|\?P?<[A-Za-z_]\w*>)?")


def example(schema: Schema, seed: str) -> Any:
    """Make a value that fits *schema*. Types may be in either case, as in Gemini's own schemas."""
    try:
        return _Example(schema).value(schema, seed, 0)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError):
        return {}  # no value fits what is no schema


def _pick(seed: str, choices: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % choices


class _Example:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, schema: Any, seed: str, depth: int) -> Any:
        schema = self._resolve(schema, seed, depth)
        if "const" in schema:
            return schema["const"]
        if options := schema.get("enum"):
            given = [option for option in options if option is not None]
            return given[_pick(seed, len(given))] if given else None
        match _kind(schema, deep=depth > _DEEP):
            case "object":
                return self._object(schema, seed, depth)
            case "array":
                return self._array(schema, seed, depth)
            case "integer":
                return _integer(schema, seed)
            case "number":
                return _number(schema, seed)
            case "boolean":
                return bool(_pick(seed, 2))
            case "null":
                return None
            case _:
                return _string(schema, seed)

    def _resolve(self, schema: Any, seed: str, depth: int) -> dict[str, Any]:
        """Follow the references of a schema, merge its `allOf` and choose one of its alternatives."""
        resolved = {_camel(key): item for key, item in schema.items()} if isinstance(schema, Mapping) else {}
        for _ in range(_ATTEMPTS):
            if reference := resolved.pop("$ref", None) or resolved.pop("ref", None):
                resolved = {**self._definition(reference), **resolved}
            elif everything := resolved.pop("allOf", None):
                resolved = _merge([resolved, *(self._resolve(part, seed, depth) for part in everything)])
            elif options := resolved.pop("anyOf", None) or resolved.pop("oneOf", None):
                resolved = _merge([resolved, self._alternative(options, seed, deep=depth > _DEEP)])
            else:
                break
        return resolved

    def _definition(self, reference: str) -> Schema:
        found: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name and isinstance(found, Mapping):
                found = found.get(name.replace("~1", "/").replace("~0", "~"), {})
        return found if isinstance(found, Mapping) else {}

    def _alternative(self, options: Sequence[Any], seed: str, *, deep: bool) -> Schema:
        schemas = [option for option in options if isinstance(option, Mapping)]
        nulls = [option for option in schemas if str(option.get("type")).lower() == "null"]
        others = [option for option in schemas if option not in nulls]
        if deep and nulls:
            return nulls[0]
        if deep:
            return min(others, key=lambda option: "$ref" in option or "properties" in option, default={})
        return others[_pick(seed + "|", len(others))] if others else {"type": "null"}

    def _object(self, schema: Schema, seed: str, depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        least = min(int(schema.get("minProperties") or 0), _LARGEST)
        optional = [name for name in properties if depth <= _DEEP and _pick(f"{seed}?{name}", 2) == 0]
        chosen = [name for name in properties if name in required or name in optional]
        chosen += [name for name in required if name not in properties]
        chosen += [name for name in properties if name not in chosen][: max(0, least - len(chosen))]
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping) or extra is not False:
            wanted = max(least, 1 if isinstance(extra, Mapping) and not properties and depth <= _DEEP else 0)
            chosen += [f"key{number}" for number in range(1, wanted - len(chosen) + 1)]
        return {name: self.value(properties.get(name, extra), f"{seed}.{name}", depth + 1) for name in chosen}

    def _array(self, schema: Schema, seed: str, depth: int) -> list[Any]:
        firsts = schema.get("prefixItems") or ()
        values = [self.value(first, f"{seed}<{i}>", depth + 1) for i, first in enumerate(firsts)]
        items = schema.get("items")
        if items is False:
            return values
        wanted = _length(schema, seed, deep=depth > _DEEP)
        for number in count(len(values)):
            if len(values) >= wanted or number > wanted + _ATTEMPTS:
                break
            value = self.value(items, f"{seed}[{number}]", depth + 1)
            if not schema.get("uniqueItems") or value not in values:
                values.append(value)
        return values


def _camel(name: str) -> str:
    """Return a keyword as JSON Schema spells it; Gemini takes `min_length` too."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _kind(schema: Schema, *, deep: bool) -> str:
    named = schema.get("type")
    kinds = [str(kind).lower() for kind in (named if isinstance(named, list) else [named] if named else [])]
    if deep and "null" in kinds:
        return "null"
    if kinds:
        return next((kind for kind in kinds if kind != "null"), "null")
    return next((kind for kind, hints in _HINTS.items() if any(hint in schema for hint in hints)), "string")


def _merge(schemas: Sequence[Schema]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for schema in schemas:
        properties = {**merged.get("properties", {}), **schema.get("properties", {})}
        required = [*merged.get("required", ()), *schema.get("required", ())]
        merged = {**merged, **schema}
        if properties:
            merged["properties"] = properties
        if required:
            merged["required"] = list(dict.fromkeys(required))
    return merged


def _length(schema: Schema, seed: str, *, deep: bool) -> int:
    least = min(int(schema.get("minItems") or 0), _LARGEST)
    if deep:
        return least
    wanted = max(least, 1 + _pick(seed + "#", 2))
    most = schema.get("maxItems")
    return wanted if most is None else min(wanted, int(most))


def _bounds(schema: Schema) -> tuple[float | None, float | None, bool, bool]:
    """Return the lowest and highest number, and whether each is itself excluded; draft 4 marks exclusion by a
    boolean.
    """
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    low_open = above is True or (_is_number(above) and (low is None or above >= low))
    high_open = below is True or (_is_number(below) and (high is None or below <= high))
    low = above if low_open and above is not True else low
    high = below if high_open and below is not True else high
    return low, high, low_open, high_open


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(schema: Schema, seed: str) -> int:
    low, high, low_open, high_open = _bounds(schema)
    least = None if low is None else math.floor(low) + 1 if low_open else math.ceil(low)
    most = None if high is None else math.ceil(high) - 1 if high_open else math.floor(high)
    least = least if least is not None else min(0, most - 100) if most is not None else 0
    most = most if most is not None else least + 100
    step = max(1, math.ceil(schema.get("multipleOf") or 1))
    number = least + _pick(seed, max(1, most - least + 1))
    number -= number % step
    return number if number >= least else number + step


def _number(schema: Schema, seed: str) -> float:
    low, high, low_open, high_open = _bounds(schema)
    least = float(low) if low is not None else min(0.0, high - 100) if high is not None else 0.0
    most = float(high) if high is not None else least + 100
    step = schema.get("multipleOf")
    if step:
        first = math.ceil(least / step)
        return float(step * (first + 1 if low_open and first * step == least else first))
    tenths = _pick(seed, 9) + 1 if low_open or high_open else _pick(seed, 11)
    return round(least + (most - least) * tenths / 10, 6)


def _string(schema: Schema, seed: str) -> str:
    if template := _FORMATS.get(str(schema.get("format"))):
        return template.format(1 + _pick(seed, 28))
    least, most = min(int(schema.get("minLength") or 0), _LARGEST), schema.get("maxLength")
    if pattern := schema.get("pattern"):
        candidates = _candidates(str(pattern), seed)
        return next((text for text in candidates if least <= len(text) <= (most or math.inf)), "")
    text = _WORDS[_pick(seed, len(_WORDS))]
    while len(text) < least:
        text += " " + _WORDS[_pick(seed + text, len(_WORDS))]
    return text if most is None else text[:most]


def _candidates(pattern: str, seed: str) -> Iterator[str]:
    """Yield texts that match *pattern*; none if it is invalid or too complex for us."""
    try:
        wanted = re.compile(pattern)
    except re.error:
        return
    for attempt in range(_ATTEMPTS):
        text = _PatternWriter(pattern, f"{seed}/{attempt}").alternatives()()
        if wanted.search(text):
            yield text


class _PatternWriter:
    """Writes a text that a regular expression matches: exactly if it has only classes, groups and repetition.

    Each method reads a piece of the pattern and returns a function that writes a matching piece of the text.
    """

    def __init__(self, pattern: str, seed: str) -> None:
        self._pattern = pattern
        self._seed = seed
        self._draws = count()
        self._at = 0

    def _choose(self, choices: int) -> int:
        return _pick(f"{self._seed}/{next(self._draws)}", choices)

    def alternatives(self) -> Callable[[], str]:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._take(")")
        return lambda: options[self._choose(len(options))]()

    def _sequence(self) -> Callable[[], str]:
        pieces: list[Callable[[], str]] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            pieces.append(self._repeated(self._atom()))
        return lambda: "".join(piece() for piece in pieces)

    def _atom(self) -> Callable[[], str]:
        if opening := _OPENING.match(self._pattern, self._at):
            self._at = opening.end()
            return self.alternatives()
        character = self._next()
        if character in "^$":
            return lambda: ""
        alphabet = self._alphabet(character)
        return lambda: alphabet[self._choose(len(alphabet))]

    def _alphabet(self, character: str) -> str:
        if character == ".":
            return _ANY
        if character == "\\":
            escaped = self._next()
            return _ESCAPES.get(escaped) or _CONTROLS.get(escaped) or escaped
        return self._class() if character == "[" else character

    def _class(self) -> str:
        negated = self._take("^")
        members = ""
        while self._at < len(self._pattern) and not (self._take("]") and members):
            start = self._alphabet("\\") if self._take("\\") else self._next()
            rest = self._pattern[self._at : self._at + 2]
            if len(start) == 1 and len(rest) == 2 and rest[0] == "-" and rest[1] not in "]\\":
                self._at += 2
                start = "".join(chr(code) for code in range(ord(start), ord(rest[1]) + 1))
            members += start
        if not negated:
            return members or "x"
        return "".join(character for character in _WORD + _ANY if character not in members) or "~"

    def _repeated(self, piece: Callable[[], str]) -> Callable[[], str]:
        quantifier = _QUANTIFIER.match(self._pattern, self._at)
        if quantifier is None:
            return piece
        self._at = quantifier.end()
        least, comma, most, sign = quantifier.groups()
        if sign:
            low, high = {"*": (0, 6), "+": (1, 8), "?": (0, 1)}[sign]
        else:
            low = int(least)
            high = max(low, int(most)) if most else low + 6 if comma else low
        return lambda: "".join(piece() for _ in range(low + self._choose(high - low + 1)))

    def _take(self, character: str) -> bool:
        taken = self._pattern[self._at : self._at + 1] == character
        self._at += taken
        return taken

    def _next(self) -> str:
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        return character or "x"
