"""All that is remembered, for the engine: of people, of what happened, of what was said long ago."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from operator import itemgetter

from palaver.context import sources
from palaver.context.values import Background, Episode, Hit
from palaver.conversation.journal import Memories
from palaver.memory import episodes as memory
from palaver.memory.episode_ranking import chosen, past
from palaver.memory.episodes import words_of
from palaver.memory.facts import SINGLE, Fact, subject_of
from palaver.memory.keywords import term_set
from palaver.memory.summaries import beyond
from palaver.messages import Message, Place

LABELS = {
    "favourite": "Favourites",
    "past": "In the past",
    "pet": "Pets",
    "plan": "Plans",
    "taste": "Likes and dislikes",
}  # of kinds of facts whose names say too little


async def _from_the_first(_: Place) -> int:
    return 0


class Acquaintances:
    """What is known of people, by the facts that were kept."""

    def __init__(self, memories: Memories, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
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
            summary=beyond(summary.text, known) if summary else "",
            fact_ids={fact.text: (fact.id,) for fact in known if not fact.key}
            | {label: tuple(fact.id for fact in facts) for label, facts in labelled.items()},
        )


class Recollection:
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
        if self._episodes is None or not term_set(words_of(target)):
            return ()
        found = chosen(await self._episodes.heard(target), target, now=self._now())
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
        told = past(await self._episodes.listed(place), since=since, start=since + start)
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
        if key and not (key in SINGLE and key in found):
            found.setdefault(key, []).append(fact)
    return dict(sorted(((_label(key), its) for key, its in found.items()), key=itemgetter(0)))


def _label(kind: str) -> str:
    words = kind.replace("_", " ").replace("-", " ").strip()
    return LABELS.get(kind, words[:1].upper() + words[1:])
