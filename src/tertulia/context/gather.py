"""`gather`: the context of a message from a list of sources; the lists of sources that profiles use, their inputs."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from inspect import isawaitable
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tertulia.context import sources
from tertulia.context.budget import Budget
from tertulia.context.log import Log
from tertulia.context.media_budget import KnownFiles
from tertulia.context.repeated_media import show_media_once
from tertulia.context.selection import IMMEDIATE
from tertulia.context.sources import AnySource, Knowledge, Source, Volatile, drop_repeated_hits
from tertulia.context.stable_prefix import BufferMarks
from tertulia.context.values import AvailableSticker, Background, Context, RecalledEpisode, RelevantMessage
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place


class ContextBlock(Struct, frozen=True, kw_only=True):
    """The system context block of the `block` profile."""

    enabled: bool = False  # whether `native` has the block too
    max_messages: Annotated[int, Meta(ge=10, le=200)] = 60
    include_meta: bool = True


class ContextOptions(Struct, frozen=True, kw_only=True):
    """What goes into the context of a run, and how much of it."""

    history_size: Annotated[int, Meta(ge=0, le=100_000)] = 500  # messages at most; 0: none
    levels: bool = True  # recent messages (`native`, `block`) in levels, memory in sections; else window, list
    block: ContextBlock = ContextBlock()
    budget: Budget = Budget()
    stickers: tuple[AvailableSticker, ...] = ()  # that the model is told of, each with its set, name and description
    sources: tuple[AnySource, ...] = ()  # further ones, after those of the profile


class SourceInputs(Struct, frozen=True, kw_only=True):
    """The inputs of the sources of a run."""

    log: Log
    memory: Knowledge
    options: ContextOptions = ContextOptions()
    media: bool = True  # whether media of the history are sent themselves, beside those of the batch
    files: KnownFiles | None = None  # that are stored

    @property
    def budget(self) -> Budget:
        return self.options.budget


class InMemoryKnowledge:
    """Memory with fixed contents, the same for every target."""

    def __init__(
        self,
        *,
        hits: Iterable[RelevantMessage] = (),
        background: Background | None = None,
        episodes: Iterable[RecalledEpisode] = (),
        past: str = "",
    ) -> None:
        self._hits = tuple(hits)
        self._background = background or Background()
        self._episodes = tuple(episodes)
        self._past = past

    async def relevant(self, _: Message) -> Sequence[RelevantMessage]:
        return self._hits

    async def background(self, _: Message) -> Background:
        return self._background

    async def episodes(self, _: Message) -> Sequence[RecalledEpisode]:
        return self._episodes

    async def past(self, _: Place, __: int) -> str:
        return self._past


SourceList = Callable[[SourceInputs], Sequence[Source]]


def window_sources(given: SourceInputs, *, buffer: BufferMarks | None = None) -> list[Source]:
    """Return the sources of a long history: the window, what was said before it, and memory."""
    budget = given.budget
    history = [
        sources.window(
            given.log,
            history_size=given.options.history_size,
            budget=budget,
            media=given.media,
            buffer=buffer,
            files=given.files,
        ),
        sources.past(given.memory, budget=budget),
    ]
    if not given.options.levels:
        return [*history, sources.memories(given.memory, budget=budget)]
    return [*history, *_memory_sources(given)]


def level_sources(given: SourceInputs, *, most: int = IMMEDIATE + sources.RECENT) -> list[Source]:
    """Return the sources of levels: at most *most* messages before the target and after it, and memory.

    With `ENABLE_MULTI_LEVEL_CONTEXT=false` they are those of a long history.
    """
    if not given.options.levels:
        return window_sources(given)
    size, budget = given.options.history_size, given.budget
    history = sources.levels(
        given.log, history_size=size, most=most, budget=budget, media=given.media, files=given.files
    )
    return [history, *_memory_sources(given)]


def block_sources(given: SourceInputs, *, most: int) -> list[Source]:
    """Return the sources of a context block: as many messages as it shows, their media in words."""
    size = max(given.options.history_size, 4 * most)  # so that the low mark of the window is *most* too
    options = replace(given.options, history_size=size)
    return level_sources(replace(given, options=options, media=False), most=most)


def worded_sources(given: SourceInputs) -> list[Source]:
    """Return the sources of a long history whose media are words."""
    return window_sources(replace(given, media=False))


def _memory_sources(given: SourceInputs) -> list[Source]:
    memory, budget = given.memory, given.budget
    return [
        sources.relevant(memory, budget=budget),
        sources.background(memory, budget=budget),
        sources.episodic(memory, budget=budget),
    ]


async def gather(
    message: Message, sources: Iterable[AnySource], now: datetime, *, batch: Sequence[Message] = ()
) -> Context:
    """Return the context of *message*, in which the same media go once: each source in turn adds what it knows.

    *batch* is all messages that are answered together, in the order they were sent; *message* is one of them.
    """
    return show_media_once(await collect(message, sources, now, batch=batch))


async def collect(
    message: Message, sources: Iterable[AnySource], now: datetime, *, batch: Sequence[Message] = ()
) -> Context:
    """Return the context of *message* with all its media: each source in turn adds what it knows.

    *batch* is all messages that are answered together, in the order they were sent; *message* is one of them.
    """
    if now.tzinfo is None:
        raise InvalidValue("now is a time without a zone; give an aware one")
    taken = tuple(map(_without_deleted, batch or (message,)))
    at = next((index for index, one in enumerate(taken) if one.id == message.id), None)
    if at is None:
        raise InvalidValue(f"the batch does not hold message {message.id!r}, which is to be answered")
    target = _without_deleted(message)
    context = Context(target=target, earlier=taken[:at], later=taken[at + 1 :], now=now, place=message.place)
    return drop_repeated_hits(await _add_each(sources, context))


def _without_deleted(message: Message) -> Message:
    """Return the message; of a deleted one only that it was there."""
    return replace(message, parts=(), reply_to=None, forwarded_from=None) if message.deleted else message


class Gathered(Struct, frozen=True, kw_only=True):
    """The context of a run, and the volatile sources that complete it before each step."""

    context: Context  # without them
    volatile: tuple[AnySource, ...] = ()

    async def latest(self, now: datetime) -> Context:
        """Return the context with what the volatile sources know *now*."""
        if not self.volatile:
            return self.context
        return drop_repeated_hits(await _add_each(self.volatile, replace(self.context, now=now)))


def split_volatile(sources: Iterable[AnySource]) -> tuple[list[AnySource], tuple[AnySource, ...]]:
    """Return the sources that are asked once a run, and the volatile ones."""
    given = list(sources)
    return (
        [one for one in given if not isinstance(one, Volatile)],
        tuple(one for one in given if isinstance(one, Volatile)),
    )


async def _add_each(sources: Iterable[AnySource], context: Context) -> Context:
    for source in sources:
        given = source(context)
        context = await given if isawaitable(given) else given
        if not isinstance(context, Context):
            name = getattr(source, "__name__", type(source).__name__)
            raise InvalidValue(f"the source {name} gave {context!r}; a source gives the context it was given, changed")
    return context
