"""From a message to the prompt that answers it: which sources a profile draws on, and what it makes of them."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from palaver.config import Config
from palaver.context import sources
from palaver.context.budget import Budget
from palaver.context.reading import Log
from palaver.context.values import Context
from palaver.errors import InvalidValue
from palaver.prompt.profiles import PROFILES
from palaver.prompt.profiles.block import block
from palaver.turns import Prompt, Settings, ToolSpec

log = logging.getLogger("palaver")

BY_LEVELS = frozenset({"native", "block"})


class Knowledge(sources.Search, sources.People, sources.Episodes, sources.Past, Protocol):
    """Whoever can tell all that is remembered."""


def profile_named(name: str, config: Config) -> Callable[[Context], Prompt]:
    """The profile of that name as it is configured; `native` with the context block switched on is `block`."""
    if name not in PROFILES:
        raise InvalidValue(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    if name == "block" or (name == "native" and config.block.enabled):
        return partial(block, max_messages=config.block.max_messages, include_meta=config.block.include_meta)
    return PROFILES[name]


def sources_for(
    name: str, *, messages: Log, remembered: Knowledge, config: Config, budget: Budget | None = None
) -> list[sources.Source]:
    """What the profile of that name draws on, in order; the scene comes first and is the caller's."""
    long = sources.window(messages, history_size=config.history_size, budget=budget)
    past = sources.past(remembered, budget=budget)
    if not config.levels:
        return [sources.plain(long), past, sources.memories(remembered, budget=budget)]
    levels = sources.levels(messages, history_size=config.history_size, budget=budget)
    return [
        *([levels] if name in BY_LEVELS else [long, past]),
        sources.relevant(remembered, budget=budget),
        sources.background(remembered, budget=budget),
        sources.episodic(remembered, budget=budget),
    ]


def prompt_for(
    context: Context,
    profile: Callable[[Context], Prompt],
    *,
    tools: tuple[ToolSpec, ...] = (),
    settings: Settings | None = None,
) -> Prompt:
    """The prompt that a profile makes of a context."""
    prompt = replace(profile(context), tools=tools, settings=settings or Settings())
    if log.isEnabledFor(logging.DEBUG):
        _tell(prompt, levels=context.levels)
    return prompt


def _tell(prompt: Prompt, *, levels: bool) -> None:
    history = sum(len(layer.turns) for layer in prompt.layers if layer.name == "buffered")
    sizes = {"history_length": history, "system_context_length": len(prompt.instruction)}
    used = "multi-level context" if levels else "the plain window"
    log.debug("Using %s for Gemini history_length=%d system_context_length=%d", used, *sizes.values(), extra=sizes)
