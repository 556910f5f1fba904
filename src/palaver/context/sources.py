"""Where a context comes from: five sources, each asking a small protocol for what it knows."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from palaver.context.budget import Budget, counted, cut_in_steps, first, left_before, newest, older, without_giants
from palaver.context.media import newest_as_they_are, old_as_words
from palaver.context.values import Background, Context, Episode, Hit, LeftOut, Persona, Sticker, Workspace
from palaver.context.window import HISTORY_SIZE, Marks, answers, whole_from
from palaver.context.zones import zone_named
from palaver.errors import InvalidValue
from palaver.messages import Message, Place
from palaver.parts import Text
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
    zone_named(zone)
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
        context = await _with_current_quote(log, context)
        if within.high == 0:
            return replace(context, window=(), window_start=count)
        start, messages = await _without_target(log, context, within.start(count), number, stored)
        messages, in_words = old_as_words(messages, start, count, allowed.media)
        turns = await _turns(log, messages)
        counts = counted(messages, turns, allowed.counter)
        messages, counts, too_large = without_giants(messages, counts, allowed.window)
        cut = whole_from(messages, cut_in_steps(counts, start, allowed.window, within))
        left = left_before(messages, counts, cut, allowed.window)
        return replace(
            context,
            window=messages[cut:],
            window_start=start + cut,
            turns={**context.turns, **turns},
            left_out=context.left_out + left + too_large + in_words,
        )

    return source


def plain(source: Source) -> Source:
    """The window in place of the levels: `ENABLE_MULTI_LEVEL_CONTEXT=false`."""

    async def without_levels(context: Context) -> Context:
        return replace(await source(context), levels=False)

    return without_levels


def levels(log: Log, *, history_size: int = HISTORY_SIZE, budget: Budget | None = None) -> Source:
    """Immediate: the 5 messages before the target. Recent: the 30 before those; fewer where the history is smaller."""
    allowed = budget or Budget()
    most = min(Marks().within(history_size).high, IMMEDIATE + RECENT)

    async def source(context: Context) -> Context:
        number = await log.number(context.target)
        before = await _before(log, context, await log.count(context.place) if number is None else number, most)
        turns = await _turns(log, before)
        shown, words = newest_as_they_are(before, allowed.media)
        counts = counted(shown, turns, allowed.counter)
        split = max(0, len(shown) - IMMEDIATE)
        immediate, left = newest(shown[split:], counts[split:], allowed.immediate, "immediate")
        recent, left_too = newest(shown[:split], counts[:split], allowed.recent, "recent")
        if any(one.tokens <= allowed.immediate for one in left):  # no gap is left
            recent, left_too = (), older(shown[:split], counts[:split], "recent")
        return replace(
            await _with_current_quote(log, context),
            levels=True,
            immediate=immediate,
            recent=recent,
            turns={**context.turns, **turns},
            left_out=context.left_out + left_too + left + words,
        )

    return source


def relevant(search: Search, *, budget: Budget | None = None) -> Source:
    """What was said long ago and bears on the target, the most relevant first."""
    allowed = budget or Budget()
    counter = allowed.counter

    async def source(context: Context) -> Context:
        found = sorted(await search.relevant(context.target), key=_by_score)
        fresh = without_repeats(replace(context, relevant=tuple(found)))
        kept, left, _ = first(
            fresh.relevant,
            allowed.relevant,
            count=lambda hit: counter.text(hit.text),
            name=_beginning,
            source="relevant",
        )
        return replace(fresh, relevant=kept, left_out=fresh.left_out + left)

    return source


def background(people: People, *, budget: Budget | None = None) -> Source:
    """What is known of the author: a summary, key facts, memories, as far as they fit in this order."""
    allowed = budget or Budget()
    count = allowed.counter.text

    async def source(context: Context) -> Context:
        known = await people.background(context.target)
        summary, left, room = first(
            filter(None, [known.summary]), allowed.background, count=count, name=_cut, source="background"
        )
        facts, left_facts, room = first(
            known.key_facts.items(), room, count=lambda pair: sum(map(count, pair)), name=_key, source="background"
        )
        told, left_memories, _ = first(known.memories, room, count=count, name=_cut, source="background")
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
    allowed = budget or Budget()
    count = allowed.counter.text

    async def source(context: Context) -> Context:
        found = await episodes.episodes(context.target)
        kept, left, _ = first(
            found,
            allowed.episodic,
            count=lambda episode: count(episode.topic) + count(episode.summary),
            name=lambda episode: _cut(episode.topic),
            source="episodic",
        )
        return replace(context, episodes=kept, left_out=context.left_out + left)

    return source


def without_repeats(context: Context) -> Context:
    """The context without hits that are shown as messages already, or are the target, or came twice."""
    if not context.relevant:
        return context
    messages = (*context.window, *context.recent, *context.immediate, context.target)
    shown: set[object] = {message.id for message in messages}  # of a deleted one nothing is recalled either
    kept: list[Hit] = []
    left: list[LeftOut] = []
    for hit in context.relevant:
        elsewhere = hit.place is not None and hit.place != context.place
        what: object = hit.text if hit.message_id is None else hit.message_id
        known = (hit.place, what) if elsewhere or hit.message_id is None else what
        if known in shown:
            left.append(
                LeftOut(source="relevant", what=_beginning(hit), why="is shown already", tokens=_hit_tokens(hit))
            )
            continue
        shown.add(known)
        kept.append(hit)
    return replace(context, relevant=tuple(kept), left_out=context.left_out + tuple(left)) if left else context


async def _turns(log: Log, messages: Sequence[Message]) -> dict[str, tuple[Turn, ...]]:
    """The turns behind the agent's own messages, but for those it has edited since: they say something else now."""
    found = await log.turns(messages)
    if not found:
        return {}
    edited = {message.id for message in messages if message.edited_at}
    return {name: turns for name, turns in found.items() if name not in edited}


