"""The learner: extracts facts from new messages, in the background, and renews the summaries of people."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from palaver.context.log import Log
from palaver.engine.background import Sleep, error_text
from palaver.engine.memory.place_queue import Metered, PlaceQueue, unmetered
from palaver.errors import PalaverError
from palaver.memory.extract import extract_facts
from palaver.memory.facts import Cursors, Fact, Facts, Subject, Summaries, UnreadRange, subject_of
from palaver.memory.summaries import is_stale, summarise
from palaver.memory.verify.echo import RecalledTexts
from palaver.messages import Message, Place
from palaver.models.base import Model

log = logging.getLogger(__name__)

BATCH = 30  # messages per extraction
BEFORE = 6  # earlier messages that are shown with them, for context
KNOWN = 20  # known facts of each person that a model is shown


async def _no_texts(_: Place) -> RecalledTexts:
    return RecalledTexts()


class FactsAndSummaries(Facts, Summaries, Protocol):
    """A store of facts and summaries."""


class Learner(PlaceQueue):
    """Reads the unread messages of each place that is woken.

    Without a model it uses patterns. So it does with the embedded model, which is too small for extraction.
    """

    def __init__(
        self,
        facts: FactsAndSummaries,
        cursors: Cursors,
        messages: Log,
        *,
        model: Model | None,
        now: Callable[[], datetime],
        batch: int = BATCH,
        sleep: Sleep = asyncio.sleep,
        recalled: Callable[[Place], Awaitable[RecalledTexts]] = _no_texts,
        metered: Metered = unmetered,
    ) -> None:
        super().__init__(self._read, "learning", sleep=sleep)
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
        """Read the unread messages of a place in batches; then renew the summaries of those they are by or about."""
        people: dict[str, Subject] = {}
        last: UnreadRange | None = None
        while (reading := await self._cursors.next_range(place, most=self._batch)) and reading != last:
            messages = await self._log.read(place, reading.start, reading.stop)
            facts = await self._extract_or_split(place, messages, reading.start)
            added = await self._facts.learn(facts, reading=reading)
            people |= _people(messages, place) | {fact.subject.id: fact.subject for fact in added}
            last = reading
        for subject in people.values():
            await self._summarise(subject, place)

    async def _extract_or_split(self, place: Place, messages: Sequence[Message], start: int) -> list[Fact]:
        """Extract facts from messages, of which the first has the number *start*.

        A message may make the extraction fail. It is found by halving the batch, so that only it is left out.
        """
        try:
            return await self._extract(place, messages, start)
        except PalaverError:
            raise
        except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other messages are read)
            log.error("%d messages in %s cannot be read: %s", len(messages), place.id, error_text(error))
        middle = len(messages) // 2
        halves = ((messages[:middle], start), (messages[middle:], start + middle)) if middle else ()
        return [fact for half, first in halves for fact in await self._extract_or_split(place, half, first)]

    async def _extract(self, place: Place, messages: Sequence[Message], start: int) -> list[Fact]:
        before = await self._log.read(place, max(0, start - BEFORE), start)
        known = [
            fact
            for author in _people(messages, place).values()
            for fact in await self._facts.about(author, place=place, asked_by=author, limit=KNOWN, at=self._now())
        ]
        recalled = await self._recalled(place)
        model = self._model_for(place)
        return await extract_facts(model, messages, now=self._now(), before=before, known=known, recalled=recalled)

    def _model_for(self, place: Place) -> Model | None:
        return self._model and self._metered(self._model, place)

    async def _summarise(self, subject: Subject, place: Place) -> None:
        """Write a new summary of a person for a place, if enough of the facts that are visible there have changed."""
        now = self._now()
        facts = await self._facts.about(subject, place=place, at=now)
        if is_stale(await self._facts.summary(subject, place=place, at=now), facts):
            summary = await summarise(self._model_for(place), facts, subject=subject, place=place, now=now)
            await self._facts.summarise(summary, made_of=[fact.id for fact in facts])


def _people(messages: Iterable[Message], place: Place) -> dict[str, Subject]:
    return {one.author.id: subject_of(one.author, place) for one in messages if one.author.is_person}
