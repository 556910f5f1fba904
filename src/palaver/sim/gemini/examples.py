"""Values that fit a schema, chosen by a random generator. Pure but for the generator."""

import math
from random import Random
from typing import Any

Wire = dict[str, Any]

_DEEPEST = 5
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "juniper")
_FORMATS = {
    "date-time": "2026-11-15T12:00:00Z",
    "date": "2026-11-15",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}


class Examples:
    """Makes values for one schema, in either of the service's two languages; patterns are not followed."""

    def __init__(self, root: object, random: Random) -> None:
        self._root = root if isinstance(root, dict) else {}
        self._random = random

    def value(self) -> Any:
        """A value that fits the schema."""
        return self._fit(self._root, 0)

    def _fit(self, schema: object, depth: int) -> Any:
        if not isinstance(schema, dict):
            return self._random.choice(_WORDS)
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._random.choice(schema["enum"])
        options = _either(schema, "anyOf", "any_of") or schema.get("oneOf")
        if options:
            return self._fit(self._option(options, depth), depth)
        return self._typed(_type(schema), schema, depth)

    def _resolved(self, schema: Wire) -> Wire:
        for _ in range(_DEEPEST):
            reference = schema.get("$ref") or schema.get("ref")
            if not isinstance(reference, str):
                break
            schema = self._referred(reference)
        merged = dict(schema)
        for other in schema.get("allOf", []):
            merged = _merged(merged, self._resolved(other))
        return merged

    def _referred(self, reference: str) -> Wire:
        found: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = found.get(step, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}

    def _option(self, options: list[Any], depth: int) -> Any:
        if depth < _DEEPEST:
            return self._random.choice(options)
        simple = [option for option in options if isinstance(option, dict) and _type(option) not in ("object", "array")]
        return (simple or options)[0]

    def _typed(self, kind: str, schema: Wire, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number":
                return self._number(kind, schema)
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case _:
                return self._string(schema)

    def _object(self, schema: Wire, depth: int) -> Wire:
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        least = _either(schema, "minProperties", "min_properties") or 0
        chosen = [name for name in properties if name in required or self._optional(depth)]
        spare = [name for name in properties if name not in chosen]
        chosen += spare[: max(0, int(least) - len(chosen))]
        chosen += [name for name in required if name not in properties]
        return {name: self._fit(properties.get(name, {}), depth + 1) for name in chosen}

    def _optional(self, depth: int) -> bool:
        return depth < _DEEPEST - 2 and self._random.random() < 0.5

    def _array(self, schema: Wire, depth: int) -> list[Any]:
        fixed = [self._fit(entry, depth + 1) for entry in schema.get("prefixItems", [])]
        least = int(_either(schema, "minItems", "min_items") or 0)
        most = int(_either(schema, "maxItems", "max_items") or max(least, 2))
        wanted = least if depth >= _DEEPEST - 2 else self._random.randint(least, max(least, min(most, least + 2)))
        items = fixed[:most]
        while len(items) < wanted:
            items.append(self._fit(schema.get("items", {"type": "string"}), depth + 1))
        return _distinct(items) if schema.get("uniqueItems") else items

    def _number(self, kind: str, schema: Wire) -> float:
        low, high = _bounds(schema, 1 if kind == "integer" else 0.5)
        step = schema.get("multipleOf")
        if kind == "integer" and not step:
            return self._random.randint(math.ceil(low), max(math.ceil(low), math.floor(high)))
        if step:
            first = math.ceil(low / step)
            count: float = self._random.randint(first, max(first, math.floor(high / step))) * step
            return int(count) if kind == "integer" else count
        return round(min(high, low + (high - low) * self._random.random()), 3) if high - low > 0.01 else low

    def _string(self, schema: Wire) -> str:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        text = self._random.choice(_WORDS)
        least = int(_either(schema, "minLength", "min_length") or 0)
        while len(text) < least:
            text += " " + self._random.choice(_WORDS)
        most = _either(schema, "maxLength", "max_length")
        return text[: int(most)] if most is not None else text


def _either(schema: Wire, camel: str, snake: str) -> Any:
    return schema.get(camel, schema.get(snake))


def _type(schema: Wire) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str) and kind.upper() != "TYPE_UNSPECIFIED":
        return kind.lower()
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _merged(one: Wire, other: Wire) -> Wire:
    merged = {**one, **other}
    merged["properties"] = {**(one.get("properties") or {}), **(other.get("properties") or {})}
    merged["required"] = [*(one.get("required") or []), *(other.get("required") or [])]
    return {name: value for name, value in merged.items() if value not in ({}, [])}


def _bounds(schema: Wire, beyond: float) -> tuple[float, float]:
    low = schema.get("minimum")
    high = schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + beyond
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - beyond
    if low is None:
        low = 1 if high is None else min(1, high)
    return float(low), float(max(low, low + 99 if high is None else high))


def _distinct(items: list[Any]) -> list[Any]:
    return [item for place, item in enumerate(items) if item not in items[:place]]
