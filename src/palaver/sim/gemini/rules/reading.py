"""A request as the service parses it: one spelling, no nulls, lists where lists are wanted. Pure."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from palaver.sim.gemini.rules.fields import DATA_FIELDS, SHAPES, SPELLINGS, Many, One, Scalar, Shape
from palaver.sim.gemini.rules.violations import Violation

Wire = dict[str, Any]


class Reading(Struct):
    """Reads objects by kind and notes what cannot be read."""

    violations: list[Violation] = field(default_factory=list)

    def read_one(self, kind: str, value: object, where: str) -> Wire:
        """*value* with camelCase fields, read field by field."""
        if not isinstance(value, dict):
            self._refuse_type(where)
            return {}
        if not kind:
            return value
        named = self._named(kind, value, where)
        if kind == "part":
            self._refuse_two_data(named, where)
        return {name: self._field(kind, name, entry, where) for name, entry in named.items()}

    def read_many(self, kind: str, value: object, where: str) -> list[Wire]:
        """A list of objects, or a single one."""
        if not isinstance(value, dict | list):
            self._refuse_type(where)
            return []
        entries = [value] if isinstance(value, dict) else value
        return [self.read_one(kind, entry, f"{where}[{index}]") for index, entry in enumerate(entries)]

    def _named(self, kind: str, value: Wire, where: str) -> Wire:
        named: Wire = {}
        for spelling, entry in value.items():
            name = SPELLINGS[kind].get(spelling)
            if entry is None:
                continue
            if name is None:
                self._refuse_unknown(spelling, where)
            elif name in named:
                message = f"Invalid value at '{where}' (oneof), oneof field '{name}' is already set."
                self.violations.append(Violation("duplicate-field", message, where))
            else:
                named[name] = entry
        return named

    def _field(self, kind: str, name: str, value: object, where: str) -> object:
        path = f"{where}.{name}" if where else name
        if kind == "schema":
            return self._schema_field(name, value, path)
        return self._shaped(SHAPES.get((kind, name)), value, path)

    def _shaped(self, shape: Shape | None, value: object, where: str) -> object:
        match shape:
            case None:
                return value
            case Scalar():
                if not isinstance(value, shape.type):
                    self._refuse_type(where)
                return value
            case One():
                return self.read_one(shape.kind, value, where)
            case Many():
                return self.read_many(shape.kind, value, where)
            case _:
                return self._schema(value, where)

    def _schema(self, value: object, where: str) -> object:
        return self.read_one("schema", value, where) if isinstance(value, dict) else value

    def _schema_field(self, name: str, value: object, where: str) -> object:
        if name in ("items", "additionalProperties"):
            return self._schema(value, where)
        return each_schema(name, value, where, self._schema)

    def _refuse_type(self, where: str) -> None:
        self.violations.append(Violation("type", f"Invalid value at '{where}'", where))

    def _refuse_unknown(self, name: str, where: str) -> None:
        place = f" at '{where}'" if where else ""
        message = f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'
        self.violations.append(Violation("unknown-field", message, where))

    def _refuse_two_data(self, part: Wire, where: str) -> None:
        present = [name for name in part if name in DATA_FIELDS]
        for name in present[1:]:
            message = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{name}'"
            self.violations.append(Violation("two-data", message, where))


def each_schema(name: str, value: object, where: str, read: Callable[[object, str], object]) -> object:
    """The value of the schema's field *name* with *read* applied to every schema directly in it."""
    if name in ("properties", "$defs", "defs") and isinstance(value, dict):
        return {key: read(entry, f"{where}[{key}]") for key, entry in value.items()}
    if name == "anyOf" and isinstance(value, list):
        return [read(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    return value
