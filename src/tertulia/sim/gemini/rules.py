"""Rules of the Gemini API: which requests it refuses, in which order and in which words; settings and tools. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from msgspec import Struct

from tertulia.sim.errors import Wire, too_deep
from tertulia.sim.gemini.catalogue import GEMMA, THREE_AND_LATER, TWO, RequestedModel, bare_model, generation
from tertulia.sim.gemini.contents import (
    UNREADABLE,
    bad_base64,
    conversation,
    incomplete_calls,
    media,
    missing,
    payload_size,
)
from tertulia.sim.gemini.fields import BrokenRule, Parser

_LEVELS = ("minimal", "low", "medium", "high")
_UNSET_LEVEL = "thinking_level_unspecified"
_CACHED_WITH_OTHERS = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."
    " Proposed fix: move those values to CachedContent from GenerateContent request."
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_BAD_NAME = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9),"
    " underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_SERVER_SIDE = "includeServerSideToolInvocations"


class GeminiRefusal(Struct, frozen=True):
    """The error 400 for a request that breaks a rule; *rule* is its name in docs/wire-rules.md."""

    rule: str
    message: str
    details: tuple[Any, ...] = ()


def check(body: object, *, model: str, strict: bool = True) -> GeminiRefusal | None:
    """Return why *model* refuses *body*, or None. Unless *strict*, what is refused only sometimes passes."""
    request, refusal = parse_body("request", body)
    return refusal or _first_refusal(request, RequestedModel(bare_model(model), generation(model)), strict=strict)


def parse_body(kind: str, body: object) -> tuple[Wire, GeminiRefusal | None]:
    """Parse *body* as an object of *kind*; the refusal says why it cannot be parsed."""
    if not isinstance(body, dict) or too_deep(body):
        return {}, GeminiRefusal("json", "Invalid JSON payload received.")
    parser = Parser()
    found = parser.read_one(kind, body, "")
    return found, _unparsed(parser.violations) if parser.violations else None


def _first_refusal(request: Wire, requested: RequestedModel, *, strict: bool) -> GeminiRefusal | None:
    def enforced(violations: Iterable[BrokenRule]) -> list[BrokenRule]:
        return [one for one in violations if strict or one.always]

    if unparsed := enforced(chain(bad_base64(request), bad_schema_types(request), unknown_level(request))):
        return _unparsed(unparsed)
    if too_large := enforced(payload_size(request)):
        return GeminiRefusal(too_large[0].rule, too_large[0].message)
    lines = enforced(chain(missing(request, requested), bad_declarations(request)))
    if not any(line.rule in UNREADABLE for line in lines):
        lines += enforced(incomplete_calls(request))
    if lines:
        return GeminiRefusal(lines[0].rule, "".join(f"{line.message}\n" for line in lines))
    in_order = chain(
        conversation(request, requested),
        cached_with_others(request),
        settings(request, requested),
        tools(request, requested),
        media(request),
    )
    found = next(iter(enforced(in_order)), None)
    return GeminiRefusal(found.rule, found.message) if found else None


def _unparsed(violations: list[BrokenRule]) -> GeminiRefusal:
    """Return the refusal of a body that cannot be parsed, with a line for each violation."""
    reasons = [{"field": one.where, "description": one.message} for one in violations]
    detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": reasons}
    return GeminiRefusal(violations[0].rule, "\n".join(one.message for one in violations), (detail,))


def unknown_level(request: Wire) -> Iterator[BrokenRule]:
    """Find a thinking level that does not exist."""
    level = _thinking(request).get("thinkingLevel") or _UNSET_LEVEL
    if not isinstance(level, str) or level.lower() not in (*_LEVELS, _UNSET_LEVEL):
        where = "generation_config.thinking_config.thinking_level"
        yield BrokenRule("thinking-level", f"Invalid value at '{where}'", where)


def cached_with_others(request: Wire) -> Iterator[BrokenRule]:
    others = "systemInstruction" in request or request.get("tools") or "toolConfig" in request
    if request.get("cachedContent") and others:
        yield BrokenRule("cached-with-others", _CACHED_WITH_OTHERS, "cachedContent")


def settings(request: Wire, requested: RequestedModel) -> Iterator[BrokenRule]:
    """Find settings that the model does not support."""
    config = request.get("generationConfig", {})
    thinking = _thinking(request)
    level = thinking.get("thinkingLevel") or _UNSET_LEVEL
    if "thinkingBudget" in thinking and level.lower() != _UNSET_LEVEL:
        yield BrokenRule("thinking-both", "You can only set only one of thinking budget and thinking level.")
    yield from _level(level, requested)
    if "thinkingBudget" in thinking:
        yield from _budget(thinking["thinkingBudget"], requested)
    if _number(config.get("candidateCount")) > 1 and requested.generation not in TWO:
        always = requested.generation in THREE_AND_LATER
        yield BrokenRule("candidates", "Multiple candidates is not enabled for this model", always=always)
    wants_json = config.get("responseMimeType") == "application/json"
    if wants_json and declarations(request) and requested.generation in TWO | GEMMA:
        message = "Function calling with a response mime type: 'application/json' is unsupported"
        yield BrokenRule("json-with-functions", message)
    if requested.generation == "gemma-3" and "systemInstruction" in request:
        yield BrokenRule("no-system", f"Developer instruction is not enabled for models/{requested.model}")
    categories = [setting.get("category") for setting in request.get("safetySettings", [])]
    counted = Counter(category for category in categories if isinstance(category, str))
    if any(count > 1 for count in counted.values()):
        yield BrokenRule("safety-twice", "Only one safety setting per category is allowed.", always=False)


def _thinking(request: Wire) -> Wire:
    thinking: Wire = request.get("generationConfig", {}).get("thinkingConfig", {})
    return thinking


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _level(level: str, requested: RequestedModel) -> Iterator[BrokenRule]:
    wanted = level.lower()
    if wanted == _UNSET_LEVEL:
        return
    generation = requested.generation
    if generation in ("2.0", "2.5", "gemma-3"):
        message = "Thinking level is not supported for this model."
        yield BrokenRule("thinking-level", message, always=generation != "2.0")
    older_pro = generation in ("3", "3.1") and "-pro" in requested.model
    minimal_refused = wanted == "minimal" and (generation in ("3.7", "4") or older_pro)
    if minimal_refused or (wanted in ("low", "medium") and generation == "gemma-4"):
        message = (
            f"Thinking level {level.upper()} is not supported for this model. Please retry with other thinking level."
        )
        yield BrokenRule("thinking-level", message, always=generation == "3.7")


def _budget(budget: object, requested: RequestedModel) -> Iterator[BrokenRule]:
    generation = requested.generation
    if generation in ("2.0", "4") or generation in GEMMA:
        hint = " Use thinking level instead." if generation == "4" else ""
        message = f"Thinking budget is not supported for this model.{hint}"
        yield BrokenRule("thinking-budget", message, always=generation != "2.0")
    elif not isinstance(budget, int | float) or isinstance(budget, bool):
        return
    elif generation == "2.5":
        lite = "-flash-lite" in requested.model
        lowest, highest = (128, 32768) if "-pro" in requested.model else (512, 24576) if lite else (0, 24576)
        off = budget == 0 and lite and "-pro" not in requested.model
        if budget != -1 and not off and not lowest <= budget <= highest:
            message = f"The thinking budget {budget} is invalid. Please choose a value between {lowest} and {highest}."
            yield BrokenRule("thinking-budget", message)
    elif budget == 0:
        yield BrokenRule("thinking-budget", "Request contains an invalid argument.", always=False)


def declarations(request: Wire) -> list[Wire]:
    """Return every function declared in *request*."""
    return [entry for tool in request.get("tools", []) for entry in tool.get("functionDeclarations", [])]


def bad_schema_types(request: Wire) -> Iterator[BrokenRule]:
    """Find types in `parameters` that are not names."""
    for where, _, declaration in _placed(request):
        for path, schema in _schemas(declaration.get("parameters"), ""):
            if not isinstance(schema.get("type", ""), str):
                place = f"{where}.parameters{path}.type"
                enum = "type.googleapis.com/google.ai.generativelanguage.v1beta.Type"
                yield BrokenRule("schema-type", f"Invalid value at '{place}' ({enum})", place)


def bad_declarations(request: Wire) -> Iterator[BrokenRule]:
    """Find tools and declarations that lack a required field."""
    for i, tool in enumerate(request.get("tools", [])):
        if not any(name != "functionDeclarations" or tool[name] for name in tool):
            message = (
                f"* GenerateContentRequest.tools[{i}].tool_type:"
                " required one_of 'tool_type' must have one initialized field"
            )
            yield BrokenRule("tool-type", message, f"tools[{i}]")
    for where, wire_where, declaration in _placed(request):
        name = declaration.get("name")
        good = isinstance(name, str) and _NAME.fullmatch(name) is not None
        if not good or len(str(name)) > 64:
            message = f"* GenerateContentRequest.{wire_where}.name: {_BAD_NAME}"
            yield BrokenRule("function-name", message, f"{where}.name", always=not good)
        for path, schema in _schemas(declaration.get("parameters"), ""):
            kind = schema.get("type")
            if isinstance(kind, str) and kind.lower() == "array" and "items" not in schema:
                message = f"* GenerateContentRequest.{wire_where}.parameters{path}.items: missing field."
                yield BrokenRule("schema-items", message, f"{where}.parameters{path}")
    if len(declarations(request)) > 512:
        message = "* GenerateContentRequest.tools: at most 512 function declarations are allowed"
        yield BrokenRule("function-many", message, "tools")


def _placed(request: Wire) -> Iterator[tuple[str, str, Wire]]:
    for i, tool in enumerate(request.get("tools", [])):
        for j, declaration in enumerate(tool.get("functionDeclarations", [])):
            yield f"tools[{i}].functionDeclarations[{j}]", f"tools[{i}].function_declarations[{j}]", declaration


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


def tools(request: Wire, requested: RequestedModel) -> Iterator[BrokenRule]:
    """Find tools that the model does not support, or not together."""
    declared = declarations(request)
    for declaration in declared:
        if "parameters" in declaration and "parametersJsonSchema" in declaration:
            message = "parameters and parameters_json_schema are mutually exclusive"
            yield BrokenRule("schema-twice", message, always=False)
    counted = Counter(entry["name"] for entry in declared if isinstance(entry.get("name"), str))
    for name, count in counted.items():
        if count > 1:
            yield BrokenRule("function-twice", f"Duplicate function declaration found: {name}", always=False)
    config = request.get("toolConfig", {}).get("functionCallingConfig") or {}
    if config.get("allowedFunctionNames") and str(config.get("mode", "")).upper() not in ("ANY", "VALIDATED"):
        message = "allowed_function_names should be set only when function calling mode is ANY or VALIDATED"
        yield BrokenRule("allowed-names", message)
    yield from _built_in(request, requested)
    no_functions = requested.generation == "gemma-3" or "-image" in requested.model
    if declared and (no_functions or requested.generation == "gemma-4"):
        message = f"Function calling is not enabled for models/{requested.model}"
        yield BrokenRule("no-functions", message, always=no_functions)


def _built_in(request: Wire, requested: RequestedModel) -> Iterator[BrokenRule]:
    server_side = request.get("toolConfig", {}).get(_SERVER_SIDE) is True
    beside = any(name != "functionDeclarations" for tool in request.get("tools", []) for name in tool)
    if server_side and requested.generation in TWO:
        yield BrokenRule("server-side-tools", "Tool call context circulation is not enabled")
    if not beside or not declarations(request):
        return
    if requested.generation in TWO:
        yield BrokenRule("built-in-with-functions", "Tool use with function calling is unsupported")
    if requested.generation in THREE_AND_LATER and not server_side:
        message = (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function"
            " calling."
        )
        yield BrokenRule("built-in-with-functions", message)
