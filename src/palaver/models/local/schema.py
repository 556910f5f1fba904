"""The answers that a local model may give: as a JSON schema, as a grammar and as a check. Pure."""

import re
from collections.abc import Callable
from typing import Any

from palaver.errors import ResponseUnreadable
from palaver.jsonio import dumps, loads, lower_types, validator
from palaver.turns import Prompt, ToolSpec

Schema = dict[str, Any]
Check = Callable[[str], str]  # the fault of a text; empty if it fits

_NAMED = {"properties", "patternProperties", "$defs", "definitions"}  # maps from names to schemas
_DATA = {"const", "enum", "default", "examples", "required"}  # values, whatever they look like
_LOOKAROUND = re.compile(r"\(\?<?[=!]")  # no grammar can express these


def callable_tools(prompt: Prompt) -> tuple[ToolSpec, ...]:
    """Return the tools that the model may call now."""
    return () if prompt.settings.tool_choice == "none" else prompt.tools


def answer_schema(prompt: Prompt) -> Schema | None:
    """Return the schema of all answers that *prompt* allows: a call of a tool, or a reply; None if any text will do."""
    tools, answer = callable_tools(prompt), prompt.settings.answer
    if not tools:
        return None if answer is None else closed_schema(answer)
    schemas = {f"tool.{tool.name}": tool.parameters for tool in tools}
    branches = [_object(tool={"const": tool.name}, args=_reference(f"tool.{tool.name}")) for tool in tools]
    if prompt.settings.tool_choice != "any":
        branches.append(_object(reply={"type": "string", "minLength": 1} if answer is None else _reference("answer")))
    if answer is not None:
        schemas["answer"] = answer
    definitions = {
        name: closed_schema(
            {"type": "object", "properties": {}, **schema} if name.startswith("tool.") else schema, at=name
        )
        for name, schema in schemas.items()
    }
    return {"oneOf": branches, "$defs": definitions}


def grammar(schema: Schema) -> str:
    """Return the grammar of a schema for llguidance, which enforces bounds and patterns too; without whitespace."""
    rules = {"x-guidance": {"whitespace_flexible": False, "lenient": True}, **schema}
    return f"%llguidance {{}}\nstart: %json {dumps(rules).decode()}"


def answer_check(schema: Schema) -> Check:
    """Return a check of texts against a schema: llguidance enforces nothing if it cannot read the schema.

    Raise InvalidValue for a schema that cannot be read here either.
    """
    fits = validator(schema)

    def fault_of(text: str) -> str:
        try:
            fits(loads(text))
        except ResponseUnreadable:
            return "the answer is no JSON"
        except (ValueError, RecursionError) as error:
            return f"the answer does not fit its schema: {error}"
        return ""

    return fault_of


def closed_schema(schema: Schema, *, at: str = "") -> Schema:
    """Return the schema without additional fields; *at* is its name among the `$defs` of another."""
    closed: Schema = _close(lower_types(schema), f"#/$defs/{at}" if at else "#", close=True)
    return closed


def _close(schema: Any, base: str, *, close: bool) -> Any:
    if isinstance(schema, list):
        return [_close(item, base, close=close) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed: Schema = {}
    for key, value in schema.items():
        if key in {"$id", "$schema"} or (key == "pattern" and _LOOKAROUND.search(str(value))):
            continue
        if key in _NAMED and isinstance(value, dict):
            closed[key] = {name: _close(item, base, close=True) for name, item in value.items()}
        elif key == "$ref" and isinstance(value, str) and value.startswith("#"):
            closed[key] = base + value[1:]
        else:
            closed[key] = value if key in _DATA else _close(value, base, close=key != "allOf")
    return {**closed, "additionalProperties": False} if close and _closes(closed) else closed


def _closes(schema: Schema) -> bool:
    """Return whether the schema names all its fields, and does not allow others."""
    named = schema.get("properties")
    if not isinstance(named, dict) or schema.keys() & {"additionalProperties", "patternProperties", "allOf", "$ref"}:
        return False
    required = schema.get("required", [])
    return isinstance(required, list) and all(name in named for name in required)


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
