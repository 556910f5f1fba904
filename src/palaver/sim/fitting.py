"""A value that fits a JSON schema, always the same one for the same seed. Pure."""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from palaver.sim.patterns import Choose, matching

Schema = Mapping[str, Any]

DEEP = 5  # from here on only what is required, so that recursive schemas end
ATTEMPTS = 64
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jasper", "kelp", "lumen")
FORMATS = {
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
LARGEST = 1_000  # items of a list, or characters of a text, that anybody asks for in earnest
HINTS = {
    "object": ("properties", "additionalProperties", "required", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def fitting(schema: Schema, seed: str) -> Any:
    """A value that fits *schema*; types may be in either case, so Gemini's own schemas are read too."""
    try:
        return _Fitter(schema).value(schema, seed, 0)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, RecursionError):
        return {}  # no value fits what is no schema


def _pick(seed: str, choices: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % choices


class _Fitter:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def value(self, schema: Any, seed: str, depth: int) -> Any:
        schema = self._settled(schema, seed, depth)
        if "const" in schema:
            return schema["const"]
        if options := schema.get("enum"):
            return _enumerated(options, seed)
        match _kind(schema, deep=depth > DEEP):
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

    def _settled(self, schema: Any, seed: str, depth: int) -> dict[str, Any]:
        """The schema with its references followed, its parts put together and one of its alternatives chosen."""
        settled = {_camel(key): item for key, item in schema.items()} if isinstance(schema, Mapping) else {}
        for _ in range(ATTEMPTS):
            if reference := settled.pop("$ref", None) or settled.pop("ref", None):
                settled = {**self._referred(reference), **settled}
            elif everything := settled.pop("allOf", None):
                settled = _together([settled, *(self._settled(part, seed, depth) for part in everything)])
            elif options := settled.pop("anyOf", None) or settled.pop("oneOf", None):
                settled = _together([settled, self._alternative(options, seed, deep=depth > DEEP)])
            else:
                break
        return settled

    def _referred(self, reference: str) -> Schema:
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
        least = min(int(schema.get("minProperties") or 0), LARGEST)
        chosen = [name for name in properties if name in required or _wanted(seed, name, depth)]
        chosen += [name for name in required if name not in properties]
        chosen += [name for name in properties if name not in chosen][: max(0, least - len(chosen))]
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping) or extra is not False:
            wanted = max(least, 1 if isinstance(extra, Mapping) and not properties and depth <= DEEP else 0)
            chosen += [f"key{number}" for number in range(1, wanted - len(chosen) + 1)]
        return {name: self.value(properties.get(name, extra), f"{seed}.{name}", depth + 1) for name in chosen}

    def _array(self, schema: Schema, seed: str, depth: int) -> list[Any]:
        firsts = schema.get("prefixItems") or ()
        values = [self.value(first, f"{seed}<{i}>", depth + 1) for i, first in enumerate(firsts)]
        items = schema.get("items")
        if items is False:
            return values
        wanted = _length(schema, seed, deep=depth > DEEP)
        for number in count(len(values)):
            if len(values) >= wanted or number > wanted + ATTEMPTS:
                break
            value = self.value(items, f"{seed}[{number}]", depth + 1)
            if not schema.get("uniqueItems") or value not in values:
                values.append(value)
        return values


def _camel(name: str) -> str:
    """A keyword as JSON Schema spells it; Gemini takes `min_length` too."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _enumerated(options: Sequence[Any], seed: str) -> Any:
    given = [option for option in options if option is not None]
    return given[_pick(seed, len(given))] if given else None


def _wanted(seed: str, name: str, depth: int) -> bool:
    """Whether an optional property is given."""
    return depth <= DEEP and _pick(f"{seed}?{name}", 2) == 0


def _kind(schema: Schema, *, deep: bool) -> str:
    named = schema.get("type")
    kinds = [str(kind).lower() for kind in (named if isinstance(named, list) else [named] if named else [])]
    if deep and "null" in kinds:
        return "null"
    if kinds:
        return next((kind for kind in kinds if kind != "null"), "null")
    return next((kind for kind, hints in HINTS.items() if any(hint in schema for hint in hints)), "string")


def _together(schemas: Sequence[Schema]) -> dict[str, Any]:
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
    least = min(int(schema.get("minItems") or 0), LARGEST)
    if deep:
        return least
    wanted = max(least, 1 + _pick(seed + "#", 2))
    most = schema.get("maxItems")
    return wanted if most is None else min(wanted, int(most))


def _bounds(schema: Schema) -> tuple[float | None, float | None, bool, bool]:
    """The lowest and highest number, and whether each is itself excluded; draft 4 marks exclusion by a boolean."""
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
    if template := FORMATS.get(str(schema.get("format"))):
        return template.format(1 + _pick(seed, 28))
    least, most = min(int(schema.get("minLength") or 0), LARGEST), schema.get("maxLength")
    if pattern := schema.get("pattern"):
        candidates = _candidates(str(pattern), seed)
        return next((text for text in candidates if least <= len(text) <= (most or math.inf)), "")
    text = WORDS[_pick(seed, len(WORDS))]
    while len(text) < least:
        text += " " + WORDS[_pick(seed + text, len(WORDS))]
    return text if most is None else text[:most]


def _candidates(pattern: str, seed: str) -> Iterator[str]:
    """Texts that match *pattern*; none where it is no pattern or is beyond us."""
    try:
        wanted = re.compile(pattern)
    except re.error:
        return
    for attempt in range(ATTEMPTS):
        text = matching(pattern, _drawing(f"{seed}/{attempt}"))
        if wanted.search(text):
            yield text


def _drawing(seed: str) -> Choose:
    draws = count()
    return lambda choices: _pick(f"{seed}/{next(draws)}", choices)
