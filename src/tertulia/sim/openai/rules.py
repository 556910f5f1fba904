"""Rules of a chat request: what an OpenAI-compatible server refuses, in which order and in which words. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tertulia.sim.errors import too_deep
from tertulia.sim.openai.errors import OpenAIRefusal, empty_array, missing, mistyped, refusal
from tertulia.sim.openai.settings import OPENAI, Object, ServerKind, refused_effort, refused_settings
from tertulia.sim.signatures import Signatures, missing_signature

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
USER_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
ASSISTANT_PARTS = frozenset({"text", "refusal"})
OTHER_PARTS = frozenset({"text"})
MEDIA_PARTS = frozenset({"audio_url", "video_url"})  # not OpenAI's own
AUDIO = {  # what a server takes of sounds, by the names of its options
    "input_audio": USER_PARTS,
    "audio_url": (USER_PARTS | MEDIA_PARTS) - {"input_audio"},
    "both": USER_PARTS | MEDIA_PARTS,
    "none": USER_PARTS - {"input_audio"},
}
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
GEMINI = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
MISTRAL = re.compile(r"(?:mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mistral|open-mixtral)-")


def check(
    body: object, *, model: str | None = None, strict: bool = True, user_parts: frozenset[str] | None = None
) -> OpenAIRefusal | None:
    """Return why *model* refuses *body*, or None. Unless given, *model* is the one that the body names.

    *user_parts* are the types of parts that this server takes from users; unless given, OpenAI's own, or those of any
    compatible server.
    """
    if not isinstance(body, Mapping) or too_deep(body):
        return refusal("json", "We could not parse the JSON body of your request.")
    named = body.get("model") if model is None else model
    name = named if isinstance(named, str) else ""
    mistral = is_mistral(name)
    parts = user_parts if user_parts is not None else AUDIO["input_audio" if is_openai(name) else "both"]
    parts = parts | {"document_url"} if mistral else parts
    server = ServerKind(model=name, openai=is_openai(name), mistral=mistral, strict=strict, user_parts=parts)
    return next(_refusals(body, server), None)


def is_openai(model: str) -> bool:
    """Tell whether *model* is one of OpenAI's own, which have narrower rules."""
    return "/" not in model and OPENAI.match(model) is not None


def is_mistral(model: str) -> bool:
    """Tell whether *model* is one of Mistral's, which support more than others."""
    return "/" not in model and MISTRAL.match(model) is not None


def _refusals(body: Object, server: ServerKind) -> Iterator[OpenAIRefusal]:
    """Find every reason to refuse, in order. Each check relies on those before it."""
    messages: Any = body.get("messages")
    yield from _shape(messages)
    yield from refused_settings(body, server)
    for index, message in enumerate(messages):
        yield from _message(message, index, server)
    yield from _pairing(messages, server)
    yield from _tools(body, server)


def _shape(messages: Any) -> Iterator[OpenAIRefusal]:
    if messages is not None and not isinstance(messages, list):
        yield mistyped("messages")
    if not messages:
        yield empty_array("no-messages", "messages")
        return
    for index, message in enumerate(messages):
        yield from _message_types(message, f"messages[{index}]")
    for index, message in enumerate(messages):
        if message.get("role") not in ROLES:
            supported = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
            text = f"Invalid value: '{message.get('role') or ''}'. Supported values are: {supported}."
            yield refusal("role", text, param=f"messages[{index}].role", code="invalid_value")


def _message_types(message: object, where: str) -> Iterator[OpenAIRefusal]:
    if not isinstance(message, Mapping):
        yield mistyped(where)
        return
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role is not None and not isinstance(role, str):
        yield mistyped(f"{where}.role")
    if content is not None and not isinstance(content, str | list):
        yield mistyped(f"{where}.content")
    if calls is not None and not isinstance(calls, list):
        yield mistyped(f"{where}.tool_calls")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, Mapping):
            yield mistyped(f"{where}.content[{index}]")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, Mapping):
            yield mistyped(f"{where}.tool_calls[{index}]")
        elif call.get("function") is not None and not isinstance(call["function"], Mapping):
            yield mistyped(f"{where}.tool_calls[{index}].function")


