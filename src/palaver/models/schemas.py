"""JSON schemas as the services want them, and as a check of values. Pure."""

import re
from collections.abc import Callable
from typing import Any, NoReturn

from palaver.errors import InvalidValue

_ELSEWHERE = ("http", "https", "ftp", "file", "data")  # where fastjsonschema would look for what a schema refers to


def lower_types(schema: Any) -> Any:
    """A schema with its types in JSON Schema's own small letters."""
    if isinstance(schema, list):
        return [lower_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: lower_types(item) for key, item in schema.items()}
    if isinstance(schema.get("type"), str):
        lowered["type"] = schema["type"].lower()
    return lowered


def validator(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """What gives a value back that fits *schema*, and raises ValueError with what does not fit.

    Nothing a schema refers to is fetched. One that cannot be read is an InvalidValue.
    """
    import fastjsonschema  # late: only answers need it

    try:
        check = fastjsonschema.compile(lower_types(schema), handlers=dict.fromkeys(_ELSEWHERE, _not_fetched))
    except (ValueError, TypeError, AttributeError, RecursionError, re.error) as error:
        raise InvalidValue(f"the schema of the answer cannot be read: {error}") from error

    def fitting(value: Any) -> Any:
        try:
            return check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            raise ValueError(error.message) from error

    return fitting


def _not_fetched(address: str) -> NoReturn:
    raise ValueError(f"it refers to {address}, which is not fetched")
