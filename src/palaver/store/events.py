"""Durable events: stored in the transaction that causes them, numbered per place, published after the commit."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.errors import InvalidValue, PalaverError
from palaver.events import DurableEvent
from palaver.messages import Place
from palaver.store.people import find_place, keep_place
from palaver.store.sqlite import Database, Knowing
from palaver.store.values import ANY, PLACE, dumps, stamp
from palaver.store.writer import Owner, Writer

KEPT = 10_000  # of a place; the older ones are removed
EVERY = 1_000  # events of a place after which that is looked after
AT_ONCE = 500  # events in one read
LAST_ROW = 2**63 - 1  # that a table may have

Published = Callable[[Sequence[DurableEvent]], None]

_COLUMNS = ("place", "number", "cursor", "at")


class Events:
    """`conversation.journal.Events` in SQL."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader
        if isinstance(writer, Writer):
            writer.after_work = flush

    def subscribe(self, published: Published, troubled: Callable[[PalaverError], None]) -> Callable[[], None]:
        """Call *published* with the events of each commit, *troubled* with what went wrong; the result ends that."""
        lists: list[tuple[list[Any], Any]] = [(owner.troubled, troubled) for owner in {self._writer, self._reader}]
        if isinstance(self._writer, Writer):
            lists.append((self._writer.listeners, published))
        for listeners, listener in lists:
            listeners.append(listener)

        def unsubscribe() -> None:
            for listeners, listener in lists:
                listeners.remove(listener)

        return unsubscribe

    async def read(
        self, *, after: str, place: Place | None = None, run_id: str | None = None
    ) -> Sequence[DurableEvent]:
        """The oldest events behind a cursor; `""` is before all."""
        return await self._reader.run(lambda database: _read(database, after, place, run_id))

    async def last(self) -> str:
        """The cursor of the newest event."""
        select = "SELECT coalesce(max(id), 0) FROM place_events"
        return str(await self._reader.run(lambda database: database.execute(select).fetchone()[0]))


def add(database: Database, event: DurableEvent, at: datetime | None = None) -> None:
    """Store an event under the next number of its place, and publish it when the transaction is committed.

    The events of a unit of work are written together, at its end.
    """
    made = replace(event, at=at)
    if isinstance(database, Knowing):
        database.unwritten.append(made)
    else:
        _write(database, [(keep_place(database, event.place), made)])


def flush(database: Database) -> None:
    """Write the events of a unit of work that is done; those of a place that it removed are gone with the place."""
    if isinstance(database, Knowing) and database.unwritten:
        found = [(find_place(database, event.place), event) for event in database.unwritten]
        database.unwritten.clear()
        database.events += _write(database, [(place, event) for place, event in found if place is not None])


def _write(database: Database, events: Sequence[tuple[int, DurableEvent]]) -> list[DurableEvent]:
    """Write events of places, by their rows; the same events with their numbers and cursors."""
    counts = Counter(place for place, _ in events)
    counted = "UPDATE places SET events = events + ? WHERE id = ? RETURNING events"
    last = {place: database.execute(counted, (count, place)).fetchone()[0] - count for place, count in counts.items()}
    insert = "INSERT INTO place_events (place, number, run_id, at, body) VALUES (?, ?, ?, ?, ?) RETURNING id"
    written: list[DurableEvent] = []
    for place, event in events:
        number = last[place] = last[place] + 1
        values = (place, number, getattr(event, "run_id", None), stamp(event.at), _body(event))
        (row,) = database.execute(insert, values).fetchone()
        written.append(replace(event, number=number, cursor=str(row)))
        if number % EVERY == 0:
            database.execute("DELETE FROM place_events WHERE place = ? AND number <= ?", (place, number - KEPT))
    return written


def _body(event: DurableEvent) -> str:
    """Its kind and ids as JSON; ids that are not given are left out."""
    ids = {name: value for name in _ids(type(event)) if (value := getattr(event, name)) is not None}
    return dumps({"kind": event.__struct_config__.tag, **ids})


@cache
def _ids(kind: type[DurableEvent]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _COLUMNS)


def _read(database: Database, after: str, place: Place | None, run_id: str | None) -> list[DurableEvent]:
    wanted: dict[str, Any] = {"e.id > ?": _row_of(after)}
    if place is not None:
        wanted["e.place = ?"] = find_place(database, place)
    if run_id is not None:
        wanted["e.run_id = ?"] = run_id
    select = f"""SELECT e.id, e.number, e.at, e.body,
            (SELECT t.body FROM titles t WHERE t.place = e.place ORDER BY t.id DESC LIMIT 1),
            p.platform, p.place_id, p.thread
        FROM place_events e JOIN places p ON p.id = e.place
        WHERE {" AND ".join(wanted)} ORDER BY e.id LIMIT {AT_ONCE}"""  # noqa: S608
    return [_event(row) for row in database.execute(select, tuple(wanted.values()))]


def _row_of(cursor: str) -> int:
    """The row that a cursor stands for; it may be of another store, and beyond all rows."""
    if cursor and not cursor.isdecimal():
        raise InvalidValue(f"`after` is the cursor of an event, not {cursor!r:.100}")
    return min(int(cursor or 0), LAST_ROW)


def _event(row: tuple[Any, ...]) -> DurableEvent:
    cursor, number, at, body, title, platform, place_id, thread = row
    place = PLACE.loads(title) if title else Place(platform=platform, id=place_id, kind="group", thread=thread)
    fields = {**ANY.loads(body), "place": msgspec.to_builtins(place), "number": number, "cursor": str(cursor)}
    event: DurableEvent = msgspec.convert(fields | ({"at": at} if at else {}), DurableEvent)
    return event