def _message(message: Object, index: int, server: ServerKind) -> Iterator[OpenAIRefusal]:
    where = f"messages[{index}]"
    if message["role"] == "system" and server.openai and server.model.startswith(("o1-mini", "o1-preview")):
        text = f"Unsupported value: '{where}.role' does not support 'system' with this model."
        yield refusal("no-system", text, param=f"{where}.role", code="unsupported_value")
    yield from _content(message, where, server)
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not calls and server.strict_or_openai:
        yield empty_array("no-tool-calls", f"{where}.tool_calls")
    for position, call in enumerate(calls):
        yield from _call(call, f"{where}.tool_calls[{position}]", server)
    if server.strict:
        yield from _duplicates([call["id"] for call in calls], where)


def _content(message: Object, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    content = message.get("content")
    if server.strict_or_openai and _has_no_content(message):
        text = "Invalid value for 'content': expected a string, got null."
        yield refusal("no-content", text, param=f"{where}.content", code="invalid_type")
    if server.strict_or_openai and content == [] and not server.mistral:
        yield empty_array("empty-content", f"{where}.content")
    if not isinstance(content, list):
        return
    for index, part in enumerate(content):
        yield from _part(part, f"{where}.content[{index}]", server)
        yield from _part_for_role(part, message["role"], where=where, index=index, server=server)


def _has_no_content(message: Object) -> bool:
    if message.get("content") is not None:
        return False
    if message["role"] != "assistant":
        return True
    others = ("refusal", "audio", "function_call")
    return not message.get("tool_calls") and all(message.get(name) is None for name in others)


def _part_for_role(part: Object, role: str, *, where: str, index: int, server: ServerKind) -> Iterator[OpenAIRefusal]:
    kind = part["type"]
    if role == "user" and kind not in server.user_parts and (server.strict_or_openai or kind in USER_PARTS):
        supported = "'text', 'image_url', 'input_audio', 'refusal', and 'file'"
        if "input_audio" not in server.user_parts:
            supported = ", ".join(f"'{one}'" for one in sorted(server.user_parts))
        text = f"Invalid value: '{kind}'. Supported values are: {supported}."
        yield refusal("part-type", text, param=f"{where}.content[{index}].type", code="invalid_value")
    foreign = server.openai and role == "assistant" and kind not in ASSISTANT_PARTS
    if foreign or (server.strict_or_openai and role not in ("user", "assistant") and kind not in OTHER_PARTS):
        text = f"Invalid '{where}'. Content blocks are expected to be either text or image_url type."
        yield refusal("part-type", text, param=where, code="invalid_value")


def _part(part: Object, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    match part.get("type"):
        case "text":
            if not isinstance(part.get("text"), str):
                yield missing("part-data", f"{where}.text")
        case "image_url":
            bare = isinstance(part.get("image_url"), str) and not server.strict
            if not bare and not _holds_string(part.get("image_url"), "url"):
                yield missing("part-data", f"{where}.image_url.url")
        case "input_audio":
            yield from _audio(part.get("input_audio"), f"{where}.input_audio", server)
        case "file":
            if not isinstance(part.get("file"), Mapping):
                yield missing("part-data", f"{where}.file")
        case str():
            return
        case _:
            yield missing("part-type", f"{where}.type")


def _audio(audio: object, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    if server.mistral and isinstance(audio, str):
        return
    if not isinstance(audio, Mapping) or not _holds_string(audio, "data"):
        yield missing("part-data", f"{where}.data")
        return
    sound = audio.get("format")
    if server.strict_or_openai and (sound not in ("wav", "mp3") or audio["data"].startswith("data:")):
        text = f"Invalid value: '{'' if sound is None else sound}'. Supported values are: 'wav' and 'mp3'."
        yield refusal("audio-format", text, param=f"{where}.format", code="invalid_value")


def _holds_string(value: object, name: str) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(name), str)


def _call(call: Object, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    if not isinstance(call.get("id"), str):
        yield missing("call-shape", f"{where}.id")
    elif not call["id"] and server.strict:
        text = f"Invalid '{where}.id': empty string. Expected a string with minimum length 1."
        yield refusal("call-name", text, param=f"{where}.id", code="empty_string")
    if call.get("type") in (None, "function"):
        yield from _called_function(call.get("function"), f"{where}.function", server)


def _called_function(function: Object | None, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    if function is None:
        yield missing("call-shape", where)
        return
    for name in ("name", "arguments"):
        if not isinstance(function.get(name), str):
            yield missing("call-shape", f"{where}.{name}")
    if server.strict and not NAME.fullmatch(function["name"]):
        text = f"Invalid '{where}.name': string does not match pattern."
        yield refusal("call-name", text, param=f"{where}.name", code="invalid_value")
    if server.strict and not _is_json_object(function["arguments"]):
        text = f"Invalid '{where}.arguments': expected a JSON object."
        yield refusal("call-arguments", text, param=f"{where}.arguments", code="invalid_value")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _duplicates(ids: Sequence[str], where: str) -> Iterator[OpenAIRefusal]:
    for identity, times in Counter(ids).items():
        if times > 1:
            yield refusal("duplicate-id", f"Duplicate tool_call_id: {identity}", param=where, code="invalid_value")


def _pairing(messages: Sequence[Object], server: ServerKind) -> Iterator[OpenAIRefusal]:
    """Match results with calls: walk the messages once and compare each run of results with the calls before it."""
    opener, called, answered = 0, list[str](), list[str]()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            identity = message.get("tool_call_id")
            if not isinstance(identity, str) or identity not in called:
                text = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                    " 'tool_calls'."
                )
                yield refusal("orphan-result", text, param=f"messages.[{index}].role")
            else:
                answered.append(identity)
            continue
        yield from _run(opener, called, answered, server)
        calls = (message.get("tool_calls") or ()) if message["role"] == "assistant" else ()
        opener, called, answered = index, [call["id"] for call in calls], []
    yield from _run(opener, called, answered, server)


def _run(opener: int, called: Sequence[str], answered: Sequence[str], server: ServerKind) -> Iterator[OpenAIRefusal]:
    open_ids = [identity for identity in dict.fromkeys(called) if identity not in answered]
    if open_ids:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
        )
        yield refusal("unanswered", text, param=f"messages.[{opener}].role")
    if server.strict:
        yield from _duplicates(answered, f"messages[{opener}].tool_calls")


def _tools(body: Object, server: ServerKind) -> Iterator[OpenAIRefusal]:
    tools = body.get("tools")
    declared: list[str] = []
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        where = f"tools[{index}].function"
        if not isinstance(tool, Mapping):
            yield missing("tool-shape", where)
        elif tool.get("type") == "function":
            yield from _declaration(tool.get("function"), where, server)
            declared.append(tool["function"]["name"])
    for name, times in Counter(declared).items():
        if server.strict and times > 1:
            text = f"Duplicate function declaration found: {name}"
            yield refusal("function-twice", text, param="tools", code="invalid_value")
    yield from refused_effort(body, server, has_functions=bool(declared))


def _declaration(function: object, where: str, server: ServerKind) -> Iterator[OpenAIRefusal]:
    if not isinstance(function, Mapping) or not _holds_string(function, "name"):
        yield missing("tool-shape", where)
        return
    if server.strict_or_openai and not NAME.fullmatch(function["name"]):
        pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        text = f"Invalid '{where}.name': string does not match pattern. {pattern}"
        yield refusal("function-name", text, param=f"{where}.name", code="invalid_value")


def signs(model: str) -> bool:
    """Tell whether *model* signs its calls: Gemini from 2.5 on."""
    return _version(model) >= (2, 5)


def demands(model: str) -> bool:
    """Tell whether *model* refuses unsigned calls of the current turn: Gemini from 3 on."""
    return _version(model) >= (3, 0)


def _version(model: str) -> tuple[int, int]:
    name = model.rpartition("/")[2]
    if not name.startswith("gemini-") or name == "gemini-pro":
        return (0, 0)
    found = GEMINI.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (3, 7)


def signature_on(call: Object) -> str | None:
    match call:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return signature or None
    return None


def signature_refusal(messages: Sequence[Object], model: str, signatures: Signatures) -> OpenAIRefusal | None:
    """Why *model* refuses the calls since the user's last message, or None."""
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    for index, message in enumerate(messages[last + 1 :], start=last + 1):
        calls = message.get("tool_calls")
        if not calls or message["role"] != "assistant":
            continue
        signature = signature_on(calls[0])
        if signature is None:
            name = (calls[0].get("function") or {}).get("name", "")
            return refusal("signature", missing_signature(name, _content_index(messages, index) + 1))
        if objection := signatures.objection(signature, model):
            return refusal("signature", objection)
    return None


def _content_index(messages: Sequence[Object], index: int) -> int:
    """Return the place of a message among Gemini's contents, which hold no instructions and join the results of
    a step.
    """
    roles = [message["role"] for message in messages[:index] if message["role"] not in ("system", "developer")]
    return sum(role != "tool" or before != "tool" for before, role in zip(["", *roles], roles, strict=False))
