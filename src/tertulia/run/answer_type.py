"""Structured answers: the schema that a model gets for a type, and its answer as a value of that type."""

from typing import Any

import msgspec

from tertulia.errors import InvalidValue
from tertulia.json_schema import validator
from tertulia.markdown import unfence


class AnswerType:
    """A msgspec or pydantic type, any type msgspec knows, or a JSON schema."""

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted
        self.schema = _schema(wanted)
        self._fits = validator(wanted) if isinstance(wanted, dict) else None

    def read(self, text: str) -> Any:
        """Read *text* as a value of the type; raise ValueError if it does not fit."""
        plain = unfence(text)
        try:
            if self._fits is not None:
                return self._fits(msgspec.json.decode(plain))
            if hasattr(self._wanted, "model_validate_json"):
                return self._wanted.model_validate_json(plain)
            return msgspec.json.decode(plain, type=self._wanted, strict=False)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


def _schema(wanted: Any) -> dict[str, Any]:
    if isinstance(wanted, dict):
        return wanted
    if hasattr(wanted, "model_json_schema"):
        schema: dict[str, Any] = wanted.model_json_schema()
        return schema
    try:
        (root,), components = msgspec.json.schema_components([wanted], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise InvalidValue(f"an answer cannot be of type {wanted!r}: {error}") from error
    name = root.get("$ref", "").rpartition("/")[2]
    if name:
        root = components.pop(name)
    return {**root, "$defs": components} if components else root
