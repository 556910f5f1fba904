"""Rules of tools: declarations, schemas, and which tools go together. Pure."""

import re
from collections import Counter
from collections.abc import Iterator

from palaver.sim.errors import Wire
from palaver.sim.gemini.rules.generations import THREE_AND_LATER, TWO, Subject, Violation

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_BAD_NAME = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9),"
    " underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_SERVER_SIDE = "includeServerSideToolInvocations"


def declarations(request: Wire) -> list[Wire]:
    """Return every function declared in *request*."""
    return [entry for tool in request.get("tools", []) for entry in tool.get("functionDeclarations", [])]


def bad_schema_types(request: Wire) -> Iterator[Violation]:
    """Find types in `parameters` that are not names."""
    for where, _, declaration in _placed(request):
        for path, schema in _schemas(declaration.get("parameters"), ""):
            if not isinstance(schema.get("type", ""), str):
                place = f"{where}.parameters{path}.type"
                enum = "type.googleapis.com/google.ai.generativelanguage.v1beta.Type"
                yield Violation("schema-type", f"Invalid value at '{place}' ({enum})", place)


def bad_declarations(request: Wire) -> Iterator[Violation]:
    """Find tools and declarations that lack a required field."""
    for i, tool in enumerate(request.get("tools", [])):
        if not any(name != "functionDeclarations" or tool[name] for name in tool):
            message = (
                f"* GenerateContentRequest.tools[{i}].tool_type:"
                " required one_of 'tool_type' must have one initialized field"
            )
            yield Violation("tool-type", message, f"tools[{i}]")
    for where, wire_where, declaration in _placed(request):
        yield from _bad_name(declaration, where, wire_where)
        yield from _missing_items(declaration, where, wire_where)
    if len(declarations(request)) > 512:
        message = "* GenerateContentRequest.tools: at most 512 function declarations are allowed"
        yield Violation("function-many", message, "tools")


def _placed(request: Wire) -> Iterator[tuple[str, str, Wire]]:
    for i, tool in enumerate(request.get("tools", [])):
        for j, declaration in enumerate(tool.get("functionDeclarations", [])):
            yield f"tools[{i}].functionDeclarations[{j}]", f"tools[{i}].function_declarations[{j}]", declaration


def _bad_name(declaration: Wire, where: str, wire_where: str) -> Iterator[Violation]:
    name = declaration.get("name")
    good = isinstance(name, str) and _NAME.fullmatch(name) is not None
    if not good or len(str(name)) > 64:
        message = f"* GenerateContentRequest.{wire_where}.name: {_BAD_NAME}"
        yield Violation("function-name", message, f"{where}.name", always=not good)


def _missing_items(declaration: Wire, where: str, wire_where: str) -> Iterator[Violation]:
    for path, schema in _schemas(declaration.get("parameters"), ""):
        kind = schema.get("type")
        if isinstance(kind, str) and kind.lower() == "array" and "items" not in schema:
            message = f"* GenerateContentRequest.{wire_where}.parameters{path}.items: missing field."
            yield Violation("schema-items", message, f"{where}.parameters{path}")


def _schemas(schema: object, path: str) -> Iterator[tuple[str, Wire]]:
    """Yield *schema* and every schema in it, with their paths."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name in ("items", "additionalProperties"):
        yield from _schemas(schema.get(name), f"{path}.{name}")
    for name in ("properties", "$defs", "defs"):
        inner = schema.get(name)
        for key, entry in inner.items() if isinstance(inner, dict) else ():
            yield from _schemas(entry, f"{path}.{name}[{key}]")
    options = schema.get("anyOf")
    for index, entry in enumerate(options if isinstance(options, list) else ()):
        yield from _schemas(entry, f"{path}.anyOf[{index}]")


def tools(request: Wire, subject: Subject) -> Iterator[Violation]:
    """Find tools that the model does not support, or not together."""
    declared = declarations(request)
    for declaration in declared:
        if "parameters" in declaration and "parametersJsonSchema" in declaration:
            message = "parameters and parameters_json_schema are mutually exclusive"
            yield Violation("schema-twice", message, always=False)
    counted = Counter(entry["name"] for entry in declared if isinstance(entry.get("name"), str))
    for name, count in counted.items():
        if count > 1:
            yield Violation("function-twice", f"Duplicate function declaration found: {name}", always=False)
    yield from _calling_config(request)
    yield from _built_in(request, subject)
    no_functions = subject.generation == "gemma-3" or "-image" in subject.model
    if declared and (no_functions or subject.generation == "gemma-4"):
        message = f"Function calling is not enabled for models/{subject.model}"
        yield Violation("no-functions", message, always=no_functions)


def _calling_config(request: Wire) -> Iterator[Violation]:
    config = request.get("toolConfig", {}).get("functionCallingConfig")
    if config is None:
        return
    if config.get("allowedFunctionNames") and str(config.get("mode", "")).upper() not in ("ANY", "VALIDATED"):
        message = "allowed_function_names should be set only when function calling mode is ANY or VALIDATED"
        yield Violation("allowed-names", message)


def _built_in(request: Wire, subject: Subject) -> Iterator[Violation]:
    server_side = request.get("toolConfig", {}).get(_SERVER_SIDE) is True
    beside = any(name != "functionDeclarations" for tool in request.get("tools", []) for name in tool)
    if server_side and subject.generation in TWO:
        yield Violation("server-side-tools", "Tool call context circulation is not enabled")
    if not beside or not declarations(request):
        return
    if subject.generation in TWO:
        yield Violation("built-in-with-functions", "Tool use with function calling is unsupported")
    if subject.generation in THREE_AND_LATER and not server_side:
        message = (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function"
            " calling."
        )
        yield Violation("built-in-with-functions", message)
