"""Recall: what memory adds to the prompt for a message, and which messages may be evidence for a fact.

`MemorySources` is the `context.sources.Knowledge` of an engine. It asks `KnownFacts` about the author, `MessageRecall`
for earlier messages, and the store for episodes. `EchoFilter` notes what was recalled for the last answers of a place:
the learner must not take it for news when a message repeats it.
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import one_line
from tertulia.context import sources
from tertulia.context.log import Log
from tertulia.context.values import Background, Context, RecalledEpisode, RelevantMessage
from tertulia.engine.store_protocols import FactStore
from tertulia.memory import values as memory
from tertulia.memory.embeddings import Embedders, find_embedder
from tertulia.memory.episodes import RankedEpisode, build_window_past, rank_episodes
from tertulia.memory.facts import SINGLE_KEYS, is_from, subject_of
from tertulia.memory.retrieval.terms import term_set
from tertulia.memory.summaries import summary_beyond
from tertulia.memory.values import Episode, EpisodeCursor, Episodes, Fact, IndexReader, Subject, Summary
from tertulia.memory.verify.statements import RecalledTexts
from tertulia.messages import Author, Message, Place, PlaceKey
from tertulia.parts import Media, cut_text
from tertulia.seen_by import SeenBy

if TYPE_CHECKING:
    from tertulia.memory.search import Search, SearchResult


BACK = 500  # last messages of a place that may be evidence
OWN_MESSAGES = 50  # of these, the last ones of the person


async def evidence_messages(log: Log, person: Author, *, place: Place, target: str) -> list[Message]:
    """Return the last messages of *person* in *place*, and the one with the id *target*, oldest first.

    Messages from when the place was a direct chat are no evidence in a group, nor the other way round.
    """
    count = await log.count(place)
    messages = await log.read(place, max(0, count - BACK), count)
    visible = [one for one in messages if (one.place.kind == "direct") == (place.kind == "direct")]
    own = {message.id for message in [one for one in visible if one.author.id == person.id][-OWN_MESSAGES:]}
    return [message for message in visible if message.id in own or message.id == target]


ANSWERS = 5  # of each place that are noted
PLACES = 256


class _Answer(Struct, frozen=True, kw_only=True):
    name: str  # of the author who was answered
    texts: tuple[str, ...]
    hits: tuple[tuple[Place, str], ...]  # ids of messages


class EchoFilter:
    """Notes what was recalled for the last answers of each place."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._places: OrderedDict[PlaceKey, deque[_Answer]] = OrderedDict()

    def add(self, context: Context) -> None:
        """Note what the context of an answer recalls."""
        texts = (*context.memories, *context.key_facts.values(), *(one.summary for one in context.episodes))
        hits = tuple((hit.place or context.place, hit.message_id) for hit in context.relevant if hit.message_id)
        answer = _Answer(name=context.target.author.name, texts=(*texts, context.summary), hits=hits)
        self._places.setdefault(context.place.key, deque(maxlen=ANSWERS)).append(answer)
        self._places.move_to_end(context.place.key)
        while len(self._places) > PLACES:
            self._places.popitem(last=False)

    async def recalled_in(self, place: Place) -> RecalledTexts:
        """Return what was recalled for the last answers in *place*, with the messages as they are now."""
        answers = tuple(self._places.get(place.key, ()))
        hits: dict[Place, set[str]] = {}
        for there, message_id in (hit for one in answers for hit in one.hits):
            hits.setdefault(there, set()).add(message_id)
        return RecalledTexts(
            texts=tuple({text for one in answers for text in one.texts}),
            names=tuple({one.name for one in answers}),
            messages=tuple([one for where, ids in hits.items() for _, one in await self._log.find(where, list(ids))]),
        )


LIKELY = 0.4  # the lowest score of a message that is recalled
OWN = 0.6  # … of one by the agent: it mostly repeats what a person wrote
MOST = 8  # messages that are recalled
MAX_RECALLED_TEXT = 600  # characters of a message, and of the description of one of its media
MOST_MEDIA = 4  # of a message whose descriptions are recalled


# Words for media and for showing them. A question has them, and what is on a picture does not: media are searched for
# without them too.
SHOWING = re.compile(
    r"\b(?:show(?:ed|s|n|ing)?|post(?:ed|s)?|sen[dt]|shared?|photo(?:s|graph)?|pictures?|pics?|images?|stickers?|videos?"
    r"|voices?|gifs?|memes?|показ\w+|скин\w+|скида\w+|надісла\w+|надсила\w+|кида\w+|кину\w+|пости\w+|запости\w+|фот\w+"
    r"|світлин\w+|картин\w+|малюн\w+|стікер\w*|відео|голосов\w+|мем\w{0,2}|присла\w+|отправ\w+|стикер\w*|видео)\b",
    re.IGNORECASE,
)


