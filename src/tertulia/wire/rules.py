"""The rules of the services, as data: each with the generations that refuse what breaks it. Pure."""

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tertulia.wire.generations import (
    ALL,
    BEFORE_3,
    COMPATIBLE,
    FROM_3,
    FROM_3_6,
    GEMMA,
    MISTRAL,
    NO_MODEL_END,
    NONE,
    OPENAI_ONLY,
    generation,
)

When = Literal["always", "sometimes", "never"]


class Rule(Struct, frozen=True):
    """A rule's name, the service's own words, and the generations that refuse always and sometimes."""

    name: str
    message: str
    always: frozenset[str] = ALL
    sometimes: frozenset[str] = NONE

    def when(self, generation: str) -> When:
        if generation in self.always:
            return "always"
        return "sometimes" if generation in self.sometimes else "never"


def _sometimes(name: str, message: str) -> Rule:
    return Rule(name, message, always=NONE, sometimes=ALL)


_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_AFTER_CALL = "Please ensure that function response turn comes immediately after a function call turn."
_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_MODEL_END = "Requests ending with a model turn are not supported."
_VALID_ROLES = "Please use a valid role: user, model."
_ROLES_3_6 = (
    "Role '{role}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, "
    "CONTEXT, USER_CONTEXT, MODEL, USER."
)
_SIGNATURE = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_PART = "* GenerateContentRequest.contents[{i}].parts[{j}]"
_FUNCTION_NAME = (
    "* GenerateContentRequest.tools[{i}].function_declarations[{j}].name: Invalid function name. Must start with a "
    "letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes "
    "(-), with a maximum length of 64."
)
_LEVEL = "Thinking level {level} is not supported for this model. Please retry with other thinking level."
_NO_BUDGET = "Thinking budget is not supported for this model."
_EMPTY_ARRAY = (
    "Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
)
_MISSING = "Missing required parameter: '{where}'."
_USER_PART = "Invalid value: '{type}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', and 'file'."
_OTHER_PART = "Invalid '{where}'. Content blocks are expected to be either text or image_url type."
_UNSUPPORTED_VALUE = (
    "Unsupported value: '{name}' does not support {value} with this model. Only the default (1) value is supported."
)
_UNSUPPORTED_EFFORT = (
    "Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are: {efforts}."
)
_UNSUPPORTED = "Unsupported parameter: '{name}' is not supported with this model."
_OPENAI_NAME = (
    "Invalid '{where}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
)

