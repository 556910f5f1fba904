"""The log of messages, read through an identity map.

Identity map. Rendering and token counts are cached on the message objects themselves, so an unchanged message must be
the same object at every read. `LogCache` holds the newest messages of the places that were read last. Every change of a
message increases `places.changes`. A read compares that number with the one its `PlaceCache` has seen, drops the
messages that have changed since, and fetches only what is missing. The cache belongs to the reader thread: it is used
in a transaction, so that the number and the messages are of one state.

Its size is estimated, since walking over what hangs on a message would take longer than reading it again: a message
takes `_MESSAGE_BYTES`, and `_FORMS` times its columns, for what is rendered, repaired and encoded of it. Over
`MAX_BYTES`, the places that were not read for longest are dropped.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tertulia.context.edits import LogChange, MessageChange
from tertulia.context.log import Log
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place, PlaceKey, placeholder_of
from tertulia.store import message_rows
from tertulia.store.database import Database, Row
from tertulia.store.encoding import MESSAGE, TURNS
from tertulia.store.identities import place_key, read_counts
from tertulia.store.message_rows import MESSAGES
from tertulia.store.threads import CheckedCalls, ConnectionThread
from tertulia.turns import Turn

T = TypeVar("T")

MAX_BYTES = 64 * 2**20  # of all messages in the cache
MAX_PLACES = 1024  # places in the cache
MAX_MESSAGES = 640  # messages of each place: a window and what precedes it
_NEW = 32  # new messages that are read to find the number of one
_PLACE_BYTES = 2_000  # of a place without its messages
_MESSAGE_BYTES, _FORMS = 1_300, 3  # measured with all forms of the profile `layered`, encoded for one model

# the edits and deletions that prompts tell of, unless the message was hidden or said anew since
CHANGES = """SELECT e.id, e.number, e.position, e.before FROM message_changes e
    WHERE e.place = :place AND e.number >= :since AND e.seen = 1
    AND e.kind IN ('edited', 'deleted') AND e.before IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = e.message AND m.hidden = 1) AND NOT EXISTS (
        SELECT 1 FROM message_changes l WHERE l.message = e.message AND l.change > e.change
        AND l.kind IN ('said', 'removed')
    ) ORDER BY e.change"""
# messages of a place with their turns; a condition on their numbers follows
_MESSAGES = f"""SELECT m.number, m.hidden, t.turns, {MESSAGES} FROM messages m LEFT JOIN turns t ON t.message = m.id
    WHERE m.place = :place AND """
_IN_RANGE = _MESSAGES + "m.number >= :start AND m.number < :stop ORDER BY m.number"
_WITH_NUMBERS = _MESSAGES + "m.number IN (:numbers)"
# the numbers of messages by their ids, and by those of their parts
_NUMBERS = """SELECT m.message_id, m.number FROM messages m WHERE m.place = :place AND m.message_id IN (:message_ids)
    UNION ALL SELECT p.message_id, m.number FROM message_parts p JOIN messages m ON m.id = p.message
    WHERE p.place = :place AND p.message_id IN (:message_ids)"""
# what the agent did and said to write messages, by their ids
_TURNS = """SELECT m.message_id, t.turns FROM messages m JOIN turns t ON t.message = m.id
    WHERE m.place = :place AND m.hidden = 0 AND m.message_id IN (:message_ids)"""


class LogEntry(NamedTuple):
    message: Message
    turns: tuple[Turn, ...]
    size: int  # bytes, estimated


class PlaceCache:
    """The newest messages of one place, as of its change `seen`."""

    def __init__(self, row: int) -> None:
        self.row = row  # of the place; another one once the place was removed and came again
        self.size = _PLACE_BYTES  # with the messages and the edits
        self.seen = 0
        self.entries: dict[int, LogEntry] = {}
        self.numbers: dict[str, int] = {}
        self.edits: dict[int, MessageChange] = {}  # by the rows of their changes, in order
        self.edits_size = 0
        self.changes: Sequence[LogChange] = ()  # these, and the reactions
        self.changes_since: int | None = None  # of which message on these are; None: something has happened since

    def put(self, number: int, entry: LogEntry) -> None:
        self.entries[number] = entry
        self.numbers[entry.message.id] = number
        self.size += entry.size

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            gone = self.entries.pop(number, None)
            if gone:
                self.numbers.pop(gone.message.id, None)
                self.size -= gone.size

    def shrink(self, *, messages: int, size: int) -> None:
        """Drop the oldest messages beyond these numbers."""
        if len(self.entries) > messages or self.size > size:
            for number in sorted(self.entries):
                if len(self.entries) <= messages and self.size <= size:
                    return
                self.drop([number])


class SqlLog(CheckedCalls, Log):
    """Implements `context.log.Log`."""

    def __init__(self, reader: ConnectionThread, cache: "LogCache | None" = None) -> None:
        self._reader = reader
        self._cache = cache or LogCache()

    async def count(self, place: Place) -> int:
        return await self.in_snapshot(lambda log: log.count(place))

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        return await self.in_snapshot(lambda log: log.read(place, start, stop))

    async def number(self, message: Message) -> int | None:
        return await self.in_snapshot(lambda log: log.number(message))

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        return await self.in_snapshot(lambda log: log.find(place, message_ids))

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self.in_snapshot(lambda log: log.turns(messages)) if messages else {}

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return await self.in_snapshot(lambda log: log.changes(place, since))

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await self._reader.run(lambda database: _run_sync(reading(Snapshot(database, self._cache))))

    async def clear_cache(self) -> None:
        """Forget everything that was read."""
        await self._reader.run(lambda _: self._cache.clear())


class LogCache:
    """The caches of the places that were read last; used in the reader thread only."""

    def __init__(self, *, size: int = MAX_BYTES, places: int = MAX_PLACES, messages: int = MAX_MESSAGES) -> None:
        self.by_place: OrderedDict[str, PlaceCache] = OrderedDict()  # that which was read last is the last
        self._size = size
        self._places = places
        self._messages = messages  # of each place

    def clear(self) -> None:
        self.by_place.clear()

    def cache_of(self, database: Database, place: Place) -> tuple[int, int, PlaceCache] | None:
        """Return the place's row, its number of messages, and its cache without messages that have changed since."""
        key = place_key(place)
        found = read_counts(database, place, "id, messages, changes")
        if found is None:
            return None
        row, count, changes = found
        cached = self.by_place.pop(key, None)
        if cached is None or cached.row != row:
            cached = PlaceCache(row)
        self.by_place[key] = cached
        if len(self.by_place) > self._places:
            self.by_place.popitem(last=False)
        if changes > cached.seen:
            changed = "SELECT number FROM message_changes WHERE place = :place AND change > :seen"
            cached.drop(number for (number,) in database.all(changed, place=row, seen=cached.seen))
            cached.seen = changes
            cached.changes_since = None
        return row, count, cached

    def shrink(self, read: PlaceCache) -> None:
        """Drop what is too much after a place was *read*: its oldest messages, and the places read longest ago."""
        read.shrink(messages=self._messages, size=self._size)
        size = sum(one.size for one in self.by_place.values())
        while size > self._size and len(self.by_place) > 1:
            _, gone = self.by_place.popitem(last=False)
            size -= gone.size


