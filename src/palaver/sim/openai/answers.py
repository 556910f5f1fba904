"""What a model says, and how it goes over the wire: as one response or as the chunks of a stream. Pure."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

Json = dict[str, Any]

FRAGMENT = 12  # characters of text or arguments in one chunk


class Answer(Struct, frozen=True, kw_only=True):
    """A message of the assistant's, and why it stopped."""

    message: Json
    finish_reason: str = "stop"


class Whole(Struct, frozen=True):
    """A response sent as it stands."""

    response: Json


class Chunks(Struct, frozen=True):
    """The chunks of a stream sent as they stand."""

    chunks: Sequence[Json]


class Envelope(Struct, frozen=True, kw_only=True):
    """What surrounds the answer on the wire."""

    id: str
    created: int
    model: str
    choices: int
    usage: Json
    streams_usage: bool


def calls_tools(*calls: tuple[str, str], content: str | None = None) -> Answer:
    """An answer that calls functions, each given by its name and its arguments as JSON."""
    tool_calls = [{"type": "function", "function": {"name": name, "arguments": text}} for name, text in calls]
    return Answer(message={"content": content, "tool_calls": tool_calls}, finish_reason="tool_calls")


def answer_of(message: Mapping[str, Any]) -> Answer:
    """The answer that a message alone stands for."""
    return Answer(message=dict(message), finish_reason="tool_calls" if message.get("tool_calls") else "stop")


def response_of(answer: Answer, envelope: Envelope) -> Json:
    silent: Json = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
    choice = {"message": silent | answer.message, "logprobs": None, "finish_reason": answer.finish_reason}
    return {
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [{"index": index} | copy.deepcopy(choice) for index in range(envelope.choices)],
        "usage": envelope.usage,
        "service_tier": "default",
        "system_fingerprint": "fp_palaver",
    }


def chunks_of(answer: Answer, envelope: Envelope) -> Iterator[Json]:
    """The chunks of a stream: the role, the fragments, the reason to stop and, if asked for, the usage."""
    for index in range(envelope.choices):
        for delta in _deltas(answer.message):
            yield _chunk(envelope, index, delta, None)
        yield _chunk(envelope, index, {}, answer.finish_reason)
    if envelope.streams_usage:
        yield _frame(envelope) | {"choices": [], "usage": envelope.usage}


def _frame(envelope: Envelope) -> Json:
    return {
        "id": envelope.id,
        "object": "chat.completion.chunk",
        "created": envelope.created,
        "model": envelope.model,
        "service_tier": "default",
        "system_fingerprint": "fp_palaver",
    }


def _chunk(envelope: Envelope, index: int, delta: Json, finish_reason: str | None) -> Json:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    usage = {"usage": None} if envelope.streams_usage else {}
    return _frame(envelope) | {"choices": [choice]} | usage


def _deltas(message: Json) -> Iterator[Json]:
    content, calls = message.get("content"), message.get("tool_calls") or ()
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}
    for fragment in _fragments(content or ""):
        yield {"content": fragment}
    for fragment in _fragments(message.get("refusal") or ""):
        yield {"refusal": fragment}
    for index, call in enumerate(calls):
        yield from _call_deltas(index, call)


def _call_deltas(index: int, call: Json) -> Iterator[Json]:
    opening = {"index": index} | call | {"function": call["function"] | {"arguments": ""}}
    yield {"tool_calls": [opening]}
    for fragment in _fragments(call["function"]["arguments"]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}


def _fragments(text: str) -> Iterator[str]:
    for start in range(0, len(text), FRAGMENT):
        yield text[start : start + FRAGMENT]


def answer_in(response: Mapping[str, Any]) -> Answer:
    """The first choice of a whole response."""
    choice: Json = next(iter(response["choices"]), {})
    return Answer(message=dict(choice.get("message") or {}), finish_reason=choice.get("finish_reason") or "stop")


def folded(chunks: Sequence[Json]) -> Answer:
    """The answer that the chunks of a stream add up to."""
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    finish_reason = "stop"
    for choice in (choice for chunk in chunks for choice in chunk.get("choices", ()) if choice.get("index", 0) == 0):
        delta = choice.get("delta") or {}
        for name in ("content", "refusal"):
            if delta.get(name) is not None:
                message[name] = (message.get(name) or "") + delta[name]
        for piece in delta.get("tool_calls") or ():
            _fold_call(calls, piece)
        finish_reason = choice.get("finish_reason") or finish_reason
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return Answer(message=message, finish_reason=finish_reason)


def _fold_call(calls: dict[int, Json], piece: Json) -> None:
    call = calls.setdefault(piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
    function = piece.get("function") or {}
    call.update({name: value for name, value in piece.items() if name not in ("index", "function")})
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
