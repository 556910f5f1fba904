"""Answers of an OpenAI-compatible server on the wire: completions whole or in chunks, usage, and embeddings. Pure."""

import base64
import copy
import hashlib
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from tertulia.sim.behaviours import Answer, Ask, Function, FunctionResult, Output, Raw, embed
from tertulia.sim.errors import Wire
from tertulia.sim.faults import ContentFilter, Empty, MalformedCall, MaxTokens, ModelRefusal
from tertulia.sim.openai.settings import OPENAI, efforts_of, reasons
from tertulia.sim.usage import PrefixCache, Segment, TokenUsage, first_tokens, text_tokens, until_stop

UselessAnswer = Empty | MaxTokens | ContentFilter | MalformedCall | ModelRefusal

FRAGMENT = 12  # characters of text or arguments in one chunk
MEDIA_TOKENS = 765
SMALLEST_PREFIX, INCREMENT = 1024, 128
TTL = {"in_memory": 600.0, "24h": 86_400.0}
REASONING = {"none": 0, "minimal": 16, "low": 32, "medium": 64, "high": 128, "xhigh": 256}
DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
}
OTHERS_DIMENSIONS = 1024


def ask_of(request: Wire) -> Ask:
    """Return the request as a behaviour sees it."""
    messages = request["messages"]
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1)
    turn = messages[last + 1 :]
    called = {
        call["id"]: str((call.get("function") or {}).get("name", ""))
        for message in turn
        for call in message.get("tool_calls") or ()
    }
    results = [message for message in turn if message["role"] == "tool"]
    functions, must_call = _callable_functions(request)
    choice = request.get("tool_choice")
    names_one = isinstance(choice, Mapping) and choice.get("type") == "function"
    output, schema = _output(request)
    return Ask(
        model=request["model"],
        request=request,
        last_text=_text(messages[last]) if last >= 0 else "",
        functions=[
            Function(name=one["name"], description=str(one.get("description", "")), schema=one.get("parameters"))
            for one in functions
        ],
        must_call=must_call,
        may_call_many=request.get("parallel_tool_calls") is not False and not names_one,
        steps=sum(bool(message.get("tool_calls")) for message in turn),
        results=[FunctionResult(name=called[message["tool_call_id"]], text=_text(message)) for message in results],
        output=output,
        schema=schema,
    )


def _output(request: Wire) -> tuple[Output, Any]:
    match request.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return "json", schema
        case {"type": "json_object"}:
            return "json", None
        case _:
            return "text", None


def _text(message: Wire) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")


def _declared_functions(request: Wire) -> list[Wire]:
    tools = request.get("tools")
    return [tool["function"] for tool in (tools if isinstance(tools, list) else []) if tool.get("type") == "function"]


def _callable_functions(request: Wire) -> tuple[list[Wire], bool]:
    """Return the functions that the model may call now, and whether it must call one."""
    functions = _declared_functions(request)
    match request.get("tool_choice"):
        case "none":
            return [], False
        case "required":
            return functions, True
        case {"type": "function", "function": {"name": name}}:
            return [one for one in functions if one["name"] == name], True
        case {"type": "allowed_tools", "allowed_tools": {"tools": allowed, **rest}}:
            names = [tool["function"]["name"] for tool in allowed if "function" in tool]
            return [one for one in functions if one["name"] in names], rest.get("mode") == "required"
        case _:
            return functions, False


class Completion(Struct, frozen=True, kw_only=True):
    """A message of the assistant, and why it stopped; *whole* or *chunks* is sent as it stands instead."""

    message: Wire
    finish_reason: str = "stop"
    whole: Wire | None = None
    chunks: Sequence[Wire] | None = None


