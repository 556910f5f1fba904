"""The kinds of server that read a chat request, and the settings that each refuses. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from tertulia.sim.openai.errors import OpenAIRefusal, refusal

Object = Mapping[str, Any]

_OPENAI_PARAMETERS = """
audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
"""
PARAMETERS = frozenset(_OPENAI_PARAMETERS.split())
OPENAI = re.compile(r"(?!gpt-oss)gpt-|chatgpt-|codex-|computer-use-|o[0-9]")
SEARCHES = re.compile(r"gpt-4o-(?:mini-)?search")
SAMPLES = re.compile(r"gpt-5-chat|gpt-3\.5|gpt-4|gpt-audio|chatgpt-4o")
SAMPLES_SOMETIMES = re.compile(r"gpt-5\.[123]")


class ServerKind(Struct, frozen=True, kw_only=True):
    """The model that reads a request: OpenAI's, Mistral's or another, judged strictly or not."""

    model: str
    openai: bool
    mistral: bool
    strict: bool
    extra_parts: frozenset[str]  # part types this server takes from users beyond OpenAI's own

    @property
    def strict_or_openai(self) -> bool:
        """Tell whether the rules hold that OpenAI always enforces and others only sometimes."""
        return self.openai or self.strict


def reasons(model: str) -> bool:
    """Tell whether a model thinks before it answers: Gemini, and OpenAI's own but for the older ones."""
    return model.startswith("gemini-") or bool(OPENAI.match(model) and not SAMPLES.match(model))


def refused_settings(body: Object, server: ServerKind) -> Iterator[OpenAIRefusal]:
    """Find unknown parameters, temperatures out of range, and settings that the model does not support."""
    for name, value in body.items():
        if server.openai and value is not None and name not in PARAMETERS:
            yield refusal("unknown-parameter", f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    temperature = body.get("temperature")
    if server.strict_or_openai and isinstance(temperature, int | float):
        yield from _temperature(temperature)
    if server.openai:
        yield from _unsupported(body, server)


def _unsupported(body: Object, server: ServerKind) -> Iterator[OpenAIRefusal]:
    """Find settings that only reasoning models support, or only the others."""
    searches, samples = SEARCHES.match(server.model), SAMPLES.match(server.model)
    takes_them = SAMPLES_SOMETIMES.match(server.model) and not server.strict
    if (searches or not samples) and not takes_them:
        value = body.get("temperature")
        if value not in (None, 1):
            text = (
                f"Unsupported value: 'temperature' does not support {value} with this model."
                " Only the default (1) value is supported."
            )
            yield refusal("unsupported", text, param="temperature", code="unsupported_value")
        if body.get("top_p") not in (None, 1):
            yield _unsupported_parameter("top_p")
        if body.get("stop") is not None:
            yield _unsupported_parameter("stop")
    if (searches or samples) and body.get("reasoning_effort") is not None:
        yield _unsupported_parameter("reasoning_effort")


def _unsupported_parameter(name: str) -> OpenAIRefusal:
    text = f"Unsupported parameter: '{name}' is not supported with this model."
    return refusal("unsupported", text, param=name, code="unsupported_parameter")


def _temperature(value: float) -> Iterator[OpenAIRefusal]:
    if value > 2:
        text = f"decimal above maximum value. Expected a value <= 2, but got {value} instead."
        code = "decimal_above_max_value"
    elif value < 0:
        text = f"decimal below minimum value. Expected a value >= 0, but got {value} instead."
        code = "decimal_below_min_value"
    else:
        return
    yield refusal("temperature", f"Invalid 'temperature': {text}", param="temperature", code=code)


def refused_effort(body: Object, server: ServerKind, *, has_functions: bool) -> Iterator[OpenAIRefusal]:
    """Find a reasoning effort beside tools, for the models that refuse the two together."""
    effort = body.get("reasoning_effort")
    if server.openai and server.model.startswith("gpt-5.6") and has_functions and effort not in (None, "none"):
        text = "Function tools are not supported with reasoning_effort other than none on this endpoint."
        yield refusal("reasoning-with-tools", text, param="reasoning_effort", code="unsupported_value")
