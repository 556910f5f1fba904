"""JSON schemas as the services want them. Pure."""

from typing import Any


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