def completion_of(answer: Answer | Raw, request: Wire) -> Completion:
    """Return the completion of *answer*: its text ends at the stop sequences and the token limit of the request."""
    match answer:
        case Raw(list(chunks)):
            return _joined(chunks)
        case Raw({"choices": choices} as response):
            choice: Wire = next(iter(choices), {})
            reason = choice.get("finish_reason") or "stop"
            return Completion(message=dict(choice.get("message") or {}), finish_reason=reason, whole=response)
        case Raw(message):
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            return Completion(message=dict(message), finish_reason=reason)
    if answer.calls:
        calls = [(call.name, orjson.dumps(call.args).decode()) for call in answer.calls]
        return _calling(*calls, content=answer.text or None)
    stops, limit = request.get("stop"), token_limit(request)
    text = until_stop(answer.text, stops if isinstance(stops, list) else [stops])
    within = text if limit is None else first_tokens(text, limit)
    return Completion(message={"content": within}, finish_reason="stop" if within == text else "length")


def _calling(*calls: tuple[str, str], content: str | None = None) -> Completion:
    tool_calls = [{"type": "function", "function": {"name": name, "arguments": text}} for name, text in calls]
    return Completion(message={"content": content, "tool_calls": tool_calls}, finish_reason="tool_calls")


def useless_completion(fault: UselessAnswer, request: Wire) -> Completion:
    """Return the completion that *fault* stands for."""
    match fault:
        case Empty(content):
            return Completion(message={"content": content})
        case ContentFilter():
            return Completion(message={"content": None}, finish_reason="content_filter")
        case MaxTokens():
            return Completion(message={"content": ""}, finish_reason="length")
        case ModelRefusal(text):
            return Completion(message={"content": None, "refusal": text})
        case MalformedCall(arguments):
            functions = _declared_functions(request)
            return _calling((functions[0]["name"] if functions else "search", arguments))


class Envelope(Struct, frozen=True, kw_only=True):
    """The fields around a completion."""

    id: str
    created: int
    model: str
    choices: int
    usage: Wire
    streams_usage: bool


def response_of(completion: Completion, envelope: Envelope) -> Wire:
    blank: Wire = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
    choice = {"message": blank | completion.message, "logprobs": None, "finish_reason": completion.finish_reason}
    return {
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [{"index": index} | copy.deepcopy(choice) for index in range(envelope.choices)],
        "usage": envelope.usage,
        "service_tier": "default",
        "system_fingerprint": "fp_tertulia",
    }


def chunks_of(completion: Completion, envelope: Envelope) -> Iterator[Wire]:
    """Yield the chunks of a stream: the role, the fragments, the reason to stop and, if asked for, the usage."""
    frame = {
        "id": envelope.id,
        "object": "chat.completion.chunk",
        "created": envelope.created,
        "model": envelope.model,
        "service_tier": "default",
        "system_fingerprint": "fp_tertulia",
    }
    no_usage: Wire = {"usage": None} if envelope.streams_usage else {}
    for index in range(envelope.choices):
        deltas = [(delta, None) for delta in _deltas(completion.message)]
        for delta, reason in [*deltas, ({}, completion.finish_reason)]:
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
            yield frame | {"choices": [choice]} | no_usage
    if envelope.streams_usage:
        yield frame | {"choices": [], "usage": envelope.usage}


def _deltas(message: Wire) -> Iterator[Wire]:
    content = message.get("content")
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}
    for name in ("content", "refusal"):
        for fragment in _fragments(message.get(name) or ""):
            yield {name: fragment}
    for index, call in enumerate(message.get("tool_calls") or ()):
        opening = {"index": index} | call | {"function": call["function"] | {"arguments": ""}}
        yield {"tool_calls": [opening]}
        for fragment in _fragments(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}


def _fragments(text: str) -> list[str]:
    return [text[start : start + FRAGMENT] for start in range(0, len(text), FRAGMENT)]


