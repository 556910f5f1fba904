"""What a request costs: tokens counted by length, and the part of the prompt that was seen before."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson
from msgspec import Struct

from palaver.sim.openai.settings import reasons

Json = dict[str, Any]

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 765
SMALLEST_PREFIX, INCREMENT = 1024, 128
IDLE = {"in_memory": timedelta(minutes=10), "24h": timedelta(hours=24)}
REASONING = {"none": 0, "minimal": 16, "low": 32, "medium": 64, "high": 128, "xhigh": 256}
REMEMBERED = 256  # prompts


class Piece(Struct, frozen=True):
    """A stretch of the prompt: text that counts by its length, or a medium with a fixed count."""

    text: str
    tokens: int


class _Prompt(Struct, frozen=True):
    routing: tuple[str, str]
    pieces: tuple[Piece, ...]
    good_until: datetime


def token_limit(request: Mapping[str, Any]) -> int | None:
    """The most tokens the answer may have, under the new name or the old."""
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    return limit if isinstance(limit, int) else None


def tokens_in(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def prompt_pieces(request: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The prompt as the model reads it: the tools first, then message by message."""
    return tuple(_pieces(request))


def _pieces(request: Mapping[str, Any]) -> Iterator[Piece]:
    if tools := request.get("tools"):
        yield _text(tools)
    for message in request["messages"]:
        content = message.get("content")
        yield _text({name: value for name, value in message.items() if name != "content" and value is not None})
        for part in content if isinstance(content, list) else [content or ""]:
            yield _media(part) if isinstance(part, Mapping) and part["type"] != "text" else _text(part)


def _text(value: Any) -> Piece:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return Piece(text, tokens_in(text))


def _media(part: Any) -> Piece:
    return Piece(hashlib.sha256(orjson.dumps(part)).hexdigest(), MEDIA_TOKENS)


def shared_tokens(one: Sequence[Piece], other: Sequence[Piece]) -> int:
    """The tokens at the front that two prompts have in common."""
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            return shared + _shared_characters(left.text, right.text) // CHARACTERS_PER_TOKEN
        shared += left.tokens
    return shared


def _shared_characters(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


class PrefixCache:
    """The prompts of late, kept by model and cache key; a long enough common front is a hit."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._prompts: list[_Prompt] = []

    def cached_tokens(self, request: Mapping[str, Any]) -> int:
        """How many tokens of this prompt were seen before; it is itself seen from now on."""
        now = self._clock()
        routing = (request["model"], str(request.get("prompt_cache_key") or ""))
        pieces = prompt_pieces(request)
        known = [prompt.pieces for prompt in self._prompts if prompt.routing == routing and prompt.good_until > now]
        shared = max((shared_tokens(pieces, other) for other in known), default=0)
        kept = IDLE.get(str(request.get("prompt_cache_retention")), IDLE["in_memory"])
        self._prompts = [*self._prompts[-REMEMBERED:], _Prompt(routing, pieces, now + kept)]
        return shared - shared % INCREMENT if shared >= SMALLEST_PREFIX else 0


def usage_of(request: Mapping[str, Any], message: Json, *, cached: int) -> Json:
    prompt = sum(piece.tokens for piece in prompt_pieces(request))
    said = tokens_in(message.get("content") or "") + tokens_in(message.get("refusal") or "")
    said += sum(_text(call.get("function", call)).tokens for call in message.get("tool_calls") or ())
    reasoning = reasoning_tokens(request, said)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said + reasoning,
        "total_tokens": prompt + said + reasoning,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def reasoning_tokens(request: Mapping[str, Any], said: int) -> int:
    """The tokens thought before speaking, by models that think, within the limit that counts both."""
    if not reasons(request["model"].rpartition("/")[2]):
        return 0
    thought = REASONING.get(str(request.get("reasoning_effort")), REASONING["medium"])
    limit = token_limit(request)
    return thought if limit is None else max(0, min(thought, limit - said))