GEMINI_RULES: dict[str, Rule] = {
    # shape
    "json": Rule("json", "Invalid JSON payload received.{unreadable}"),
    "type": Rule("type", "Invalid value at '{where}'"),
    "unknown-field": Rule(
        "unknown-field", 'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.'
    ),
    "duplicate-field": Rule(
        "duplicate-field", "Invalid value at '{where}' (oneof), oneof field '{name}' is already set."
    ),
    "no-contents": Rule("no-contents", "* GenerateContentRequest.contents: contents is not specified"),
    "no-parts": Rule("no-parts", "* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty."),
    "no-data": Rule("no-data", "{path}.data: required oneof field 'data' must have one initialized field"),
    "no-data-but-video": Rule(
        "no-data",
        "{path}.data: required oneof field 'data' must have one initialized field",
        always=NONE,
        sometimes=ALL - {"2.0"},
    ),
    "two-data": Rule(
        "two-data", "Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{name}'"
    ),
    "no-system-parts": _sometimes(
        "no-system-parts", "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty."
    ),
    "payload-size": Rule("payload-size", "Request payload size exceeds the limit: 104857600 bytes."),
    # conversation
    "role": Rule("role", _VALID_ROLES, always=ALL - FROM_3_6),
    "role-3.6": Rule("role", _ROLES_3_6, always=FROM_3_6),
    "role-strict": Rule("role", _VALID_ROLES, always=NONE, sometimes=ALL - FROM_3_6),
    "role-strict-3.6": Rule("role", _ROLES_3_6, always=NONE, sometimes=FROM_3_6),
    "ends-with-model": Rule("ends-with-model", _MODEL_END, always=NO_MODEL_END),
    "text-after-results": Rule(
        "text-after-results", _MODEL_END, always=NO_MODEL_END, sometimes=frozenset({"3", "3.1", "3.5"})
    ),
    "call-after-user": Rule("call-after-user", _AFTER_USER),
    "result-after-call": Rule("result-after-call", _AFTER_CALL),
    "result-first": _sometimes("result-first", _AFTER_CALL),
    "count": Rule("count", _COUNT),
    "unanswered": Rule("unanswered", _COUNT, always=NONE, sometimes=ALL - NO_MODEL_END),
    "call-id": Rule("call-id", _COUNT, always=FROM_3, sometimes=ALL - FROM_3),
    "call-id-one-sided": _sometimes("call-id", _COUNT),
    "call-name": _sometimes("call-name", _COUNT),
    "duplicate-id": _sometimes("duplicate-id", _COUNT),
    "result-name": Rule("result-name", _PART + ".function_response.name: Name cannot be empty."),
    "call-no-name": _sometimes("call-no-name", _PART + ".function_call.name: Name cannot be empty."),
    "no-response": _sometimes("no-response", _PART + ".function_response.response: required field is not set."),
    "result-parts": Rule(
        "result-parts", "Function response parts are not supported for this model.", always=BEFORE_3 | GEMMA
    ),
    "misplaced-call": _sometimes("misplaced-call", _AFTER_USER),
    "misplaced-result": _sometimes("misplaced-call", _AFTER_CALL),
    "signature": Rule("signature", _SIGNATURE, always=FROM_3, sometimes=frozenset({"2.5"})),
    "signature-each": Rule("signature", _SIGNATURE, always=NONE, sometimes=FROM_3 | {"2.5"}),
    # media
    "no-mime": Rule("no-mime", "Unsupported MIME type: "),
    "mime": Rule("mime", "Unsupported MIME type: {mime}"),
    "mime-unlisted": _sometimes("mime", "Unsupported MIME type: {mime}"),
    "base64": Rule("base64", "Invalid value at '{where}' (TYPE_BYTES), Base64 decoding failed"),
    "no-uri": _sometimes("no-uri", "fileUri is required"),
    # settings
    "thinking-both": Rule("thinking-both", "You can only set only one of thinking budget and thinking level."),
    "thinking-level": Rule(
        "thinking-level",
        "Thinking level is not supported for this model.",
        always=frozenset({"2.5", "gemma-3"}),
        sometimes=frozenset({"2.0"}),
    ),
    "thinking-level-minimal": Rule("thinking-level", _LEVEL, always=frozenset({"3.7"}), sometimes=frozenset({"4"})),
    "thinking-level-minimal-pro": Rule("thinking-level", _LEVEL, always=NONE, sometimes=frozenset({"3", "3.1"})),
    "thinking-level-middle": Rule("thinking-level", _LEVEL, always=NONE, sometimes=frozenset({"gemma-4"})),
    "thinking-level-unknown": Rule(
        "thinking-level", "Invalid value at 'generation_config.thinking_config.thinking_level'"
    ),
    "thinking-budget": Rule("thinking-budget", _NO_BUDGET, always=GEMMA, sometimes=frozenset({"2.0"})),
    "thinking-budget-4": Rule("thinking-budget", _NO_BUDGET + " Use thinking level instead.", always=frozenset({"4"})),
    "thinking-budget-range": Rule(
        "thinking-budget",
        "The thinking budget {budget} is invalid. Please choose a value between {lo} and {hi}.",
        always=frozenset({"2.5"}),
    ),
    "thinking-budget-zero": Rule(
        "thinking-budget", "Request contains an invalid argument.", always=NONE, sometimes=FROM_3 - {"4"}
    ),
    "candidates": Rule(
        "candidates", "Multiple candidates is not enabled for this model", always=FROM_3, sometimes=GEMMA
    ),
    "json-with-functions": Rule(
        "json-with-functions",
        "Function calling with a response mime type: 'application/json' is unsupported",
        always=BEFORE_3 | GEMMA,
    ),
    "cached-with-others": Rule(
        "cached-with-others",
        "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config. "
        "Proposed fix: move those values to CachedContent from GenerateContent request.",
    ),
    "no-system": Rule(
        "no-system", "Developer instruction is not enabled for models/{model}", always=frozenset({"gemma-3"})
    ),
    "safety-twice": _sometimes("safety-twice", "Only one safety setting per category is allowed."),
    # tools
    "tool-type": Rule(
        "tool-type",
        "* GenerateContentRequest.tools[{i}].tool_type: required one_of 'tool_type' must have one initialized field",
    ),
    "function-name": Rule("function-name", _FUNCTION_NAME),
    "function-name-long": _sometimes("function-name", _FUNCTION_NAME),
    "function-twice": _sometimes("function-twice", "Duplicate function declaration found: {name}"),
    "function-many": Rule(
        "function-many", "* GenerateContentRequest.tools: at most 512 function declarations are allowed"
    ),
    "schema-twice": _sometimes("schema-twice", "parameters and parameters_json_schema are mutually exclusive"),
    "schema-items": Rule("schema-items", "* GenerateContentRequest.{where}.items: missing field."),
    "schema-type": Rule(
        "schema-type", "Invalid value at '{where}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type)"
    ),
    "allowed-names": Rule(
        "allowed-names",
        "allowed_function_names should be set only when function calling mode is ANY or VALIDATED",
    ),
    "built-in-with-functions": Rule(
        "built-in-with-functions", "Tool use with function calling is unsupported", always=BEFORE_3
    ),
    "built-in-needs-switch": Rule(
        "built-in-with-functions",
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.",
        always=FROM_3,
    ),
    "server-side-tools": Rule("server-side-tools", "Tool call context circulation is not enabled", always=BEFORE_3),
    "no-functions": Rule(
        "no-functions",
        "Function calling is not enabled for models/{model}",
        always=frozenset({"gemma-3"}),
        sometimes=frozenset({"gemma-4"}),
    ),
    "no-functions-image": Rule("no-functions", "Function calling is not enabled for models/{model}"),
}

