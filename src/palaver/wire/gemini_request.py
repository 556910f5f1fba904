"""Reading a Gemini request as the service does: both spellings, null as absent, one object for a list. Pure."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

_DATA = (
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse "
    "audioTranscription"
).split()
DATA_FIELDS = frozenset(_DATA)

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


class PossibleViolation(Struct, frozen=True):
    """A rule that a request breaks. Not every generation of models refuses that."""

    rule: str
    where: str
    words: dict[str, Any] = {}


@lru_cache(maxsize=4096)
def camel(name: str) -> str:
    """Return the camelCase spelling of a field."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


class Reader:
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
