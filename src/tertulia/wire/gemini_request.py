"""The fields of a Gemini request, read as the service reads them, and the rules of its settings and tools. Pure.

The service takes both spellings of a field, null as absent, and one object for a list of one.
"""

import binascii
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from tertulia.wire.generations import BUDGETS_2_5, bare

DATA_FIELDS = frozenset(
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse "
    "audioTranscription".split()
)
REQUEST = frozenset(
    "contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent labels model "
    "serviceTier store modelArmorConfig".split()
)
CONTENT = frozenset({"role", "parts"})
PART = DATA_FIELDS | set(
    "thought thoughtSignature videoMetadata mediaResolution partMetadata mediaProcessing speechMetadata".split()
)
CALL = frozenset("id name args partialArgs willContinue".split())
RESULT = frozenset("id name response parts willContinue scheduling".split())
INLINE = frozenset("mimeType data displayName".split())
FILE = frozenset("mimeType fileUri displayName".split())
VIDEO = frozenset("startOffset endOffset fps".split())
GENERATION_CONFIG = frozenset(
    "audioTimestamp audioTranscriptionConfig candidateCount continuationToken enableAffectiveDialog "
    "enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens mediaResolution "
    "modelSelectionConfig presencePenalty responseFormat responseJsonSchema responseLogprobs responseMimeType "
    "responseModalities responseSchema routingConfig seed speechConfig stopSequences temperature thinkingConfig topK "
    "topP translationConfig".split()
)
THINKING = frozenset("includeThoughts thinkingBudget thinkingLevel".split())
TOOL_CONFIG = frozenset("functionCallingConfig retrievalConfig includeServerSideToolInvocations".split())
CALLING_CONFIG = frozenset("mode allowedFunctionNames streamFunctionCallArguments".split())
TOOL = frozenset(
    "functionDeclarations codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch googleMaps googleSearch "
    "googleSearchRetrieval mcpServers parallelAiSearch retrieval urlContext".split()
)
DECLARATION = frozenset("name description parameters parametersJsonSchema response responseJsonSchema behavior".split())
SAFETY = frozenset("category threshold method".split())
SCHEMA = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minProperties "
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum "
    "additionalProperties $defs $ref defs ref".split()
)

_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
LEVELS = ("minimal", "low", "medium", "high")


class PossibleViolation(Struct, frozen=True):
    """A rule that a request breaks. Not every generation of models refuses that."""

    rule: str
    where: str
    words: dict[str, Any] = {}


@lru_cache(maxsize=4096)
def camel(name: str) -> str:
    """Return the camelCase spelling of a field."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


class RequestReader:
    """Reads objects field by field, and collects the violations in their shape."""

    def __init__(self) -> None:
        self.violations: list[PossibleViolation] = []

    def report(self, rule: str, where: str, **words: Any) -> None:
        self.violations.append(PossibleViolation(rule, where, words))

    def object(self, value: Any, where: str, known: frozenset[str]) -> dict[str, Any]:
        """Return the object's fields in camelCase, without nulls; unknown and repeated fields are violations."""
        if not isinstance(value, dict):
            self.report("type", where)
            return {}
        fields: dict[str, Any] = {}
        for key, item in value.items():
            if item is None:
                continue
            name = camel(key)
            if name not in known:
                self.report("unknown-field", where, name=key)
            elif name in fields:
                self.report("duplicate-field", where, name=name)
            else:
                fields[name] = item
        return fields

    def objects(self, value: Any, where: str) -> Iterator[tuple[Any, str]]:
        """Yield the items of a list of objects with their places; one object is a list of one."""
        if isinstance(value, list):
            yield from ((item, f"{where}[{index}]") for index, item in enumerate(value))
        elif isinstance(value, dict):
            yield value, f"{where}[0]"
        elif value is not None:
            self.report("type", where)

    def string(self, fields: dict[str, Any], name: str, where: str) -> str:
        """Return the field as text; empty if it is absent or no text, which is a violation."""
        value = fields.get(name, "")
        if isinstance(value, str):
            return value
        self.report("type", f"{where}.{name}")
        return ""