OPENAI_RULES: dict[str, Rule] = {
    "json": Rule("json", "We could not parse the JSON body of your request.{unreadable}"),
    "type": Rule("type", "Invalid type for '{where}'."),
    "no-messages": Rule("no-messages", _EMPTY_ARRAY),
    "role": Rule(
        "role",
        "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
        "and 'developer'.",
    ),
    "no-system": Rule(
        "no-system", "Unsupported value: '{where}' does not support 'system' with this model.", always=OPENAI_ONLY
    ),
    "no-content": Rule(
        "no-content",
        "Invalid value for 'content': expected a string, got null.",
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "empty-content": Rule("empty-content", _EMPTY_ARRAY, always=OPENAI_ONLY, sometimes=COMPATIBLE - MISTRAL),
    "part-type": Rule("part-type", _MISSING),
    "part-type-user": Rule(
        "part-type",
        _USER_PART,
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "part-type-media": Rule(
        "part-type",
        _USER_PART,
        always=OPENAI_ONLY,
    ),
    "part-type-document": Rule(
        "part-type",
        _USER_PART,
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE - MISTRAL,
    ),
    "part-type-other": Rule(
        "part-type",
        _OTHER_PART,
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "part-type-assistant": Rule(
        "part-type",
        _OTHER_PART,
        always=OPENAI_ONLY,
    ),
    "part-data-bare": _sometimes("part-data", _MISSING),
    "part-data": Rule("part-data", _MISSING),
    "part-data-audio": Rule("part-data", _MISSING, always=ALL - MISTRAL),
    "audio-format": Rule(
        "audio-format",
        "Invalid value: '{format}'. Supported values are: 'wav' and 'mp3'.",
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "no-tool-calls": Rule("no-tool-calls", _EMPTY_ARRAY, always=OPENAI_ONLY, sometimes=COMPATIBLE),
    "call-shape": Rule("call-shape", _MISSING),
    "call-name": _sometimes("call-name", _OPENAI_NAME),
    "call-arguments": _sometimes("call-arguments", "Invalid '{where}': expected a JSON object."),
    "duplicate-id": _sometimes("duplicate-id", "Duplicate tool_call_id: {id}"),
    "unanswered": Rule(
        "unanswered",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: {ids}",
    ),
    "orphan-result": Rule(
        "orphan-result",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
    "temperature-high": Rule(
        "temperature",
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got {temperature} instead.",
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "temperature-low": Rule(
        "temperature",
        "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got {temperature} instead.",
        always=OPENAI_ONLY,
        sometimes=COMPATIBLE,
    ),
    "unsupported-value": Rule("unsupported", _UNSUPPORTED_VALUE, always=OPENAI_ONLY),
    "unsupported-effort": Rule("unsupported", _UNSUPPORTED_EFFORT, always=OPENAI_ONLY),
    "unsupported-parameter": Rule("unsupported", _UNSUPPORTED, always=OPENAI_ONLY),
    "unsupported-parameter-sometimes": Rule("unsupported", _UNSUPPORTED, always=NONE, sometimes=OPENAI_ONLY),
    "tool-shape": Rule("tool-shape", _MISSING),
    "function-name": Rule("function-name", _OPENAI_NAME, always=OPENAI_ONLY, sometimes=COMPATIBLE),
    "function-twice": _sometimes("function-twice", "Duplicate function declaration found: {name}"),
    "unknown-parameter": Rule("unknown-parameter", "Unknown parameter: '{name}'.", always=OPENAI_ONLY),
    "reasoning-with-tools": Rule(
        "reasoning-with-tools",
        "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function "
        "tools, use /v1/responses or set reasoning_effort to 'none'.",
        always=OPENAI_ONLY,
    ),
}

PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"  # documented: stands for a signature that is not to be had

MIME_TYPES = frozenset(
    [f"image/{kind}" for kind in "png jpeg webp heic heif gif".split()]
    + [f"audio/{kind}" for kind in "wav x-wav mp3 mpeg aiff aac ogg flac m4a opus webm".split()]
    + [f"video/{kind}" for kind in "mp4 mpeg mov avi x-flv mpg webm wmv 3gpp quicktime".split()]
    + ["application/pdf", "application/json"]
)
MIME_REFUSED = frozenset({"image/jpg", "application/octet-stream"})
INLINE_LIMIT = 104857600
DEEPEST = 100  # objects and lists within each other
PART_DEEPEST = (
    DEEPEST - 4
)  # of a part or a tool call, which lies in a list, in a content or message, in a list, in the request


@lru_cache(maxsize=4096)
def when_refused(model: str, rule: str) -> When:
    """Return whether the Gemini generation of *model* refuses what breaks *rule*: always, sometimes or never."""
    return GEMINI_RULES[rule].when(generation(model))


def when_mime_refused(mime: str) -> When:
    """Return whether a service refuses this MIME type: always, sometimes or never."""
    kind = mime.partition(";")[0].strip()
    if kind in MIME_REFUSED or "/" not in kind:
        return "always"
    return "never" if kind in MIME_TYPES or kind.startswith("text/") else "sometimes"
