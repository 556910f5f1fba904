"""The log of messages: a protocol, one in memory, and how a window is read from a log for one target."""

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from tertulia.context.edits import LogChange, Reaction, shown_versions
from tertulia.context.stable_prefix import Marks, holds_results
from tertulia.context.values import Context, Notice
from tertulia.messages import Message, Place, PlaceKey, Quote
from tertulia.turns import Turn
from tertulia.value_cache import cached_for

T = TypeVar("T")

_PAGE = 64


class Log(Protocol):
    """The messages of each place, numbered in the order they came. A deleted message keeps its number.

    A class that fulfils it inherits from it, for `get`.
    """

    async def count(self, place: Place) -> int: ...

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        """Return the messages with the numbers from *start* up to *stop*."""
        ...

    async def number(self, message: Message) -> int | None:
        """Return the number of a message in its place, or None if the log does not hold it."""
        ...

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        """Return the messages with these ids that the log holds, each with its number."""
        ...

    async def get(self, place: Place, message_id: str) -> Message | None:
        """Return the message of that id in a place, or None if the log does not hold it."""
        found = await self.find(place, [message_id])
        return found[0][1] if found else None

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        """Return by id, for the agent's own among *messages*, the turns of the model that wrote them."""
        ...

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        """Return the edits and deletions of messages that a run has shown, then the reactions; each in order.

        They are of messages from number *since* on. A forgotten message has none, nor has an own one from before it
        was sent.
        """
        ...

    async def in_snapshot(self, reading: "Callable[[Log], Coroutine[Any, Any, T]]") -> T:
        """Run *reading* on a snapshot of the log, in one round trip; *reading* must await nothing but that log."""
        ...


class InMemoryLog(Log):
    """A log in memory: the messages of any number of places, and the turns of the agent's own."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[PlaceKey, list[Message]] = {}
        self._numbers: dict[PlaceKey, dict[str, int]] = {}
        self._turns: dict[tuple[PlaceKey, str], tuple[Turn, ...]] = {}
        for message in messages:
            self.add(message)

    def add(self, message: Message, *, turns: Iterable[Turn] = ()) -> None:
        """Add a message at the end of its place, or replace the one of that id where it is."""
        key = message.place.key
        stored, numbers = self._messages.setdefault(key, []), self._numbers.setdefault(key, {})
        if message.id in numbers:
            stored[numbers[message.id]] = message
            self._turns.pop((key, message.id), None)  # it says something else now
        else:
            numbers[message.id] = len(stored)
            stored.append(message)
        if made := tuple(turns):
            self._turns[key, message.id] = made

    async def count(self, place: Place) -> int:
        return len(self._messages.get(place.key, ()))

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        return self._messages.get(place.key, [])[start:stop]

    async def number(self, message: Message) -> int | None:
        return self._numbers.get(message.place.key, {}).get(message.id)

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        numbers, stored = self._numbers.get(place.key, {}), self._messages.get(place.key, [])
        return [(number, stored[number]) for name in message_ids if (number := numbers.get(name)) is not None]

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        if not self._turns or not messages:
            return {}
        key, known = messages[0].place.key, self._turns
        return {message.id: known[key, message.id] for message in messages if (key, message.id) in known}

    async def changes(self, _: Place, __: int) -> Sequence[LogChange]:
        """Return nothing: no run has shown anything."""
        return ()

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await reading(self)


class WindowRead(NamedTuple):
    """The messages of a window as they were first shown, and what was read with them."""

    context: Context  # with current quotes
    start: int  # the number of the first message, counted without the batch
    messages: tuple[Message, ...]
    notices: tuple[Notice, ...]
    turns: Mapping[str, tuple[Turn, ...]]


async def read_window(log: Log, context: Context, marks: Marks) -> WindowRead:
    """Read the messages from the cut of *marks* on, without the batch, and their changes since that cut."""
    stored = await log.count(context.place)
    taken = await numbers_of(log, context.batch)
    count = stored - len(taken)
    context = await with_current_quotes(log, context)
    if marks.high == 0:
        return WindowRead(context, count, (), (), {})
    start, messages = await read_without_batch(log, context.place, marks.start(count), taken, stored)
    cut_at = marks.last_cut(count)
    changes = [
        one
        for one in await log.changes(context.place, start)
        if one.position >= cut_at or isinstance(one, Reaction)  # an older edit is in the message itself
    ]
    notices: tuple[Notice, ...] = ()
    if changes:
        messages, notices = shown_versions(messages, changes, start=start, stored=stored, taken=taken)
    return WindowRead(context, start, messages, notices, await unedited_turns(log, messages))


class AroundRead(NamedTuple):
    """The newest messages before a target, and after it."""

    context: Context  # with current quotes
    before: tuple[Message, ...]
    after: tuple[Message, ...]


async def read_around(log: Log, context: Context, *, before: int, after: int) -> AroundRead:
    """Read at most so many messages *before* the target of the context, and *after* it."""
    context = await with_current_quotes(log, context)
    stored, number = await log.count(context.place), await log.number(context.target)
    target = stored if number is None else number
    older = await read_newest(log, context, 0, target, most=before)
    return AroundRead(context, older, await read_newest(log, context, target + 1, stored, most=after))


async def unedited_turns(log: Log, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
    """Return the turns of the agent's own messages that were not edited since: an edited one says something else."""
    found = await log.turns(messages)
    edited = {message.id for message in messages if message.edited_at} if found else ()
    return {name: turns for name, turns in found.items() if name not in edited} if edited else found


