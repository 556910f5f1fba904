"""The learner of facts and summaries, and the writer of episodes. Both read new messages in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tertulia.context.log import Log
from tertulia.engine.background import PlaceQueue, Sleep, log_text
from tertulia.engine.store_protocols import FactStore
from tertulia.errors import SpendCapReached, TertuliaError
from tertulia.memory.episode_summary import apply_summary, build_episode, summary_prompt
from tertulia.memory.episodes import EpisodeRules, find_boundaries, message_ranges
from tertulia.memory.extract import extract_facts
from tertulia.memory.facts import as_own, subject_of
from tertulia.memory.summaries import is_stale, summarise
from tertulia.memory.values import (
    AnsweredMessages,
    Cursors,
    Episode,
    EpisodeCursor,
    Episodes,
    Fact,
    Subject,
    UnreadRange,
)
from tertulia.memory.verify.statements import RecalledTexts
from tertulia.messages import Message, Place
from tertulia.models.base import Model
from tertulia.models.calls import Purpose
from tertulia.seen_by import SeenBy

log = logging.getLogger(__name__)

BATCH = 30  # messages per extraction
BEFORE = 6  # earlier messages that are shown with them, for context
KNOWN = 20  # known facts of each person that a model is shown
ATTEMPTS = 3  # at a place whose messages change while they are summarised
PAGES = 4  # of messages that are read together
RECENT = 1_000  # messages: episodes further back are summarised without a model when a place is first read

Metered = Callable[[Model, Place, Purpose], Model]  # wraps a model so that its calls in a place are counted
# the agents of a place for which memory is not the same; None: all those that see everything
Agents = Callable[[Place], Awaitable[Sequence[SeenBy | None]]]


async def _one_agent(_: Place) -> Sequence[SeenBy | None]:
    return (None,)


async def _no_texts(_: Place) -> RecalledTexts:
    return RecalledTexts()


class Learner(PlaceQueue):
    """Extracts facts from the unread messages of each place that is woken, and renews the summaries of people.

    Without a model it uses patterns. So it does with the embedded model, which is too small for extraction.
    """

    def __init__(
        self,
        facts: FactStore,
        cursors: Cursors,
        messages: Log,
        *,
        model: Model | None,
        now: Callable[[], datetime],
        batch: int = BATCH,
        sleep: Sleep = asyncio.sleep,
        recalled: Callable[[Place], Awaitable[RecalledTexts]] = _no_texts,
        metered: Metered = lambda model, *_: model,
        agents: Agents = _one_agent,
    ) -> None:
        super().__init__(self._read, "learning", sleep=sleep)
        self._agents = agents
        self._facts = facts
        self._cursors = cursors
        self._log = messages
        self._model = model
        self._metered = metered  # counts what the model is asked
        self._now = now
        self._batch = batch
        self._recalled = recalled  # texts that the agent was shown: a message that repeats them teaches nothing

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Wake the places with messages that are unread, as an earlier process left them."""
        for place in filter(wanted, await self._cursors.unread()):
            self.wake(place)

    async def _read(self, place: Place) -> None:
        """Read the unread messages of a place in batches; then renew the summaries of those they are by or about.

        There is a summary for each of the agents of the place, some of which may have facts of their own.
        """
        people: dict[str, Subject] = {}
        last: UnreadRange | None = None
        while (reading := await self._cursors.next_range(place, most=self._batch)) and reading != last:
            messages = await self._log.read(place, reading.start, reading.stop)
            before = await self._log.read(place, max(0, reading.start - BEFORE), reading.start)
            facts = await self._extract_or_split(place, messages, before, None)
            added = await self._facts.learn(facts, reading=reading)
            people |= _people(messages, place) | {fact.subject.id: fact.subject for fact in added}
            last = reading
        for seen_by in await self._agents(place):
            if seen_by and seen_by.own:
                people |= await self._read_answered(place, seen_by)
            for subject in people.values():
                await self._summarise(subject, place, seen_by)

    async def _read_answered(self, place: Place, seen_by: SeenBy) -> dict[str, Subject]:
        """Read what an agent has answered for facts of its own; return whom that is by or about."""
        people: dict[str, Subject] = {}
        last: AnsweredMessages | None = None
        while (answered := await self._cursors.answered(place, seen_by.agent, most=self._batch)) and answered != last:
            facts = await self._extract_or_split(place, answered.messages, (), seen_by)
            added = await self._facts.learn([as_own(fact, seen_by.agent) for fact in facts], reading=answered)
            people |= _people(answered.messages, place) | {fact.subject.id: fact.subject for fact in added}
            last = answered
        return people

    async def _extract_or_split(
        self, place: Place, messages: Sequence[Message], before: Sequence[Message], seen_by: SeenBy | None
    ) -> list[Fact]:
        """Extract facts from messages, with those *before* them.

        A message may make the extraction fail. It is found by halving the batch, so that only it is left out.
        """
        try:
            return await self._extract(place, messages, before, seen_by)
        except TertuliaError:
            raise
        except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other messages are read)
            log.error("%d messages in %s cannot be read: %s", len(messages), place.id, log_text(error))
        middle = len(messages) // 2
        first, second = messages[:middle], messages[middle:]
        halves = ((first, before), (second, [*before, *first][-BEFORE:])) if middle else ()
        return [fact for half, then in halves for fact in await self._extract_or_split(place, half, then, seen_by)]

    async def _extract(
        self, place: Place, messages: Sequence[Message], before: Sequence[Message], seen_by: SeenBy | None
    ) -> list[Fact]:
        known = [
            fact
            for author in _people(messages, place).values()
            for fact in await self._known(author, place, seen_by, asked_by=author, limit=KNOWN)
        ]
        recalled = await self._recalled(place)
        model = self._model_for(place, "facts")
        return await extract_facts(model, messages, now=self._now(), before=before, known=known, recalled=recalled)

    def _model_for(self, place: Place, purpose: Purpose) -> Model | None:
        return self._model and self._metered(self._model, place, purpose)

    async def _known(self, subject: Subject, place: Place, seen_by: SeenBy | None, **asked: Any) -> list[Fact]:
        """Return the facts about a person that an agent sees, or those that all share."""
        found = await self._facts.about(subject, place=place, at=self._now(), seen_by=seen_by, **asked)
        return [fact for fact in found if seen_by or fact.agent is None]

    async def _summarise(self, subject: Subject, place: Place, seen_by: SeenBy | None) -> None:
        """Write a new summary of a person for a place, if enough of the facts that are visible there have changed."""
        now = self._now()
        facts = await self._known(subject, place, seen_by)
        if is_stale(await self._facts.summary(subject, place=place, at=now, seen_by=seen_by), facts):
            model = self._model_for(place, "summary")
            summary = await summarise(model, facts, subject=subject, place=place, now=now)
            summary = replace(summary, agent=seen_by.agent if seen_by else None)
            await self._facts.summarise(summary, made_of=[fact.id for fact in facts])


