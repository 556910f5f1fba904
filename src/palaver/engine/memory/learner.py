"""Learning in the background: what was said is read once, after the replies, and never in their way."""

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

BATCH = 30  # messages that are read at once
BEFORE = 6  # messages before them that are shown, so that they can be understood
KNOWN = 20  # facts of each person that a model is reminded of


async def _nothing(_: Place) -> RecalledTexts:
    return RecalledTexts()


class Known(Facts, Summaries, Protocol):
    """Facts and summaries, kept together."""


class Learner:
    """Reads what was said in each place for facts, one place at a time; a failure is tried again later.

    Without a model it goes by patterns, which is also what the embedded model is too small for.
    """

    def __init__(
        self,
        facts: Known,
        marks: Cursors,
        said: Log,
        *,
        model: Model | None,
        now: Callable[[], datetime],
        batch: int = BATCH,
        sleep: Sleep = asyncio.sleep,
        recalled: Callable[[Place], Awaitable[RecalledTexts]] = _nothing,
        metered: Metered = unmetered,
    ) -> None:
        self._facts = facts
        self._marks = marks
        self._log = said
        self._model = model
        self._metered = metered  # how the model is asked
        self._now = now
        self._batch = batch
        self._recalled = recalled  # is not learned from whoever repeats it
        self._queue = PlaceQueue(self._read, "learning", sleep=sleep)

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Read what an earlier process has not."""
        for place in filter(wanted, await self._marks.unread()):
            self.wake(place)

    def wake(self, place: Place) -> None:
        """Read what is new or was changed in a place, soon; returns at once."""
        self._queue.add(place)

    @property
    def busy(self) -> bool:
        return self._queue.busy

    async def done(self) -> None:
        await self._queue.done()

    async def close(self) -> None:
        """Let go; what was not read is read by the next who starts."""
        await self._queue.close()

    async def _read(self, place: Place) -> None:
        """What is unread of a place, in batches; then the summaries of who was heard or spoken of."""
        people: dict[str, Subject] = {}
        last: UnreadRange | None = None
        while (reading := await self._marks.reading(place, most=self._batch)) and reading != last:
            messages = await self._log.read(place, reading.start, reading.stop)
            facts = await self._found(place, messages, reading.start)
            people |= _people(messages, place) | await self._keep(facts, reading)
            last = reading
        for subject in people.values():
            await self._sum_up(subject, place)

    async def _found(self, place: Place, messages: Sequence[Message], start: int) -> list[Fact]:
        """What messages say, the first of which has the number *start*; one that nobody can read says nothing."""
        try:
            return await self._learned(place, messages, start)
        except PalaverError:
            raise
        except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other messages are read)
            log.error("%d messages in %s cannot be read: %s", len(messages), place.id, error_text(error))
        middle = len(messages) // 2
        halves = ((messages[:middle], start), (messages[middle:], start + middle)) if middle else ()
        return [fact for half, first in halves for fact in await self._found(place, half, first)]

    async def _learned(self, place: Place, messages: Sequence[Message], start: int) -> list[Fact]:
        before = await self._log.read(place, max(0, start - BEFORE), start)
        spoke = _people(messages, place)
        known = [
            fact
            for one in spoke.values()
            for fact in await self._facts.about(one, place=place, asked_by=one, limit=KNOWN, at=self._now())
        ]
        recalled = await self._recalled(place)
        model = self._asked(place)
        return await extract_facts(model, messages, now=self._now(), before=before, known=known, recalled=recalled)

    def _asked(self, place: Place) -> Model | None:
        return self._model and self._metered(self._model, place)

    async def _keep(self, facts: Sequence[Fact], reading: UnreadRange) -> dict[str, Subject]:
        """Keep what was found, where it still stands; whom it is about."""
        added = await self._facts.learn(facts, reading=reading)
        return {fact.subject.id: fact.subject for fact in added}

    async def _sum_up(self, subject: Subject, place: Place) -> None:
        """A new summary of a person for a place, where enough of what may be heard there has changed."""
        now = self._now()
        facts = await self._facts.about(subject, place=place, at=now)
        if is_stale(await self._facts.summary(subject, place=place, at=now), facts):
            summary = await summarise(self._asked(place), facts, subject=subject, place=place, now=now)
            await self._facts.summarise(summary, made_of=[fact.id for fact in facts])


def _people(messages: Iterable[Message], place: Place) -> dict[str, Subject]:
    return {one.author.id: subject_of(one.author, place) for one in messages if one.author.is_person}
