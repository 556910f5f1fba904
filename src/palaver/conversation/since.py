"""A log of which only a part is the conversation."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from palaver.context.changes import Change
from palaver.context.reading import Log
from palaver.messages import Message, Place
from palaver.turns import Turn


class Since:
    """The log of one place from number *beginning* up to *end*, counted from 0 again."""

    def __init__(self, log: Log, beginning: int, end: int | None = None) -> None:
        self._log = log
        self._beginning = beginning
        self._end = end  # None: to the newest message

    async def count(self, place: Place) -> int:
        count = await self._log.count(place)
        return max(0, (count if self._end is None else min(count, self._end)) - self._beginning)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        last = stop + self._beginning
        last = last if self._end is None else min(last, self._end)
        return await self._log.read(place, max(start, 0) + self._beginning, last)

    async def number(self, message: Message) -> int | None:
        number = await self._log.number(message)
        if number is None or number < self._beginning or (self._end is not None and number >= self._end):
            return None
        return number - self._beginning

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self._log.turns(messages)

    async def changes(self, place: Place, since: int) -> Sequence[Change]:
        return [
            replace(change, number=change.number - self._beginning, position=change.position - self._beginning)
            for change in await self._log.changes(place, since + self._beginning)
        ]
