"""Imports: messages that other programs stored become the past of a place. They are context: no run answers them.

Each batch is one transaction, and a message that is stored already is left as it is, so an import that was killed is
continued by a second one. Messages have numbers in the order of their place. Most imports go into an empty place, or
are newer than all that is there, and are appended. Those that are older than the newest message are staged: they belong
to a row of `places` that no reader knows, until the whole chat is read. Then `merge` gives all messages of the place
new numbers, in one transaction; everything that refers to a number is changed with it.
"""

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct

from tertulia.formats.imported import EXPORT_ID, ImportedMessage, Remembered
from tertulia.messages import Message, Place, PlaceKey
from tertulia.platform import Received
from tertulia.store import events, places
from tertulia.store.cursors import read_cursor, set_cursor
from tertulia.store.database import Database, Row, insert_into, insert_row
from tertulia.store.encoding import clean, dumps, format_time, parse_time
from tertulia.store.identities import IMPORTS, current_place, find_place, upsert_name, upsert_place
from tertulia.store.imported_memory import MemoryCounts, add_memory
from tertulia.store.message_rows import INSERT_REACTION, MAX_REACTIONS_SHOWN
from tertulia.store.messages import INSERT_MESSAGE, MessageRow, insert_media, require_ids
from tertulia.store.search_index import clear_index
from tertulia.store.threads import Repository

Position = tuple[str, datetime | None]  # the id and the time of a message: where it stands in its place

# the new number of a message of a place; an expression with :place
_MAPPED = "(SELECT n.new_number FROM new_numbers n WHERE n.place = :place AND n.number = {0})"
_MAPPED_STAGED = _MAPPED.replace(":place", ":staging")
# how many messages there are up to the last of so many
_COUNTED = "CASE WHEN {0} = 0 THEN 0 ELSE " + _MAPPED.format("{0} - 1") + " + 1 END"
# the messages of a place in their order
_IN_ORDER = "SELECT number, message_id, sent_at FROM messages WHERE place = :place ORDER BY number"


class ImportCounts(Struct, frozen=True, kw_only=True):
    added: int = 0
    known: int = 0  # stored before, or received by the bot itself


class SqlImports(Repository):
    """Adds messages of other programs to the log, and what they remember."""

    async def add(self, batch: Sequence[ImportedMessage]) -> ImportCounts:
        """Store messages, in the order in which they were sent; those that are known stay as they are."""
        rows = [(item, MessageRow(item.message)) for item in batch]
        for item in batch:
            require_ids(item.message)
        places = [item.message.place for item in batch]
        return await self._writer.run(lambda database: _add(database, rows), places=places)

    async def finish(self, place: Place, *, learn: bool) -> None:
        """Put the staged messages of a place in order. Facts are learned from its messages only with *learn*."""
        await self._writer.run(lambda database: _finish(database, place, learn), places=[place])
        await self._access.clear_caches()

    async def add_memory(self, found: Sequence[Remembered], *, at: datetime) -> MemoryCounts:
        """Store what another program remembers, after its messages; what is known stays as it is."""
        counts = await self._writer.run(lambda database: add_memory(database, found, at, self._access.facts))
        await self._access.clear_caches()
        return counts


class _Target:
    """A place that a batch goes to: how many messages it has, the newest, and which of the batch are stored."""

    def __init__(self, database: Database, place: Place, message_ids: Sequence[str]) -> None:
        self.place = place
        self.row = upsert_place(database, place)
        found = database.one(_IN_ORDER + " DESC LIMIT 1", place=self.row)
        self.before = self.count = found[0] + 1 if found else 0
        self.newest: Position | None = (found[1], parse_time(found[2])) if found else None
        self.staging, self.staged = _find_staging(database, self.row)
        stored = """SELECT message_id FROM messages WHERE place IN (:places) AND message_id IN (:message_ids)
            UNION ALL SELECT message_id FROM message_parts WHERE place = :place AND message_id IN (:message_ids)"""
        places = [self.row] if self.staging is None else [self.row, self.staging]
        self._stored = set(database.column(stored, place=self.row, places=places, message_ids=message_ids))
        self._database = database

    def is_known(self, item: ImportedMessage, message: Message) -> bool:
        """Return whether a message is stored. Where its id says nothing, all since the bot received one are."""
        if message.id in self._stored:
            return True
        first = None if item.has_bots_id else self._first_received
        return first is not None and message.sent_at is not None and message.sent_at >= first

    @cached_property
    def _first_received(self) -> datetime | None:
        """When the first message was sent that the bot received itself."""
        select = """SELECT sent_at FROM messages WHERE place = :place AND message_id NOT LIKE :exported
            ORDER BY number LIMIT 1"""
        return parse_time(self._database.value(select, place=self.row, exported=f"%{EXPORT_ID}%"))

    def next_number(self, message: Message) -> tuple[int, int]:
        """Return the row of the place, or of its staging, that a message is added to, and its number there."""
        self._stored.add(message.id)
        position = message.id, message.sent_at
        if self.newest is None or not _is_before(position, self.newest):
            self.newest = position
            self.count += 1
            return self.row, self.count - 1
        if self.staging is None:
            staging = {"place_key": _staging_key(self.row), "platform": IMPORTS, "place_id": str(self.row)}
            self.staging = insert_row(self._database, "places", **staging)
        self.staged += 1
        return self.staging, self.staged - 1

    def save(self) -> None:
        """Write the number of messages; the new ones are not read for facts if all before them were."""
        if self.count == self.before:
            return
        database = self._database
        all_read = read_cursor(database, self.place) == self.before
        _count(database, self.row, self.place, self.count)
        events.add_place_changes(database, [self.row])
        if all_read:
            set_cursor(database, self.place, self.count)


