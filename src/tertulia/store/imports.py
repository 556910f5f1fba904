"""Imports: messages that other programs stored become the past of a place. They are context: no run answers them.

Each batch is one transaction, and a message that is stored already is left as it is, so an import that was killed is
continued by a second one. Messages have numbers in the order of their place. Most imports go into an empty place, or
are newer than all that is there, and are appended. Those that are older than the newest message are staged: they belong
to a row of `places` that no reader knows, until the whole chat is read. Then `merge` gives all messages of the place
new numbers, in one transaction; everything that refers to a number is changed with it.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from tertulia.formats.imported import EXPORT_ID, ImportedMessage, Remembered
from tertulia.memory.values import FactRules
from tertulia.messages import Message, Place
from tertulia.platform import Received
from tertulia.store import places
from tertulia.store.cursors import read_cursor, set_cursor
from tertulia.store.encoding import clean, dumps, format_time, parse_time
from tertulia.store.identities import IMPORTS, current_place, find_place, upsert_name, upsert_place
from tertulia.store.imported_memory import MemoryCounts, add_memory
from tertulia.store.message_rows import MAX_REACTIONS_SHOWN, find_message
from tertulia.store.messages import INSERT_MESSAGE, MessageRow, insert_media, require_ids
from tertulia.store.search_index import clear_index
from tertulia.store.sqlite.connection import Database, clear_cache, insert_row
from tertulia.store.threads import ConnectionThread, Repository

Position = tuple[str, datetime | None]  # the id and the time of a message: where it stands in its place

_MAPPED = "(SELECT new FROM temp.moved WHERE old = {0})"
_COUNTED = "CASE WHEN {0} = 0 THEN 0 ELSE (SELECT new + 1 FROM temp.moved WHERE old = {0} - 1) END"


class ImportCounts(Struct, frozen=True, kw_only=True):
    added: int = 0
    known: int = 0  # stored before, or received by the bot itself


class SqlImports(Repository):
    """Adds messages of other programs to the log, and what they remember."""

    def __init__(
        self,
        writer: ConnectionThread,
        reader: ConnectionThread,
        rules: FactRules,
        *,
        moved: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(writer, reader)
        self._rules = rules
        self._moved = moved  # is awaited after messages got new numbers: clears the caches

    async def add(self, batch: Sequence[ImportedMessage]) -> ImportCounts:
        """Store messages, in the order in which they were sent; those that are known stay as they are."""
        rows = [(item, MessageRow(item.message)) for item in batch]
        for item in batch:
            require_ids(item.message)
        return await self._writer.run(lambda database: _add(database, rows))

    async def finish(self, place: Place, *, learn: bool) -> None:
        """Put the staged messages of a place in order. Facts are learned from its messages only with *learn*."""
        await self._writer.run(lambda database: _finish(database, place, learn))
        await self._moved()

    async def add_memory(self, found: Sequence[Remembered], *, at: datetime) -> MemoryCounts:
        """Store what another program remembers, after its messages; what is known stays as it is."""
        counts = await self._writer.run(lambda database: add_memory(database, found, at, self._rules))
        await self._moved()
        return counts


class _Target:
    """A place that a batch goes to: how many messages it has, and the newest."""

    def __init__(self, database: Database, place: Place) -> None:
        self.row = upsert_place(database, place)
        self.kind = place.kind
        select = "SELECT number + 1, message_id, sent_at FROM messages WHERE place = ? ORDER BY number DESC LIMIT 1"
        found = database.execute(select, (self.row,)).fetchone()
        self.before = self.count = found[0] if found else 0
        self.newest: Position | None = (found[1], parse_time(found[2])) if found else None
        self.staging = _find_staging(database, self.row)
        self._received: datetime | None = None
        self._received_is_read = False

    def is_known(self, database: Database, item: ImportedMessage, message: Message) -> bool:
        """Return whether a message is stored. Where its id says nothing, all since the bot received one are."""
        rows = (self.row,) if self.staging is None else (self.row, self.staging)
        if any(find_message(database, row, message.id) is not None for row in rows):
            return True
        first = None if item.has_bots_id else self._first_received(database)
        return first is not None and message.sent_at is not None and message.sent_at >= first

    def _first_received(self, database: Database) -> datetime | None:
        """Return when the first message was sent that the bot received itself."""
        if not self._received_is_read:
            select = f"""SELECT sent_at FROM messages WHERE place = ? AND message_id NOT LIKE '%{EXPORT_ID}%'
                ORDER BY number LIMIT 1"""
            found = database.execute(select, (self.row,)).fetchone()
            self._received, self._received_is_read = parse_time(found[0]) if found else None, True
        return self._received

    def next_number(self, database: Database, message: Message) -> tuple[int, int]:
        """Return the row of the place, or of its staging, that a message is added to, and its number there."""
        position = message.id, message.sent_at
        if self.newest is None or not _is_before(position, self.newest):
            self.newest = position
            self.count += 1
            return self.row, self.count - 1
        if self.staging is None:
            self.staging = _create_staging(database, self.row)
        select = "SELECT coalesce(max(number) + 1, 0) FROM messages WHERE place = ?"
        return self.staging, database.execute(select, (self.staging,)).fetchone()[0]

    def save(self, database: Database, place: Place) -> None:
        """Write the number of messages; the new ones are not read for facts if all before them were."""
        until = "direct_until" if self.kind == "direct" else "open_until"
        update = f"UPDATE places SET messages = ?1, {until} = ?1 WHERE id = ?2"
        if self.count == self.before:
            return
        all_read = read_cursor(database, place) == self.before
        database.execute(update, (self.count, self.row))
        if all_read:
            set_cursor(database, place, self.count)


def _add(database: Database, batch: Sequence[tuple[ImportedMessage, MessageRow]]) -> ImportCounts:
    targets: dict[Place, _Target] = {}
    added = 0
    for item, row in batch:
        current = places.redirect_change(database, Received(message=item.message)).message
        if current is not item.message:
            row = MessageRow(current)
        target = targets.get(current.place) or targets.setdefault(current.place, _Target(database, current.place))
        if not target.is_known(database, item, current):
            _insert(database, item, row, target)
            added += 1
    for place, target in targets.items():
        target.save(database, place)
    return ImportCounts(added=added, known=len(batch) - added)


def _insert(database: Database, item: ImportedMessage, row: MessageRow, target: _Target) -> None:
    message = row.message
    place, number = target.next_number(database, message)
    role = "model" if item.own or message.author.persona is not None else "user"
    fixed = (place, number, message.id, role, int(item.own), format_time(message.sent_at))
    content = row.content(database, target.row, message.sent_at)
    row_id = insert_row(database, INSERT_MESSAGE, (*fixed, *content))
    insert_media(database, row_id, row.medias)
    insert = """INSERT INTO reactions (place, message_id, name, emojis, at, message, position)
        VALUES (?, ?, ?, ?, ?, ?, ?)"""
    for shown, reaction in enumerate(item.reactions):
        name = upsert_name(database, message.place.author_namespace, reaction.author, message.sent_at)
        position = number + 1 if shown < MAX_REACTIONS_SHOWN else None
        emojis = dumps(tuple(map(clean, reaction.emojis)))
        database.execute(insert, (place, message.id, name, emojis, format_time(reaction.at), row_id, position))


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


def _find_staging(database: Database, place: int) -> int | None:
    row = database.execute("SELECT id FROM places WHERE place_key = ?", (_staging_key(place),)).fetchone()
    return row[0] if row else None


def _create_staging(database: Database, place: int) -> int:
    insert = "INSERT INTO places (place_key, platform, place_id) VALUES (?, ?, ?)"
    return insert_row(database, insert, (_staging_key(place), IMPORTS, str(place)))


def _finish(database: Database, place: Place, learn: bool) -> None:
    row = find_place(database, place)
    staging = _find_staging(database, row) if row is not None else None
    if row is not None and staging is not None:
        merge(database, row, staging, until="direct_until" if place.kind == "direct" else "open_until")
    if row is not None and learn:
        set_cursor(database, current_place(database, place), 0)


def merge(database: Database, place: int, staging: int, *, until: str) -> None:
    """Move the staged messages into their place, each before the first message that was sent after it."""
    _remove_known(database, place, staging)
    database.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    database.execute("CREATE TEMP TABLE staged (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    for table, old, new in _new_numbers(database, place, staging):
        database.execute(f"INSERT INTO temp.{table} VALUES (?, ?)", (old, new))
    (total,) = database.execute(
        "SELECT (SELECT count(*) FROM temp.moved) + (SELECT count(*) FROM temp.staged)"
    ).fetchone()
    _renumber(database, place, staging)
    _move_references(database, place)
    database.execute(f"UPDATE places SET messages = ?1, {until} = ?1 WHERE id = ?2", (total, place))
    database.execute("DELETE FROM window_pasts WHERE place = ?", (place,))
    clear_index(database, [place])
    database.execute("DELETE FROM places WHERE id = ?", (staging,))
    for table in ("moved", "staged"):
        database.execute(f"DROP TABLE temp.{table}")
    clear_cache(database)


def _remove_known(database: Database, place: int, staging: int) -> None:
    """Remove staged messages that the bot has received since they were staged."""
    known = """SELECT s.id FROM messages s JOIN messages p ON p.place = ? AND p.message_id = s.message_id
        WHERE s.place = ?"""
    found = database.execute(known, (place, staging)).fetchall()
    for table, column in (("media", "message"), ("reactions", "message"), ("messages", "id")):
        database.executemany(f"DELETE FROM {table} WHERE {column} = ?", found)


def _new_numbers(database: Database, place: int, staging: int) -> Iterator[tuple[str, int, int]]:
    """Yield each message of both rows in their common order: its table, its number and its new number."""
    select = "SELECT number, message_id, sent_at FROM messages WHERE place = ? ORDER BY number"
    here, waiting = database.execute(select, (place,)), database.execute(select, (staging,))
    first, second = here.fetchone(), waiting.fetchone()
    new = 0
    while first or second:
        if first is None or (second and _is_before(_position(second), _position(first))):
            yield "staged", second[0], new
            second = waiting.fetchone()
        else:
            yield "moved", first[0], new
            first = here.fetchone()
        new += 1


def _position(row: tuple[int, str, str | None]) -> Position:
    return row[1], parse_time(row[2])


def _renumber(database: Database, place: int, staging: int) -> None:
    """Give the messages of both rows their new numbers; negative ones first, since numbers are unique."""
    here = f"UPDATE messages SET number = -1 - {_MAPPED.format('number')} WHERE place = ?"
    database.execute(here, (place,))
    new = "(SELECT new FROM temp.staged WHERE old = {0})"
    moved = f"UPDATE messages SET place = ?, number = -1 - {new.format('number')} WHERE place = ?"
    database.execute(moved, (place, staging))
    database.execute("UPDATE messages SET number = -1 - number WHERE place = ? AND number < 0", (place,))
    database.execute(f"UPDATE reactions SET position = {_COUNTED.format('position')} WHERE place = ?", (place,))
    shown = f"UPDATE reactions SET place = ?, position = {new.format('position - 1')} + 1 WHERE place = ?"
    database.execute(shown, (place, staging))


def _move_references(database: Database, place: int) -> None:
    """Change what refers to numbers of messages, or to how many there were."""
    database.execute("INSERT INTO reading_cursors (place) VALUES (?) ON CONFLICT DO NOTHING", (place,))
    # the ids of episodes are made of numbers; an episode without messages marks where those of a forgotten person end
    database.execute(
        "UPDATE episodes SET episode_id = episode_id || ':' || start WHERE place = ? AND start < stop", (place,)
    )
    start = f"CASE WHEN start = stop THEN {_COUNTED} ELSE {_MAPPED} END"
    facts = f"CASE WHEN facts < (SELECT count(*) FROM temp.moved) THEN {_MAPPED} ELSE {_COUNTED} END"
    changes = {
        "message_changes": {"number": _MAPPED, "position": _COUNTED},
        "runs": {"horizon": _COUNTED},
        "description_positions": {"position": _COUNTED},
        "commands": {"horizon": _COUNTED},
        "outbox": {"position": _COUNTED},
        "episodes": {"start": start, "stop": _COUNTED},
        "reading_cursors": {"facts": facts, "episodes": _COUNTED},
        "places": {"direct_until": _COUNTED, "open_until": _COUNTED, "beginning": _COUNTED},
    }
    for table, columns in changes.items():
        values = ", ".join(f"{name} = {how.format(name)}" for name, how in columns.items())
        database.execute(f"UPDATE {table} SET {values} WHERE {'id' if table == 'places' else 'place'} = ?", (place,))
