"""What an OpenAI-compatible server refuses in a chat request, and in which words. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from palaver.sim.depth import too_deep

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
USER_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
ASSISTANT_PARTS = frozenset({"text", "refusal"})
OTHER_PARTS = frozenset({"text"})
MEDIA_PARTS = frozenset({"audio_url", "video_url"})  # not OpenAI's own
_OPENAI_PARAMETERS = """
audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
"""
PARAMETERS = frozenset(_OPENAI_PARAMETERS.split())
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
OPENAI = re.compile(r"(?!gpt-oss)gpt-|chatgpt-|codex-|computer-use-|o[0-9]")
MISTRAL = re.compile(r"(?:mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mistral|open-mixtral)-")
SEARCHES = re.compile(r"gpt-4o-(?:mini-)?search")
SAMPLES = re.compile(r"gpt-5-chat|gpt-3\.5|gpt-4|gpt-audio|chatgpt-4o")
SAMPLES_SOMETIMES = re.compile(r"gpt-5\.[123]")

Object = Mapping[str, Any]


class Refusal(Struct, frozen=True):
    """An answer other than 200: the rule that was broken, and the error object that says so."""

    rule: str
    status: int
    message: str
    type: str
    param: str | None
    code: str | None


class Reader(Struct, frozen=True, kw_only=True):
    """Who reads the request: a model of one of the two families, strictly or not."""

    model: str
    openai: bool
    mistral: bool
    strict: bool
    extra_parts: frozenset[str]  # part types this server takes from users beyond OpenAI's own

    @property
    def firm(self) -> bool:
        """Whether rules hold that OpenAI always enforces and others only sometimes."""
        return self.openai or self.strict


def check(
    body: object, *, model: str | None = None, strict: bool = True, extra_parts: frozenset[str] | None = None
) -> Refusal | None:
    """The first reason to refuse *body*, or None; *model* is the one the body names unless given.

    *extra_parts* are the types of parts this server takes beyond OpenAI's own; as a rule those some such server takes.
    """
    if not isinstance(body, Mapping) or too_deep(body):
        return _refusal("json", "We could not parse the JSON body of your request.")
    named = body.get("model") if model is None else model
    name = named if isinstance(named, str) else ""
    mistral = is_mistral(name)
    parts = extra_parts if extra_parts is not None else frozenset[str]() if is_openai(name) else MEDIA_PARTS
    parts = parts | {"document_url"} if mistral else parts
    reader = Reader(model=name, openai=is_openai(name), mistral=mistral, strict=strict, extra_parts=parts)
    return next(_refusals(body, reader), None)


def is_openai(model: str) -> bool:
    """Whether *model* is one of OpenAI's own, to which its narrower rules apply."""
    return "/" not in model and OPENAI.match(model) is not None


def is_mistral(model: str) -> bool:
    """Whether *model* is one of Mistral's, which takes some things the others do not."""
    return "/" not in model and MISTRAL.match(model) is not None


def _refusals(body: Object, reader: Reader) -> Iterator[Refusal]:
    """Every reason to refuse, in order; each may rely on what those before it have refused."""
    messages: Any = body.get("messages")
    yield from _shape(messages)
    yield from _parameters(body, reader)
    for index, message in enumerate(messages):
        yield from _message(message, index, reader)
    yield from _pairing(messages, reader)
    yield from _tools(body, reader)


def _refusal(rule: str, message: str, *, param: str | None = None, code: str | None = None) -> Refusal:
    return Refusal(rule, 400, message, "invalid_request_error", param, code)


def _mistyped(where: str) -> Refusal:
    return _refusal("type", f"Invalid type for '{where}'.", param=where, code="invalid_type")


