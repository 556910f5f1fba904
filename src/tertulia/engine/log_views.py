"""Views of a log: `VisibleLog` hides what may not be seen in a place, `LogSlice` is a range of its messages."""

import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from copy import copy
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from tertulia.context.edits import LogChange, MessageChange
from tertulia.context.log import Log
from tertulia.engine.agents.presence import ALWAYS, Presence, sees
from tertulia.messages import NOBODY, Author, Message, Place, Quote, placeholder_of
from tertulia.turns import Turn

T = TypeVar("T")
Blocked = Callable[[], Awaitable[Collection[tuple[str, str]]]]  # platforms and ids


class LogView(Log):
    """A log that shows another one: as it is, where a method is not overridden."""

    def __init__(self, log: Log) -> None:
        self.source = log

    async def count(self, place: Place) -> int:
        return await self.source.count(place)

    async def number(self, message: Message) -> int | None:
        return await self.source.number(message)

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self.source.turns(messages)

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await self.source.in_snapshot(lambda log: reading(self._over(log)))

    def _over(self, log: Log) -> Self:
        """Return the same view of another log."""
        view = copy(self)
        view.source = log
        return view


class VisibleLog(LogView):
    """The log without messages of blocked authors, and without those sent while the chat had another kind.

    A chat changes its kind when a direct chat becomes a group, or the other way round. A hidden message becomes a
    deleted placeholder, so every message keeps its number. Nothing is stored: unblocking shows all of it again.
    """

    def __init__(self, log: Log, blocked: Blocked) -> None:
        super().__init__(log)
        self._blocked = blocked

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        blocked = await self._blocked()
        messages = await self.source.read(place, start, stop)
        if not blocked:
            direct = place.kind == "direct"
            return [one if (one.place.kind == "direct") is direct else placeholder_of(one) for one in messages]
        return [visible_message(message, place, blocked) for message in messages]

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        blocked = await self._blocked()
        found = await self.source.find(place, message_ids)
        return [(number, visible_message(message, place, blocked)) for number, message in found]

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        blocked = await self._blocked()
        changes = await self.source.changes(place, since)
        return [shown for change in changes if (shown := _visible_change(change, place, blocked)) is not None]

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        blocked = await self._blocked()

        async def known() -> Collection[tuple[str, str]]:
            return blocked

        return await self.source.in_snapshot(lambda log: reading(VisibleLog(log, known)))


class AgentLog(LogView):
    """The log as one of several agents sees it: the turns of a model are its own, and what it was not there for is not.

    A message that it has not seen becomes a deleted placeholder, as in `VisibleLog`.
    """

    def __init__(self, log: Log, names: Collection[str], present: Presence = ALWAYS) -> None:
        super().__init__(log)
        self._names = names  # under which the agent is stored
        self._present = present  # in the place that is read

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        messages = await self.source.read(place, start, stop)
        if self._present is ALWAYS:
            return messages
        return [self._seen(number, one) for number, one in enumerate(messages, max(start, 0))]

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        return [(number, self._seen(number, one)) for number, one in await self.source.find(place, message_ids)]

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self.source.turns([one for one in messages if one.agent is None or one.agent in self._names])

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return [one for one in await self.source.changes(place, since) if sees(self._present, one.number)]

    def _seen(self, number: int, message: Message) -> Message:
        return message if sees(self._present, number) else placeholder_of(message)


def _visible_change(change: LogChange, place: Place, blocked: Collection[tuple[str, str]]) -> LogChange | None:
    """Return the change as visible in *place*; None where it is hidden."""
    if not isinstance(change, MessageChange):
        return None if (place.author_namespace, change.author.id) in blocked else change
    before = visible_message(change.before, place, blocked)
    if before.author is NOBODY:
        return None
    return change if before is change.before else replace(change, before=before)


def visible_message(message: Message, place: Place, blocked: Collection[tuple[str, str]]) -> Message:
    """Return the message as visible in *place*; a deleted placeholder where it is hidden.

    A message that somebody forwarded from a blocked author is hidden too. A quote of a blocked author keeps only its
    id, and so does one of an unknown author once anybody is blocked.
    """

    def is_blocked(author: Author | None) -> bool:
        return author is not None and (place.author_namespace, author.id) in blocked

    elsewhere = (message.place.kind == "direct") != (place.kind == "direct")
    if elsewhere or is_blocked(message.author) or is_blocked(message.forwarded_from):
        return placeholder_of(message)
    quote = message.reply_to
    if quote and blocked and (quote.author is None or is_blocked(quote.author) or is_blocked(quote.forwarded_from)):
        return replace(message, reply_to=Quote(message_id=quote.message_id))
    return message


class LogSlice(LogView):
    """The messages of one place from number *beginning* up to *end*, numbered from 0."""

    def __init__(self, log: Log, beginning: int, end: int = sys.maxsize) -> None:
        super().__init__(log)
        self._beginning = beginning
        self._end = end

    async def count(self, place: Place) -> int:
        return max(0, min(await self.source.count(place), self._end) - self._beginning)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        last = min(stop + self._beginning, self._end)
        return await self.source.read(place, max(start, 0) + self._beginning, last)

    async def number(self, message: Message) -> int | None:
        number = await self.source.number(message)
        if number is None or not self._beginning <= number < self._end:
            return None
        return number - self._beginning

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        found = await self.source.find(place, message_ids)
        return [(number - self._beginning, one) for number, one in found if self._beginning <= number < self._end]

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return [
            replace(change, number=change.number - self._beginning, position=change.position - self._beginning)
            for change in await self.source.changes(place, since + self._beginning)
        ]
