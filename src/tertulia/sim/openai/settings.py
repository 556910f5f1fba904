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
_EFFORTS = (  # of the first pattern that an id begins with: its efforts, the one without any given, those beside tools
    (r"gpt-5-chat|gpt-[1-4](?!\d)|gpt-audio|chatgpt-", "", "", ""),
    (r"gpt-[\d.]+-chat", "medium", "medium", "medium"),
    (r"gpt-6-astra|gpt-6\.1-sol", "low medium high xhigh", "medium", ""),
    (r"gpt-5\.4(?!\d)", "none low medium high xhigh", "none", "none"),
    (r"gpt-5\.[23](?!\d)", "none low medium high xhigh", "none", "none low medium high xhigh"),
    (r"gpt-5\.1(?!\d)", "none low medium high", "none", "none low medium high"),
    (r"gpt-5(?![.\d])", "minimal low medium high", "medium", "minimal low medium high"),
    (r"gpt-", "none low medium high xhigh", "medium", "none"),
    (r"", "low medium high", "medium", "low medium high"),
)


class ServerKind(Struct, frozen=True, kw_only=True):
    """The model that reads a request: OpenAI's, Mistral's or another, judged strictly or not."""

    model: str
    openai: bool
    mistral: bool
    strict: bool
    user_parts: frozenset[str]  # part types that this server takes from users

    @property
    def strict_or_openai(self) -> bool:
        """Tell whether the rules hold that OpenAI always enforces and others only sometimes."""
        return self.openai or self.strict


class Efforts(Struct, frozen=True):
    """The reasoning efforts of one of OpenAI's models; none at all if it does not reason."""

    taken: tuple[str, ...]
    usual: str
    beside_tools: tuple[str, ...]


def efforts_of(model: str) -> Efforts:
    for pattern, taken, usual, beside_tools in _EFFORTS:
        if re.match(pattern, model):
            return Efforts(tuple(taken.split()), usual, tuple(beside_tools.split()))
    raise AssertionError  # the last pattern fits any id


def reasons(model: str) -> bool:
    """Tell whether a model thinks before it answers: Gemini, and OpenAI's own but for the older ones."""
    return model.startswith("gemini-") or bool(OPENAI.match(model) and efforts_of(model).taken)


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
    """Find settings that a model takes only while it does not reason, or never, and efforts that it does not know."""
    searches, known, effort = SEARCHES.match(server.model), efforts_of(server.model), body.get("reasoning_effort")
    if effort is not None and not known.taken:
        yield _unsupported_parameter("reasoning_effort")
    elif effort is not None and effort not in known.taken:
        yield _unsupported_effort(effort, known.taken)
    thinks = bool(known.taken) and (effort or known.usual) != "none"
    if searches or thinks:
        value = body.get("temperature")
        if value not in (None, 1):
            text = (
                f"Unsupported value: 'temperature' does not support {value} with this model."
                " Only the default (1) value is supported."
            )
            yield refusal("unsupported", text, param="temperature", code="unsupported_value")
        if body.get("top_p") not in (None, 1):
            yield _unsupported_parameter("top_p")
    takes_stop = server.model.startswith("o3-mini") or not (searches or thinks or (known.taken and server.strict))
    if body.get("stop") is not None and not takes_stop:
        yield _unsupported_parameter("stop")


def _unsupported_effort(effort: object, taken: tuple[str, ...]) -> OpenAIRefusal:
    quoted = [f"'{one}'" for one in taken]
    if len(quoted) > 1:
        quoted[-1] = f"and {quoted[-1]}"
    text = (
        f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
        f" Supported values are: {', '.join(quoted)}."
    )
    return refusal("unsupported", text, param="reasoning_effort", code="unsupported_value")


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
    """Find function tools beside an effort with which the model takes none."""
    known = efforts_of(server.model)
    if not (server.openai and has_functions and known.taken):
        return
    if (body.get("reasoning_effort") or known.usual) not in known.beside_tools:
        text = (
            f"Function tools with reasoning_effort are not supported for {server.model} in /v1/chat/completions."
            " To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
        yield refusal("reasoning-with-tools", text, param="reasoning_effort")
