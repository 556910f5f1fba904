"""The sources of a context: functions that add what they know, each from a small protocol and within its budget."""

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import update_wrapper
from typing import Protocol

from msgspec.structs import replace

from tertulia.context.budget import Budget, buffer_cut, report_item, take_first
from tertulia.context.log import Log, read_around, read_window, unedited_turns, with_unshown_quotes
from tertulia.context.media_boundary import media_marks_of, media_of_window
from tertulia.context.media_budget import (
    KnownFiles,
    count_by_files,
    fit_batch,
    limits_of_window,
    request_limits,
)
from tertulia.context.selection import IMMEDIATE, MAX_CANDIDATES, fit_levels, fit_window, select_messages
from tertulia.context.stable_prefix import HISTORY_SIZE, BufferMarks, Marks
from tertulia.context.turn_media import OwnMedia
from tertulia.context.values import (
    AvailableSticker,
    Background,
    Context,
    LeftOut,
    OwnNames,
    Persona,
    RecalledEpisode,
    RelevantMessage,
    Workspace,
)
from tertulia.errors import InvalidValue
from tertulia.media.amounts import NOTHING
from tertulia.messages import Message, Place
from tertulia.tasks.kinds import BlockLine
from tertulia.timezones import zone_named
from tertulia.tokens import ESTIMATOR
from tertulia.wire.media_limits import ANY_MODEL, MediaTaken, limits_of

RECENT = 30
EPISODES = 3
MORE_EPISODES = f"more than {EPISODES} episodes"
DELIMITER = re.compile(r"[A-Za-z0-9]{6,64}")

Source = Callable[[Context], Awaitable[Context]]
AnySource = Callable[[Context], Context | Awaitable[Context]]  # what users give: it need not be awaited


class Volatile:
    """A source that is asked again before each step of a run; `volatile` makes one."""

    def __init__(self, source: AnySource) -> None:
        update_wrapper(self, source)
        self._source = source

    def __call__(self, context: Context) -> Context | Awaitable[Context]:
        return self._source(context)


def volatile(source: AnySource) -> Volatile:
    """Mark a source as volatile: it is asked again before each step of a run, for the dynamic layer.

    Volatile sources run after all others. What they change in another layer is shown from the next run on.
    """
    return Volatile(source)


class MessageSearch(Protocol):
    async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
        """Return earlier messages that are relevant to *target*, in any order."""
        ...


class People(Protocol):
    async def background(self, target: Message) -> Background:
        """Return what is known of the author of *target*, the most useful first."""
        ...


class EpisodeSearch(Protocol):
    async def episodes(self, target: Message) -> Sequence[RecalledEpisode]:
        """Return earlier episodes with these people, the most relevant first."""
        ...


class Past(Protocol):
    async def past(self, place: Place, start: int) -> str:
        """Return a summary of the messages before number *start*, a line for each topic.

        It stays the same, also when empty, unless something in it is forgotten: it is part of the stable prefix.
        """
        ...


class Knowledge(MessageSearch, People, EpisodeSearch, Past, Protocol):
    """All of memory."""


def agent_settings(
    *,
    persona: Persona,
    account: str | None = None,
    agent: OwnNames = OwnNames(),  # noqa: B008 (frozen)
    zone: str = "UTC",
    delimiter: str = "",
    task_blocks: tuple[BlockLine, ...] = (),
    model: str = "",
    taken: MediaTaken | None = None,
) -> Source:
    """Add who the agent is, the time zone and the delimiter of the place, the model that is asked and what it takes.

    *account* is the author id of the agent's own messages; without it they are those of the persona's name. Where
    several agents have that account, *agent* says which of them are its own.
    """
    if delimiter and not DELIMITER.fullmatch(delimiter):
        raise InvalidValue(f"a delimiter is 6 to 64 letters and digits, not {delimiter!r}")
    zone_named(zone)

    async def source(context: Context) -> Context:
        return replace(
            context,
            persona=persona,
            account=account,
            agent=agent,
            zone=zone,
            delimiter=delimiter,
            task_blocks=task_blocks,
            model=model,
            taken=taken or (limits_of(model) if model else ANY_MODEL),
        )

    return source


def workspace(value: Workspace) -> Source:
    """Add file references, artifacts and todos; `layered` and `tail` show them."""

    async def source(context: Context) -> Context:
        return replace(context, workspace=value)

    return source


def stickers(known: Iterable[AvailableSticker]) -> Source:
    """Add the stickers that the agent may send; profiles that tell of task blocks show them."""
    listed = tuple(known)

    async def source(context: Context) -> Context:
        return replace(context, stickers=listed)

    return source


def notes(by_model: Mapping[str, str]) -> Source:
    """Add notes for the model that is asked, by its name or a pattern such as `gemini-*`; every profile shows them.

    All that match follow the notes of the persona, in their order.
    """

    async def source(context: Context) -> Context:
        found = (text for pattern, text in by_model.items() if fnmatchcase(context.model, pattern))
        written = "\n\n".join(filter(None, (context.persona.notes, *found)))
        return replace(context, persona=replace(context.persona, notes=written))

    return source