async def with_current_quotes(log: Log, context: Context) -> Context:
    """Return the context with the current quotes of its batch."""
    if not any(message.reply_to for message in context.batch):
        return context
    return context.with_batch([await with_current_quote(log, message) for message in context.batch])


async def with_current_quote(log: Log, message: Message) -> Message:
    """Return the message with its quote as the log has it now: the quoted message may be edited, deleted or hidden."""
    if message.reply_to is None:
        return message
    stored = await log.get(message.place, message.id)
    quote = stored.reply_to if stored and stored.reply_to else message.reply_to
    quoted = await log.get(message.place, quote.message_id)
    current = quote.update_from(quoted) if quoted else quote
    return message if current == message.reply_to else replace(message, reply_to=current)


async def with_unshown_quotes(log: Log, context: Context, read: Sequence[Message] = ()) -> Context:
    """Return the context with current quotes in its history, where it does not show the quoted message itself.

    Quoted messages among those *read* are not read again.
    """
    unshown = context.unshown_quotes((*context.window, *context.recent, *context.immediate, *context.newer))
    if not unshown:
        return context
    known = {message.id: message for message in read}
    wanted = dict.fromkeys(quote.message_id for quote in unshown.values() if quote.message_id not in known)
    if wanted:
        known |= {message.id: message for _, message in await log.find(context.place, list(wanted))}

    def current(message: Message) -> Message:
        quoted = known.get(unshown[message.id].message_id) if message.id in unshown else None
        return _with_quote(message, unshown[message.id].update_from(quoted)) if quoted else message

    return replace(
        context,
        window=tuple(map(current, context.window)),
        recent=tuple(map(current, context.recent)),
        immediate=tuple(map(current, context.immediate)),
        newer=tuple(map(current, context.newer)),
    )


def _with_quote(message: Message, quote: Quote) -> Message:
    """Return the message with *quote* as its quote; cached while the quote stays the same."""
    if quote == message.reply_to:
        return message
    return cached_for(message, "with quote", quote, lambda: replace(message, reply_to=quote))


async def numbers_of(log: Log, messages: Iterable[Message]) -> list[int]:
    """Return the numbers of those among *messages* that the log holds, in order."""
    return sorted([number for message in messages if (number := await log.number(message)) is not None])


async def read_without_batch(
    log: Log, place: Place, start: int, taken: Sequence[int], stored: int
) -> tuple[int, tuple[Message, ...]]:
    """Read the messages from *start* on without the batch, whose numbers are *taken*, in order.

    *start*, given and returned, is counted without the batch too.
    """
    first = start
    for number in taken:
        first += number <= first
    first, messages = await _read_with_calls(log, place, first, stored)
    others = list(messages)
    for number in reversed(taken):
        if number >= first:
            del others[number - first]
    return first - bisect_left(taken, first), tuple(others)


async def _read_with_calls(log: Log, place: Place, start: int, stop: int) -> tuple[int, tuple[Message, ...]]:
    """Read the messages from *start* on, or from before it where a result would be separated from its call."""
    messages = tuple(await log.read(place, start, stop))
    furthest = max(0, start - _PAGE)
    while start > furthest and messages and holds_results(messages[0]):
        start -= 1
        messages = (*await log.read(place, start, start + 1), *messages)
    return start, messages


async def read_newest(log: Log, context: Context, first: int, stop: int, *, most: int) -> tuple[Message, ...]:
    """Read at most *most* of the newest messages numbered from *first* up to *stop*; no deleted ones, no batch."""
    taken = {message.id for message in context.batch}
    found: list[Message] = []
    while stop > first and len(found) < most:
        start = max(first, stop - _PAGE)
        page = await log.read(context.place, start, stop)
        found[:0] = [message for message in page if not message.deleted and message.id not in taken]
        stop = start
    return tuple(found[-most:]) if most else ()
