"""A log of which only the end is part of the conversation."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from palaver.context.changes import Change
from palaver.context.reading import Log
from palaver.messages import Message, Place
from palaver.turns import Turn


class Since:
    """The log of one place from number *beginning* on, counted from 0 again."""

    def __init__(self, log: Log, beginning: int) -> None:
        self._log = log
        self._beginning = beginning

    async def count(self, place: Place) -> int:
        return max(0, await self._log.count(place) - self._beginning)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        return await self._log.read(place, max(start, 0) + self._beginning, stop + self._beginning)

    async def number(self, message: Message) -> int | None:
        number = await self._log.number(message)
        return None if number is None or number < self._beginning else number - self._beginning

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self._log.turns(messages)

    async def changes(self, place: Place, since: int) -> Sequence[Change]:
        return [
            replace(change, number=change.number - self._beginning, position=change.position - self._beginning)
            for change in await self._log.changes(place, since + self._beginning)
        ]