def _joined(chunks: Sequence[Wire]) -> Completion:
    """Return the completion that the chunks of a stream add up to."""
    message: Wire = {"role": "assistant", "content": None}
    calls: dict[int, Wire] = {}
    finish_reason = "stop"
    for choice in (choice for chunk in chunks for choice in chunk.get("choices", ()) if choice.get("index", 0) == 0):
        delta = choice.get("delta") or {}
        for name in ("content", "refusal"):
            if delta.get(name) is not None:
                message[name] = (message.get(name) or "") + delta[name]
        for piece in delta.get("tool_calls") or ():
            call = calls.setdefault(piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
            function = piece.get("function") or {}
            call.update({name: value for name, value in piece.items() if name not in ("index", "function")})
            call["function"]["name"] += function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
        finish_reason = choice.get("finish_reason") or finish_reason
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return Completion(message=message, finish_reason=finish_reason, chunks=chunks)


def token_limit(request: Wire) -> int | None:
    """Return the most tokens the answer may have, under the new name or the old."""
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    return limit if isinstance(limit, int) else None


def segments(request: Wire) -> Iterator[Segment]:
    """Yield the prompt in the order the model reads it: the tools, then message by message."""
    if tools := request.get("tools"):
        yield _segment(tools)
    for message in request["messages"]:
        content = message.get("content")
        yield _segment({name: value for name, value in message.items() if name != "content" and value is not None})
        for part in content if isinstance(content, list) else [content or ""]:
            is_media = isinstance(part, Mapping) and part["type"] != "text"
            yield (hashlib.sha256(orjson.dumps(part)).hexdigest(), MEDIA_TOKENS) if is_media else _segment(part)


def _segment(value: Any) -> Segment:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text, text_tokens(text)


def usage_of(request: Wire, message: Wire, cache: PrefixCache) -> TokenUsage:
    """Return the tokens of an exchange; the prompt is cached from now on."""
    prompt = list(segments(request))
    route = (request["model"], str(request.get("prompt_cache_key") or ""))
    ttl = TTL.get(str(request.get("prompt_cache_retention")), TTL["in_memory"])
    shared = cache.cached_tokens(route, prompt, ttl=ttl)
    spoken = [message.get("content") or "", message.get("refusal") or ""]
    spoken += [call.get("function", call) for call in message.get("tool_calls") or ()]
    output = sum(tokens for _, tokens in map(_segment, spoken))
    return TokenUsage(
        prompt=Counter(TEXT=sum(tokens for _, tokens in prompt)),
        cached=shared - shared % INCREMENT if shared >= SMALLEST_PREFIX else 0,
        output=output,
        thoughts=_reasoning_tokens(request, output),
    )


def _reasoning_tokens(request: Wire, output: int) -> int:
    """Return the tokens a model thinks before it speaks, within the limit that counts both."""
    if not reasons(request["model"].rpartition("/")[2]):
        return 0
    usual = efforts_of(request["model"]).usual if OPENAI.match(request["model"]) else "medium"
    thought = REASONING.get(str(request.get("reasoning_effort") or usual), REASONING["medium"])
    limit = token_limit(request)
    return thought if limit is None else max(0, min(thought, limit - output))


def reported(usage: TokenUsage) -> Wire:
    """Return the usage as the server reports it."""
    return {
        "prompt_tokens": usage.prompt_total,
        "completion_tokens": usage.output + usage.thoughts,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.thoughts,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def texts_in(given: object) -> list[str] | None:
    """Return the texts of an `input`: a text, tokens, or a list of either. None if it is neither."""
    if isinstance(given, str):
        return [given] if given else None
    if not isinstance(given, list) or not given:
        return None
    if all(isinstance(item, int) for item in given):
        return [_tokens_as_text(given)]
    if all(isinstance(item, str) and item for item in given):
        return list(given)
    if all(isinstance(item, list) and item for item in given):
        return [_tokens_as_text(item) for item in given]
    return None


def _tokens_as_text(tokens: list[int]) -> str:
    return " ".join(map(str, tokens))


def embeddings_of(request: Mapping[str, Any], texts: list[str]) -> Wire:
    model = request["model"]
    asked = request.get("dimensions")
    dimensions = asked if isinstance(asked, int) and asked > 0 else DIMENSIONS.get(model, OTHERS_DIMENSIONS)
    vectors = [embed(text, dimensions=dimensions) for text in texts]
    encoded: list[Any] = vectors
    if request.get("encoding_format") == "base64":
        encoded = [base64.b64encode(struct.pack(f"<{len(each)}f", *each)).decode() for each in vectors]
    tokens = sum(map(text_tokens, texts))
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(encoded)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