def without_unknown_fields(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with the fields the service knows, in the spelling it came in; of two spellings the first."""
    kept = _known_fields(part, PART)
    for name, known in (
        ("functionCall", CALL),
        ("functionResponse", RESULT),
        ("inlineData", INLINE),
        ("fileData", FILE),
        ("videoMetadata", VIDEO),
    ):
        for key, value in kept.items():
            if camel(key) == name and isinstance(value, dict):
                kept[key] = _known_fields(value, known)
    return kept


def _known_fields(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    seen: set[str] = set()
    kept: dict[str, Any] = {}
    for key, item in value.items():
        name = camel(key)
        if item is None:
            kept[key] = item
        elif name in known and name not in seen:
            seen.add(name)
            kept[key] = item
    return kept


def field(value: dict[str, Any], name: str) -> Any:
    """Return the field of that camelCase name, in either spelling."""
    return next((item for key, item in value.items() if item is not None and camel(key) == name), None)


def decode_base64(text: str) -> bytes | None:
    """Decode *text* in either alphabet of base64; return None if it is not base64."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def setting_violations(fields: dict[str, Any], model: str) -> Iterator[PossibleViolation]:
    """Yield the violations in the settings of a request, whose *fields* are read already."""
    reader = RequestReader()
    if "generationConfig" in fields:
        config = reader.object(fields["generationConfig"], "generationConfig", GENERATION_CONFIG)
        if _is_number(config.get("candidateCount")) and config["candidateCount"] > 1:
            reader.report("candidates", "generationConfig.candidateCount")
        if "thinkingConfig" in config:
            where = "generationConfig.thinkingConfig"
            thinking = reader.object(config["thinkingConfig"], where, THINKING)
            reader.violations.extend(thinking_violations(thinking, model))
        if config.get("responseMimeType") == "application/json" and _declared(fields):
            reader.report("json-with-functions", "generationConfig.responseMimeType")
        if "responseSchema" in config:
            _schema(reader, config["responseSchema"], "generationConfig.responseSchema", strictly=False)
    seen: set[Any] = set()
    for value, where in reader.objects(fields.get("safetySettings"), "safetySettings"):
        category = reader.object(value, where, SAFETY).get("category")
        if isinstance(category, str) and category in seen:
            reader.report("safety-twice", where)
        if isinstance(category, str):
            seen.add(category)
    others = "systemInstruction" in fields or "toolConfig" in fields or fields.get("tools")
    if fields.get("cachedContent") and others:
        reader.report("cached-with-others", "cachedContent")
    if "systemInstruction" in fields:
        reader.report("no-system", "systemInstruction", model=bare(model))
    yield from reader.violations


def thinking_violations(thinking: dict[str, Any], model: str) -> Iterator[PossibleViolation]:
    """Yield the violations in a thinking configuration, whose fields are in camelCase."""
    where = "generationConfig.thinkingConfig"
    budget, level = thinking.get("thinkingBudget"), str(thinking.get("thinkingLevel", "")).lower()
    if level == "thinking_level_unspecified":
        level = ""
    if budget is not None and level:
        yield PossibleViolation("thinking-both", where)
    if level:
        yield from _level_violations(level, f"{where}.thinkingLevel", model)
    if budget is not None:
        yield PossibleViolation("thinking-budget", f"{where}.thinkingBudget")
        yield PossibleViolation("thinking-budget-4", f"{where}.thinkingBudget")
    if budget is not None and _is_number(budget):
        yield from _budget_violations(budget, f"{where}.thinkingBudget", model)


def _level_violations(level: str, where: str, model: str) -> Iterator[PossibleViolation]:
    words = {"level": level.upper()}
    yield PossibleViolation("thinking-level", where)
    if level not in LEVELS:
        yield PossibleViolation("thinking-level-unknown", where)
    if level == "minimal":
        yield PossibleViolation("thinking-level-minimal", where, words)
        if "-pro" in bare(model):
            yield PossibleViolation("thinking-level-minimal-pro", where, words)
    if level in {"low", "medium"}:
        yield PossibleViolation("thinking-level-middle", where, words)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _budget_violations(budget: float, where: str, model: str) -> Iterator[PossibleViolation]:
    lo, hi = next(bounds for name, bounds in BUDGETS_2_5.items() if name in bare(model))
    off = budget == 0 and lo == 512  # the lite models may be told not to think at all
    if budget != -1 and not off and not lo <= budget <= hi:
        yield PossibleViolation("thinking-budget-range", where, {"budget": budget, "lo": lo, "hi": hi})
    if budget == 0:
        yield PossibleViolation("thinking-budget-zero", where)


def tool_violations(fields: dict[str, Any], model: str) -> Iterator[PossibleViolation]:
    """Yield the violations in the tools of a request, and in the settings of how they are called."""
    reader = RequestReader()
    names: list[str] = []
    built_in = False
    for index, (value, where) in enumerate(reader.objects(fields.get("tools"), "tools")):
        tool = reader.object(value, where, TOOL)
        declarations = list(reader.objects(tool.get("functionDeclarations"), f"{where}.functionDeclarations"))
        others = set(tool) - {"functionDeclarations"}
        built_in = built_in or bool(others)
        if (
            isinstance(value, dict)
            and not declarations
            and not others
            and isinstance(tool.get("functionDeclarations", []), list | dict)
        ):
            reader.report("tool-type", where, i=index)
        for place, (declaration, at) in enumerate(declarations):
            names.append(_declaration(reader, declaration, at, index, place))
    for name, number in Counter(filter(None, names)).items():
        if number > 1:
            reader.report("function-twice", "tools", name=name)
    if len(names) > 512:
        reader.report("function-many", "tools")
    if names:
        reader.report("no-functions", "tools", model=bare(model))
        if "-image" in bare(model):
            reader.report("no-functions-image", "tools", model=bare(model))
    _tool_config(reader, fields, functions=bool(names), built_in=built_in)
    yield from reader.violations


def _declared(fields: dict[str, Any]) -> bool:
    reader = RequestReader()
    tools = (reader.object(value, where, TOOL) for value, where in reader.objects(fields.get("tools"), "tools"))
    return any(list(reader.objects(tool.get("functionDeclarations"), "")) for tool in tools)


def _tool_config(reader: RequestReader, fields: dict[str, Any], *, functions: bool, built_in: bool) -> None:
    config: dict[str, Any] = {}
    if "toolConfig" in fields:
        config = reader.object(fields["toolConfig"], "toolConfig", TOOL_CONFIG)
    if "functionCallingConfig" in config:
        where = "toolConfig.functionCallingConfig"
        calling = reader.object(config["functionCallingConfig"], where, CALLING_CONFIG)
        if calling.get("allowedFunctionNames") and str(calling.get("mode", "")).upper() not in {"ANY", "VALIDATED"}:
            reader.report("allowed-names", where)
    switched = config.get("includeServerSideToolInvocations") is True
    if switched:
        reader.report("server-side-tools", "toolConfig.includeServerSideToolInvocations")
    if functions and built_in:
        reader.report("built-in-with-functions", "tools")
        if not switched:
            reader.report("built-in-needs-switch", "tools")


def _declaration(reader: RequestReader, value: Any, where: str, i: int, j: int) -> str:
    declaration = reader.object(value, where, DECLARATION)
    name = declaration.get("name", "")
    if isinstance(value, dict) and not (isinstance(name, str) and _FUNCTION_NAME.fullmatch(name)):
        reader.report("function-name", f"{where}.name", i=i, j=j)
    elif len(name) > 64:
        reader.report("function-name-long", f"{where}.name", i=i, j=j)
    if "parameters" in declaration and "parametersJsonSchema" in declaration:
        reader.report("schema-twice", where)
    if "parameters" in declaration:
        _schema(reader, declaration["parameters"], f"{where}.parameters", strictly=True)
    return name if isinstance(name, str) else ""


def _schema(reader: RequestReader, value: Any, where: str, *, strictly: bool) -> None:
    """Read a schema and the schemas in it. Types and items are required only in parameters."""
    if not isinstance(value, dict):
        return
    schema = reader.object(value, where, SCHEMA)
    kind = schema.get("type")
    if strictly and kind is not None and not isinstance(kind, str):
        reader.report("schema-type", f"{where}.type")
    if strictly and isinstance(kind, str) and kind.lower() == "array" and "items" not in schema:
        reader.report("schema-items", where)
    for inner, at in _inner_schemas(schema, where):
        _schema(reader, inner, at, strictly=strictly)


def _inner_schemas(schema: dict[str, Any], where: str) -> Iterator[tuple[Any, str]]:
    for name in ("properties", "$defs", "defs"):
        if isinstance(schema.get(name), dict):
            yield from ((inner, f"{where}.{name}.{key}") for key, inner in schema[name].items())
    for name in ("items", "additionalProperties"):
        yield schema.get(name), f"{where}.{name}"
    if isinstance(schema.get("anyOf"), list):
        yield from ((inner, f"{where}.anyOf[{index}]") for index, inner in enumerate(schema["anyOf"]))


def schema_is_plain(schema: dict[str, Any]) -> bool:
    """Return whether `parameters` surely takes a schema: each node has a type, no keyword is only JSON Schema's."""
    reader = RequestReader()
    _schema(reader, schema, "", strictly=True)
    return not reader.violations and _typed_throughout(schema)


def _typed_throughout(schema: Any) -> bool:
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
        return False
    if schema.keys() & {"$ref", "$defs", "ref", "defs", "anyOf", "any_of", "additionalProperties"}:
        return False
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return False
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return all(map(_typed_throughout, inner))