def _count(database: Database, row: int, place: Place, count: int) -> None:
    """Write how many messages a place has."""
    until = "direct_until" if place.kind == "direct" else "open_until"
    database.run(f"UPDATE places SET messages = :count, {until} = :count WHERE id = :row", count=count, row=row)


def _add(database: Database, batch: Sequence[tuple[ImportedMessage, MessageRow]]) -> ImportCounts:
    by_place: dict[PlaceKey, list[tuple[ImportedMessage, MessageRow]]] = {}
    for item, row in batch:
        current = places.redirect_change(database, Received(message=item.message)).message
        new = row if current is item.message else MessageRow(current)
        by_place.setdefault(current.place.key, []).append((item, new))
    added = 0
    for rows in by_place.values():
        target = _Target(database, rows[-1][1].message.place, [row.message.id for _, row in rows])
        for item, row in rows:
            if not target.is_known(item, row.message):
                _insert(database, item, row, target)
                added += 1
        target.save()
    return ImportCounts(added=added, known=len(batch) - added)


def _insert(database: Database, item: ImportedMessage, row: MessageRow, target: _Target) -> None:
    message = row.message
    place, number = target.next_number(message)
    row_id = database.insert(
        INSERT_MESSAGE,
        place=place,
        number=number,
        message_id=message.id,
        role="model" if item.own or message.author.persona is not None else "user",
        own=int(item.own),
        agent="" if item.own else None,
        received_at=format_time(message.sent_at),
        **row.content(database, target.row, message.sent_at),
    )
    if row.medias:
        insert_media(database, row_id, row.medias)
    if item.reactions:
        reactions: list[dict[str, Any]] = [
            {
                "place": place,
                "message_id": message.id,
                "name": upsert_name(database, message.place.author_namespace, reaction.author, message.sent_at),
                "emojis": dumps(tuple(map(clean, reaction.emojis))),
                "at": format_time(reaction.at),
                "message": row_id,
                "position": number + 1 if shown < MAX_REACTIONS_SHOWN else None,
            }
            for shown, reaction in enumerate(item.reactions)
        ]
        database.many(INSERT_REACTION, reactions)


def _is_before(one: Position, other: Position) -> bool:
    """Return whether a message was sent before another: by their numbers where one account counted both, else by time.

    Two messages of one second may have times in the wrong order; their numbers never are.
    """
    (one_counter, one_number), (other_counter, other_number) = _split_id(one[0]), _split_id(other[0])
    if one_counter == other_counter and one_number is not None and other_number is not None:
        return one_number < other_number
    return one[1] is not None and other[1] is not None and one[1] < other[1]


def _split_id(message_id: str) -> tuple[str, int | None]:
    counter, _, number = message_id.rpartition(":")
    return (counter, int(number)) if number.removeprefix("-").isdecimal() else (message_id, None)


def _staging_key(place: int) -> str:
    return dumps([IMPORTS, place])


def _find_staging(database: Database, place: int) -> tuple[int | None, int]:
    """Return the row that holds staged messages of a place, and the number of the next one."""
    select = """SELECT p.id, (SELECT coalesce(max(m.number) + 1, 0) FROM messages m WHERE m.place = p.id)
        FROM places p WHERE p.place_key = :key"""
    return database.one(select, key=_staging_key(place)) or (None, 0)


