"""Decisions about messages, a row per message and agent meant. Every change of one is made here, with its event.

A received message waits from the transaction that stores it on. It is decided about in the transaction that acts on the
decision: the one that skips it, that begins a run with it or takes it into one, that deletes it. So a message is never
taken and not answered, or answered and still waiting. Messages of the agent and imported ones have no row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.decisions import Decision, Reason
from tertulia.errors import InvalidValue, StoreBroken
from tertulia.events import MessageDecided
from tertulia.messages import Place
from tertulia.run.journal import Run
from tertulia.store import events
from tertulia.store.database import Database
from tertulia.store.encoding import PLACE, STRINGS, Columns, format_time
from tertulia.store.identities import find_place

# the decisions about messages of a place, by the ids of these; a condition
_OF_MESSAGES = """agent = ''
    AND message IN (SELECT id FROM messages WHERE place = :place AND message_id IN (:message_ids))"""
# stores one decision about messages that no run has; a condition on the former reason is in place of {}
_DECIDE = f"""UPDATE decisions SET reason = :reason, address = :address, run_id = :run_id, at = :at
    WHERE {_OF_MESSAGES} AND run_id IS NULL AND {{}}
    RETURNING (SELECT m.message_id FROM messages m WHERE m.id = message)"""
_SKIP = _DECIDE.format("reason = 'waiting'")
# an album may have been skipped before
_CLAIM = _DECIDE.format("reason NOT IN ('withdrawn', 'forgotten', 'place left')")
_COLUMNS = Columns(Decision, "agent reason address edited run_id at")
_ANSWERED = Decision(reason="answered")


def add(database: Database, message: int, place: int, reason: Reason, at: datetime | None) -> None:
    """Store the decision about a new message: mostly that it waits."""
    insert = "INSERT INTO decisions (message, place, reason, at) VALUES (:message, :place, :reason, :at)"
    database.send(insert, message=message, place=place, reason=reason, at=format_time(at))


def skip(
    database: Database, place: Place, decisions: Mapping[str, Decision], at: datetime, changes: int | None
) -> bool:
    """Store why messages that wait are not answered, by their ids; return False where the place has other *changes*."""
    row = find_place(database, place)
    if changes is not None and database.value("SELECT changes FROM places WHERE id = :place", place=row) != changes:
        return False
    events.add(database, *_decide(database, _SKIP, place, row, decisions, at), at=at)
    return True


def claim(database: Database, run: Run, message_ids: Iterable[str], at: datetime | None) -> list[MessageDecided]:
    """Store that a run has taken messages; return the events. Raise `InvalidValue` for one that another run has."""
    row = find_place(database, run.place)
    wanted = {one: replace(run.decisions.get(one, _ANSWERED), run_id=run.id) for one in message_ids}
    made = _decide(database, _CLAIM, run.place, row, wanted, at)
    if left := list(wanted.keys() - {event.message_id for event in made}):
        taken = """SELECT m.message_id, d.run_id FROM decisions d JOIN messages m ON m.id = d.message
            WHERE m.place = :place AND m.message_id IN (:left) AND d.agent = '' AND d.run_id <> :run_id"""
        for message_id, other in database.all(taken, place=row, left=left, run_id=run.id):
            raise InvalidValue(f"message {message_id!r} was taken by run {other!r} already")
    return made


def release(database: Database, run_id: str) -> int:
    """Let the messages of a run wait again, since they were received; return how many do."""
    ((place, taken),) = database.all("SELECT place, message_ids FROM runs WHERE run_id = :run_id", run_id=run_id)
    update = """UPDATE decisions SET reason = 'waiting', address = NULL, run_id = NULL,
            at = (SELECT received_at FROM messages WHERE id = message)
        WHERE run_id = :run_id AND message IN (
            SELECT id FROM messages WHERE place = :place AND message_id IN (:taken)
        ) RETURNING message"""
    changed = database.column(update, run_id=run_id, place=place, taken=STRINGS.loads(taken))
    _publish(database, "waiting", changed, None)
    return len(changed)


def end_waiting(database: Database, messages: Iterable[int], reason: Reason, at: datetime | None) -> None:
    """Store why messages do not wait any more, by their rows; those that do not wait stay as they are."""
    update = """UPDATE decisions SET reason = :reason, at = coalesce(:at, at)
        WHERE message IN (:messages) AND reason = 'waiting' RETURNING message"""
    changed = database.column(update, reason=reason, at=format_time(at), messages=list(messages))
    _publish(database, reason, changed, at)


def leave(database: Database, places: Sequence[int], at: datetime) -> None:
    """Store that the messages that wait in places are not answered: we have left them."""
    select = "SELECT message FROM decisions WHERE place IN (:places) AND reason = 'waiting'"
    end_waiting(database, database.column(select, places=list(places)), "place left", at)


def wait_again(database: Database, message: int, place: int, at: datetime) -> None:
    """Store that a message waits since it was edited."""
    upsert = """INSERT INTO decisions (message, place, reason, edited, at) VALUES (:message, :place, 'waiting', 1, :at)
        ON CONFLICT (message, agent) DO UPDATE SET reason = 'waiting', edited = 1, at = excluded.at RETURNING message"""
    _publish(database, "waiting", database.column(upsert, message=message, place=place, at=format_time(at)), at)


def remove(database: Database, message: int) -> None:
    """Remove the decisions about a message, which turns out to be the agent's own."""
    database.run("DELETE FROM decisions WHERE message = :message", message=message)


