"""From a message to the prompt that answers it: which sources a profile draws on, and what it makes of them."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from palaver.config import Config
from palaver.context import sources
from palaver.context.budget import Budget
from palaver.context.gathering import gather
from palaver.context.media import AS_THEY_ARE, NEWEST
from palaver.context.reading import Log, with_current_quotes
from palaver.context.values import Context
from palaver.context.zones import zone_named
from palaver.conversation.describing import Describer
from palaver.conversation.duties import Duties
from palaver.conversation.selves import Selves
from palaver.conversation.since import Since
from palaver.errors import InvalidValue
from palaver.messages import Message, Place
from palaver.prompt.layers import batch_turns, spoken_style
from palaver.prompt.profiles import PROFILES
from palaver.prompt.profiles.block import block
from palaver.turns import Prompt, Settings, ToolSpec, Turn

log = logging.getLogger("palaver")

Profile = Callable[[Context], Prompt]

BY_LEVELS = frozenset({"native", "block"})


class Knowledge(sources.Search, sources.People, sources.Episodes, sources.Past, Protocol):
    """Whoever can tell all that is remembered."""


def profile_named(name: str, config: Config) -> Profile:
    """The profile of that name as it is configured; `native` with the context block switched on is `block`."""
    if name not in PROFILES:
        raise InvalidValue(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    if _is_block(name, config):
        return partial(block, max_messages=config.block.max_messages, include_meta=config.block.include_meta)
    return PROFILES[name]


def _is_block(name: str, config: Config) -> bool:
    return name == "block" or (name == "native" and config.block.enabled)


def sources_for(
    name: str, *, messages: Log, remembered: Knowledge, config: Config, budget: Budget | None = None
) -> list[sources.Source]:
    """What the profile of that name draws on, in order; the scene comes first and is the caller's."""
    size, most = config.history_size, sources.IMMEDIATE + sources.RECENT
    if is_block := _is_block(name, config):
        most = config.block.max_messages
        size = max(size, 4 * most)  # the low mark of the window too is all that the block may show
    if is_block or name == "headers":  # what was said before goes without its media
        budget = replace(budget or Budget(), media=0)
    marks = NEWEST if name == "layered" else AS_THEY_ARE
    long = sources.window(messages, history_size=size, budget=budget, as_they_are=marks)
    past = sources.past(remembered, budget=budget)
    if not config.levels:
        return [sources.plain(long), past, sources.memories(remembered, budget=budget)]
    levels = sources.levels(messages, history_size=size, most=most, budget=budget)
    return [
        *([levels] if name in BY_LEVELS else [long, past]),
        sources.relevant(remembered, budget=budget),
        sources.background(remembered, budget=budget),
        sources.episodic(remembered, budget=budget),
    ]


def prompt_for(
    context: Context,
    profile: Profile,
    *,
    tools: tuple[ToolSpec, ...] = (),
    settings: Settings | None = None,
) -> Prompt:
    """The prompt that a profile makes of a context."""
    prompt = replace(profile(context), tools=tools, settings=settings or Settings())
    if log.isEnabledFor(logging.DEBUG):
        _tell(prompt, levels=context.levels)
    return prompt


class Prompter:
    """What a model is shown of each place, under one profile."""

    def __init__(
        self,
        messages: Log,
        remembered: Knowledge,
        duties: Duties,
        selves: Selves,
        describer: Describer,
        *,
        profile: str | Profile,
        config: Config,
        zone: str,
        now: Callable[[], datetime],
        task_blocks: tuple[str, ...] = (),
    ) -> None:
        zone_named(zone)
        self.profile = profile if isinstance(profile, str) else ""  # its name, where it has one
        self._laid_out = profile_named(profile, config) if isinstance(profile, str) else profile
        self._messages = messages  # as they may be heard
        self._remembered = remembered
        self._duties = duties
        self._selves = selves
        self._describer = describer
        self._config = config
        self._zone = zone
        self._task_blocks = task_blocks
        self._now = now

    async def context(self, target: Message, batch: Sequence[Message], horizon: int) -> Context:
        """What the agent should know to answer *batch*, of which *target* is replied to.

        Of the place it is told as many messages as it had at the *horizon*.
        """
        messages = Since(self._messages, await self._duties.beginning(target.place), horizon)
        drawn = sources_for(self.profile, messages=messages, remembered=self._remembered, config=self._config)
        given = [await self._scene(target.place), *drawn, self._describer.described]
        return await gather(target, given, self._now(), batch=batch)

    def prompt(self, context: Context, tools: tuple[ToolSpec, ...], settings: Settings) -> Prompt:
        return prompt_for(context, self._laid_out, tools=tools, settings=settings)

    async def turns_of(self, messages: Sequence[Message]) -> tuple[Turn, ...]:
        """Messages of one place as a model sees them, at the end of what it has seen already, with what they quote."""
        quotes = partial(with_current_quotes, self._messages)
        scene = await self._scene(messages[0].place)
        given: list[sources.Source] = [scene, quotes, self._describer.described]
        context = await gather(messages[-1], given, self._now(), batch=messages)
        return batch_turns(context, spoken_style(context), (), quotes=True)

    async def _scene(self, place: Place) -> sources.Source:
        delimiter = await self._duties.delimiter(place)
        return sources.scene(
            persona=self._selves.persona_on(place.platform),
            account=self._selves.author_on(place.platform).id,
            zone=self._zone,
            delimiter=delimiter,
            task_blocks=self._task_blocks,
        )


def _tell(prompt: Prompt, *, levels: bool) -> None:
    history = sum(len(layer.turns) for layer in prompt.layers if layer.name == "buffered")
    sizes = {"history_length": history, "system_context_length": len(prompt.instruction)}
    used = "multi-level context" if levels else "the plain window"
    log.debug("Using %s for Gemini history_length=%d system_context_length=%d", used, *sizes.values(), extra=sizes)