class Snapshot(Log):
    """The log in one transaction, in which nothing changes; its methods never suspend."""

    def __init__(self, database: Database, cache: LogCache) -> None:
        self._database = database
        self._cache = cache
        self._found: dict[PlaceKey, tuple[int, int, PlaceCache] | None] = {}

    async def count(self, place: Place) -> int:
        found = self._place_cache(place)
        return found[1] if found else 0

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        found = self._place_cache(place)
        if found is None:
            return []
        row, count, cached = found
        wanted = range(max(start, 0), min(stop, count))
        read = [cached.entries.get(number) for number in wanted]
        if not all(read):
            missing = [number for number in wanted if number not in cached.entries]
            self._add(cached, self._database.all(_IN_RANGE, place=row, start=missing[0], stop=missing[-1] + 1))
            read = [cached.entries.get(number) for number in wanted]  # none of a place that is being removed
            self._cache.shrink(cached)
        return [entry.message for entry in read if entry]

    async def number(self, message: Message) -> int | None:
        found = self._place_cache(message.place)
        if found is None:
            return None
        row, count, cached = found
        start = next(reversed(cached.entries), count) + 1
        if message.id not in cached.numbers and start < count <= start + _NEW:  # it is one of them; they are read next
            self._add(cached, self._database.all(_IN_RANGE, place=row, start=start, stop=count))
            self._cache.shrink(cached)
        return self._numbers(row, cached, [message.id]).get(message.id)

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        found = self._place_cache(place)
        if found is None:
            return []
        row, _, cached = found
        known = self._numbers(row, cached, message_ids)
        numbers = [known[message_id] for message_id in message_ids if message_id in known]
        missing = [number for number in numbers if number not in cached.entries]
        if missing:
            self._add(cached, self._database.all(_WITH_NUMBERS, place=row, numbers=missing))
        numbered = [(number, cached.entries[number].message) for number in numbers]
        self._cache.shrink(cached)
        return numbered

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        found = self._place_cache(messages[0].place) if messages else None
        if found is None:
            return {}
        row, _, cached = found
        made: dict[str, tuple[Turn, ...]] = {}
        missing: list[str] = []
        for message in messages:
            number = cached.numbers.get(message.id)
            if number is None:
                missing.append(message.id)
            elif turns := cached.entries[number].turns:
                made[message.id] = turns
        if missing:
            rows = self._database.all(_TURNS, place=row, message_ids=missing)
            made |= {message_id: TURNS.loads(turns) for message_id, turns in rows}
        return made

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        found = self._place_cache(place)
        if found is None:
            return ()
        row, _, cached = found
        if cached.changes_since != since:
            rows = self._database.all(CHANGES, place=row, since=since)
            cached.edits = {
                change: cached.edits.get(change)
                or MessageChange(number=number, position=position, before=MESSAGE.loads(before))
                for change, number, position, before in rows
            }
            shown = message_rows.read_reactions(self._database, row, since)
            cached.changes = (*cached.edits.values(), *shown)
            cached.changes_since = since
            size = _FORMS * sum(sys.getsizeof(before) for *_, before in rows)
            cached.size += size - cached.edits_size
            cached.edits_size = size
            self._cache.shrink(cached)
        return cached.changes

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await reading(self)

    def _place_cache(self, place: Place) -> tuple[int, int, PlaceCache] | None:
        key = place.key
        if key not in self._found:
            self._found[key] = self._cache.cache_of(self._database, place)
        return self._found[key]

    def _numbers(self, row: int, cached: PlaceCache, message_ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those of the messages that are stored, also by ids of their parts."""
        known = {one: cached.numbers[one] for one in message_ids if one in cached.numbers}
        missing = [one for one in message_ids if one not in known]
        return known | dict(self._database.all(_NUMBERS, place=row, message_ids=missing)) if missing else known

    def _add(self, cached: PlaceCache, rows: Sequence[Row]) -> None:
        """Add rows of `_MESSAGES` to a cache, without those that it has."""
        for number, hidden, turns, *columns in rows:
            if number in cached.entries:
                continue
            message = MESSAGES.decode(columns)
            made = () if hidden or turns is None else TURNS.loads(turns)
            own = columns[: len(MESSAGES.names)]  # others share their place and author
            texts = sum(sys.getsizeof(column) for column in own if isinstance(column, str))
            size = _MESSAGE_BYTES + _FORMS * (texts + sys.getsizeof(turns))
            cached.put(number, LogEntry(placeholder_of(message) if hidden else message, made, size))


def _run_sync(reading: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, and return its result."""
    try:
        reading.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    reading.close()
    raise InvalidValue("what reads a snapshot of the log may await nothing else")
