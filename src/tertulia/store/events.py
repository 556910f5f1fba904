"""Durable events: stored in the transaction that causes them, numbered per place, published after the commit.

They are written at the end of the transaction, those of all jobs that are committed together with a few statements.
The table has no index but its sequence, which is the cursor. So an event is appended to the end of the table whatever
its place is, and a commit for many places writes one page of events. An index by place cost a page for each place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tertulia.errors import InvalidValue, TertuliaError
from tertulia.events import DurableEvent, FactsChanged, PlaceChanged
from tertulia.messages import Place
from tertulia.store.database import Database, insert_into
from tertulia.store.encoding import ANY, PLACE, dumps, format_time
from tertulia.store.identities import find_place, select_places, upsert_place
from tertulia.store.threads import Access, Repository, WriterThread, reading

MAX_EVENTS = 200_000  # of all places; the older ones are removed. A reader of one place reads past those of the others
CLEANUP_INTERVAL = 1_000  # events after which old ones are removed
PAGE_SIZE = 500  # events in one read
LAST_ROW = 2**63 - 1  # that a table may have

Published = Callable[[Sequence[DurableEvent]], None]

_COLUMNS = ("place", "number", "cursor", "at")
_INSERT = insert_into("place_events", "place", "number", "run_id", "at", "body")
# counts more events of places
_COUNT = "UPDATE places SET events = events + :more WHERE id IN (:places) RETURNING id, events"
# the oldest events after a cursor, of one place or run if that is said, each with the newest title of its place
_READ = """SELECT e.id, e.number, e.at, e.body,
        (SELECT t.body FROM titles t WHERE t.place = e.place ORDER BY t.id DESC LIMIT 1),
        p.platform, p.place_id, p.thread
    FROM place_events e JOIN places p ON p.id = e.place
    WHERE e.id > :after AND (:any_place = 1 OR e.place = :place) AND (:any_run = 1 OR e.run_id = :run_id)
    ORDER BY e.id LIMIT :most"""


class SqlEvents(Repository):
    """Implements `engine.store_protocols.EventStore`."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        if isinstance(self._writer, WriterThread):
            self._writer.before_commit = write

    def subscribe(self, published: Published, troubled: Callable[[TertuliaError], None]) -> Callable[[], None]:
        """Call *published* with the events of each commit and *troubled* with errors; return the unsubscriber."""
        lists: list[tuple[list[Any], Any]] = [
            (thread.error_listeners, troubled) for thread in {self._writer, self._reader}
        ]
        if isinstance(self._writer, WriterThread):
            lists.append((self._writer.commit_listeners, published))
        for listeners, listener in lists:
            listeners.append(listener)

        def unsubscribe() -> None:
            for listeners, listener in lists:
                listeners.remove(listener)

        return unsubscribe

    @reading
    def read(
        self, database: Database, *, after: str, place: Place | None = None, run_id: str | None = None
    ) -> Sequence[DurableEvent]:
        """Read the oldest events after a cursor; `""` is before all."""
        rows = database.all(
            _READ,
            after=_row_of(after),
            any_place=int(place is None),
            place=find_place(database, place) if place else None,
            any_run=int(run_id is None),
            run_id=run_id,
            most=PAGE_SIZE,
        )
        return [_event(row) for row in rows]

    @reading
    def last(self, database: Database) -> str:
        """Return the cursor of the newest event."""
        return str(database.value("SELECT max(id) FROM place_events") or 0)

    @reading
    def cursor(self, database: Database, place: Place, number: int) -> str | None:
        """Return the cursor of an event by its number; the newest are found at once."""
        select = "SELECT id FROM place_events WHERE place = :place AND number = :number ORDER BY id DESC LIMIT 1"
        row = database.value(select, place=find_place(database, place), number=number)
        return None if row is None else str(row)


class Unwritten(NamedTuple):
    """An event that is written at the end of the transaction, by the row of its place."""

    place: int
    event: DurableEvent
    at: datetime | None


def add(database: Database, *events: DurableEvent, at: datetime | None = None) -> None:
    """Store events in this transaction, and publish them when it is committed."""
    database.events += [Unwritten(upsert_place(database, event.place), event, at) for event in events]


def write(database: Database) -> None:
    """Write the events that were added, those of all jobs at once, each with the next number of its place."""
    waiting = [one for one in database.events if isinstance(one, Unwritten)]
    if not waiting:
        return
    del database.events[len(database.events) - len(waiting) :]
    following = _count(database, Counter(one.place for one in waiting))
    there = [one for one in waiting if one.place in following]  # others were forgotten since, with their places
    rows: list[dict[str, Any]] = []
    for place, event, at in there:
        run_id, number = getattr(event, "run_id", None), following[place]
        rows.append({"place": place, "number": number, "run_id": run_id, "at": format_time(at), "body": _body(event)})
        following[place] = number + 1
    for one, values, row in zip(there, rows, database.insert_all(_INSERT, rows), strict=True):
        if row % CLEANUP_INTERVAL == 0:
            database.run("DELETE FROM place_events WHERE id <= :last", last=row - MAX_EVENTS)
        database.events.append(replace(one.event, at=one.at, number=values["number"], cursor=str(row)))


def add_place_changes(
    database: Database,
    places: Iterable[int],
    *,
    at: datetime | None = None,
    kind: type[PlaceChanged | FactsChanged] = PlaceChanged,
) -> None:
    """Store that what is stored of places, by their rows, changed as a whole, or their facts."""
    select = """SELECT t.body FROM places p JOIN titles t ON t.id = (SELECT max(id) FROM titles WHERE place = p.id)
        WHERE p.id IN (:places) ORDER BY p.id"""
    add(database, *(kind(place=place) for place in select_places(database, select, places=list(places))), at=at)


def _count(database: Database, more: Mapping[int, int]) -> dict[int, int]:
    """Count how many *more* events there are in places, by their rows; return the number of the first in each."""
    first: dict[int, int] = {}
    for number in set(more.values()):  # mostly each place has as many
        there = [place for place, of_place in more.items() if of_place == number]
        for place, last in database.all(_COUNT, more=number, places=there):
            first[place] = last - number + 1
    return first


def _body(event: DurableEvent) -> str:
    """Encode the kind and the ids of an event as JSON, without empty ids."""
    ids: dict[str, Any] = {"kind": event.__struct_config__.tag}
    for name in _ids(type(event)):
        value = getattr(event, name)
        if value is not None:
            ids[name] = value
    return dumps(ids)


@cache
def _ids(kind: type[DurableEvent]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _COLUMNS)


def _row_of(cursor: str) -> int:
    """Return the row of a cursor, which may come from another store and be beyond all rows."""
    if cursor and not cursor.isdecimal():
        raise InvalidValue(f"`after` is the cursor of an event, not {cursor!r:.100}")
    return min(int(cursor or 0), LAST_ROW)


def _event(row: tuple[Any, ...]) -> DurableEvent:
    cursor, number, at, body, title, platform, place_id, thread = row
    place = PLACE.loads(title) if title else Place(platform=platform, id=place_id, kind="group", thread=thread)
    fields = {**ANY.loads(body), "place": msgspec.to_builtins(place), "number": number, "cursor": str(cursor)}
    event: DurableEvent = msgspec.convert(fields | ({"at": at} if at else {}), DurableEvent)
    return event
