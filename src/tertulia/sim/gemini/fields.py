"""Fields of requests, their parser, and the rules that a request breaks. Pure.

The parser makes one spelling of the fields, drops nulls and wraps single objects in a list.
"""

import re

from msgspec import Struct, field

from tertulia.sim.errors import Wire

DATA_FIELDS = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "audioTranscription",
)
FIELDS: dict[str, tuple[str, ...]] = {
    "request": tuple(
        "contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent labels model"
        " serviceTier store modelArmorConfig".split()
    ),
    "content": ("role", "parts"),
    "part": (
        *DATA_FIELDS,
        *"thought thoughtSignature videoMetadata mediaResolution partMetadata mediaProcessing speechMetadata".split(),
    ),
    "functionCall": ("id", "name", "args", "partialArgs", "willContinue"),
    "functionResponse": ("id", "name", "response", "parts", "willContinue", "scheduling"),
    "inlineData": ("mimeType", "data", "displayName"),
    "fileData": ("mimeType", "fileUri", "displayName"),
    "videoMetadata": ("fps", "startOffset", "endOffset"),
    "generationConfig": tuple(
        "audioTimestamp audioTranscriptionConfig candidateCount continuationToken enableAffectiveDialog"
        " enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens mediaResolution"
        " modelSelectionConfig presencePenalty responseFormat responseJsonSchema responseLogprobs responseMimeType"
        " responseModalities responseSchema routingConfig seed speechConfig stopSequences temperature thinkingConfig"
        " topK topP translationConfig".split()
    ),
    "thinkingConfig": ("includeThoughts", "thinkingBudget", "thinkingLevel"),
    "toolConfig": ("functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"),
    "functionCallingConfig": ("mode", "allowedFunctionNames", "streamFunctionCallArguments"),
    "tool": tuple(
        "functionDeclarations codeExecution computerUse enterpriseWebSearch exaAiSearch fileSearch googleMaps"
        " googleSearch googleSearchRetrieval mcpServers parallelAiSearch retrieval urlContext".split()
    ),
    "functionDeclaration": tuple(
        "name description parameters parametersJsonSchema response responseJsonSchema behavior".split()
    ),
    "safetySetting": ("category", "threshold", "method"),
    "schema": tuple(
        "type format title description nullable enum items minItems maxItems properties required minProperties"
        " maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum"
        " additionalProperties $defs $ref defs ref".split()
    ),
    "cachedContent": tuple(
        "name model displayName contents systemInstruction tools toolConfig ttl expireTime createTime updateTime"
        " usageMetadata".split()
    ),
    "countTokens": ("model", "contents", "generateContentRequest"),
    "embedContent": tuple("model content taskType title outputDimensionality embedContentConfig".split()),
    "batchEmbedContents": ("requests",),
}


class BrokenRule(Struct, frozen=True):
    """A rule that a request breaks; *always* is False if only strict mode refuses it."""

    rule: str
    message: str
    where: str = ""
    always: bool = True


class Scalar(Struct, frozen=True):
    """A value of one JSON type."""

    type: type


class One(Struct, frozen=True):
    """An object of a kind named in `FIELDS`; a kind of `""` is an object that is not read."""

    kind: str


class ListOrSingle(Struct, frozen=True):
    """A list of objects of one kind, or a single one."""

    kind: str


class SchemaShape(Struct, frozen=True):
    """A schema, read as far as it is made of objects."""


Shape = Scalar | One | ListOrSingle | SchemaShape