def _people(messages: Iterable[Message], place: Place) -> dict[str, Subject]:
    return {one.author.id: subject_of(one.author, place) for one in messages if one.author.is_person}


class EpisodeWriter(PlaceQueue):
    """Splits the messages of each place that is woken into episodes, and summarises those that have ended.

    Nothing is lost when a process ends: what is not written yet is written by the next one.
    """

    def __init__(
        self,
        episodes: Episodes,
        messages: Log,
        *,
        model: Model | None = None,
        rules: EpisodeRules | None = None,
        sleep: Sleep = asyncio.sleep,
        metered: Metered = lambda model, *_: model,
    ) -> None:
        super().__init__(self.write, "summarising episodes", sleep=sleep)
        self._episodes = episodes
        self._messages = messages
        self._model = model
        self._metered = metered  # counts what the model is asked
        self._rules = rules or EpisodeRules()

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Wake the places with messages in no episode, as an earlier process left them."""
        for place in filter(wanted, await self._episodes.places()):
            self.wake(place)

    async def write(self, place: Place) -> int:
        """Write the episodes of *place* that have ended, and anew those that were removed; return how many."""
        return await self._write_anew(place) + await self._write_next(place)

    async def _write_next(self, place: Place) -> int:
        """Write episodes from the cursor on, as far as they have ended."""
        count = failed = 0
        while failed < ATTEMPTS and (seen := await self._episodes.cursor(place)) and seen.read < seen.count:
            messages = await self._messages.read(place, seen.read, seen.read + PAGES * self._rules.read_size)
            ends = [seen.read + end for end in await self._boundaries(messages)]
            if not ends:
                break
            for first, last in message_ranges(seen.read, ends):
                part = messages[first - seen.read : last - seen.read]
                if not await self._add(part, first, replace(seen, read=first)):
                    failed += 1
                    break
                count += 1
        return count

    async def _write_anew(self, place: Place) -> int:
        """Write episodes again for messages that were read and whose episode was removed."""
        count = 0
        for start, stop in await self._episodes.missing_ranges(place):
            while start < stop:
                end = min(stop, start + PAGES * self._rules.read_size)
                seen = await self._episodes.cursor(place)
                messages = await self._messages.read(place, start, end)
                if seen is None or len(messages) < end - start:
                    return count
                ends = [start + one for one in await self._boundaries(messages)]
                if end == stop or not ends:
                    ends.append(end)
                for first, last in message_ranges(start, ends):
                    count += await self._add(messages[first - start : last - start], first, seen)
                start = ends[-1]
        return count

    async def _boundaries(self, messages: Sequence[Message]) -> list[int]:
        return await asyncio.to_thread(find_boundaries, messages, self._rules)  # too long for the event loop

    async def _add(self, messages: Sequence[Message], start: int, seen: EpisodeCursor) -> bool:
        """Store an episode of *messages*; return whether they were still as they were *seen*."""
        episode = await asyncio.to_thread(build_episode, messages, messages[-1].place, start)
        has_people = any(message.author.persona is None and not message.deleted for message in messages)
        if self._model is not None and has_people and episode.summary and seen.count - episode.stop < RECENT:
            episode = await self._summarise(episode, messages, self._model)
        return await self._episodes.add(episode, seen=seen)

    async def _summarise(self, episode: Episode, messages: Sequence[Message], model: Model) -> Episode:
        """Return the episode with a summary by the model; unchanged where that fails."""
        try:
            response = await self._metered(model, episode.place, "episode").respond(summary_prompt(messages))
        except SpendCapReached:
            raise  # retried when the cap allows it
        except TertuliaError as error:
            log.warning("episode %s is summarised without a model: %s", episode.id, error)
            return episode
        return apply_summary(episode, response.text, messages) or episode
