"""Where a context comes from: five sources, each asking a small protocol for what it knows."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from palaver.context.budget import Budget, first, newest, newest_in_steps
from palaver.context.media import newest_as_they_are, old_as_words
from palaver.context.values import Background, Context, Episode, Hit, LeftOut, Persona, Sticker, Workspace
from palaver.context.window import HISTORY_SIZE, Marks, answers
from palaver.errors import InvalidValue
from palaver.messages import Message, Place
from palaver.tokens import ESTIMATOR
from palaver.turns import Turn

IMMEDIATE = 5
RECENT = 30
DELIMITER = re.compile(r"[A-Za-z0-9]{6,64}")
_PAGE = 64

Source = Callable[[Context], Awaitable[Context]]


class Log(Protocol):
    """What was said in a place, in the order it came; a message keeps its number, also when it is deleted."""

    async def count(self, place: Place) -> int: ...

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        """The messages with the numbers from *start* up to *stop*."""
        ...

    async def number(self, message: Message) -> int | None:
        """The number of a message in its place, or None if it is not kept there."""
        ...

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        """By id, for those among *messages* that the agent wrote: what the model did and said to write them."""
        ...


class Search(Protocol):
    async def relevant(self, target: Message) -> Sequence[Hit]:
        """What was said before and bears on *target*, in any order."""
        ...


class People(Protocol):
    async def background(self, target: Message) -> Background:
        """What is known of the author of *target*, the most telling first."""
        ...


class Episodes(Protocol):
    async def episodes(self, target: Message) -> Sequence[Episode]:
        """What happened with these people before, the most telling first."""
        ...


def scene(
    *,
    persona: Persona,
    zone: str = "UTC",
    delimiter: str = "",
    workspace: Workspace | None = None,
    stickers: Iterable[Sticker] = (),
) -> Source:
    """Who the agent is, the time zone and the delimiter of the place, and what it works with."""
    if delimiter and not DELIMITER.fullmatch(delimiter):
        raise InvalidValue(f"a delimiter is 6 to 64 letters and digits, not {delimiter!r}")
    known = tuple(stickers)

    async def source(context: Context) -> Context:
        return replace(
            context,
            persona=persona,
            zone=zone,
            delimiter=delimiter,
            workspace=workspace or Workspace(),
            stickers=known,
        )

    return source


def window(
    log: Log, *, marks: Marks | None = None, history_size: int = HISTORY_SIZE, budget: Budget | None = None
) -> Source:
    """The long history: it grows to the high mark and is cut to the low one."""
    within = (marks or Marks()).within(history_size)
    allowed = budget or Budget()

    async def source(context: Context) -> Context:
        stored = await log.count(context.place)
        number = await log.number(context.target)
        count = stored - (number is not None)
        if within.high == 0:
            return replace(context, window=(), window_start=count)
        start, messages = await _whole(log, context.place, within.start(count), stored)
        if number is not None and number >= start:
            messages = messages[: number - start] + messages[number - start + 1 :]
        messages, cut, left = newest_in_steps(messages, start, allowed.window, within)
        return replace(
            context,
            window=old_as_words(messages, start + cut, count),
            window_start=start + cut,
            turns={**context.turns, **await log.turns(messages)},
            left_out=context.left_out + left,
        )

    return source


def plain(source: Source) -> Source:
    """The window in place of the levels: `ENABLE_MULTI_LEVEL_CONTEXT=false`."""

    async def without_levels(context: Context) -> Context:
        return replace(await source(context), levels=False)

    return without_levels


def levels(log: Log, *, budget: Budget | None = None) -> Source:
    """Immediate: the 5 messages before the target. Recent: the 30 before those."""
    allowed = budget or Budget()

    async def source(context: Context) -> Context:
        number = await log.number(context.target)
        before = await _before(log, context, await log.count(context.place) if number is None else number)
        immediate, left = newest(before[-IMMEDIATE:], allowed.immediate, "immediate")
        recent, left_too = newest(before[:-IMMEDIATE], allowed.recent, "recent")
        shown, words = newest_as_they_are((*recent, *immediate), allowed.media)
        return replace(
            context,
            levels=True,
            immediate=shown[len(recent) :],
            recent=shown[: len(recent)],
            turns={**context.turns, **await log.turns(shown)},
            left_out=context.left_out + left + left_too + words,
        )

    return source


def relevant(search: Search, *, budget: Budget | None = None) -> Source:
    """What was said long ago and bears on the target, the most relevant first."""
    allowed = (budget or Budget()).relevant

    async def source(context: Context) -> Context:
        found = sorted(await search.relevant(context.target), key=lambda hit: -hit.score)
        kept, left, _ = first(found, allowed, count=_hit_tokens, name=_beginning, source="relevant")
        return replace(context, relevant=kept, left_out=context.left_out + left)

    return source


def background(people: People, *, budget: Budget | None = None) -> Source:
    """What is known of the author: a summary, key facts, memories, as far as they fit in this order."""
    allowed = (budget or Budget()).background

    async def source(context: Context) -> Context:
        known = await people.background(context.target)
        summary, left, room = first(
            filter(None, [known.summary]), allowed, count=ESTIMATOR.text, name=_cut, source="background"
        )
        facts, left_facts, room = first(
            known.key_facts.items(), room, count=_pair_tokens, name=lambda pair: pair[0], source="background"
        )
        told, left_memories, _ = first(known.memories, room, count=ESTIMATOR.text, name=_cut, source="background")
        return replace(
            context,
            summary="".join(summary),
            key_facts=dict(facts),
            memories=told,
            left_out=context.left_out + left + left_facts + left_memories,
        )

    return source


def memories(people: People, *, budget: Budget | None = None) -> Source:
    """What is remembered of the author, without summary and key facts: for those who do without the levels."""
    told = background(people, budget=budget)

    async def source(context: Context) -> Context:
        return replace(await told(context), summary="", key_facts={})

    return source


def episodic(episodes: Episodes, *, budget: Budget | None = None) -> Source:
    """What happened before."""
    allowed = (budget or Budget()).episodic

    async def source(context: Context) -> Context:
        found = await episodes.episodes(context.target)
        kept, left, _ = first(
            found, allowed, count=_episode_tokens, name=lambda episode: _cut(episode.topic), source="episodic"
        )
        return replace(context, episodes=kept, left_out=context.left_out + left)

    return source


def without_repeats(context: Context) -> Context:
    """The context without hits that are shown as messages already, or are the target, or came twice."""
    if not context.relevant:
        return context
    shown = {message.id for message in (*context.window, *context.recent, *context.immediate, context.target)}
    kept: list[Hit] = []
    left: list[LeftOut] = []
    for hit in context.relevant:
        if hit.message_id is not None and hit.message_id in shown:
            left.append(
                LeftOut(source="relevant", what=_beginning(hit), why="is shown already", tokens=_hit_tokens(hit))
            )
            continue
        if hit.message_id is not None:
            shown.add(hit.message_id)
        kept.append(hit)
    return replace(context, relevant=tuple(kept), left_out=context.left_out + tuple(left)) if left else context


async def _whole(log: Log, place: Place, start: int, stop: int) -> tuple[int, tuple[Message, ...]]:
    """The messages from *start* on, or from before it where a result would be parted from its call."""
    messages = tuple(await log.read(place, start, stop))
    while start and messages and answers(messages[0]):
        start -= 1
        messages = (*await log.read(place, start, start + 1), *messages)
    return start, messages


async def _before(log: Log, context: Context, stop: int) -> tuple[Message, ...]:
    """The newest messages before number *stop* that were not deleted, as many as the levels take."""
    found: list[Message] = []
    while stop > 0 and len(found) < IMMEDIATE + RECENT:
        start = max(0, stop - _PAGE)
        page = await log.read(context.place, start, stop)
        found[:0] = [message for message in page if not message.deleted and message.id != context.target.id]
        stop = start
    return tuple(found[-(IMMEDIATE + RECENT) :])


def _beginning(hit: Hit) -> str:
    return hit.message_id or _cut(hit.text)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _hit_tokens(hit: Hit) -> int:
    return ESTIMATOR.text(hit.text)


def _pair_tokens(pair: tuple[str, str]) -> int:
    return ESTIMATOR.text(pair[0]) + ESTIMATOR.text(pair[1])


def _episode_tokens(episode: Episode) -> int:
    return ESTIMATOR.text(episode.topic) + ESTIMATOR.text(episode.summary)
