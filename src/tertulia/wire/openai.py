"""The rules of an OpenAI-compatible request. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from tertulia.jsonio import deeper_than
from tertulia.wire.gemini_request import DATA_FIELDS, PossibleViolation
from tertulia.wire.generations import family, is_gemini, reasoning_of, refused_settings
from tertulia.wire.rules import DEEPEST, OPENAI_RULES, PART_DEEPEST

PARAMETERS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier "
    "stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options".split()
)
REASONING = ("reasoning_content", "reasoning")  # the fields of a message that hold a model's thoughts
TEXTS = frozenset({"text", "output_text", "input_text"})  # the types of parts that hold what was said
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_USER_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
_EXTENSIONS = {  # parts that only some services know
    "document_url": "part-type-document",
    "audio_url": "part-type-media",
    "video_url": "part-type-media",
}
_OWN_FIELDS = {"role", "content", "tool_calls", "tool_call_id"}  # of a message, written by the encoder
_SPOKEN = ("content", "refusal", "audio", "function_call")


def violations(request: Any, model: str) -> Iterator[PossibleViolation]:
    """Yield the violations of *request*, whatever the family of the model."""
    if not isinstance(request, dict):
        yield PossibleViolation("json", "")
        return
    unreadable = list(_shape_violations(request))
    yield from unreadable
    if unreadable:
        return
    messages = [_present(message) for message in request["messages"]]
    for index, message in enumerate(messages):
        yield from _message_violations(message, f"messages[{index}]", model)
    yield from _pairing_violations(messages)
    yield from _parameter_violations(_present(request), model)


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


def _shape_violations(request: dict[str, Any]) -> Iterator[PossibleViolation]:
    messages = request.get("messages")
    if messages is None or messages == []:
        yield PossibleViolation("no-messages", "messages")
        return
    if not isinstance(messages, list):
        yield PossibleViolation("type", "messages")
        return
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            yield PossibleViolation("type", where)
        else:
            yield from _message_shape_violations(_present(message), where)


def _message_shape_violations(message: dict[str, Any], where: str) -> Iterator[PossibleViolation]:
    role, content, calls = message.get("role"), message.get("content", ""), message.get("tool_calls", [])
    if role is not None and not isinstance(role, str):
        yield PossibleViolation("type", f"{where}.role")
    elif role not in _ROLES:
        yield PossibleViolation("role", f"{where}.role", {"role": role or ""})
    if not isinstance(content, str | list):
        yield PossibleViolation("type", f"{where}.content")
    elif isinstance(content, list):
        yield from _object_violations(content, f"{where}.content")
    if not isinstance(calls, list):
        yield PossibleViolation("type", f"{where}.tool_calls")
        return
    yield from _object_violations(calls, f"{where}.tool_calls")
    for index, call in enumerate(calls):
        if isinstance(call, dict) and not isinstance(call.get("function"), dict | None):
            yield PossibleViolation("type", f"{where}.tool_calls[{index}].function")


def _object_violations(items: list[Any], where: str) -> Iterator[PossibleViolation]:
    yield from (
        PossibleViolation("type", f"{where}[{index}]") for index, item in enumerate(items) if not isinstance(item, dict)
    )


def _message_violations(message: dict[str, Any], where: str, model: str) -> Iterator[PossibleViolation]:
    role = message["role"]
    if role == "system" and model.startswith(("o1-mini", "o1-preview")):
        yield PossibleViolation("no-system", f"{where}.role")
    if role == "assistant":
        if not message.get("tool_calls") and not any(name in message for name in _SPOKEN):
            yield PossibleViolation("no-content", where)
    elif "content" not in message:
        yield PossibleViolation("no-content", where)
    content = message.get("content")
    if content == []:
        yield PossibleViolation("empty-content", f"{where}.content")
    for index, part in enumerate(content if isinstance(content, list) else []):
        yield from _part_violations(_present(part), role, f"{where}.content[{index}]", where)
    if message.get("tool_calls") == []:
        yield PossibleViolation("no-tool-calls", f"{where}.tool_calls")
    for index, call in enumerate(message.get("tool_calls", [])):
        yield from _call_violations(_present(call), f"{where}.tool_calls[{index}]")


def _part_violations(part: dict[str, Any], role: str, where: str, message: str) -> Iterator[PossibleViolation]:
    kind = part.get("type")
    if not isinstance(kind, str):
        yield PossibleViolation("part-type", f"{where}.type")
        return
    if role == "user" and kind not in _USER_PARTS:
        rule = _EXTENSIONS.get(kind, "part-type-user")
        yield PossibleViolation(rule, f"{where}.type", {"type": kind})
    if role == "assistant" and kind not in {"text", "refusal"}:
        yield PossibleViolation("part-type-assistant", message)
    if role not in {"user", "assistant"} and kind != "text":
        yield PossibleViolation("part-type-other", message)
    yield from _part_data_violations(part, kind, where)


def _part_data_violations(part: dict[str, Any], kind: str, where: str) -> Iterator[PossibleViolation]:
    inner = part.get(kind)
    if kind == "text" and not isinstance(inner, str):
        yield PossibleViolation("part-data", f"{where}.text")
    if kind == "image_url" and not (isinstance(inner, dict) and isinstance(inner.get("url"), str)):
        bare = isinstance(inner, str)
        yield PossibleViolation("part-data-bare" if bare else "part-data", f"{where}.image_url.url")
    if kind == "file" and not isinstance(inner, dict):
        yield PossibleViolation("part-data", f"{where}.file")
    if kind == "input_audio":
        if not (isinstance(inner, dict) and isinstance(inner.get("data"), str)):
            rule = "part-data-audio" if isinstance(inner, str) else "part-data"
            yield PossibleViolation(rule, f"{where}.input_audio.data")
        elif inner.get("format") not in ("wav", "mp3") or inner["data"].startswith("data:"):
            yield PossibleViolation("audio-format", f"{where}.input_audio", {"format": inner.get("format")})


def _call_violations(call: dict[str, Any], where: str) -> Iterator[PossibleViolation]:
    if not isinstance(call.get("id"), str):
        yield PossibleViolation("call-shape", f"{where}.id")
    elif not call["id"]:
        yield PossibleViolation("call-name", f"{where}.id")
    if call.get("type", "function") != "function":
        return
    function = call.get("function") or {}
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        yield PossibleViolation("call-shape", f"{where}.function.name")
    elif not NAME.fullmatch(name):
        yield PossibleViolation("call-name", f"{where}.function.name")
    if not isinstance(arguments, str):
        yield PossibleViolation("call-shape", f"{where}.function.arguments")
    elif not is_json_object(arguments):
        yield PossibleViolation("call-arguments", f"{where}.function.arguments")


def is_json_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _pairing_violations(messages: list[dict[str, Any]]) -> Iterator[PossibleViolation]:
    open_ids: Counter[str] = Counter()  # of the last assistant message with calls, not answered yet
    asked: frozenset[str] = frozenset()
    asker = ""
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            answer = message.get("tool_call_id")
            if not isinstance(answer, str) or answer not in asked:
                yield PossibleViolation("orphan-result", where)
            elif not open_ids[answer]:
                yield PossibleViolation("duplicate-id", where, {"id": answer})
            else:
                open_ids[answer] = 0
            continue
        yield from _unanswered(open_ids, asker)
        ids = [call["id"] for call in message.get("tool_calls", []) if isinstance(call.get("id"), str)]
        yield from (
            PossibleViolation("duplicate-id", where, {"id": name}) for name, count in Counter(ids).items() if count > 1
        )
        open_ids, asked, asker = (
            (Counter(ids), frozenset(ids), where) if message["role"] == "assistant" else (Counter(), frozenset(), "")
        )
    yield from _unanswered(open_ids, asker)


def _unanswered(open_ids: Counter[str], asker: str) -> Iterator[PossibleViolation]:
    left = [name for name, count in open_ids.items() if count]
    if left:
        yield PossibleViolation("unanswered", asker, {"ids": ", ".join(left)})


def _parameter_violations(request: dict[str, Any], model: str) -> Iterator[PossibleViolation]:
    for name in request:
        if name not in PARAMETERS:
            yield PossibleViolation("unknown-parameter", name, {"name": name})
    temperature = request.get("temperature")
    if isinstance(temperature, int | float) and temperature > 2:
        yield PossibleViolation("temperature-high", "temperature", {"temperature": temperature})
    if isinstance(temperature, int | float) and temperature < 0:
        yield PossibleViolation("temperature-low", "temperature", {"temperature": temperature})
    yield from _unsupported_violations(request, model)
    tools = request["tools"] if isinstance(request.get("tools"), list) else []
    yield from _tool_violations(tools)
    functions = any(isinstance(tool, dict) and tool.get("type") == "function" for tool in tools)
    reasoning = reasoning_of(model)
    effort = request.get("reasoning_effort") if reasoning.efforts else None  # the others refuse any
    if functions and (effort or reasoning.default) not in reasoning.beside_tools:
        yield PossibleViolation("reasoning-with-tools", "reasoning_effort", {"model": model})


def _unsupported_violations(request: dict[str, Any], model: str) -> Iterator[PossibleViolation]:
    """Yield the settings that the model does not support. The value 1 is accepted: it is the default."""
    effort = request.get("reasoning_effort")
    efforts = reasoning_of(model).efforts
    if efforts and effort is not None and effort not in efforts:
        *first, last = map(repr, efforts)
        listed = f"{', '.join(first)}, and {last}" if first else last
        yield PossibleViolation("unsupported-effort", "reasoning_effort", {"value": effort, "efforts": listed})
    refused = refused_settings(model, effort)
    for name in sorted(refused & request.keys()):
        value = request[name]
        if name in {"temperature", "top_p"} and value == 1:
            continue
        kind = "unsupported-value" if name == "temperature" else "unsupported-parameter"
        sometimes = "-sometimes" if refused == {"stop"} else ""
        yield PossibleViolation(kind + sometimes, name, {"name": name, "value": value})


def _tool_violations(tools: list[Any]) -> Iterator[PossibleViolation]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools[{index}].function"
        if not isinstance(tool, dict):
            yield PossibleViolation("tool-shape", where)
            continue
        if tool.get("type") != "function":
            continue
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str):
            yield PossibleViolation("tool-shape", where)
            continue
        if not NAME.fullmatch(name):
            yield PossibleViolation("function-name", f"{where}.name")
        if name in seen:
            yield PossibleViolation("function-twice", f"{where}.name", {"name": name})
        seen.add(name)


def opaque_is_legal(raw: dict[str, Any], role: str, model: str, *, own: bool) -> bool:
    """Return whether what a model returned beyond our values may go back: a content part, a call, or fields of a
    message.

    *own* tells that this model made it; what nobody in particular made may be Gemini's.
    """
    if "type" in raw:
        speaker = "user" if role == "user" else "assistant"
        found = _part_violations(_present(raw), speaker, "", "")
        legal = all(OPENAI_RULES[violation.rule].when(family(model)) == "never" for violation in found)
        return legal and not deeper_than(raw, PART_DEEPEST)
    if role != "model":
        return False
    if "tool_call" in raw:
        return True  # a call, and judged as one
    geminis = raw.keys() & DATA_FIELDS and not (own and not is_gemini(model))
    return not geminis and not raw.keys() & _OWN_FIELDS and not deeper_than(raw, DEEPEST - 2)


def call_is_legal(raw: dict[str, Any]) -> bool:
    """Return whether a tool call is legal by itself."""
    return isinstance(raw.get("function"), dict | None) and not list(_call_violations(_present(raw), ""))


def legal_name(name: str) -> str:
    """Return the name of a call, or the nearest that the services take."""
    return name if NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown_function"


def signature_of(call: dict[str, Any]) -> str | None:
    """Return the signature Gemini puts on a tool call, where it uses this format."""
    match call.get("extra_content"):
        case {"google": {"thought_signature": str(signature)}}:
            return signature
        case _:
            return None
