"""Which sources a context is gathered from: functions from what can be read to a list of sources."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from palaver.config import Config
from palaver.context import sources
from palaver.context.budget import Budget
from palaver.context.media import AS_THEY_ARE
from palaver.context.reading import Log
from palaver.context.sources import Knowledge, Source
from palaver.context.window import Marks


class Inputs(Struct, frozen=True, kw_only=True):
    """What the sources of a run read, and how much of it they may take."""

    log: Log
    memory: Knowledge
    config: Config = Config()
    budget: Budget = Budget()


SourceList = Callable[[Inputs], Sequence[Source]]


def by_window(given: Inputs, *, as_they_are: Marks = AS_THEY_ARE) -> list[Source]:
    """The long history, what was said before it, and what is remembered."""
    budget = given.budget
    history = [
        sources.window(given.log, history_size=given.config.history_size, budget=budget, as_they_are=as_they_are),
        sources.past(given.memory, budget=budget),
    ]
    if not given.config.levels:
        return [*history, sources.memories(given.memory, budget=budget)]
    return [*history, *_recalled(given)]


def by_levels(given: Inputs, *, most: int = sources.IMMEDIATE + sources.RECENT) -> list[Source]:
    """At most *most* messages before the target and after it, and what is remembered.

    With `ENABLE_MULTI_LEVEL_CONTEXT=false` the long history is gathered instead.
    """
    if not given.config.levels:
        return by_window(given)
    size = given.config.history_size
    return [sources.levels(given.log, history_size=size, most=most, budget=given.budget), *_recalled(given)]


def in_block(given: Inputs, *, most: int) -> list[Source]:
    """As many messages as a context block shows, their media in words."""
    size = max(given.config.history_size, 4 * most)  # so that the low mark of the window is *most* too
    config = replace(given.config, history_size=size)
    return by_levels(replace(media_in_words(given), config=config), most=most)


def media_in_words(given: Inputs) -> Inputs:
    """The same inputs; no media of the history go as they are."""
    return replace(given, budget=replace(given.budget, media=0))


def _recalled(given: Inputs) -> list[Source]:
    memory, budget = given.memory, given.budget
    return [
        sources.relevant(memory, budget=budget),
        sources.background(memory, budget=budget),
        sources.episodic(memory, budget=budget),
    ]