def _finish(database: Database, place: Place, learn: bool) -> None:
    row = find_place(database, place)
    if row is None:
        return
    staging, _ = _find_staging(database, row)
    if staging is not None:
        _count(database, row, place, _merge(database, row, staging))
        events.add_place_changes(database, [row])
    if learn:
        set_cursor(database, current_place(database, place), 0)


def _merge(database: Database, place: int, staging: int) -> int:
    """Move the staged messages into their place, each before the first that was sent after it; return how many are.

    Those go that the bot has received since they were staged.
    """
    known = """DELETE FROM messages WHERE place = :staging
        AND message_id IN (SELECT message_id FROM messages WHERE place = :place)"""
    database.run(known, place=place, staging=staging)
    numbers = _new_numbers(database, place, staging)
    database.many(insert_into("new_numbers", "place", "number", "new_number"), numbers)
    _renumber(database, place, staging)
    _move_references(database, place)
    database.run("DELETE FROM window_pasts WHERE place = :place", place=place)
    clear_index(database, [place])
    database.run("DELETE FROM new_numbers WHERE place IN (:places)", places=[place, staging])
    database.run("DELETE FROM places WHERE id = :staging", staging=staging)
    database.cache.clear()
    return len(numbers)


def _new_numbers(database: Database, place: int, staging: int) -> list[dict[str, int]]:
    """Return the rows of `new_numbers`: the messages of both places in their common order."""
    waiting = deque(database.all(_IN_ORDER, place=staging))
    ordered: list[tuple[int, int]] = []
    for row in database.all(_IN_ORDER, place=place):
        while waiting and _is_before(_position(waiting[0]), _position(row)):
            ordered.append((staging, waiting.popleft()[0]))
        ordered.append((place, row[0]))
    ordered += [(staging, row[0]) for row in waiting]
    return [{"place": of, "number": number, "new_number": new} for new, (of, number) in enumerate(ordered)]


def _position(row: Row) -> Position:
    return row[1], parse_time(row[2])


def _renumber(database: Database, place: int, staging: int) -> None:
    """Give the messages of both rows their new numbers; negative ones first, since numbers are unique."""
    here = f"UPDATE messages SET number = -1 - {_MAPPED.format('messages.number')} WHERE place = :place"
    database.run(here, place=place)
    database.run(
        f"""UPDATE messages SET place = :place, number = -1 - {_MAPPED_STAGED.format("messages.number")}
            WHERE place = :staging""",
        place=place,
        staging=staging,
    )
    database.run("UPDATE messages SET number = -1 - number WHERE place = :place AND number < 0", place=place)
    counted = f"UPDATE reactions SET position = {_COUNTED.format('reactions.position')} WHERE place = :place"
    database.run(counted, place=place)
    database.run(
        f"""UPDATE reactions SET place = :place, position = {_MAPPED_STAGED.format("reactions.position - 1")} + 1
            WHERE place = :staging""",
        place=place,
        staging=staging,
    )


def _move_references(database: Database, place: int) -> None:
    """Change what refers to numbers of messages, or to how many there were."""
    database.run("INSERT INTO reading_cursors (place) VALUES (:place) ON CONFLICT DO NOTHING", place=place)
    # the ids of episodes are made of numbers; an episode without messages marks where those of a forgotten person end
    database.run(
        """UPDATE episodes SET episode_id = episode_id || ':' || CAST(start AS TEXT)
            WHERE place = :place AND start < stop""",
        place=place,
    )
    start = f"CASE WHEN start = stop THEN {_COUNTED} ELSE {_MAPPED} END"
    received = "(SELECT count(*) FROM new_numbers n WHERE n.place = :place)"
    facts = f"CASE WHEN facts < {received} THEN {_MAPPED} ELSE {_COUNTED} END"
    changes = {
        "message_changes": {"number": _MAPPED, "position": _COUNTED},
        "runs": {"horizon": _COUNTED},
        "description_positions": {"position": _COUNTED},
        "commands": {"horizon": _COUNTED},
        "outbox": {"position": _COUNTED},
        "presences": {"since": _COUNTED, "until": _COUNTED},
        "episodes": {"start": start, "stop": _COUNTED},
        "reading_cursors": {"facts": facts, "episodes": _COUNTED},
        "places": {"direct_until": _COUNTED, "open_until": _COUNTED, "beginning": _COUNTED},
    }
    for table, columns in changes.items():
        values = ", ".join(f"{name} = {how.format(f'{table}.{name}')}" for name, how in columns.items())
        key = "id" if table == "places" else "place"
        database.run(f"UPDATE {table} SET {values} WHERE {key} = :place", place=place)
