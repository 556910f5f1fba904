"""Durable events: stored in the transaction that causes them, numbered per place, published after the commit.

The table has no index but its sequence, which is the cursor. So an event is appended to the end of the table whatever
its place is, and a commit for many places writes one page of events. An index by place cost a page for each place.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from tertulia.errors import InvalidValue, TertuliaError
from tertulia.events import DurableEvent
from tertulia.messages import Place
from tertulia.store.encoding import ANY, PLACE, dumps, format_time
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.sqlite.connection import CachingConnection, Database, insert_row
from tertulia.store.sqlite.writer import Repository, WriterThread

MAX_EVENTS = 200_000  # of all places; the older ones are removed. A reader of one place reads past those of the others
CLEANUP_INTERVAL = 1_000  # events after which old ones are removed
PAGE_SIZE = 500  # events in one read
LAST_ROW = 2**63 - 1  # that a table may have

Published = Callable[[Sequence[DurableEvent]], None]

_COLUMNS = ("place", "number", "cursor", "at")
_INSERT = "INSERT INTO place_events (place, number, run_id, at, body) VALUES (?, ?, ?, ?, ?)"


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

    async def read(
        self, *, after: str, place: Place | None = None, run_id: str | None = None
    ) -> Sequence[DurableEvent]:
        """Read the oldest events after a cursor; `""` is before all."""
        return await self._reader.run(lambda database: _read(database, after, place, run_id))

    async def last(self) -> str:
        """Return the cursor of the newest event."""
        select = "SELECT coalesce(max(id), 0) FROM place_events"
        return str(await self._reader.run(lambda database: database.execute(select).fetchone()[0]))


def add(database: Database, *events: DurableEvent, at: datetime | None = None, number: int | None = None) -> None:
    """Store events of one place, and publish them when the transaction is committed.

    They get the next numbers of their place, unless the caller has counted the first one in `places.events` already.
    """
    place, when = upsert_place(database, events[0].place), format_time(at)
    published = database.events if isinstance(database, CachingConnection) else []
    if number is None:
        counted = "UPDATE places SET events = events + ? WHERE id = ? RETURNING events"
        number = database.execute(counted, (len(events), place)).fetchone()[0] - len(events) + 1
    for following, event in enumerate(events, number):
        row = insert_row(database, _INSERT, (place, following, getattr(event, "run_id", None), when, _body(event)))
        if row % CLEANUP_INTERVAL == 0:
            database.execute("DELETE FROM place_events WHERE id <= ?", (row - MAX_EVENTS,))
        published.append(replace(event, at=at, number=following, cursor=str(row)))


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
        WHERE {" AND ".join(wanted)} ORDER BY e.id LIMIT {PAGE_SIZE}"""
    return [_event(row) for row in database.execute(select, tuple(wanted.values()))]


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
