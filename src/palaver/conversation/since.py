"""A log of which only a part is the conversation."""

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from palaver.context.changes import LogChange
from palaver.context.reading import Log
from palaver.messages import Message, Place
from palaver.turns import Turn

T = TypeVar("T")


class Since:
    """The log of one place from number *beginning* up to *end*, counted from 0 again."""

    def __init__(self, log: Log, beginning: int, end: int = sys.maxsize) -> None:
        self._log = log
        self._beginning = beginning
        self._end = end

    async def count(self, place: Place) -> int:
        return max(0, min(await self._log.count(place), self._end) - self._beginning)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        last = min(stop + self._beginning, self._end)
        return await self._log.read(place, max(start, 0) + self._beginning, last)

    async def number(self, message: Message) -> int | None:
        number = await self._log.number(message)
        if number is None or not self._beginning <= number < self._end:
            return None
        return number - self._beginning

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        found = await self._log.find(place, message_ids)
        return [(number - self._beginning, one) for number, one in found if self._beginning <= number < self._end]

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self._log.turns(messages)

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return [
            replace(change, number=change.number - self._beginning, position=change.position - self._beginning)
            for change in await self._log.changes(place, since + self._beginning)
        ]

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await self._log.in_snapshot(lambda log: reading(Since(log, self._beginning, self._end)))
