"""The rules of an OpenAI-compatible request. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from palaver.jsonio import deeper_than
from palaver.wire.gemini_request import DATA_FIELDS, Fault
from palaver.wire.generations import SAMPLE_SOMETIMES, family, is_gemini, refused_settings
from palaver.wire.rules import DEEPEST, OPENAI_RULES, PART_DEEPEST

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


def faults(request: Any, model: str) -> Iterator[Fault]:
    """Yield everything a rule names in *request*, whatever the family."""
    if not isinstance(request, dict):
        yield Fault("json", "")
        return
    unreadable = list(_shape_faults(request))
    yield from unreadable
    if unreadable:
        return
    messages = [_present(message) for message in request["messages"]]
    for index, message in enumerate(messages):
        yield from _message_faults(message, f"messages[{index}]", model)
    yield from _pairing_faults(messages)
    yield from _parameter_faults(_present(request), model)


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


def _shape_faults(request: dict[str, Any]) -> Iterator[Fault]:
    messages = request.get("messages")
    if messages is None or messages == []:
        yield Fault("no-messages", "messages")
        return
    if not isinstance(messages, list):
        yield Fault("type", "messages")
        return
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            yield Fault("type", where)
        else:
            yield from _message_shape_faults(_present(message), where)


def _message_shape_faults(message: dict[str, Any], where: str) -> Iterator[Fault]:
    role, content, calls = message.get("role"), message.get("content", ""), message.get("tool_calls", [])
    if role is not None and not isinstance(role, str):
        yield Fault("type", f"{where}.role")
    elif role not in _ROLES:
        yield Fault("role", f"{where}.role", {"role": role or ""})
    if not isinstance(content, str | list):
        yield Fault("type", f"{where}.content")
    elif isinstance(content, list):
        yield from _object_faults(content, f"{where}.content")
    if not isinstance(calls, list):
        yield Fault("type", f"{where}.tool_calls")
        return
    yield from _object_faults(calls, f"{where}.tool_calls")
    for index, call in enumerate(calls):
        if isinstance(call, dict) and not isinstance(call.get("function"), dict | None):
            yield Fault("type", f"{where}.tool_calls[{index}].function")


def _object_faults(items: list[Any], where: str) -> Iterator[Fault]:
    yield from (Fault("type", f"{where}[{index}]") for index, item in enumerate(items) if not isinstance(item, dict))


def _message_faults(message: dict[str, Any], where: str, model: str) -> Iterator[Fault]:
    role = message["role"]
    if role == "system" and model.startswith(("o1-mini", "o1-preview")):
        yield Fault("no-system", f"{where}.role")
    if role == "assistant":
        if not message.get("tool_calls") and not any(name in message for name in _SPOKEN):
            yield Fault("no-content", where)
    elif "content" not in message:
        yield Fault("no-content", where)
    content = message.get("content")
    if content == []:
        yield Fault("empty-content", f"{where}.content")
    for index, part in enumerate(content if isinstance(content, list) else []):
        yield from _part_faults(_present(part), role, f"{where}.content[{index}]", where)
    if message.get("tool_calls") == []:
        yield Fault("no-tool-calls", f"{where}.tool_calls")
    for index, call in enumerate(message.get("tool_calls", [])):
        yield from _call_faults(_present(call), f"{where}.tool_calls[{index}]")


def _part_faults(part: dict[str, Any], role: str, where: str, message: str) -> Iterator[Fault]:
    kind = part.get("type")
    if not isinstance(kind, str):
        yield Fault("part-type", f"{where}.type")
        return
    if role == "user" and kind not in _USER_PARTS:
        rule = _EXTENSIONS.get(kind, "part-type-user")
        yield Fault(rule, f"{where}.type", {"type": kind})
    if role == "assistant" and kind not in {"text", "refusal"}:
        yield Fault("part-type-assistant", message)
    if role not in {"user", "assistant"} and kind != "text":
        yield Fault("part-type-other", message)
    yield from _part_data_faults(part, kind, where)


def _part_data_faults(part: dict[str, Any], kind: str, where: str) -> Iterator[Fault]:
    inner = part.get(kind)
    if kind == "text" and not isinstance(inner, str):
        yield Fault("part-data", f"{where}.text")
    if kind == "image_url" and not (isinstance(inner, dict) and isinstance(inner.get("url"), str)):
        bare = isinstance(inner, str)
        yield Fault("part-data-bare" if bare else "part-data", f"{where}.image_url.url")
    if kind == "file" and not isinstance(inner, dict):
        yield Fault("part-data", f"{where}.file")
    if kind == "input_audio":
        if not (isinstance(inner, dict) and isinstance(inner.get("data"), str)):
            rule = "part-data-audio" if isinstance(inner, str) else "part-data"
            yield Fault(rule, f"{where}.input_audio.data")
        elif inner.get("format") not in ("wav", "mp3") or inner["data"].startswith("data:"):
            yield Fault("audio-format", f"{where}.input_audio", {"format": inner.get("format")})


def _call_faults(call: dict[str, Any], where: str) -> Iterator[Fault]:
    if not isinstance(call.get("id"), str):
        yield Fault("call-shape", f"{where}.id")
    elif not call["id"]:
        yield Fault("call-name", f"{where}.id")
    if call.get("type", "function") != "function":
        return
    function = call.get("function") or {}
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        yield Fault("call-shape", f"{where}.function.name")
    elif not NAME.fullmatch(name):
        yield Fault("call-name", f"{where}.function.name")
    if not isinstance(arguments, str):
        yield Fault("call-shape", f"{where}.function.arguments")
    elif not is_json_object(arguments):
        yield Fault("call-arguments", f"{where}.function.arguments")


def is_json_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _pairing_faults(messages: list[dict[str, Any]]) -> Iterator[Fault]:
    open_ids: Counter[str] = Counter()  # of the last assistant message with calls, not answered yet
    asked: frozenset[str] = frozenset()
    asker = ""
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            answer = message.get("tool_call_id")
            if not isinstance(answer, str) or answer not in asked:
                yield Fault("orphan-result", where)
            elif not open_ids[answer]:
                yield Fault("duplicate-id", where, {"id": answer})
            else:
                open_ids[answer] = 0
            continue
        yield from _unanswered(open_ids, asker)
        ids = [call["id"] for call in message.get("tool_calls", []) if isinstance(call.get("id"), str)]
        yield from (Fault("duplicate-id", where, {"id": name}) for name, count in Counter(ids).items() if count > 1)
        open_ids, asked, asker = (
            (Counter(ids), frozenset(ids), where) if message["role"] == "assistant" else (Counter(), frozenset(), "")
        )
    yield from _unanswered(open_ids, asker)


def _unanswered(open_ids: Counter[str], asker: str) -> Iterator[Fault]:
    left = [name for name, count in open_ids.items() if count]
    if left:
        yield Fault("unanswered", asker, {"ids": ", ".join(left)})


def _parameter_faults(request: dict[str, Any], model: str) -> Iterator[Fault]:
    for name in request:
        if name not in PARAMETERS:
            yield Fault("unknown-parameter", name, {"name": name})
    temperature = request.get("temperature")
    if isinstance(temperature, int | float) and temperature > 2:
        yield Fault("temperature-high", "temperature", {"temperature": temperature})
    if isinstance(temperature, int | float) and temperature < 0:
        yield Fault("temperature-low", "temperature", {"temperature": temperature})
    yield from _unsupported_faults(request, model)
    tools = request["tools"] if isinstance(request.get("tools"), list) else []
    yield from _tool_faults(tools)
    functions = any(isinstance(tool, dict) and tool.get("type") == "function" for tool in tools)
    if model.startswith("gpt-5.6") and functions and request.get("reasoning_effort", "none") != "none":
        yield Fault("reasoning-with-tools", "reasoning_effort")


def _unsupported_faults(request: dict[str, Any], model: str) -> Iterator[Fault]:
    """Settings the model refuses by name; 1 is what it takes anyway."""
    sometimes = "-sometimes" if model.startswith(SAMPLE_SOMETIMES) else ""
    for name in sorted(refused_settings(model) & request.keys()):
        value = request[name]
        if name in {"temperature", "top_p"} and value == 1:
            continue
        kind = "unsupported-value" if name == "temperature" else "unsupported-parameter"
        yield Fault(kind + sometimes, name, {"name": name, "value": value})


def _tool_faults(tools: list[Any]) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools[{index}].function"
        if not isinstance(tool, dict):
            yield Fault("tool-shape", where)
            continue
        if tool.get("type") != "function":
            continue
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str):
            yield Fault("tool-shape", where)
            continue
        if not NAME.fullmatch(name):
            yield Fault("function-name", f"{where}.name")
        if name in seen:
            yield Fault("function-twice", f"{where}.name", {"name": name})
        seen.add(name)


def opaque_is_legal(raw: dict[str, Any], role: str, model: str, *, own: bool) -> bool:
    """Return whether what a model returned beyond our values may go back: a content part, a call, or fields of a
    message.

    *own* tells that this model made it; what nobody in particular made may be Gemini's.
    """
    if "type" in raw:
        speaker = "user" if role == "user" else "assistant"
        found = _part_faults(_present(raw), speaker, "", "")
        legal = all(OPENAI_RULES[fault.rule].when(family(model)) == "never" for fault in found)
        return legal and not deeper_than(raw, PART_DEEPEST)
    if role != "model":
        return False
    if "tool_call" in raw:
        return True  # a call, and judged as one
    geminis = raw.keys() & DATA_FIELDS and not (own and not is_gemini(model))
    return not geminis and not raw.keys() & _OWN_FIELDS and not deeper_than(raw, DEEPEST - 2)


def call_is_legal(raw: dict[str, Any]) -> bool:
    """Return whether a tool call is legal by itself."""
    return isinstance(raw.get("function"), dict | None) and not list(_call_faults(_present(raw), ""))


def legal_name(name: str) -> str:
    """Return the name of a call, or the nearest that the services take."""
    return name if NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown_function"


def signature_of(call: dict[str, Any]) -> str | None:
    """Return the signature Gemini puts on a tool call, where it speaks this format."""
    match call.get("extra_content"):
        case {"google": {"thought_signature": str(signature)}}:
            return signature
        case _:
            return None