def _missing(rule: str, where: str) -> Refusal:
    return _refusal(rule, f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")


def _empty_array(rule: str, where: str) -> Refusal:
    text = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return _refusal(rule, text, param=where, code="empty_array")


def _shape(messages: Any) -> Iterator[Refusal]:
    if messages is not None and not isinstance(messages, list):
        yield _mistyped("messages")
    if not messages:
        yield _empty_array("no-messages", "messages")
        return
    for index, message in enumerate(messages):
        yield from _message_types(message, f"messages[{index}]")
    for index, message in enumerate(messages):
        yield from _role(message, f"messages[{index}].role")


def _message_types(message: object, where: str) -> Iterator[Refusal]:
    if not isinstance(message, Mapping):
        yield _mistyped(where)
        return
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role is not None and not isinstance(role, str):
        yield _mistyped(f"{where}.role")
    if content is not None and not isinstance(content, str | list):
        yield _mistyped(f"{where}.content")
    if calls is not None and not isinstance(calls, list):
        yield _mistyped(f"{where}.tool_calls")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, Mapping):
            yield _mistyped(f"{where}.content[{index}]")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        yield from _call_types(call, f"{where}.tool_calls[{index}]")


def _call_types(call: object, where: str) -> Iterator[Refusal]:
    if not isinstance(call, Mapping):
        yield _mistyped(where)
        return
    function = call.get("function")
    if function is not None and not isinstance(function, Mapping):
        yield _mistyped(f"{where}.function")


def _role(message: Object, where: str) -> Iterator[Refusal]:
    role = message.get("role")
    if role in ROLES:
        return
    supported = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
    text = f"Invalid value: '{role or ''}'. Supported values are: {supported}."
    yield _refusal("role", text, param=where, code="invalid_value")


