"""Learning in the background: what was said is read once, after the replies, and never in their way."""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from palaver.context.reading import Log
from palaver.conversation.crew import Crew, Sleep, pauses
from palaver.errors import ModelUnavailable, PalaverError
from palaver.memory.extract import learned
from palaver.memory.facts import Fact, Facts, Learned, Reading, Subject, Summaries, is_same_place, subject_of
from palaver.memory.summaries import is_stale, summarised
from palaver.messages import Author, Message, Place
from palaver.models.base import Model

log = logging.getLogger(__name__)

BATCH = 30  # messages that are read at once
BEFORE = 6  # messages before them that are shown, so that they can be understood
KNOWN = 20  # facts of each person that a model is reminded of
RECALLED = 200  # texts that are known again, in each place
PLACES = 256  # whose recalled texts are at hand
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds

Key = tuple[str, str, str | None]


class Known(Facts, Summaries, Protocol):
    """Facts and summaries, kept together."""


class Learner:
    """Reads what was said in each place for facts, one place at a time; a failure is tried again later.

    Without a model it goes by patterns, which is also what the embedded model is too small for.
    """

    def __init__(
        self,
        facts: Known,
        marks: Learned,
        said: Log,
        *,
        model: Model | None,
        now: Callable[[], datetime],
        batch: int = BATCH,
        quiet: float = 0.0,
        sleep: Sleep = asyncio.sleep,
        learnt: Callable[[Sequence[Fact]], None] | None = None,
    ) -> None:
        self._facts = facts
        self._marks = marks
        self._log = said
        self._model = model
        self._now = now
        self._batch = batch
        self._quiet = quiet  # seconds to wait for more before reading
        self._sleep = sleep
        self._learnt = learnt  # is shown what was learned
        self._crew = Crew()
        self._due: OrderedDict[Key, Place] = OrderedDict()
        self._edited: list[tuple[Place, str]] = []
        self._recalled: OrderedDict[Key, deque[str]] = OrderedDict()
        self._reading = False

    async def start(self) -> None:
        """Read what an earlier process has not."""
        for place in await self._marks.unread():
            self.heard(place)

    def heard(self, place: Place) -> None:
        """Read what is new in a place, soon; returns at once."""
        self._due[_key(place)] = place
        if not self._reading:
            self._reading = True
            self._crew.begin(self._read_all())

    def changed(self, place: Place, message_id: str) -> None:
        """Read a message again that says something else now, or nothing any more."""
        self._edited.append((place, message_id))
        self.heard(place)

    def recalled(self, place: Place, texts: Iterable[str]) -> None:
        """Note what the agent was reminded of there, so that it is not learned from whoever repeats it."""
        known = self._recalled.setdefault(_key(place), deque(maxlen=RECALLED))
        known.extend(text for text in texts if text not in known)
        self._recalled.move_to_end(_key(place))
        while len(self._recalled) > PLACES:
            self._recalled.popitem(last=False)

    @property
    def busy(self) -> bool:
        return self._crew.busy

    async def done(self) -> None:
        await self._crew.done()

    async def close(self) -> None:
        """Let go; what was not read is read by the next who starts."""
        await self._crew.stop()
        self._reading = False

    async def _read_all(self) -> None:
        """All that is due, place by place; what fails waits, longer each time, and goes to the end."""
        waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
        try:
            while self._due:
                if self._quiet:
                    await self._sleep(self._quiet)
                key, place = self._due.popitem(last=False)
                try:
                    await self._read(place)
                    waits = pauses(FIRST_PAUSE, LONGEST_PAUSE)
                except PalaverError as error:
                    self._due.setdefault(key, place)
                    pause = _pause(error, next(waits))
                    log.warning("what was said in %s is read again in %g s: %s", place.id, pause, error)
                    await self._sleep(pause)
        finally:
            self._reading = False

    async def _read(self, place: Place) -> None:
        """What is unread of a place, in batches; then what was edited there, and the summaries of who was heard."""
        people: dict[str, Subject] = {}
        read: set[int] = set()
        last: Reading | None = None
        while (reading := await self._marks.reading(place, most=self._batch)) and reading != last:
            messages = await self._log.read(place, reading.start, reading.stop)
            await self._keep(await self._found(place, messages, reading.start), reading)
            people |= _people(messages, place)
            read.update(range(reading.start, reading.stop))
            last = reading
        people |= await self._read_edited(place, read)
        for subject in people.values():
            await self._sum_up(subject, place)

    async def _read_edited(self, place: Place, read: Collection[int]) -> dict[str, Subject]:
        """Those edited messages that were not just *read*; who wrote them."""
        people: dict[str, Subject] = {}
        while edited := next((one for one in self._edited if is_same_place(one[0], place)), None):
            number = await self._log.number(Message(id=edited[1], place=place, author=Author(id="", name="")))
            if number is not None and number not in read:
                messages = await self._log.read(place, number, number + 1)
                facts = await self._found(place, messages, number)
                if messages != await self._log.read(place, number, number + 1):
                    continue  # it has changed once more
                await self._keep(facts)
                people |= _people(messages, place)
            self._edited.remove(edited)
        return people

    async def _found(self, place: Place, messages: Sequence[Message], start: int) -> list[Fact]:
        """What messages say, the first of which has the number *start*."""
        before = await self._log.read(place, max(0, start - BEFORE), start)
        spoke = _people(messages, place)
        known = [fact for one in spoke.values() for fact in await self._facts.about(one, place=place, limit=KNOWN)]
        recalled = tuple(self._recalled.get(_key(place), ()))
        return await learned(self._model, messages, now=self._now(), before=before, known=known, recalled=recalled)

    async def _keep(self, facts: Sequence[Fact], reading: Reading | None = None) -> None:
        added = await self._facts.learn(facts, reading=reading)
        if added and self._learnt is not None:
            self._learnt(added)

    async def _sum_up(self, subject: Subject, place: Place) -> None:
        """A new summary of a person for a place, where enough of what may be heard there has changed."""
        facts = await self._facts.about(subject, place=place)
        if is_stale(await self._facts.summary(subject, place=place), facts):
            summary = await summarised(self._model, facts, subject=subject, place=place, now=self._now())
            await self._facts.summarise(summary, made_of=[fact.id for fact in facts])


def _people(messages: Iterable[Message], place: Place) -> dict[str, Subject]:
    return {one.author.id: subject_of(one.author, place) for one in messages if one.author.persona is None}


def _pause(error: PalaverError, usual: float) -> float:
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    return min(max(asked or 0.0, usual), LONGEST_PAUSE)


def _key(place: Place) -> Key:
    return place.platform, place.id, place.thread
