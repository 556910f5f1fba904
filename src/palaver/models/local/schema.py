"""What a small model may answer: as a JSON schema, as the grammar that holds it to that, and as a check. Pure."""

import re
from collections.abc import Callable
from typing import Any

from palaver.errors import ResponseUnreadable
from palaver.jsonio import dumps, loads, lower_types, validator
from palaver.turns import Prompt, ToolSpec

Schema = dict[str, Any]
Check = Callable[[str], str]  # what of a text does not fit; nothing where it does

_NAMED = {"properties", "patternProperties", "$defs", "definitions"}  # maps from names to schemas
_DATA = {"const", "enum", "default", "examples", "required"}  # values, whatever they look like
_LOOKAROUND = re.compile(r"\(\?<?[=!]")  # no grammar can hold a text to these


def callable_tools(prompt: Prompt) -> tuple[ToolSpec, ...]:
    """The tools the model may call now."""
    return () if prompt.settings.tool_choice == "none" else prompt.tools


def answer_schema(prompt: Prompt) -> Schema | None:
    """The schema of all answers *prompt* allows: a call of one of its tools, or a reply; None where words will do."""
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
    """The schema for llguidance, which holds the model to bounds and patterns too; compact, so that less is written."""
    rules = {"x-guidance": {"whitespace_flexible": False, "lenient": True}, **schema}
    return f"%llguidance {{}}\nstart: %json {dumps(rules).decode()}"


def answer_check(schema: Schema) -> Check:
    """What tells whether a text fits the schema; llguidance lets a model write freely where it cannot read one.

    Raises InvalidValue for a schema that cannot be read here either.
    """
    fits = validator(schema)

    def misfit(text: str) -> str:
        try:
            fits(loads(text))
        except ResponseUnreadable:
            return "the answer is no JSON"
        except (ValueError, RecursionError) as error:
            return f"the answer does not fit its schema: {error}"
        return ""

    return misfit


def closed_schema(schema: Schema, *, at: str = "") -> Schema:
    """The schema without room for fields it does not name; *at* is its name among the definitions of another."""
    tidy: Schema = _close(lower_types(schema), f"#/$defs/{at}" if at else "#", close=True)
    return tidy


def _close(schema: Any, base: str, *, close: bool) -> Any:
    if isinstance(schema, list):
        return [_close(item, base, close=close) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: Schema = {}
    for key, value in schema.items():
        if key in {"$id", "$schema"} or (key == "pattern" and _LOOKAROUND.search(str(value))):
            continue
        if key in _NAMED and isinstance(value, dict):
            tidy[key] = {name: _close(item, base, close=True) for name, item in value.items()}
        elif key == "$ref" and isinstance(value, str) and value.startswith("#"):
            tidy[key] = base + value[1:]
        else:
            tidy[key] = value if key in _DATA else _close(value, base, close=key != "allOf")
    return {**tidy, "additionalProperties": False} if close and _closes(tidy) else tidy


def _closes(schema: Schema) -> bool:
    """Whether the schema names all its fields itself, and does not say that there may be others."""
    named = schema.get("properties")
    if not isinstance(named, dict) or schema.keys() & {"additionalProperties", "patternProperties", "allOf", "$ref"}:
        return False
    required = schema.get("required", [])
    return isinstance(required, list) and all(name in named for name in required)


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
