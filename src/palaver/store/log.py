"""What was said in a place, read again: the same message is the same object as long as it stands as it was."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from palaver.context.changes import Change
from palaver.conversation.hearing import unheard
from palaver.messages import Message, Place
from palaver.store.messages import COLUMNS, as_message
from palaver.store.people import Versions, find_place, place_key
from palaver.store.sqlite import Database
from palaver.store.values import MESSAGE, TURNS
from palaver.store.writer import Owner
from palaver.turns import Turn

SHELVES = 64  # places whose messages are at hand
ON_A_SHELF = 640  # messages of each: a window, and what lies before it
_AT_ONCE = 500  # ids in one question
_CHANGES = """SELECT e.id, e.number, e.position, e.before FROM events e
    WHERE e.place = ? AND e.number >= ? AND e.seen = 1 AND e.kind IN ('edited', 'deleted') AND e.before IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = e.message AND m.hidden = 1) AND NOT EXISTS (
        SELECT 1 FROM events l WHERE l.message = e.message AND l.change > e.change AND l.kind IN ('said', 'removed')
    ) ORDER BY e.change"""


class Kept(NamedTuple):
    message: Message
    turns: tuple[Turn, ...]


class Shelf:
    """The newest messages of one place that were read, as they stood at one change of it."""

    def __init__(self, row: int) -> None:
        self.row = row  # of the place; another one once the place was removed and came again
        self.seen = 0
        self.kept: dict[int, Kept] = {}
        self.numbers: dict[str, int] = {}
        self.changes: dict[int, Change] = {}  # by the rows of their events, in order
        self.changes_since: int | None = None  # of which message on these are; None: something has happened since

    def put(self, number: int, kept: Kept) -> None:
        self.kept[number] = kept
        self.numbers[kept.message.id] = number

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            gone = self.kept.pop(number, None)
            if gone:
                self.numbers.pop(gone.message.id, None)

    def shrink(self) -> None:
        if len(self.kept) > ON_A_SHELF:
            self.drop(sorted(self.kept)[: len(self.kept) - ON_A_SHELF])


class Log:
    """`context.reading.Log`, kept. The shelves belong to the thread that reads."""

    def __init__(self, reader: Owner) -> None:
        self._reader = reader
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._versions = Versions()

    async def count(self, place: Place) -> int:
        return await self._reader.run(lambda database: _count(database, place))

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        first = max(start, 0)
        return await self._reader.run(lambda database: self._read(database, place, first, stop)) if stop > first else []

    async def number(self, message: Message) -> int | None:
        return await self._reader.run(lambda database: _number(database, message.place, message.id))

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        return await self._reader.run(lambda database: self._find(database, place, message_ids))

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        if not messages:
            return {}
        place, ids = messages[0].place, [message.id for message in messages]
        return await self._reader.run(lambda database: self._turns(database, place, ids))

    async def changes(self, place: Place, since: int) -> Sequence[Change]:
        return await self._reader.run(lambda database: self._changes(database, place, since))

    async def forget(self) -> None:
        """Put away everything that was read."""
        await self._reader.run(lambda _: self._clear())

    def _clear(self) -> None:
        self._shelves.clear()
        self._versions.forget()

    def _read(self, database: Database, place: Place, start: int, stop: int) -> list[Message]:
        found = self._shelf(database, place)
        if found is None:
            return []
        row, count, shelf = found
        stop = min(stop, count)
        wanted = range(start, stop)
        missing = [number for number in wanted if number not in shelf.kept]
        if missing:
            self._fetch(database, shelf, row, (missing[0], missing[-1] + 1))
        read = [shelf.kept[number].message for number in wanted]
        shelf.shrink()
        return read

    def _find(self, database: Database, place: Place, ids: Sequence[str]) -> list[tuple[int, Message]]:
        found = self._shelf(database, place)
        if found is None:
            return []
        row, _, shelf = found
        select = "SELECT number FROM messages WHERE place = ? AND message_id = ?"
        kept: list[tuple[int, Message]] = []
        for message_id in ids:
            number = shelf.numbers.get(message_id)
            if number is None:
                known = database.execute(select, (row, message_id)).fetchone()
                if known is None:
                    continue
                number = known[0]
                self._fetch(database, shelf, row, (number, number + 1))
            kept.append((number, shelf.kept[number].message))
        shelf.shrink()
        return kept

    def _turns(self, database: Database, place: Place, ids: Sequence[str]) -> dict[str, tuple[Turn, ...]]:
        found = self._shelf(database, place)
        if found is None:
            return {}
        row, _, shelf = found
        missing = [message_id for message_id in ids if message_id not in shelf.numbers]
        made = _made(database, row, missing) if missing else {}
        for message_id in ids:
            number = shelf.numbers.get(message_id)
            if number is not None and shelf.kept[number].turns:
                made[message_id] = shelf.kept[number].turns
        return made

    def _changes(self, database: Database, place: Place, since: int) -> tuple[Change, ...]:
        found = self._shelf(database, place)
        if found is None:
            return ()
        row, _, shelf = found
        if shelf.changes_since != since:
            rows = database.execute(_CHANGES, (row, since)).fetchall()
            shelf.changes = {event: shelf.changes.get(event) or _change(*change) for event, *change in rows}
            shelf.changes_since = since
        return tuple(shelf.changes.values())

    def _shelf(self, database: Database, place: Place) -> tuple[int, int, Shelf] | None:
        """The place's row, how many messages it has, and its shelf without those that have changed since."""
        key = place_key(place)
        select = "SELECT id, messages, changes FROM places WHERE place_key = ?"
        found = database.execute(select, (key,)).fetchone()
        if found is None:
            return None
        row, count, changes = found
        shelf = self._shelves.pop(key, None)
        if shelf is None or shelf.row != row:
            shelf = Shelf(row)
        self._shelves[key] = shelf
        if len(self._shelves) > SHELVES:
            self._shelves.popitem(last=False)
        if changes > shelf.seen:
            changed = "SELECT number FROM events WHERE place = ? AND change > ?"
            shelf.drop(number for (number,) in database.execute(changed, (row, shelf.seen)).fetchall())
            shelf.seen = changes
            shelf.changes_since = None
        return row, count, shelf

    def _fetch(self, database: Database, shelf: Shelf, place: int, between: tuple[int, int]) -> None:
        select = f"""SELECT {COLUMNS}, m.hidden, t.turns FROM messages m LEFT JOIN turns t ON t.message = m.id
            WHERE m.place = ? AND m.number >= ? AND m.number < ? ORDER BY m.number"""  # noqa: S608
        for row in database.execute(select, (place, *between)).fetchall():
            if row[1] not in shelf.kept:
                *columns, hidden, turns = row
                message = as_message(database, tuple(columns), self._versions)
                made = () if hidden or turns is None else TURNS.loads(turns)
                shelf.put(row[1], Kept(unheard(message) if hidden else message, made))


def _change(number: int, position: int, before: str) -> Change:
    return Change(number=number, position=position, before=MESSAGE.loads(before))


def _count(database: Database, place: Place) -> int:
    row = database.execute("SELECT messages FROM places WHERE place_key = ?", (place_key(place),)).fetchone()
    return row[0] if row else 0


def _number(database: Database, place: Place, message_id: str) -> int | None:
    select = "SELECT number FROM messages WHERE place = ? AND message_id = ?"
    row = database.execute(select, (find_place(database, place), message_id)).fetchone()
    return row[0] if row else None


def _made(database: Database, place: int, message_ids: Iterable[str]) -> dict[str, tuple[Turn, ...]]:
    made: dict[str, tuple[Turn, ...]] = {}
    left = iter(message_ids)
    while some := list(islice(left, _AT_ONCE)):
        select = f"""SELECT m.message_id, t.turns FROM messages m JOIN turns t ON t.message = m.id
            WHERE m.place = ? AND m.hidden = 0 AND m.message_id IN ({", ".join("?" * len(some))})"""  # noqa: S608
        made |= {row[0]: TURNS.loads(row[1]) for row in database.execute(select, (place, *some))}
    return made