def window(
    log: Log,
    *,
    marks: Marks | None = None,
    history_size: int = HISTORY_SIZE,
    budget: Budget | None = None,
    media: bool = True,
    media_marks: Marks | None = None,
    buffer: BufferMarks | None = None,
    files: KnownFiles | None = None,
) -> Source:
    """Add the long history in place of levels: it grows to the high mark and is cut to the low one.

    Cuts keep the prefix stable (`stable_prefix`). Media of the newest messages, by *media_marks* or those of the place,
    are sent themselves, unless *media* says that none are. What is in a *buffer* is behind the prefix, and may change.
    *files* are those that are stored: they say how long or large media are.
    """
    within = marks or Marks.up_to(history_size)
    allowed = budget or Budget()

    async def source(context: Context) -> Context:
        read = await log.in_snapshot(lambda snapshot: read_window(snapshot, context, within))
        start, messages = read.start, read.messages
        own = OwnMedia(messages, read.turns, read.context)
        shown, cut, room, notices, left = fit_window(read, own, within, allowed)
        counter = await count_by_files(read.context, own.messages, files)
        fitted, used, in_words = fit_batch(read.context, request_limits(allowed), counter)
        limits = limits_of_window(request_limits(allowed), used, tokens=room) if media else NOTHING
        newest = media_marks or media_marks_of(context.place, buffered=buffer is not None)
        pictures = media_marks is None and context.place.kind != "direct"  # no other media of a group
        chosen, old_in_words, step = media_of_window(
            own.stand_ins(messages[cut:]),
            own.stand_ins_in_words(shown[cut:]),
            limits,
            marks=newest,
            counter=counter,
            pictures=pictures,
        )
        seen, turns = own.shown(chosen, shown[cut:]), own.shown_turns(chosen)
        stable, since = buffer_cut(seen, start + cut, turns, buffer) if buffer else (len(seen), start + cut + step)
        context = replace(
            fitted,
            levels=False,
            window=seen,
            window_start=start + cut,
            stable=stable,
            stable_since=max(within.last_cut(start + len(messages)), since),
            settled_after=newest.high + 1 if newest.low == newest.high else 1,
            notices=notices,
            turns={**context.turns, **turns},
            left_out=context.left_out + left + in_words + old_in_words,
        )
        return await with_unshown_quotes(log, context, messages[:cut])

    return source


def past(known: Past, *, budget: Budget | None = None) -> Source:
    """Add a summary of what was said before the window. It stays the same until the window is cut again."""
    allowed = budget or Budget()

    async def source(context: Context) -> Context:
        if not context.window_start or not context.window:
            return context
        lines = (await known.past(context.place, context.window_start)).splitlines()
        kept, left, _ = take_first(reversed(lines), allowed.past, count=allowed.counter.text, source="past", text=str)
        return replace(context, past="\n".join(reversed(kept)), left_out=context.left_out + left)

    return source


def levels(
    log: Log,
    *,
    history_size: int = HISTORY_SIZE,
    most: int = IMMEDIATE + RECENT,
    budget: Budget | None = None,
    media: bool = True,
    files: KnownFiles | None = None,
) -> Source:
    """Add the levels: immediate, the 5 messages before the target; recent, 30 before those (`selection`); newer.

    Newer messages came after the target. *most* limits the messages before the target, and those after it. Their media
    are sent themselves as far as they fit, unless *media* says that none are.
    """
    allowed = budget or Budget()
    reach = min(Marks.up_to(history_size).high, MAX_CANDIDATES)

    async def source(context: Context) -> Context:
        read = await log.in_snapshot(
            lambda snapshot: read_around(snapshot, context, before=reach, after=min(most, reach))
        )
        before = tuple(read.before[index] for index in select_messages(read.before, read.context.question, most=most))
        turns = await unedited_turns(log, (*before, *read.after))
        own = OwnMedia((*before, *read.after), turns, read.context)
        counter = await count_by_files(read.context, own.messages, files)
        fitted, used, in_words = fit_batch(read.context, request_limits(allowed), counter)
        limits = request_limits(allowed).minus(used) if media else NOTHING
        shown, made, left = fit_levels(before, read.after, allowed, limits=limits, counter=counter, own=own)
        recent, immediate, newer = shown
        context = replace(
            fitted,
            levels=True,
            immediate=immediate,
            recent=recent,
            newer=newer,
            turns={**context.turns, **made},
            left_out=context.left_out + left + in_words,
        )
        return await with_unshown_quotes(log, context, read.before)

    return source


