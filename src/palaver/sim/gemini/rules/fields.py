"""The fields the service knows, and how each is read. Pure."""

import re

from msgspec import Struct


class Scalar(Struct, frozen=True):
    """A value of one JSON type."""

    type: type


class One(Struct, frozen=True):
    """An object of a kind named in `FIELDS`; a kind of `""` is an object nobody looks into."""

    kind: str


class Many(Struct, frozen=True):
    """A list of objects of one kind, or a single one."""

    kind: str


class SchemaShape(Struct, frozen=True):
    """A schema, read as far as it is made of objects."""


Shape = Scalar | One | Many | SchemaShape

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

SHAPES: dict[tuple[str, str], Shape] = {
    ("request", "contents"): Many("content"),
    ("request", "systemInstruction"): One("content"),
    ("request", "tools"): Many("tool"),
    ("request", "toolConfig"): One("toolConfig"),
    ("request", "safetySettings"): Many("safetySetting"),
    ("request", "generationConfig"): One("generationConfig"),
    ("content", "role"): Scalar(str),
    ("content", "parts"): Many("part"),
    ("part", "text"): Scalar(str),
    ("part", "thought"): Scalar(bool),
    ("part", "thoughtSignature"): Scalar(str),
    ("part", "inlineData"): One("inlineData"),
    ("part", "fileData"): One("fileData"),
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
    ("generationConfig", "thinkingConfig"): One("thinkingConfig"),
    ("generationConfig", "responseSchema"): SchemaShape(),
    ("toolConfig", "functionCallingConfig"): One("functionCallingConfig"),
    ("tool", "functionDeclarations"): Many("functionDeclaration"),
    ("functionDeclaration", "parameters"): SchemaShape(),
    ("cachedContent", "contents"): Many("content"),
    ("cachedContent", "systemInstruction"): One("content"),
    ("cachedContent", "tools"): Many("tool"),
    ("cachedContent", "toolConfig"): One("toolConfig"),
    ("cachedContent", "model"): Scalar(str),
    ("countTokens", "contents"): Many("content"),
    ("countTokens", "generateContentRequest"): One("request"),
    ("embedContent", "content"): One("content"),
    ("batchEmbedContents", "requests"): Many("embedContent"),
}


def snake(name: str) -> str:
    """`mimeType` as `mime_type`."""
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


SPELLINGS: dict[str, dict[str, str]] = {
    kind: {spelling: name for name in names for spelling in (name, snake(name))} for kind, names in FIELDS.items()
}
