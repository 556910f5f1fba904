"""Reading cursors: up to which message a place was read for facts and episodes; facts excluded from learning."""

from collections.abc import Sequence

from tertulia.memory.values import AnsweredMessages, CursorKind, UnreadRange
from tertulia.messages import Place
from tertulia.store.database import Database, upsert_row
from tertulia.store.encoding import STRINGS
from tertulia.store.identities import find_place, read_counts, select_places
from tertulia.store.message_rows import MESSAGES, SEEN, has_changed
from tertulia.store.threads import Repository, reading

# Excludes people and what facts say of them from being learned again from messages that exist now; a SELECT follows.
_EXCLUDE = """INSERT INTO fact_exclusions (about, digest, last_message)
    SELECT DISTINCT about, digest, (SELECT coalesce(max(id), 0) FROM messages) FROM ({}) gone WHERE true
    ON CONFLICT (about, digest) DO UPDATE SET last_message = excluded.last_message"""
EXCLUDE_FACTS = _EXCLUDE.format("SELECT about, digest FROM facts WHERE id IN (:facts)")
EXCLUDE_ALL = _EXCLUDE.format("SELECT id AS about, '' AS digest FROM authors WHERE id = :author")

# The places that have messages to read for facts, each as it is called now.
_UNREAD = """SELECT t.body FROM places p LEFT JOIN reading_cursors l ON l.place = p.id
    JOIN messages m ON m.place = p.id AND m.number = p.messages - 1 JOIN titles t ON t.id = m.title
    WHERE p.messages > coalesce(l.facts, 0) OR p.id IN (SELECT place FROM messages WHERE stale = 1)
    ORDER BY p.id"""


# The runs of an agent whose messages were not read for its facts.
_RUNS = """SELECT id, message_ids FROM runs WHERE place = :place AND agent = :agent AND status = 'done'
    AND id > coalesce((SELECT run FROM agent_cursors WHERE place = :place AND agent = :agent), 0)
    ORDER BY id LIMIT :most"""

# Messages that can be seen.
_MESSAGES = f"""JOIN names n ON n.id = m.name
    WHERE m.place = :place AND m.message_id IN (:message_ids) AND {SEEN} ORDER BY m.number"""


class SqlCursors(Repository):
    """Implements `memory.values.Cursors`."""

    @reading
    def next_range(self, database: Database, place: Place, *, most: int | None = None) -> UnreadRange | None:
        row, messages, changes = read_counts(database, place, "id, messages, changes") or (None, 0, 0)
        stale = "SELECT min(number) FROM messages WHERE place = :place AND stale = 1"
        again = database.value(stale, place=row)
        if again is not None:
            return UnreadRange(place=place, start=again, stop=again + 1, changes=changes)
        read = read_cursor(database, place)
        if read >= messages:
            return None
        stop = messages if most is None else min(messages, read + max(1, most))
        return UnreadRange(place=place, start=read, stop=stop, changes=changes)

    @reading
    def answered(self, database: Database, place: Place, agent: str, *, most: int) -> AnsweredMessages | None:
        row, changes = read_counts(database, place, "id, changes") or (None, 0)
        runs = database.all(_RUNS, place=row, agent=agent, most=most)
        if not runs:
            return None
        names = [name for _, taken in runs for name in STRINGS.loads(taken)]
        found = MESSAGES.all(database, _MESSAGES, place=row, message_ids=names)
        return AnsweredMessages(place=place, agent=agent, messages=tuple(found), run=runs[-1][0], changes=changes)

    @reading
    def unread(self, database: Database) -> Sequence[Place]:
        return select_places(database, _UNREAD)


def read_cursor(database: Database, place: Place, what: CursorKind = "facts") -> int:
    """Return the cursor of a place: the number of the first message that was not read."""
    select = f"SELECT {what} FROM reading_cursors WHERE place = :place"
    return database.value(select, place=find_place(database, place)) or 0


def set_cursor(database: Database, place: Place, number: int, what: CursorKind = "facts") -> None:
    """Set the cursor of a place, at most to its number of messages."""
    row = read_counts(database, place, "id, messages")
    if row is None:
        return
    upsert_row(database, "reading_cursors", "place", **{"place": row[0], what: max(0, min(number, row[1]))})


def mark_read(database: Database, reading: UnreadRange | AnsweredMessages) -> None:
    """Advance the cursor over a range, and mark its messages as no longer stale; or that of an agent."""
    if isinstance(reading, AnsweredMessages):
        key = {"place": find_place(database, reading.place), "agent": reading.agent}
        upsert_row(database, "agent_cursors", "place, agent", **key, run=reading.run)
        return
    if reading.stop > read_cursor(database, reading.place):
        set_cursor(database, reading.place, reading.stop)
    database.run(
        """UPDATE messages SET stale = 0
            WHERE place = :place AND number >= :start AND number < :stop AND stale = 1""",
        place=find_place(database, reading.place),
        start=reading.start,
        stop=reading.stop,
    )


def is_current(database: Database, reading: UnreadRange | AnsweredMessages) -> bool:
    """Return whether a range is still unread, and none of its messages has changed since it was handed out.

    Of what an agent has answered, whether no message of the place has.
    """
    row = read_counts(database, reading.place, "id, messages, changes")
    if isinstance(reading, AnsweredMessages):
        return row is not None and not has_changed(database, row[0], reading.changes, (0, row[1]))
    if row is None or row[1] < reading.stop or row[2] < reading.changes:
        return False  # it was forgotten meanwhile
    unread = "SELECT 1 FROM messages WHERE place = :place AND number = :start AND (stale = 1 OR number = :read)"
    read = read_cursor(database, reading.place)
    if database.one(unread, place=row[0], start=reading.start, read=read) is None:
        return False
    return not has_changed(database, row[0], reading.changes, (reading.start, reading.stop))