def relevant(search: MessageSearch, *, budget: Budget | None = None) -> Source:
    """Add earlier messages that are relevant to the target, the most relevant first."""
    allowed = budget or Budget()
    counter = allowed.counter

    async def source(context: Context) -> Context:
        hits = [_with_speaker(hit, context.zone) for hit in await search.relevant(context.question)]
        found = sorted(hits, key=lambda hit: float("inf") if math.isnan(hit.score) else -hit.score)
        fresh = drop_repeated_hits(replace(context, relevant=tuple(found)))
        kept, left, _ = take_first(
            fresh.relevant,
            allowed.relevant,
            count=lambda hit: counter.text(hit.text),
            source="relevant",
            ids=_message_ids,
            text=lambda hit: hit.text,
        )
        return replace(fresh, relevant=kept, left_out=fresh.left_out + left)

    return source


def background(people: People, *, budget: Budget | None = None) -> Source:
    """Add what is known of the author: a summary, key facts, memories, as far as they fit in this order."""
    allowed = budget or Budget()
    count = allowed.counter.text

    async def source(context: Context) -> Context:
        known = await people.background(context.target)
        summary, left, remaining = take_first(
            filter(None, [known.summary]), allowed.background, count=count, source="background", text=str
        )
        facts, left_facts, remaining = take_first(
            known.key_facts.items(),
            remaining,
            count=lambda pair: sum(map(count, pair)),
            source="background",
            ids=lambda pair: known.fact_ids.get(pair[0], ()),
            text=lambda pair: pair[0],
        )
        memories, left_memories, _ = take_first(
            known.memories,
            remaining,
            count=count,
            source="background",
            ids=lambda memory: known.fact_ids.get(memory, ()),
            text=str,
        )
        return replace(
            context,
            summary="".join(summary),
            key_facts=dict(facts),
            memories=memories,
            fact_ids=known.fact_ids,
            left_out=context.left_out + left + left_facts + left_memories,
        )

    return source


def memories(people: People, *, budget: Budget | None = None) -> Source:
    """Add `background` as one list of memories, for `ENABLE_MULTI_LEVEL_CONTEXT=false`.

    A key fact that a memory states already is left out.
    """
    known_of_author = background(people, budget=budget)

    async def source(context: Context) -> Context:
        known = await known_of_author(context)
        stated = "\n".join(known.memories).casefold()
        facts = [f"{label}: {fact}" for label, fact in known.key_facts.items() if fact.casefold() not in stated]
        return replace(known, memories=(*facts, *known.memories), summary="", key_facts={})

    return source


def episodic(episodes: EpisodeSearch, *, budget: Budget | None = None) -> Source:
    """Add the 3 most relevant earlier episodes that the window does not show."""
    allowed = budget or Budget()

    def tokens(episode: RecalledEpisode) -> int:
        return allowed.counter.text(episode.topic) + allowed.counter.text(episode.summary)

    async def source(context: Context) -> Context:
        shown_from = context.window_start if context.window else math.inf  # an episode from there on is in the window
        recalled = await episodes.episodes(context.question)
        found = [one for one in recalled if one.start is None or one.start < shown_from]
        fitting, left, _ = take_first(
            found[:EPISODES],
            allowed.episodic,
            count=tokens,
            source="episodic",
            ids=_episode_ids,
            text=lambda episode: episode.topic,
        )
        others = tuple(
            report_item("episodic", MORE_EPISODES, _episode_ids(one), one.topic, tokens(one))
            for one in found[EPISODES:]
        )
        return replace(context, episodes=fitting, left_out=context.left_out + left + others)

    return source


def drop_repeated_hits(context: Context) -> Context:
    """Drop hits that the context shows as messages, or shows twice."""
    if not context.relevant:
        return context
    messages = (*context.window, *context.recent, *context.immediate, *context.newer, *context.batch)
    shown: set[object] = {message.id for message in messages}  # of a deleted one nothing is recalled either
    fresh: list[RelevantMessage] = []
    left: list[LeftOut] = []
    for hit in context.relevant:
        elsewhere = hit.place is not None and hit.place != context.place
        what: object = hit.text if hit.message_id is None else hit.message_id
        known = (hit.place, what) if elsewhere or hit.message_id is None else what
        if known in shown:
            tokens = ESTIMATOR.text(hit.text)
            left.append(report_item("relevant", "is shown already", _message_ids(hit), hit.text, tokens))
            continue
        shown.add(known)
        fresh.append(hit)
    return replace(context, relevant=tuple(fresh), left_out=context.left_out + tuple(left)) if left else context


def _with_speaker(hit: RelevantMessage, zone: str) -> RelevantMessage:
    """Return the hit with its author and day, in the zone of the place, and what its media show, before its text."""
    if not hit.said_by:
        return hit
    day = f" ({hit.said_at.astimezone(zone_named(zone)):%Y-%m-%d})" if hit.said_at else ""
    return replace(hit, text=hit.with_speaker(day), said_by="", said_at=None, shown="")


def _episode_ids(episode: RecalledEpisode) -> tuple[str, ...]:
    return (episode.id,) if episode.id else ()


def _message_ids(hit: RelevantMessage) -> tuple[str, ...]:
    return () if hit.message_id is None else (hit.message_id,)
