"""Places: their settings (delimiter, start of the conversation), blocked authors, and migration to another id.

A place migrates with its history, memory and tasks. The row of the old place becomes the row of the new one, so that
all references stay valid. An alias leads from the old key to that row. The service counts the messages of the new place
anew, so the ids of the old messages get the old place's id in front of them. Where messages of the new place came
first, they are appended to those of the old one.
"""

import secrets
import string
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from tertulia.messages import Message, Place, PlaceKey, Quote, Reply
from tertulia.platform import Change, Commanded, Deleted, Delivered, Edited, Reacted, Received
from tertulia.store import agents, episodes, events, usage
from tertulia.store.database import Database, insert_row
from tertulia.store.encoding import PLACE, STRINGS, clean, dumps, format_time, parse_time
from tertulia.store.forget.retraction import strip_quotes
from tertulia.store.identities import (
    conversation_start,
    current_place,
    find_author,
    find_place,
    place_key,
    read_place,
    select_places,
    upsert_author,
    upsert_place,
)
from tertulia.store.json_columns import rewrite
from tertulia.store.sqlite.migrating import tables
from tertulia.store.threads import Access, Repository, reading, writing
from tertulia.tasks.task import Task
from tertulia.timezones import utc

C = TypeVar("C", bound=Change)

_WITH_MESSAGE_ID = {  # tables with a place, and their columns with the id of a message
    "messages": ("message_id", "reply_to"),
    "message_parts": ("message_id",),
    "reactions": ("message_id",),
    "fact_sources": ("message_id",),
    "outbox": ("message_id", "edits"),
    "runs": ("target",),
}
_WITH_TITLE = ("messages", "runs", "facts", "episodes", "orders")  # tables with a title
_DERIVED = (
    "search_terms search_messages search_vectors search_stale search_progress search_places "
    "episodes window_pasts reading_cursors"
).split()
_COUNTED = {  # tables with counts of their place, and by what these grow when it is appended to another one
    "messages": {"number": "messages"},
    "message_changes": {"change": "changes", "number": "messages", "position": "messages"},
    "reactions": {"position": "messages"},
    "commands": {"horizon": "messages"},
    "outbox": {"position": "messages"},
    "place_events": {"number": "events"},
}

_LETTERS = string.ascii_lowercase + string.digits
_LENGTH = 16
_CACHE_SIZE = 4096  # delimiters, which never change