SHAPES: dict[tuple[str, str], Shape] = {
    ("request", "contents"): ListOrSingle("content"),
    ("request", "systemInstruction"): One("content"),
    ("request", "tools"): ListOrSingle("tool"),
    ("request", "toolConfig"): One("toolConfig"),
    ("request", "safetySettings"): ListOrSingle("safetySetting"),
    ("request", "generationConfig"): One("generationConfig"),
    ("content", "role"): Scalar(str),
    ("content", "parts"): ListOrSingle("part"),
    ("part", "text"): Scalar(str),
    ("part", "thought"): Scalar(bool),
    ("part", "thoughtSignature"): Scalar(str),
    ("part", "inlineData"): One("inlineData"),
    ("part", "fileData"): One("fileData"),
    ("part", "videoMetadata"): One("videoMetadata"),
    ("part", "functionCall"): One("functionCall"),
    ("part", "functionResponse"): One("functionResponse"),
    ("functionCall", "id"): Scalar(str),
    ("functionCall", "name"): Scalar(str),
    ("functionCall", "args"): One(""),
    ("functionResponse", "id"): Scalar(str),
    ("functionResponse", "name"): Scalar(str),
    ("functionResponse", "response"): One(""),
    ("inlineData", "mimeType"): Scalar(str),
    ("inlineData", "data"): Scalar(str),
    ("fileData", "mimeType"): Scalar(str),
    ("fileData", "fileUri"): Scalar(str),
    ("videoMetadata", "startOffset"): Scalar(str),
    ("videoMetadata", "endOffset"): Scalar(str),
    ("generationConfig", "thinkingConfig"): One("thinkingConfig"),
    ("generationConfig", "responseSchema"): SchemaShape(),
    ("toolConfig", "functionCallingConfig"): One("functionCallingConfig"),
    ("tool", "functionDeclarations"): ListOrSingle("functionDeclaration"),
    ("functionDeclaration", "parameters"): SchemaShape(),
    ("cachedContent", "contents"): ListOrSingle("content"),
    ("cachedContent", "systemInstruction"): One("content"),
    ("cachedContent", "tools"): ListOrSingle("tool"),
    ("cachedContent", "toolConfig"): One("toolConfig"),
    ("cachedContent", "model"): Scalar(str),
    ("countTokens", "contents"): ListOrSingle("content"),
    ("countTokens", "generateContentRequest"): One("request"),
    ("embedContent", "content"): One("content"),
    ("batchEmbedContents", "requests"): ListOrSingle("embedContent"),
}


def snake(name: str) -> str:
    """Spell `mimeType` as `mime_type`."""
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


SPELLINGS: dict[str, dict[str, str]] = {
    kind: {spelling: name for name in names for spelling in (name, snake(name))} for kind, names in FIELDS.items()
}


class Parser(Struct):
    """Reads objects by kind and collects the violations."""

    violations: list[BrokenRule] = field(default_factory=list)

    def read_one(self, kind: str, value: object, where: str) -> Wire:
        """Read an object: its fields get their camelCase names."""
        if not isinstance(value, dict):
            self._refuse_type(where)
            return {}
        if not kind:
            return value
        named = self._named(kind, value, where)
        for name in [name for name in named if name in DATA_FIELDS][1:] if kind == "part" else ():
            message = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{name}'"
            self.violations.append(BrokenRule("two-data", message, where))
        fields = {}
        for name, entry in named.items():
            path = f"{where}.{name}" if where else name
            if kind == "schema":
                fields[name] = self._schema_field(name, entry, path)
            else:
                fields[name] = self._shaped(SHAPES.get((kind, name)), entry, path)
        return fields

    def read_many(self, kind: str, value: object, where: str) -> list[Wire]:
        """Read a list of objects, or a single one."""
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
                place = f" at '{where}'" if where else ""
                message = f'Invalid JSON payload received. Unknown name "{spelling}"{place}: Cannot find field.'
                self.violations.append(BrokenRule("unknown-field", message, where))
            elif name in named:
                message = f"Invalid value at '{where}' (oneof), oneof field '{name}' is already set."
                self.violations.append(BrokenRule("duplicate-field", message, where))
            else:
                named[name] = entry
        return named

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
            case ListOrSingle():
                return self.read_many(shape.kind, value, where)
            case _:
                return self._schema(value, where)

    def _schema(self, value: object, where: str) -> object:
        return self.read_one("schema", value, where) if isinstance(value, dict) else value

    def _schema_field(self, name: str, value: object, where: str) -> object:
        if name in ("items", "additionalProperties"):
            return self._schema(value, where)
        if name in ("properties", "$defs", "defs") and isinstance(value, dict):
            return {key: self._schema(entry, f"{where}[{key}]") for key, entry in value.items()}
        if name == "anyOf" and isinstance(value, list):
            return [self._schema(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
        return value

    def _refuse_type(self, where: str) -> None:
        self.violations.append(BrokenRule("type", f"Invalid value at '{where}'", where))
