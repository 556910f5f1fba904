"""Updates of chat services: each is applied once, in one transaction."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, assert_never

from tertulia.characters import is_blank
from tertulia.engine.store_protocols import Command, OutboxItem, UpdateResult
from tertulia.errors import InvalidValue
from tertulia.memory.values import FactRules
from tertulia.messages import Message, Place, PlaceKey
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Delivered,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    Update,
    places_of,
)
from tertulia.store import decisions, message_rows, messages, outbox, places, tasks
from tertulia.store.database import Database
from tertulia.store.encoding import clean, dumps, validate_id
from tertulia.store.identities import find_place, upsert_name, upsert_place, upsert_title
from tertulia.store.messages import MessageRow, require_ids
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing
from tertulia.tasks.task import PlanRules, Task
from tertulia.timezones import utc

log = logging.getLogger(__name__)

KEY_RETENTION = timedelta(days=90)  # of the keys of updates
LEFT = "nothing can be sent to this place any more"
REMOVAL_INTERVAL = timedelta(minutes=1)  # between updates that also remove old ones
# stores an update, unless one with its key is there
_INSERT = """INSERT INTO updates (platform, update_key, at, is_read, raw)
    VALUES (:platform, :key, :at, :is_read, :raw) ON CONFLICT (platform, update_key) DO NOTHING"""
# a stored update that could not be read can be read now
_READ_AGAIN = """UPDATE updates SET is_read = 1, raw = coalesce(:raw, raw)
    WHERE platform = :platform AND update_key = :key AND is_read = 0 RETURNING id"""

_COMMANDS = Rows(Command, "commands", "id message name=command argument agent horizon")


class SqlUpdates(Repository):
    """Implements `engine.store_protocols.UpdateStore`."""

    _removed_at: datetime | None = None  # when an update removed old ones last

    async def apply(
        self, platform: str, changes: Sequence[Change], *, key: str, raw: bytes | None, at: datetime, keep: timedelta
    ) -> UpdateResult:
        validate_id(key, "update")
        now = utc(at)
        update = {"platform": clean(platform), "key": key, "at": now.isoformat(), "raw": raw}

        async def write(some: Sequence[Change]) -> bool:
            return await self._writer.run(
                lambda database: self._apply(database, update, some, now, keep),
                places=[place for change in some for place in places_of(change)],
            )

        try:
            for change in changes:
                _require_valid(change)
            new = await write(changes)
        except (InvalidValue, UnicodeEncodeError) as error:
            return UpdateResult(new=await write(()), refused=str(error))
        if new and any(isinstance(change, PlaceMigrated) for change in changes):
            await self._access.clear_caches()
        return UpdateResult(new=new)

    @writing
    def leave(self, database: Database, place: Place, *, at: datetime) -> None:
        _leave(database, place, at, self._access.plans)

    @writing
    def remove_old(self, database: Database, keep: timedelta, *, at: datetime) -> None:
        _remove_old(database, utc(at), keep)

    @reading
    def unread(self, database: Database, platform: str) -> list[Update]:
        """Return the updates that could not be read, oldest first."""
        select = """SELECT update_key, raw FROM updates
            WHERE platform = :platform AND is_read = 0 AND raw IS NOT NULL ORDER BY id"""
        return [Update(key=key, raw=raw) for key, raw in database.all(select, platform=clean(platform))]

    @reading
    def last(self, database: Database, place: Place) -> Message | None:
        """Return the newest message of a place that is not the agent's own."""
        which = "WHERE m.place = :place AND m.own = 0 ORDER BY m.number DESC LIMIT 1"
        return message_rows.MESSAGES.one(database, which, place=find_place(database, place))

    @reading
    def first_platform(self, database: Database, place_id: str, platforms: Sequence[str]) -> str | None:
        select = (
            "SELECT platform FROM places WHERE place_id = :place_id AND platform IN (:platforms) ORDER BY id LIMIT 1"
        )
        found: str | None = database.value(select, place_id=clean(place_id), platforms=list(platforms))
        return found

    @reading
    def migrated_places(self, database: Database) -> Mapping[PlaceKey, Place]:
        return places.migrated_places(database)

    @reading
    def commands(self, database: Database) -> list[Command]:
        """Return the commands to be carried out, oldest first."""
        return _COMMANDS.all(database, "ORDER BY id")

    async def end(self, command: Command, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        await self._writer.run(
            lambda database: self._end(database, command, replies, tasks), places=[command.message.place]
        )

    def _apply(
        self, database: Database, update: Mapping[str, Any], changes: Sequence[Change], at: datetime, keep: timedelta
    ) -> bool:
        """Store an update and apply its changes; return whether it is new. Now and then remove old ones."""
        if self._removed_at is None or abs(at - self._removed_at) >= REMOVAL_INTERVAL:
            self._removed_at = at
            _remove_old(database, at, keep)
        row = database.insert_new(_INSERT, **update, is_read=int(bool(changes)))
        if row is None and changes:
            row = (database.one(_READ_AGAIN, **update) or (None,))[0]
        if row is None:
            return False
        for change in changes:
            self._apply_change(database, places.redirect_change(database, change), at)
        linked = {upsert_place(database, place) for change in changes for place in places_of(change)}
        link = "INSERT INTO update_places (update_row, place) VALUES (:update, :place) ON CONFLICT DO NOTHING"
        database.many(link, [{"update": row, "place": place} for place in linked])
        return True

    def _apply_change(self, database: Database, change: Change, at: datetime) -> None:
        match change:
            case Received(message=message, addressed=addressed):
                if message.agent is None or not outbox.settle_shown(database, message, at):
                    messages.add(database, MessageRow(message), at, "waiting", addressed)
            case Delivered():
                outbox.settle(database, change, at)
            case Edited(message=message):
                _edit(database, message, at, self._access.facts)
            case Deleted(place=place, message_id=message_id):
                messages.delete(database, place, message_id, at, self._access.facts)
            case Reacted():
                message_rows.add_reaction(database, change, at)
            case Commanded():
                _add_command(database, change, at)
            case PlaceMigrated(old=old, new=new):
                places.migrate_place(database, old, new)
            case PlaceJoined(place=place):
                upsert_place(database, place)
                places.join_place(database, place)
            case PlaceLeft(place=place):
                _leave(database, place, at, self._access.plans)
            case Stopped():
                pass  # it stops a run in progress, and changes nothing that is stored
            case _:
                assert_never(change)

    def _end(
        self, database: Database, command: Command, replies: Sequence[OutboxItem], planned: Sequence[Task]
    ) -> None:
        """Remove a command, and store its replies and tasks. A missing one is refused: its author was forgotten."""
        if not database.run("DELETE FROM commands WHERE id = :id", id=command.id):
            raise InvalidValue(f"there is no command {command.id}; it was carried out, or its author was forgotten")
        for reply in replies:
            outbox.add(database, outbox.as_row(reply))
        tasks.add(database, planned, self._access.plans)


def _require_valid(change: Change) -> None:
    """Raise `InvalidValue` for a change that cannot be stored."""
    for place in places_of(change):
        validate_id(place.thread or "", "thread")
        if is_blank(validate_id(place.id, "place")):
            raise InvalidValue(f"a place needs an id, not {place.id!r}")
    match change:
        case Received(message=message) | Edited(message=message) | Commanded(message=message):
            MessageRow(message)
            require_ids(message)
        case Reacted(message_id=message_id, author=author, at=at):
            validate_id(message_id, "message")
            if is_blank(validate_id(author.id, "author")) or (at is not None and at.tzinfo is None):
                raise InvalidValue(f"a reaction to {message_id!r} needs the id of an author and a time with a zone")
        case Deleted(message_id=message_id) | Delivered(message_id=message_id):
            if not validate_id(message_id, "message") and isinstance(change, Delivered):
                raise InvalidValue("a delivery that arrived needs the id of its message")
        case PlaceMigrated() | PlaceJoined() | PlaceLeft() | Stopped():
            pass
        case _:
            assert_never(change)


def _edit(database: Database, message: Message, at: datetime, rules: FactRules) -> None:
    """Store an edit. Of an unknown message the edit is all that we know."""
    try:
        known = messages.edit(database, message, at, rules)
    except InvalidValue as error:  # another author's message; nothing was written yet
        log.warning("an edit is left out: %s", error)
        return
    row = None if known else messages.add(database, MessageRow(message), at, "late edit")
    if row is not None and message.sent_at:
        messages.decide_again(database, row, message, at)


def _add_command(database: Database, change: Commanded, at: datetime) -> None:
    """Store a command, and how many messages its place has."""
    message = change.message
    place = upsert_place(database, message.place)
    upsert_title(database, message.place, place)
    database.run(
        """INSERT INTO commands (place, name, message, command, argument, agent, horizon)
            SELECT id, :name, :message, :command, :argument, :agent, messages FROM places WHERE id = :place""",
        place=place,
        name=upsert_name(database, message.place.author_namespace, message.author, at),
        message=dumps(message),
        command=clean(change.name),
        argument=clean(change.argument),
        agent=clean(change.agent),
    )


def _leave(database: Database, place: Place, at: datetime, rules: PlanRules) -> None:
    """Store that nothing can be sent to a place and its threads any more, and end what waits there."""
    rows = places.leave_place(database, place, at)
    decisions.leave(database, rows, at)
    for row in rows:
        outbox.drop_waiting(database, row, LEFT)
        tasks.cancel_in_left_place(database, row, LEFT, rules)


def _remove_old(database: Database, now: datetime, keep: timedelta) -> None:
    """Remove raw updates older than *keep*, also unread ones, and keys older than `KEY_RETENTION`."""
    update = "UPDATE updates SET raw = NULL WHERE at < :before AND raw IS NOT NULL"
    database.run(update, before=(now - keep).isoformat())
    database.run("DELETE FROM updates WHERE at < :before", before=(now - max(keep, KEY_RETENTION)).isoformat())