class MessageRecall:
    """Searches the earlier messages of a place: a `context.sources.MessageSearch`."""

    def __init__(
        self,
        index: IndexReader,
        *,
        embedders: Embedders = find_embedder,
        likely: float = LIKELY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.seen_by: SeenBy | None = None
        self._index = index
        self._embedders = embedders
        self._likely = likely
        self._now = now
        self._loaded: list[Search] = []

    def for_agent(self, seen_by: SeenBy) -> "MessageRecall":
        """Return what searches the messages that an agent sees, with the same index."""
        found = copy(self)
        found.seen_by = seen_by
        return found

    async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
        query = cut_text(target.parts, separator="\n").strip()
        if not query:
            return ()
        search = self._loaded[0] if self._loaded else await self._load_search()
        find = partial(search.find, place=target.place, author=target.author, seen_by=self.seen_by)
        found = await find(query, limit=3 * MOST)
        if (content := SHOWING.sub(" ", query)) != query:
            more = await find(content, limit=MOST)
            found = _with_media(found, more)
        likely = [
            one
            for one in found
            if (one.in_group or one.message.id != target.id)
            and one.score >= (self._likely if one.message.author.persona is None else max(OWN, self._likely))
        ]
        hits = (_hit(one, target.place) for one in likely)
        return [hit for hit in hits if hit.text or hit.shown][:MOST]

    async def _load_search(self) -> "Search":
        """Load the search in a thread: it imports numpy, which would block the event loop."""
        search = await asyncio.to_thread(_import_search)
        self._loaded.append(search(self._index, embedders=self._embedders, now=self._now))
        return self._loaded[0]


def _import_search() -> "type[Search]":
    from tertulia.memory.retrieval.ranker import load_ranker
    from tertulia.memory.search import Search

    for vectors in (True, False):
        load_ranker(vectors=vectors)  # cached for the first search
    return Search


def _with_media(found: "list[SearchResult]", more: "list[SearchResult]") -> "list[SearchResult]":
    """Return results with those of a second search that show media, each message once, the best first."""
    best = {(one.message.place, one.message.id): one for one in found}
    for one in more:
        key = one.message.place, one.message.id
        known = best.get(key)
        if shown_media(one.message) and (known is None or known.score < one.score):
            best[key] = one
    return sorted(best.values(), key=lambda one: -one.score)


def _hit(found: "SearchResult", place: Place) -> RelevantMessage:
    """Return a result as a hit in *place*, which may have had another id when the message was written."""
    return hit_of(found.message, place, score=found.score, why=found.why, in_group=found.in_group)


def hit_of(message: Message, place: Place, *, score: float, why: str, in_group: bool) -> RelevantMessage:
    """Return a message as a hit in *place*; *in_group*: it is the person's own of a group, for their direct chat."""
    return RelevantMessage(
        text=_text_of(message),
        score=score,
        message_id=message.id,
        place=message.place if in_group else place,
        said_by=f"{_speaker(message)}, in a group" if in_group else _speaker(message),
        shown=shown_media(message),
        said_at=message.sent_at,
        why=why,
    )


def _speaker(message: Message) -> str:
    origin = message.forwarded_from
    return f"{message.author.name}, forwarded from {origin.name or origin.id}" if origin else message.author.name


def _text_of(message: Message) -> str:
    text = cut_text(message.parts).strip()
    return text if len(text) <= MAX_RECALLED_TEXT else text[: MAX_RECALLED_TEXT - 1] + "…"


def shown_media(message: Message) -> str:
    """Return what its media show, marked as our own words; a quotation mark in them cannot end these."""
    described = [part for part in message.parts if isinstance(part, Media) and part.rendered_text]
    told = (
        (media.kind_word, one_line(media.rendered_text or "").replace('"', "'")[:MAX_RECALLED_TEXT])
        for media in described[:MOST_MEDIA]
    )
    return "; ".join(f'{kind} described by us as "{words}"' for kind, words in told if words)


LABELS = {
    "favourite": "Favourites",
    "past": "In the past",
    "pet": "Pets",
    "plan": "Plans",
    "taste": "Likes and dislikes",
}  # for the kinds of facts whose names say too little


async def _first_message(_: Place) -> int:
    return 0


class KnownFacts:
    """Recalls the facts and the summary of a person: a `context.sources.People`."""

    def __init__(
        self,
        facts: FactStore,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        seen_by: SeenBy | None = None,
    ) -> None:
        self._facts = facts
        self._now = now
        self._seen_by = seen_by

    async def background(self, target: Message) -> Background:
        """Return what is known of the author of *target* and visible to them in its place."""
        author, place, now = subject_of(target.author, target.place), target.place, self._now()
        found = await self._about(author, place, now)
        known = _without_repeated(fact for fact in found if not is_from(fact, place, {target.id}))  # else no memory
        summary = await self._summary(author, place, now)
        labelled = _by_label(known)
        return Background(
            memories=tuple(fact.text for fact in known if not fact.key),
            key_facts={label: "; ".join(fact.text for fact in facts) for label, facts in labelled.items()},
            summary=summary_beyond(summary.text, known) if summary else "",
            fact_ids={fact.text: (fact.id,) for fact in known if not fact.key}
            | {label: tuple(fact.id for fact in facts) for label, facts in labelled.items()},
        )

    async def _about(self, author: Subject, place: Place, now: datetime) -> Sequence[Fact]:
        return await self._facts.about(author, place=place, asked_by=author, at=now, seen_by=self._seen_by)

    async def _summary(self, author: Subject, place: Place, now: datetime) -> Summary | None:
        return await self._facts.summary(author, place=place, at=now, seen_by=self._seen_by)


class MemorySources:
    """All sources of memory for a prompt: a `context.sources.Knowledge`. A source that is not given is empty."""

    def __init__(
        self,
        people: sources.People,
        *,
        episodes: Episodes | None = None,
        window_pasts: memory.WindowPasts | None = None,
        search: sources.MessageSearch | None = None,
        beginning: Callable[[Place], Awaitable[int]] = _first_message,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        seen_by: SeenBy | None = None,
    ) -> None:
        self._people = people
        self._episodes = episodes
        self._window_pasts = window_pasts
        self._search = search
        self._beginning = beginning  # the number of the first message since the place was cleared
        self._now = now
        self._seen_by = seen_by

    async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
        if self._is_limited_in(target.place) and not isinstance(self._search, MessageRecall):
            return ()  # a search of the user's own knows no agents
        return await self._search.relevant(target) if self._search else ()

    async def background(self, target: Message) -> Background:
        return await self._people.background(target)

    async def episodes(self, target: Message) -> Sequence[RecalledEpisode]:
        """Return the episodes that are relevant to *target* and visible in its place."""
        if self._episodes is None or not term_set(cut_text(target.parts)):
            return ()
        visible = self._known(await self._episodes.visible_to(target, seen_by=self._seen_by))
        found = rank_episodes(visible, target, now=self._now())
        since = await self._beginning(target.place)
        return [_visible_episode(ranked, target.place, since) for ranked in found]

    async def past(self, place: Place, start: int) -> str:
        """Return a summary of the conversation before its message *start*. It is written once and stays the same."""
        if self._episodes is None or self._window_pasts is None:
            return ""
        since = await self._beginning(place)
        agent = self._seen_by.agent if self._seen_by and self._is_limited_in(place) else None
        stored = await self._window_pasts.find(place, since, since + start, agent=agent)
        if stored is not None:
            return stored.text
        seen = await self._episodes.cursor(place)
        if seen is None:
            return ""
        episodes = self._known(await self._episodes.listed(place, seen_by=self._seen_by))
        past = replace(build_window_past(episodes, since=since, start=since + start), agent=agent)
        return (await self._store(self._window_pasts, place, past, seen)).text

    async def _store(
        self, pasts: memory.WindowPasts, place: Place, past: memory.WindowPast, seen: EpisodeCursor
    ) -> memory.WindowPast:
        return await pasts.add(place, past, seen=seen)

    def _known(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        return episodes

    def _is_limited_in(self, place: Place) -> bool:
        return self._seen_by is not None and self._seen_by.is_limited_in(place)


def _visible_episode(ranked: RankedEpisode, place: Place, since: int) -> RecalledEpisode:
    episode, relevance, score = ranked
    here = (episode.place.id, episode.place.thread) == (place.id, place.thread)
    start = episode.start - since if here else None
    return RecalledEpisode(
        topic=episode.topic,
        summary=episode.summary,
        start=start,
        id=episode.id,
        score=score,
        why=f"it speaks of {relevance:.0%} of what the message does",
    )


def _without_repeated(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts, the first of those with the same text: in a direct chat others may come from groups."""
    known: dict[str, Fact] = {}
    for fact in facts:
        known.setdefault(fact.text, fact)
    return list(known.values())


def _by_label(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """Group facts by the label of their kind. Of a kind that has one value at a time, only the newest is taken."""
    found: dict[str, list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: fact.learned_at, reverse=True):
        key = fact.key.partition(":")[0]
        if key and not (key in SINGLE_KEYS and key in found):
            found.setdefault(key, []).append(fact)
    return dict(sorted(((_label(key), group) for key, group in found.items()), key=itemgetter(0)))


def _label(kind: str) -> str:
    words = kind.replace("_", " ").replace("-", " ").strip()
    return LABELS.get(kind, words[:1].upper() + words[1:])