def read(database: Database, messages: Sequence[int]) -> dict[int, tuple[Decision, ...]]:
    """Return the decisions about messages by their rows: one for each agent."""
    select = f"SELECT message, {_COLUMNS} FROM decisions WHERE message IN (:messages) ORDER BY agent"
    found: dict[int, tuple[Decision, ...]] = dict.fromkeys(messages, ())
    for message, *columns in database.all(select, messages=list(messages)):
        found[message] += (_COLUMNS.decode(columns),)
    return found


def find_faults(database: Database) -> Iterator[str]:
    """Yield the decisions that cannot be read, are of another place, or name a run that does not exist."""
    select = f"""SELECT {_COLUMNS.of("d")}, d.message, CASE WHEN d.place = m.place THEN 1 ELSE 0 END,
            CASE WHEN d.run_id IS NULL OR r.id IS NOT NULL THEN 1 ELSE 0 END
        FROM decisions d JOIN messages m ON m.id = d.message LEFT JOIN runs r ON r.run_id = d.run_id"""
    for *row, message, is_of_place, has_run in database.all(select):
        try:
            _COLUMNS.decode(row)
        except (StoreBroken, ValueError) as error:
            yield f"the decision about message {message}: {error}"
        if not is_of_place:
            yield f"the decision about message {message} has the place of another one"
        if not has_run:
            yield f"the decision about message {message} names a run that is not stored"


def _decide(
    database: Database,
    statement: str,
    place: Place,
    row: int | None,
    decisions: Mapping[str, Decision],
    at: datetime | None,
) -> list[MessageDecided]:
    """Store decisions about messages by their ids, equal ones with one statement; return the events of those stored."""
    stored: set[str] = set()
    for decision in dict.fromkeys(decisions.values()):
        changed = database.column(
            statement,
            place=row,
            message_ids=[message_id for message_id, one in decisions.items() if one == decision],
            reason=decision.reason,
            address=decision.address,
            run_id=decision.run_id,
            at=format_time(at),
        )
        stored.update(changed)
    return [_event(place, message_id, decision) for message_id, decision in decisions.items() if message_id in stored]


def _event(place: Place, message_id: str, decision: Decision) -> MessageDecided:
    return MessageDecided(
        place=place,
        message_id=message_id,
        reason=decision.reason,
        address=decision.address,
        agent=decision.agent,
        run_id=decision.run_id,
    )


def _publish(database: Database, reason: Reason, messages: Sequence[int], at: datetime | None) -> None:
    select = """SELECT t.body, m.message_id FROM messages m JOIN titles t ON t.id = m.title
        WHERE m.id IN (:messages) ORDER BY m.id"""
    rows = database.all(select, messages=messages)
    made = [MessageDecided(place=PLACE.loads(place), message_id=name, reason=reason) for place, name in rows]
    events.add(database, *made, at=at)