def _parameters(body: Object, reader: Reader) -> Iterator[Refusal]:
    for name, value in body.items():
        if reader.openai and value is not None and name not in PARAMETERS:
            yield _refusal("unknown-parameter", f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    temperature = body.get("temperature")
    if reader.firm and isinstance(temperature, int | float):
        yield from _temperature(temperature)
    if reader.openai:
        yield from _unsupported(body, reader)


def _unsupported(body: Object, reader: Reader) -> Iterator[Refusal]:
    """Settings that only models which reason take, or only those which do not."""
    searches, samples = SEARCHES.match(reader.model), SAMPLES.match(reader.model)
    hesitates = SAMPLES_SOMETIMES.match(reader.model) and not reader.strict
    if (searches or not samples) and not hesitates:
        value = body.get("temperature")
        if value not in (None, 1):
            text = (
                f"Unsupported value: 'temperature' does not support {value} with this model."
                " Only the default (1) value is supported."
            )
            yield _refusal("unsupported", text, param="temperature", code="unsupported_value")
        if body.get("top_p") not in (None, 1):
            yield _unsupported_parameter("top_p")
        if body.get("stop") is not None:
            yield _unsupported_parameter("stop")
    if (searches or samples) and body.get("reasoning_effort") is not None:
        yield _unsupported_parameter("reasoning_effort")


def _unsupported_parameter(name: str) -> Refusal:
    text = f"Unsupported parameter: '{name}' is not supported with this model."
    return _refusal("unsupported", text, param=name, code="unsupported_parameter")


def _temperature(value: float) -> Iterator[Refusal]:
    if value > 2:
        text = f"decimal above maximum value. Expected a value <= 2, but got {value} instead."
        code = "decimal_above_max_value"
    elif value < 0:
        text = f"decimal below minimum value. Expected a value >= 0, but got {value} instead."
        code = "decimal_below_min_value"
    else:
        return
    yield _refusal("temperature", f"Invalid 'temperature': {text}", param="temperature", code=code)


def _message(message: Object, index: int, reader: Reader) -> Iterator[Refusal]:
    where = f"messages[{index}]"
    if message["role"] == "system" and reader.openai and reader.model.startswith(("o1-mini", "o1-preview")):
        text = f"Unsupported value: '{where}.role' does not support 'system' with this model."
        yield _refusal("no-system", text, param=f"{where}.role", code="unsupported_value")
    yield from _content(message, where, reader)
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not calls and reader.firm:
        yield _empty_array("no-tool-calls", f"{where}.tool_calls")
    for position, call in enumerate(calls):
        yield from _call(call, f"{where}.tool_calls[{position}]", reader)
    if reader.strict:
        yield from _twice([call["id"] for call in calls], where)


def _content(message: Object, where: str, reader: Reader) -> Iterator[Refusal]:
    content = message.get("content")
    if reader.firm and _says_nothing(message):
        text = "Invalid value for 'content': expected a string, got null."
        yield _refusal("no-content", text, param=f"{where}.content", code="invalid_type")
    if reader.firm and content == [] and not reader.mistral:
        yield _empty_array("empty-content", f"{where}.content")
    if not isinstance(content, list):
        return
    for index, part in enumerate(content):
        yield from _part(part, f"{where}.content[{index}]", reader)
        yield from _part_for_role(part, message["role"], where=where, index=index, reader=reader)


def _says_nothing(message: Object) -> bool:
    if message.get("content") is not None:
        return False
    if message["role"] != "assistant":
        return True
    others = ("refusal", "audio", "function_call")
    return not message.get("tool_calls") and all(message.get(name) is None for name in others)


def _part_for_role(part: Object, role: str, *, where: str, index: int, reader: Reader) -> Iterator[Refusal]:
    kind = part["type"]
    if role == "user" and reader.firm and kind not in USER_PARTS | reader.extra_parts:
        supported = "'text', 'image_url', 'input_audio', 'refusal', and 'file'"
        text = f"Invalid value: '{kind}'. Supported values are: {supported}."
        yield _refusal("part-type", text, param=f"{where}.content[{index}].type", code="invalid_value")
    foreign = reader.openai and role == "assistant" and kind not in ASSISTANT_PARTS
    if foreign or (reader.firm and role not in ("user", "assistant") and kind not in OTHER_PARTS):
        text = f"Invalid '{where}'. Content blocks are expected to be either text or image_url type."
        yield _refusal("part-type", text, param=where, code="invalid_value")


def _part(part: Object, where: str, reader: Reader) -> Iterator[Refusal]:
    match part.get("type"):
        case "text":
            if not isinstance(part.get("text"), str):
                yield _missing("part-data", f"{where}.text")
        case "image_url":
            bare = isinstance(part.get("image_url"), str) and not reader.strict
            if not bare and not _holds_string(part.get("image_url"), "url"):
                yield _missing("part-data", f"{where}.image_url.url")
        case "input_audio":
            yield from _audio(part.get("input_audio"), f"{where}.input_audio", reader)
        case "file":
            if not isinstance(part.get("file"), Mapping):
                yield _missing("part-data", f"{where}.file")
        case str():
            return
        case _:
            yield _missing("part-type", f"{where}.type")


def _audio(audio: object, where: str, reader: Reader) -> Iterator[Refusal]:
    if reader.mistral and isinstance(audio, str):
        return
    if not isinstance(audio, Mapping) or not _holds_string(audio, "data"):
        yield _missing("part-data", f"{where}.data")
        return
    sound = audio.get("format")
    if reader.firm and (sound not in ("wav", "mp3") or audio["data"].startswith("data:")):
        text = f"Invalid value: '{'' if sound is None else sound}'. Supported values are: 'wav' and 'mp3'."
        yield _refusal("audio-format", text, param=f"{where}.format", code="invalid_value")


def _holds_string(value: object, name: str) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(name), str)


def _call(call: Object, where: str, reader: Reader) -> Iterator[Refusal]:
    if not isinstance(call.get("id"), str):
        yield _missing("call-shape", f"{where}.id")
    elif not call["id"] and reader.strict:
        text = f"Invalid '{where}.id': empty string. Expected a string with minimum length 1."
        yield _refusal("call-name", text, param=f"{where}.id", code="empty_string")
    if call.get("type") in (None, "function"):
        yield from _called_function(call.get("function"), f"{where}.function", reader)


