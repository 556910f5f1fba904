"""Usage of an OpenAI-compatible model: the prompt in segments, and the tokens as the server reports them. Pure."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from palaver.sim.errors import Wire
from palaver.sim.openai.settings import reasons
from palaver.sim.usage import PrefixCache, Segment, TokenUsage, text_tokens

MEDIA_TOKENS = 765
SMALLEST_PREFIX, INCREMENT = 1024, 128
TTL = {"in_memory": 600.0, "24h": 86_400.0}
REASONING = {"none": 0, "minimal": 16, "low": 32, "medium": 64, "high": 128, "xhigh": 256}


def token_limit(request: Wire) -> int | None:
    """Return the most tokens the answer may have, under the new name or the old."""
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    return limit if isinstance(limit, int) else None


def segments(request: Wire) -> Iterator[Segment]:
    """Yield the prompt in the order the model reads it: the tools, then message by message."""
    if tools := request.get("tools"):
        yield _text(tools)
    for message in request["messages"]:
        content = message.get("content")
        yield _text({name: value for name, value in message.items() if name != "content" and value is not None})
        for part in content if isinstance(content, list) else [content or ""]:
            is_media = isinstance(part, Mapping) and part["type"] != "text"
            yield (hashlib.sha256(orjson.dumps(part)).hexdigest(), MEDIA_TOKENS) if is_media else _text(part)


def _text(value: Any) -> Segment:
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
    output = sum(tokens for _, tokens in map(_text, spoken))
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
    thought = REASONING.get(str(request.get("reasoning_effort")), REASONING["medium"])
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
