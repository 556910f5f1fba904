"""Durable events: stored in the transaction that causes them, numbered per place, published after the commit.

The table has no index but its sequence, which is the cursor. So an event is appended to the end of the table whatever
its place is, and a commit for many places writes one page of events. An index by place cost a page for each place.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from tertulia.errors import InvalidValue, TertuliaError
from tertulia.events import DurableEvent, FactsChanged, PlaceChanged
from tertulia.messages import Place
from tertulia.store.database import Database, insert_row
from tertulia.store.encoding import ANY, PLACE, dumps, format_time
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.threads import Repository, WriterThread, reading

MAX_EVENTS = 200_000  # of all places; the older ones are removed. A reader of one place reads past those of the others
CLEANUP_INTERVAL = 1_000  # events after which old ones are removed
PAGE_SIZE = 500  # events in one read
LAST_ROW = 2**63 - 1  # that a table may have

Published = Callable[[Sequence[DurableEvent]], None]

_COLUMNS = ("place", "number", "cursor", "at")
# the oldest events after a cursor, of one place or run if that is said, each with the newest title of its place
_READ = """SELECT e.id, e.number, e.at, e.body,
        (SELECT t.body FROM titles t WHERE t.place = e.place ORDER BY t.id DESC LIMIT 1),
        p.platform, p.place_id, p.thread
    FROM place_events e JOIN places p ON p.id = e.place
    WHERE e.id > :after AND (:any_place = 1 OR e.place = :place) AND (:any_run = 1 OR e.run_id = :run_id)
    ORDER BY e.id LIMIT :most"""


class SqlEvents(Repository):
    """Implements `engine.store_protocols.EventStore`."""

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
        newest = database.one("SELECT max(id) FROM place_events")
        return str(newest[0] or 0 if newest else 0)

    @reading
    def cursor(self, database: Database, place: Place, number: int) -> str | None:
        """Return the cursor of an event by its number; the newest are found at once."""
        row = database.one(
            "SELECT id FROM place_events WHERE place = :place AND number = :number ORDER BY id DESC LIMIT 1",
            place=find_place(database, place),
            number=number,
        )
        return str(row[0]) if row else None


def add(
    database: Database, *events: DurableEvent, at: datetime | None = None, counted: tuple[int, int] | None = None
) -> None:
    """Store events of one place, and publish them when the transaction is committed.

    They get the next numbers of their place. A caller that has *counted* them gives its row and the first number.
    """
    place, number = counted or _count(database, events[0].place, len(events))
    when = format_time(at)
    for following, event in enumerate(events, number):
        run_id = getattr(event, "run_id", None)
        values = {"place": place, "number": following, "run_id": run_id, "at": when, "body": _body(event)}
        row = insert_row(database, "place_events", **values)
        if row % CLEANUP_INTERVAL == 0:
            database.run("DELETE FROM place_events WHERE id <= :last", last=row - MAX_EVENTS)
        database.events.append(replace(event, at=at, number=following, cursor=str(row)))


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
    for (place,) in database.all(select, places=list(places)):
        add(database, kind(place=PLACE.loads(place)), at=at)


def _count(database: Database, place: Place, more: int) -> tuple[int, int]:
    """Count events in their place; return its row and the number of the first."""
    row = upsert_place(database, place)
    update = "UPDATE places SET events = events + :more WHERE id = :place RETURNING events"
    ((last,),) = database.all(update, more=more, place=row)
    return row, last - more + 1


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