async def _with_current_quote(log: Log, context: Context) -> Context:
    """The context with what the target replies to as it stands now: edited since, or deleted."""
    quote = context.target.reply_to
    number = await log.number(replace(context.target, id=quote.message_id)) if quote else None
    if quote is None or number is None:
        return context
    (message,) = await log.read(context.place, number, number + 1)
    parts = () if message.deleted else message.parts
    said = " ".join(part.text for part in parts if isinstance(part, Text))
    excerpt = quote.excerpt if quote.excerpt and quote.excerpt in said else None
    current = replace(quote, author=message.author, parts=parts, excerpt=excerpt)
    if current == quote:
        return context
    return replace(context, target=replace(context.target, reply_to=current))


async def _without_target(
    log: Log, context: Context, start: int, number: int | None, stored: int
) -> tuple[int, tuple[Message, ...]]:
    """The messages from *start* on, counted as if the target, which has this *number*, were not among them."""
    first = start + (number is not None and number <= start)
    first, messages = await _whole(log, context.place, first, stored)
    if number is not None and number >= first:
        messages = messages[: number - first] + messages[number - first + 1 :]
    return first - (number is not None and number < first), messages


async def _whole(log: Log, place: Place, start: int, stop: int) -> tuple[int, tuple[Message, ...]]:
    """The messages from *start* on, or from before it where a result would be parted from its call."""
    messages = tuple(await log.read(place, start, stop))
    furthest = max(0, start - _PAGE)
    while start > furthest and messages and answers(messages[0]):
        start -= 1
        messages = (*await log.read(place, start, start + 1), *messages)
    return start, messages


async def _before(log: Log, context: Context, stop: int, most: int) -> tuple[Message, ...]:
    """The newest messages before number *stop* that were not deleted, *most* of them."""
    found: list[Message] = []
    while stop > 0 and len(found) < most:
        start = max(0, stop - _PAGE)
        page = await log.read(context.place, start, stop)
        found[:0] = [message for message in page if not message.deleted and message.id != context.target.id]
        stop = start
    return tuple(found[-most:]) if most else ()


def _beginning(hit: Hit) -> str:
    return hit.message_id or _cut(hit.text)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _by_score(hit: Hit) -> float:
    """The best first; a score that is no number last."""
    return -hit.score if hit.score == hit.score else float("inf")


def _hit_tokens(hit: Hit) -> int:
    return ESTIMATOR.text(hit.text)


def _key(pair: tuple[str, str]) -> str:
    return _cut(pair[0])