def _called_function(function: Object | None, where: str, reader: Reader) -> Iterator[Refusal]:
    if function is None:
        yield _missing("call-shape", where)
        return
    for name in ("name", "arguments"):
        if not isinstance(function.get(name), str):
            yield _missing("call-shape", f"{where}.{name}")
    if reader.strict and not NAME.fullmatch(function["name"]):
        text = f"Invalid '{where}.name': string does not match pattern."
        yield _refusal("call-name", text, param=f"{where}.name", code="invalid_value")
    if reader.strict and not _is_json_object(function["arguments"]):
        text = f"Invalid '{where}.arguments': expected a JSON object."
        yield _refusal("call-arguments", text, param=f"{where}.arguments", code="invalid_value")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _twice(ids: Sequence[str], where: str) -> Iterator[Refusal]:
    for identity, times in Counter(ids).items():
        if times > 1:
            yield _refusal("duplicate-id", f"Duplicate tool_call_id: {identity}", param=where, code="invalid_value")


def _pairing(messages: Sequence[Object], reader: Reader) -> Iterator[Refusal]:
    """Walk the messages once, remembering the calls of the assistant message whose run of results we are in."""
    opener, called, answered = 0, list[str](), list[str]()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            identity = message.get("tool_call_id")
            if not isinstance(identity, str) or identity not in called:
                yield _orphan(index)
            else:
                answered.append(identity)
            continue
        yield from _run(opener, called, answered, reader)
        opener, called, answered = index, _call_ids(message), []
    yield from _run(opener, called, answered, reader)


def _call_ids(message: Object) -> list[str]:
    if message["role"] != "assistant":
        return []
    return [call["id"] for call in message.get("tool_calls") or ()]


def _run(opener: int, called: Sequence[str], answered: Sequence[str], reader: Reader) -> Iterator[Refusal]:
    open_ids = [identity for identity in dict.fromkeys(called) if identity not in answered]
    if open_ids:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
        )
        yield _refusal("unanswered", text, param=f"messages.[{opener}].role")
    if reader.strict:
        yield from _twice(answered, f"messages[{opener}].tool_calls")


def _orphan(index: int) -> Refusal:
    text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    return _refusal("orphan-result", text, param=f"messages.[{index}].role")


def _tools(body: Object, reader: Reader) -> Iterator[Refusal]:
    tools = body.get("tools")
    declared: list[str] = []
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        where = f"tools[{index}].function"
        if not isinstance(tool, Mapping):
            yield _missing("tool-shape", where)
        elif tool.get("type") == "function":
            yield from _declaration(tool.get("function"), where, reader)
            declared.append(tool["function"]["name"])
    for name, times in Counter(declared).items():
        if reader.strict and times > 1:
            text = f"Duplicate function declaration found: {name}"
            yield _refusal("function-twice", text, param="tools", code="invalid_value")
    yield from _reasoning(body, reader, has_functions=bool(declared))


def _declaration(function: object, where: str, reader: Reader) -> Iterator[Refusal]:
    if not isinstance(function, Mapping) or not _holds_string(function, "name"):
        yield _missing("tool-shape", where)
        return
    if reader.firm and not NAME.fullmatch(function["name"]):
        pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        text = f"Invalid '{where}.name': string does not match pattern. {pattern}"
        yield _refusal("function-name", text, param=f"{where}.name", code="invalid_value")


def _reasoning(body: Object, reader: Reader, *, has_functions: bool) -> Iterator[Refusal]:
    effort = body.get("reasoning_effort")
    if reader.openai and reader.model.startswith("gpt-5.6") and has_functions and effort not in (None, "none"):
        text = "Function tools are not supported with reasoning_effort other than none on this endpoint."
        yield _refusal("reasoning-with-tools", text, param="reasoning_effort", code="unsupported_value")
