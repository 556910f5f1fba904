"""What may be the grounds for remembering something of a person: what they said lately, and what is answered."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from palaver.context import sources
from palaver.context.log import Log
from palaver.context.values import Background, Context, Episode, Hit
from palaver.engine.store_protocols import FactStore
from palaver.memory import episodes as memory
from palaver.memory.embedding import Embedders, find_embedder
from palaver.memory.episode_ranking import build_window_past, rank_episodes
from palaver.memory.facts import SINGLE_KEYS, Fact, subject_of
from palaver.memory.keywords import term_set
from palaver.memory.retrieval.index import IndexReader
from palaver.memory.summaries import summary_beyond
from palaver.memory.verify.echo import RecalledTexts
from palaver.messages import Author, Message, Place, PlaceKey
from palaver.parts import cut_text

if TYPE_CHECKING:
    from palaver.memory.search import Search, SearchResult


BACK = 500  # messages of a place that are looked through
OWN_MESSAGES = 50  # of these, the last ones of that person


async def evidence_messages(log: Log, person: Author, *, place: Place, target: str) -> list[Message]:
    """The last messages of *person* in *place*, with the one of the id *target*, the oldest first.

    What was said there while it was a direct chat is none for a group, nor the other way round.
    """
    count = await log.count(place)
    said = await log.read(place, max(0, count - BACK), count)
    heard = [one for one in said if (one.place.kind == "direct") == (place.kind == "direct")]
    own = {message.id for message in [one for one in heard if one.author.id == person.id][-OWN_MESSAGES:]}
    return [message for message in heard if message.id in own or message.id == target]


ANSWERS = 5  # in each place
PLACES = 256


class _Answer(Struct, frozen=True, kw_only=True):
    name: str  # of whom it was for
    texts: tuple[str, ...]
    hits: tuple[str, ...]  # ids of messages


class EchoFilter:
    """`note(context)` for each answer; `of(place)` for whoever reads what was said there."""

    def __init__(self, said: Log) -> None:
        self._log = said
        self._places: OrderedDict[PlaceKey, deque[_Answer]] = OrderedDict()

    def note(self, context: Context) -> None:
        """Note what the agent is reminded of for an answer."""
        told = (*context.memories, *context.key_facts.values(), *(one.summary for one in context.episodes))
        hits = tuple(hit.message_id for hit in context.relevant if hit.message_id)
        answer = _Answer(name=context.target.author.name, texts=(*told, context.summary), hits=hits)
        self._places.setdefault(context.place.key, deque(maxlen=ANSWERS)).append(answer)
        self._places.move_to_end(context.place.key)
        while len(self._places) > PLACES:
            self._places.popitem(last=False)

    async def of(self, place: Place) -> RecalledTexts:
        """All of it, with the messages as they stand now."""
        answers = tuple(self._places.get(place.key, ()))
        hits = list({hit for one in answers for hit in one.hits})
        return RecalledTexts(
            texts=tuple({text for one in answers for text in one.texts}),
            names=tuple({one.name for one in answers}),
            messages=tuple([message for _, message in await self._log.find(place, hits)]),
        )


LIKELY = 0.4  # how probable it must be that a message bears on the target
OWN = 0.6  # and one of the agent's own: it mostly repeats what somebody has said
MOST = 8  # messages that are recalled
LONGEST = 600  # characters of one


class MessageRecall:
    """`context.sources.Search` over what was said in the place of the target."""

    def __init__(
        self,
        index: IndexReader,
        *,
        embedders: Embedders = find_embedder,
        likely: float = LIKELY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._embedders = embedders
        self._likely = likely
        self._now = now
        self._search: Search | None = None

    async def relevant(self, target: Message) -> Sequence[Hit]:
        said = cut_text(target.parts, separator="\n").strip()
        if not said:
            return ()
        search = self._search or await self._made()
        found = await search.find(said, place=target.place, author=target.author, limit=3 * MOST)
        likely = [one for one in found if one.message.id != target.id and one.score >= self._least(one.message)]
        return [_hit(one, target.place) for one in likely[:MOST] if _said(one.message)]

    def _least(self, message: Message) -> float:
        return max(OWN, self._likely) if message.author.persona is not None else self._likely

    async def _made(self) -> "Search":
        """The search itself: numpy is imported for it, and the first answer does not wait for that on the loop."""
        kind = await asyncio.to_thread(_search)
        self._search = kind(self._index, embedders=self._embedders, now=self._now)
        return self._search


def _search() -> "type[Search]":
    from palaver.memory.retrieval.ranker import load_ranker
    from palaver.memory.search import Search

    for vectors in (True, False):
        load_ranker(vectors=vectors)  # read now, while nobody waits for it
    return Search


def _hit(found: "SearchResult", place: Place) -> Hit:
    """It was said in the place of the target, whatever that was called then."""
    message = found.message
    return Hit(
        text=_said(message),
        score=found.score,
        message_id=message.id,
        place=place,
        said_by=message.author.name,
        said_at=message.sent_at,
    )


def _said(message: Message) -> str:
    said = cut_text(message.parts).strip()
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"


LABELS = {
    "favourite": "Favourites",
    "past": "In the past",
    "pet": "Pets",
    "plan": "Plans",
    "taste": "Likes and dislikes",
}  # of kinds of facts whose names say too little


async def _from_the_first(_: Place) -> int:
    return 0


class KnownFacts:
    """What is known of people, by the facts that were kept."""

    def __init__(self, memories: FactStore, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._memories = memories
        self._now = now

    async def background(self, target: Message) -> Background:
        """What may be heard where the target was written, of its author and by them."""
        author, place, now = subject_of(target.author, target.place), target.place, self._now()
        found = await self._memories.about(author, place=place, asked_by=author, at=now)
        known = [fact for fact in found if set(fact.sources) != {target.id}]  # what is said right now is no memory
        summary = await self._memories.summary(author, place=place, at=now)
        labelled = _by_label(known)
        return Background(
            memories=tuple(fact.text for fact in known if not fact.key),
            key_facts={label: "; ".join(fact.text for fact in facts) for label, facts in labelled.items()},
            summary=summary_beyond(summary.text, known) if summary else "",
            fact_ids={fact.text: (fact.id,) for fact in known if not fact.key}
            | {label: tuple(fact.id for fact in facts) for label, facts in labelled.items()},
        )


class MemorySources:
    """`prompting.Knowledge` of everything that is kept; what is not given is not known."""

    def __init__(
        self,
        people: sources.People,
        *,
        episodes: memory.Episodes | None = None,
        window_pasts: memory.WindowPasts | None = None,
        search: sources.Search | None = None,
        beginning: Callable[[Place], Awaitable[int]] = _from_the_first,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._people = people
        self._episodes = episodes
        self._window_pasts = window_pasts
        self._search = search
        self._beginning = beginning  # the number of the first message that is still part of the conversation
        self._now = now

    async def relevant(self, target: Message) -> Sequence[Hit]:
        return await self._search.relevant(target) if self._search else ()

    async def background(self, target: Message) -> Background:
        return await self._people.background(target)

    async def episodes(self, target: Message) -> Sequence[Episode]:
        """Those that bear on *target* and may be told where it was written."""
        if self._episodes is None or not term_set(cut_text(target.parts)):
            return ()
        found = rank_episodes(await self._episodes.heard(target), target, now=self._now())
        since = await self._beginning(target.place)
        return [_told(episode, target.place, since) for episode in found]

    async def past(self, place: Place, start: int) -> str:
        """What was said in the conversation before its message *start*; as it was when it was first asked for."""
        if self._episodes is None or self._window_pasts is None:
            return ""
        since = await self._beginning(place)
        kept = await self._window_pasts.find(place, since, since + start)
        if kept is not None:
            return kept.text
        seen = await self._episodes.mark(place)
        if seen is None:
            return ""
        told = build_window_past(await self._episodes.listed(place), since=since, start=since + start)
        return (await self._window_pasts.add(place, told, seen=seen)).text


def _told(episode: memory.Episode, place: Place, since: int) -> Episode:
    here = (episode.place.id, episode.place.thread) == (place.id, place.thread)
    start = episode.start - since if here else None
    return Episode(topic=episode.topic, summary=episode.summary, start=start, id=episode.id)


def _by_label(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """The facts of each kind, under a label for it; of what a person has one at a time, the newest."""
    found: dict[str, list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: fact.learned_at, reverse=True):
        key = fact.key.partition(":")[0]
        if key and not (key in SINGLE_KEYS and key in found):
            found.setdefault(key, []).append(fact)
    return dict(sorted(((_label(key), its) for key, its in found.items()), key=itemgetter(0)))


def _label(kind: str) -> str:
    words = kind.replace("_", " ").replace("-", " ").strip()
    return LABELS.get(kind, words[:1].upper() + words[1:])