class SqlPlaceSettings(Repository):
    """Implements `engine.store_protocols.PlaceSettings`."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._delimiters: dict[str, str] = {}
        self._blocks: _Blocks | None = None  # None: not read yet

    async def delimiter(self, place: Place) -> str:
        key = place_key(place)
        if key in self._delimiters:
            return self._delimiters[key]
        row = await self._reader.run(lambda database: read_place(database, place, "delimiter"))
        delimiter: str | None = row and row[0]
        if delimiter is None:
            made = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
            delimiter = await self._set_delimiter(place, made)
        if len(self._delimiters) >= _CACHE_SIZE:
            self._delimiters.clear()
        self._delimiters[key] = delimiter
        return delimiter

    @writing
    def _set_delimiter(self, database: Database, place: Place, made: str) -> str:
        """Set the delimiter of *place* to *made* if it has none; return its delimiter."""
        update = "UPDATE places SET delimiter = coalesce(delimiter, :made) WHERE id = :place RETURNING delimiter"
        return str(database.value(update, made=made, place=upsert_place(database, place)))

    @reading
    def beginning(self, database: Database, place: Place) -> int:
        return conversation_start(database, place)

    @writing
    def clear(self, database: Database, place: Place, beginning: int, *, at: datetime) -> None:
        """Begin the conversation with a message; later messages lose their quotes of those before it."""
        at = utc(at)
        row = upsert_place(database, place)
        update = "UPDATE places SET beginning = :first WHERE id = :place AND beginning < :first"
        if not database.run(update, first=beginning, place=row):
            return
        events.add_place_changes(database, [row], at=at)
        episodes.remove_spanning(database, row, beginning)
        quoting = """SELECT m.id FROM messages m JOIN messages q ON q.place = m.place
            AND q.message_id = m.reply_to WHERE m.place = :place AND m.number >= :first AND q.number < :first"""
        strip_quotes(database, database.column(quoting, place=row, first=beginning), at)

    async def blocked(self) -> frozenset[tuple[str, str]]:
        return (await self._current_blocks()).authors

    async def block(self, *, platform: str, author_id: str, at: datetime, until: datetime | None = None) -> bool:
        known, self._blocks = await self._writer.run(
            lambda database: block_author(database, platform, author_id, at, until)
        )
        return known

    async def unblock(self, *, platform: str, author_id: str) -> bool | None:
        was_blocked, self._blocks = await self._writer.run(lambda database: _unblock(database, platform, author_id))
        return was_blocked

    async def end_blocks(self, at: datetime) -> datetime | None:
        blocks = await self._current_blocks()
        if blocks.next_end is not None and blocks.next_end <= at:
            blocks = self._blocks = await self._writer.run(lambda database: _end_blocks(database, at))
        return blocks.next_end

    async def _current_blocks(self) -> "_Blocks":
        if self._blocks is None:
            found = await self._reader.run(_read_blocks)
            if self._blocks is None:  # nobody was blocked meanwhile
                self._blocks = found
        return self._blocks

    @reading
    def listed(self, database: Database) -> Sequence[Place]:
        """Return all places, each with its last title, in the order in which they were first seen."""
        select = """SELECT t.body FROM places p JOIN titles t ON t.id = (SELECT max(id) FROM titles WHERE place = p.id)
            ORDER BY p.id"""
        return select_places(database, select)

    @reading
    def language(self, database: Database, *, platform: str, author_id: str) -> str | None:
        select = "SELECT language FROM authors WHERE platform = :platform AND author_id = :author_id"
        language: str | None = database.value(select, platform=clean(platform), author_id=author_id)
        return language

    def clear_cache(self) -> None:
        """Forget what was read."""
        self._delimiters.clear()
        self._blocks = None


class _Blocks(NamedTuple):
    authors: frozenset[tuple[str, str]]  # platforms and ids
    next_end: datetime | None


def _read_blocks(database: Database) -> _Blocks:
    select = "SELECT a.platform, a.author_id, b.until FROM blocked_authors b JOIN authors a ON a.id = b.author"
    rows = database.all(select)
    next_end = min((until for *_, until in rows if until is not None), default=None)
    return _Blocks(frozenset((platform, author_id) for platform, author_id, _ in rows), parse_time(next_end))


def block_author(
    database: Database, platform: str, author_id: str, at: datetime, until: datetime | None
) -> tuple[bool, _Blocks]:
    """Block an author, or change when their block ends; return whether they were known, and all blocks."""
    is_known = find_author(database, clean(platform), clean(author_id)) is not None
    database.run(
        """INSERT INTO blocked_authors (author, at, until) VALUES (:author, :at, :until)
            ON CONFLICT (author) DO UPDATE SET until = excluded.until""",
        author=upsert_author(database, platform, author_id),
        at=utc(at).isoformat(),
        until=format_time(until and utc(until)),
    )
    return is_known, _read_blocks(database)


def _unblock(database: Database, platform: str, author_id: str) -> tuple[bool | None, _Blocks]:
    """Unblock an author; return whether they were blocked, None if they are not known, and all blocks."""
    author = find_author(database, clean(platform), clean(author_id))
    if author is None:
        return None, _read_blocks(database)
    was_blocked = bool(database.run("DELETE FROM blocked_authors WHERE author = :author", author=author))
    if was_blocked:
        episodes.remove_without(database, author)
    return was_blocked, _read_blocks(database)


def _end_blocks(database: Database, at: datetime) -> _Blocks:
    """Unblock those whose block has ended; return all blocks."""
    delete = "DELETE FROM blocked_authors WHERE until <= :now RETURNING author"
    for author in database.column(delete, now=utc(at).isoformat()):
        episodes.remove_without(database, author)
    return _read_blocks(database)


def leave_place(database: Database, place: Place, at: datetime) -> list[int]:
    """Store that we can no longer write to a place and its threads; return their rows."""
    upsert_place(database, place)
    update = "UPDATE places SET left_at = :at WHERE platform = :platform AND place_id = :place_id RETURNING id"
    return database.column(update, at=format_time(at), platform=clean(place.platform), place_id=place.id)


def join_place(database: Database, place: Place) -> None:
    """Store that we can write to a place, and so to its threads."""
    update = "UPDATE places SET left_at = NULL WHERE platform = :platform AND place_id = :place_id"
    database.run(update, platform=clean(place.platform), place_id=place.id)


def migrate_place(database: Database, old: Place, new: Place) -> None:
    """Continue the place *old* as *new*. A repeated call changes nothing."""
    row, there = find_place(database, old), find_place(database, new)
    if place_key(old) == place_key(new) or (row is not None and row == there and current_place(database, old) != old):
        return  # done before; a place that still has its old id goes back to an earlier one
    if there is not None and row != there:
        new = current_place(database, new)
    if row is None:  # without messages
        row = there if there is not None else upsert_place(database, new)
        insert_row(database, "place_aliases", place_key=place_key(old), place=row)
    else:
        _move(database, row, current_place(database, old), new)
    database.cache.clear()
    events.add_place_changes(database, [row])


def _move(database: Database, row: int, old: Place, new: Place) -> None:
    """Continue the place in *row* as *new*."""
    there = find_place(database, new)
    _rename_messages(database, row, old)
    if there is not None and there != row:
        _append(database, there, row)
    database.run("DELETE FROM place_aliases WHERE place_key = :key", key=place_key(new))
    database.run(
        """UPDATE places SET place_key = :key, platform = :platform, service = :service, place_id = :place_id,
            thread = :thread WHERE id = :row""",
        key=place_key(new),
        platform=clean(new.platform),
        service=clean(new.author_namespace),
        place_id=new.id,
        thread=new.thread,
        row=row,
    )
    _rewrite_places(database, row, new)
    insert_row(database, "place_aliases", place_key=place_key(old), place=row)


def migrated_places(database: Database) -> dict[PlaceKey, Place]:
    """Return the places that have migrated, by their old keys."""
    select = """SELECT a.place_key, p.platform, p.place_id, p.thread, p.service,
            (SELECT t.body FROM titles t WHERE t.place = p.id ORDER BY t.id DESC LIMIT 1)
        FROM place_aliases a JOIN places p ON p.id = a.place"""
    found: dict[PlaceKey, Place] = {}
    for key, platform, place_id, thread, service, body in database.all(select):
        old_platform, old_id, *old_thread = STRINGS.loads(key)
        last = PLACE.loads(body) if body else Place(platform=platform, id=place_id, kind="group")
        space = "" if service == platform else service
        new = replace(last, platform=platform, id=place_id, thread=thread, service=space)
        found[old_platform, old_id, old_thread[0] if old_thread else None] = new
    return found


def redirect_change(database: Database, change: C) -> C:
    """Return a late change from a place that has migrated, as a change of the current place."""
    match change:
        case Received(message=message) | Edited(message=message) | Commanded(message=message):
            if (name := _id_renamer(database, message.place)) is None:
                return change
            place = current_place(database, message.place)
            return replace(change, message=replace(_message(message, name), place=place))
        case (
            Deleted(place=place, message_id=message_id)
            | Reacted(place=place, message_id=message_id)
            | Delivered(place=place, message_id=message_id)
        ):
            now, (renamed,) = redirect_ids(database, place, [message_id])
            return replace(change, place=now, message_id=renamed)
        case _:
            return change


def redirect_ids(database: Database, place: Place, message_ids: Iterable[str]) -> tuple[Place, list[str]]:
    """Return a place that may have migrated, and ids of its messages, as they are now."""
    if (name := _id_renamer(database, place)) is None:
        return place, list(message_ids)
    return current_place(database, place), list(map(name, message_ids))


def _id_renamer(database: Database, place: Place) -> Callable[[str], str] | None:
    """Return a function from old to current ids of messages of a migrated place; None if it has not migrated."""
    ids = _former_ids(database, place)
    return (lambda message_id: reduce(lambda name, one: migrated_id(one, name), ids, message_id)) if ids else None


def _former_ids(database: Database, place: Place) -> tuple[str, ...]:
    """Return the ids that a place has had since it migrated from this one, in order; nothing if it has not."""
    what = ("former ids", place.platform, place.id, place.thread)
    ids: tuple[str, ...] | None = database.cache.get(what)
    if ids is None:
        select = """SELECT l.place_key FROM place_aliases a JOIN place_aliases l ON l.place = a.place AND l.id >= a.id
            WHERE a.place_key = :key ORDER BY l.id"""
        ids = tuple(STRINGS.loads(key)[1] for key in database.column(select, key=place_key(place)))
        database.cache.put(what, ids)
    return ids


def migrated_id(place_id: str, message_id: str) -> str:
    """Return the id of a message of a place that has migrated."""
    return f"{place_id}:{message_id}"


def _rename_messages(database: Database, row: int, old: Place) -> None:
    """Prefix the ids of all messages of a place with its id."""
    for table, columns in _WITH_MESSAGE_ID.items():
        renamed = ", ".join(f"{column} = :prefix || {column}" for column in columns)
        database.run(f"UPDATE {table} SET {renamed} WHERE place = :place", prefix=migrated_id(old.id, ""), place=row)
    unsent = "UPDATE outbox SET edits = NULL WHERE place = :place AND status IN ('waiting', 'sending')"
    database.run(unsent, place=row)  # such edits become new messages

    def name(message_id: str) -> str:
        return migrated_id(old.id, message_id)

    for table, column, change in (
        ("runs", "message_ids", lambda ids: [name(one) for one in ids]),
        ("messages", "reply", partial(_quote, name=name)),
        ("message_changes", "before", partial(_message, name=name)),
    ):
        rewrite(database, table, column, change, "place = :place", place=row)


def _quote(quote: Quote, name: Callable[[str], str]) -> Quote:
    return replace(quote, message_id=name(quote.message_id))


def _message(message: Message, name: Callable[[str], str]) -> Message:
    quote = None if message.reply_to is None else _quote(message.reply_to, name)
    return replace(message, id=name(message.id), reply_to=quote)


def _append(database: Database, there: int, row: int) -> None:
    """Append the place *there* to the place *row* and remove it; derived data is built again."""
    events.write(database)  # those of its messages that came in this transaction go with it
    counts = "SELECT messages, changes, events FROM places WHERE id = :row"
    ((messages, changes, numbered),) = database.all(counts, row=row)
    grown = {"messages": messages, "changes": changes, "events": numbered}
    for table in _DERIVED:
        database.run(f"DELETE FROM {table} WHERE place = :there", there=there)
    # they are made anew from all that is known
    database.run("DELETE FROM summaries WHERE place IN (:places)", places=[there, row])
    for table, columns in _COUNTED.items():
        more = "".join(f", {column} = {column} + :{count}" for column, count in columns.items())
        used = {count: grown[count] for count in columns.values()}
        database.run(f"UPDATE {table} SET place = :row{more} WHERE place = :there", row=row, there=there, **used)
    horizon = "UPDATE runs SET horizon = horizon + :messages WHERE place = :there AND horizon > 0"
    database.run(horizon, messages=messages, there=there)
    _append_positions(database, there, row, messages)
    agents.append_place(database, there, row, messages)
    usage.move(database, there, row)
    database.run(
        """INSERT INTO update_places (update_row, place) SELECT update_row, :row FROM update_places
            WHERE place = :there ON CONFLICT DO NOTHING""",
        row=row,
        there=there,
    )
    database.run("DELETE FROM update_places WHERE place = :there", there=there)
    for name in (table.name for table in tables() if "place" in table.columns):
        database.run(f"UPDATE {name} SET place = :row WHERE place = :there", row=row, there=there)
    database.run(
        """UPDATE places SET messages = places.messages + o.messages, changes = places.changes + o.changes,
            events = places.events + o.events,
            direct_until = CASE WHEN o.direct_until > 0 THEN o.direct_until + :count ELSE places.direct_until END,
            open_until = CASE WHEN o.open_until > 0 THEN o.open_until + :count ELSE places.open_until END
            FROM places o WHERE places.id = :row AND o.id = :there""",
        count=messages,
        row=row,
        there=there,
    )
    database.run("DELETE FROM places WHERE id = :there", there=there)


def _append_positions(database: Database, there: int, row: int, count: int) -> None:
    """Move the positions of descriptions; of media that both places have shown, the later one holds."""
    database.run(
        """INSERT INTO description_positions (unique_id, made_by, place, position)
            SELECT unique_id, made_by, :row, position + :count FROM description_positions WHERE place = :there
            ON CONFLICT (unique_id, made_by, place) DO UPDATE SET position = excluded.position""",
        row=row,
        count=count,
        there=there,
    )
    database.run("DELETE FROM description_positions WHERE place = :there", there=there)


def _rewrite_places(database: Database, row: int, new: Place) -> None:
    """Replace the old place by the new one in all stored values, also in replies that are not sent yet."""

    def in_new_place(place: Place) -> Place:
        return replace(place, platform=new.platform, id=new.id, thread=new.thread, service=new.service)

    for title, body in database.all("SELECT id, body FROM titles WHERE place = :row", row=row):
        _rewrite_title(database, title, dumps(in_new_place(PLACE.loads(body))))

    for table, column, change in (
        ("message_changes", "before", lambda message: replace(message, place=in_new_place(message.place))),
        ("outbox", "reply", lambda reply: _migrated_reply(reply, in_new_place)),
        ("tasks", "body", lambda task: _migrated_task(task, in_new_place)),
    ):
        rewrite(database, table, column, change, "place = :place", place=row)


def _rewrite_title(database: Database, title: int, body: str) -> None:
    """Give a title of a place another body; where another title has it already, that one takes its place."""
    same = database.one("SELECT id FROM titles WHERE body = :body AND id <> :title", body=body, title=title)
    if same is None:
        database.run("UPDATE titles SET body = :body WHERE id = :title", body=body, title=title)
        return
    for table in _WITH_TITLE:
        database.run(f"UPDATE {table} SET title = :same WHERE title = :title", same=same[0], title=title)
    database.run("DELETE FROM titles WHERE id = :title", title=title)


def _migrated_reply(reply: Reply, in_new_place: Callable[[Place], Place]) -> Reply:
    """Return the reply in the new place, without the message it answers, which is not there."""
    place = in_new_place(reply.place)
    return reply if place == reply.place else replace(reply, place=place, reply_to=None)


def _migrated_task(task: Task, in_new_place: Callable[[Place], Place]) -> Task:
    place = in_new_place(task.place)
    if place == task.place:
        return task
    args: dict[str, Any] = {**task.args, **({"reply_to": None} if "reply_to" in task.args else {})}
    if isinstance(source := args.get("source"), str):
        args["source"] = migrated_id(task.place.id, source)
    return replace(task, place=place, args=args)
