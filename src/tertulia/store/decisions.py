"""Decisions about messages, a row per message and agent meant. Every change of one is made here, with its event.

A received message waits from the transaction that stores it on. It is decided about in the transaction that acts on the
decision: the one that skips it, that begins a run with it or takes it into one, that deletes it. So a message is never
taken and not answered, or answered and still waiting. Imported messages have no row.

The row of a received message names no agent: it is undecided. Where several agents may be meant, the transaction that
acts for the first of them gives that row to it, and adds a row for each other one, which waits in its place. After an
edit an undecided row stands beside those of the agents that have acted on the message; it ends in the same way.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.decisions import Decision, Meant, Reason
from tertulia.errors import InvalidValue, StoreBroken
from tertulia.events import MessageDecided
from tertulia.messages import Place
from tertulia.run.journal import Run
from tertulia.store import events
from tertulia.store.database import Database, Row
from tertulia.store.encoding import PLACE, STRINGS, dumps, format_time
from tertulia.store.identities import find_place
from tertulia.store.rows import Rows

_WAITS = "reason = 'waiting'"
_OPEN = "reason NOT IN ('withdrawn', 'forgotten', 'place left')"  # an album may have been skipped before
# the decisions about messages of a place, by the ids of these; a condition
_OF_MESSAGES = "message IN (SELECT id FROM messages WHERE place = :place AND message_id IN (:message_ids))"
# the rows that one agent without a name decides about, and those of another one; conditions
_OF_ONE = "agent = ''"
_HAS_ROW = "EXISTS (SELECT 1 FROM decisions o WHERE o.message = decisions.message AND o.agent = :agent)"
_UNDECIDED = "agent = '' AND address IS NULL AND run_id IS NULL"
_OF_AGENT = f"(agent = :agent OR ({_UNDECIDED} AND NOT {_HAS_ROW}))"
# whether a run has taken a message; a condition
_IS_TAKEN = "EXISTS (SELECT 1 FROM decisions o WHERE o.message = :message AND o.run_id IS NOT NULL)"
# stores one decision about messages that no run has; conditions on the agent and on the former reason follow
_DECIDE = f"""UPDATE decisions SET {{}} reason = :reason, address = :address, run_id = :run_id, at = :at
    WHERE {_OF_MESSAGES} AND run_id IS NULL AND {{}} AND {{}}
    RETURNING (SELECT m.message_id FROM messages m WHERE m.id = message)"""
# adds the rows of a further agent beside undecided ones; a condition on the reason of these follows
_ADD_MEANT = f"""INSERT INTO decisions (message, agent, place, position, reason, address, edited, at)
    SELECT message, :agent, place, :position, 'waiting', :address, edited, at FROM decisions
    WHERE {_OF_MESSAGES} AND {_UNDECIDED} AND {{}} ON CONFLICT (message, agent) DO NOTHING"""
# removes undecided rows beside those of an agent
_DROP_UNDECIDED = f"""DELETE FROM decisions WHERE {_OF_MESSAGES} AND {_UNDECIDED} AND {_HAS_ROW}
    RETURNING (SELECT m.message_id FROM messages m WHERE m.id = message)"""
_DECISIONS = Rows(Decision, "decisions d", "agent reason address edited run_id at")
_ANSWERED = Decision(reason="answered")


def add(
    database: Database,
    message: int,
    place: int,
    reason: Reason,
    at: datetime | None,
    *,
    addressed: Sequence[str] | None = None,
) -> None:
    """Store the decision about a new message: mostly that it waits. One that is *addressed* to nobody does not."""
    if reason == "waiting" and addressed is not None and not addressed:
        reason = "not addressed"
    insert = """INSERT INTO decisions (message, place, reason, at, addressed)
        VALUES (:message, :place, :reason, :at, :addressed)"""
    names = None if addressed is None else dumps(addressed)
    database.send(insert, message=message, place=place, reason=reason, at=format_time(at), addressed=names)


def add_undecided(database: Database, message: int, at: datetime) -> None:
    """Let a message of an agent wait for the others, unless it has decisions: the platform showed it to us before."""
    insert = """INSERT INTO decisions (message, place, reason, at) SELECT id, place, 'waiting', :at FROM messages
        WHERE id = :message AND NOT EXISTS (SELECT 1 FROM decisions WHERE message = :message)"""
    database.send(insert, message=message, at=format_time(at))


def skip(
    database: Database, place: Place, decisions: Mapping[str, Decision], meant: Meant, at: datetime, changes: int | None
) -> bool:
    """Store why messages that wait are not answered, by their ids; return False where the place has other *changes*."""
    row = find_place(database, place)
    if changes is not None:
        seen = database.one("SELECT changes FROM places WHERE id = :place", place=row)
        if seen != (changes,):
            return False
    _add_meant(database, row, meant, _WAITS)
    made, dropped = _decide(database, row, decisions, _WAITS, at)
    events.add(database, *_events(place, decisions, made | dropped), at=at)
    return True


def claim(database: Database, run: Run, message_ids: Iterable[str], at: datetime | None) -> list[MessageDecided]:
    """Store that a run has taken messages; return the events. Raise `InvalidValue` for one that another run has."""
    row = find_place(database, run.place)
    taken = {one: run.decisions.get(one, _ANSWERED) for one in message_ids}
    wanted = {one: replace(decision, run_id=run.id, agent=run.agent) for one, decision in taken.items()}
    _add_meant(database, row, {one: run.meant[one] for one in wanted if one in run.meant}, _OPEN)
    made, _ = _decide(database, row, wanted, _OPEN, at)
    if left := list(wanted.keys() - made):
        of_others = """SELECT m.message_id, d.run_id FROM decisions d JOIN messages m ON m.id = d.message
            WHERE m.place = :place AND m.message_id IN (:left) AND d.agent = :agent AND d.run_id <> :run_id"""
        for message_id, other in database.all(of_others, place=row, left=left, agent=run.agent, run_id=run.id):
            raise InvalidValue(f"message {message_id!r} was taken by run {other!r} already")
    return _events(run.place, wanted, made)


def release(database: Database, run_id: str) -> int:
    """Let the messages of a run wait again for its agent, since they were received; return how many do."""
    ((place, taken),) = database.all("SELECT place, message_ids FROM runs WHERE run_id = :run_id", run_id=run_id)
    update = f"""UPDATE decisions SET reason = 'waiting', address = CASE WHEN agent <> '' THEN address END,
            run_id = NULL, at = (SELECT coalesce(received_at, sent_at) FROM messages WHERE id = message)
        WHERE run_id = :run_id AND {_OF_MESSAGES} RETURNING message, agent"""
    changed = database.all(update, run_id=run_id, place=place, message_ids=STRINGS.loads(taken))
    _publish(database, "waiting", changed, None)
    return len(changed)


def end_waiting(database: Database, messages: Iterable[int], reason: Reason, at: datetime | None) -> None:
    """Store why messages do not wait any more, by their rows; those that do not wait stay as they are."""
    update = """UPDATE decisions SET reason = :reason, at = coalesce(:at, at)
        WHERE message IN (:messages) AND reason = 'waiting' RETURNING message, agent"""
    changed = database.all(update, reason=reason, at=format_time(at), messages=list(messages))
    _publish(database, reason, changed, at)


def leave(database: Database, places: Sequence[int], at: datetime) -> None:
    """Store that the messages that wait in places are not answered: we have left them."""
    select = "SELECT message FROM decisions WHERE place IN (:places) AND reason = 'waiting'"
    end_waiting(database, [message for (message,) in database.all(select, places=list(places))], "place left", at)


def drop_agent(database: Database, agent: str, at: datetime) -> None:
    """Store that an agent which was removed does not answer what waits for it."""
    update = """UPDATE decisions SET reason = 'agent removed', at = :at
        WHERE agent = :agent AND reason = 'waiting' RETURNING message, agent"""
    _publish(database, "agent removed", database.all(update, agent=agent, at=format_time(at)), at)


def wait_again(database: Database, message: int, place: int, at: datetime) -> None:
    """Store that a message waits since it was edited, undecided; agents that have not acted on it wait no more."""
    upsert = """INSERT INTO decisions (message, place, reason, edited, at, addressed) VALUES (
            :message, :place, 'waiting', 1, :at, (SELECT max(addressed) FROM decisions WHERE message = :message)
        ) ON CONFLICT (message, agent) DO UPDATE SET reason = 'waiting', edited = 1, at = excluded.at
        RETURNING message, agent"""
    _publish(database, "waiting", database.all(upsert, message=message, place=place, at=format_time(at)), at)
    database.send(
        "DELETE FROM decisions WHERE message = :message AND agent <> '' AND reason = 'waiting'", message=message
    )


def remove(database: Database, message: int) -> None:
    """Remove the decisions about a message, which turns out to be our own, unless a run has taken it."""
    database.run(f"DELETE FROM decisions WHERE message = :message AND NOT {_IS_TAKEN}", message=message)


def move(database: Database, message: int, to: int | None) -> None:
    """Make the decisions about a message that a run has taken those about the row *to*, which is the same message."""
    if to is not None:
        update = f"UPDATE decisions SET message = :row WHERE message = :message AND {_IS_TAKEN}"
        database.run(update, row=to, message=message)


def read(database: Database, messages: Sequence[int]) -> dict[int, tuple[Decision, ...]]:
    """Return the decisions about messages by their rows: one for each agent."""
    which = "WHERE d.message IN (:messages) ORDER BY d.position, d.agent"
    found = _DECISIONS.by(database, "d.message", which, messages=list(messages))
    return {message: tuple(found.get(message, ())) for message in messages}


def find_faults(database: Database) -> Iterator[str]:
    """Yield the decisions that cannot be read, are of another place, or name a run that does not exist."""
    select = f"""SELECT {_DECISIONS}, d.message, CASE WHEN d.place = m.place THEN 1 ELSE 0 END,
            CASE WHEN d.run_id IS NULL OR r.id IS NOT NULL THEN 1 ELSE 0 END
        FROM decisions d JOIN messages m ON m.id = d.message LEFT JOIN runs r ON r.run_id = d.run_id"""
    for *row, message, is_of_place, has_run in database.all(select):
        try:
            _DECISIONS.decode(row)
        except (StoreBroken, ValueError) as error:
            yield f"the decision about message {message}: {error}"
        if not is_of_place:
            yield f"the decision about message {message} has the place of another one"
        if not has_run:
            yield f"the decision about message {message} names a run that is not stored"


def _decide(
    database: Database, place: int | None, decisions: Mapping[str, Decision], condition: str, at: datetime | None
) -> tuple[set[str], set[str]]:
    """Store decisions about messages by their ids, equal ones with one statement; return the ids of those stored.

    And the ids of the messages about which the agent had decided: their undecided rows are removed.
    """
    stored, dropped = set[str](), set[str]()
    for decision in dict.fromkeys(decisions.values()):
        of_agent = {
            "place": place,
            "message_ids": [message_id for message_id, one in decisions.items() if one == decision],
            "agent": decision.agent,
        }
        which = ("agent = :agent,", _OF_AGENT) if decision.agent else ("", _OF_ONE)
        changed = database.all(
            _DECIDE.format(*which, condition),
            **of_agent,
            reason=decision.reason,
            address=decision.address,
            run_id=decision.run_id,
            at=format_time(at),
        )
        stored.update(message_id for (message_id,) in changed)
        if decision.agent:
            dropped.update(message_id for (message_id,) in database.all(_DROP_UNDECIDED, **of_agent))
    return stored, dropped


def _add_meant(database: Database, place: int | None, meant: Meant, condition: str) -> None:
    """Let undecided messages wait for the further agents meant, by the ids of the messages; in the order of these."""
    messages: dict[tuple[int, Decision], list[str]] = {}
    for message_id, further in meant.items():
        for position, decision in enumerate(further, 1):
            messages.setdefault((position, decision), []).append(message_id)
    for (position, decision), message_ids in messages.items():
        database.send(
            _ADD_MEANT.format(condition),
            place=place,
            message_ids=message_ids,
            agent=decision.agent,
            position=position,
            address=decision.address,
        )


def _events(place: Place, decisions: Mapping[str, Decision], made: Collection[str]) -> list[MessageDecided]:
    return [
        MessageDecided(
            place=place,
            message_id=message_id,
            reason=decision.reason,
            address=decision.address,
            agent=decision.agent,
            run_id=decision.run_id,
        )
        for message_id, decision in decisions.items()
        if message_id in made
    ]


def _publish(database: Database, reason: Reason, decided: Iterable[Row], at: datetime | None) -> None:
    """Publish decisions, by the rows of their messages and their agents."""
    select = """SELECT m.id, t.body, m.message_id FROM messages m JOIN titles t ON t.id = m.title
        WHERE m.id IN (:messages) ORDER BY m.id"""
    agents = sorted(decided)
    named = {row: (PLACE.loads(place), name) for row, place, name in database.all(select, messages=[*dict(agents)])}
    made = [
        MessageDecided(place=named[row][0], message_id=named[row][1], reason=reason, agent=agent)
        for row, agent in agents
    ]
    events.add(database, *made, at=at)
