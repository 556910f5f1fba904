"""Learning in the background: what was said is read once, after the replies, and never in their way."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from palaver.context.reading import Log
from palaver.conversation.crew import Sleep
from palaver.conversation.memory.rounds import Rounds
from palaver.memory.extract import learned
from palaver.memory.facts import Fact, Facts, Learned, Reading, Subject, Summaries, is_same_place, subject_of
from palaver.memory.summaries import is_stale, summarised
from palaver.messages import Author, Message, Place, PlaceKey
from palaver.models.base import Model

BATCH = 30  # messages that are read at once
BEFORE = 6  # messages before them that are shown, so that they can be understood
KNOWN = 20  # facts of each person that a model is reminded of
RECALLED = 200  # texts that are known again, in each place
PLACES = 256  # whose recalled texts are at hand


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
        sleep: Sleep = asyncio.sleep,
        learnt: Callable[[Sequence[Fact]], None] | None = None,
    ) -> None:
        self._facts = facts
        self._marks = marks
        self._log = said
        self._model = model
        self._now = now
        self._batch = batch
        self._learnt = learnt  # is shown what was learned
        self._rounds = Rounds(self._read, "learning", sleep=sleep)
        self._edited: list[tuple[Place, str]] = []
        self._recalled: OrderedDict[PlaceKey, deque[str]] = OrderedDict()

    async def start(self) -> None:
        """Read what an earlier process has not."""
        for place in await self._marks.unread():
            self.heard(place)

    def heard(self, place: Place) -> None:
        """Read what is new in a place, soon; returns at once."""
        self._rounds.take(place)

    def changed(self, place: Place, message_id: str) -> None:
        """Read a message again that says something else now, or nothing any more."""
        self._edited.append((place, message_id))
        self.heard(place)

    def recalled(self, place: Place, texts: Iterable[str]) -> None:
        """Note what the agent was reminded of there, so that it is not learned from whoever repeats it."""
        known = self._recalled.setdefault(place.key, deque(maxlen=RECALLED))
        known.extend(text for text in texts if text not in known)
        self._recalled.move_to_end(place.key)
        while len(self._recalled) > PLACES:
            self._recalled.popitem(last=False)

    @property
    def busy(self) -> bool:
        return self._rounds.busy

    async def done(self) -> None:
        await self._rounds.done()

    async def close(self) -> None:
        """Let go; what was not read is read by the next who starts."""
        await self._rounds.close()

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
        recalled = tuple(self._recalled.get(place.key, ()))
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
