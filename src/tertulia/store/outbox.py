"""The outbox: replies with their status, and the receipts of sent ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec.structs import replace

from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem, SendStatus
from tertulia.errors import InvalidValue
from tertulia.events import DurableEvent, ReplyDoubtful, ReplyDropped, ReplyQueued, ReplyRefused, ReplySent
from tertulia.messages import Place
from tertulia.store import events, own_messages
from tertulia.store.database import Database, Row
from tertulia.store.encoding import (
    AUTHOR,
    REPLY,
    TURNS,
    clean,
    dumps,
    format_time,
    parse_time,
    validate,
    validate_id,
)
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.threads import Repository

_NAMES = """outgoing_id, run_id, task_id, kind, status, attempts, made_at, sent_at, message_id, why, author,
    turns, reply, reply_id, part, separator, edits, unknown_attempts, purpose"""
# replies; a condition follows
_SELECT = f"SELECT {_NAMES} FROM outbox"
_BY_ID = f"{_SELECT} WHERE outgoing_id = :outgoing_id"

# whether a reply is an answer that waits; a condition

WAITING_ANSWER = "status = 'waiting' AND kind = 'answer' AND run_id IS NOT NULL"

NewStatus = Literal["waiting", "dropped"]  # by a decision of the operator
_DECIDABLE: Mapping[NewStatus, tuple[SendStatus, SendStatus]] = {
    "waiting": ("doubtful", "dropped"),
    "dropped": ("doubtful", "waiting"),
}

OutboxRow = tuple[OutboxItem, dict[str, Any]]  # a reply, and its columns


class SqlOutbox(Repository):
    """Implements `engine.store_protocols.OutboxStore`."""

    async def unsent(self) -> Sequence[OutboxItem]:
        return await self.listed("waiting", "sending")

    async def put(self, *outgoing: OutboxItem) -> None:
        rows = [as_row(one) for one in outgoing]
        await self._writer.run(lambda database: put(database, rows), places=[one.reply.place for one in outgoing])

    async def draft(self, run_id: str) -> OutboxItem | None:
        return await self._reader.run(lambda database: _draft(database, run_id))

    async def abandoned_drafts(self) -> Sequence[OutboxItem]:
        return await self._reader.run(_abandoned_drafts)

    async def change(self, outgoing: OutboxItem) -> None:
        row = outgoing, _mutable_columns(outgoing)
        await self._writer.run(lambda database: change(database, row), places=[outgoing.reply.place])

    async def drop_answers(self, runs: Sequence[str], *, why: str) -> None:
        await self._writer.run(lambda database: _drop_answers(database, list(runs), why))

    async def decide(self, outgoing_id: str, status: NewStatus, *, why: str = "") -> OutboxItem | None:
        reason = clean(why)
        return await self._writer.run(lambda database: decide(database, outgoing_id, status, reason))

    async def listed(self, *statuses: SendStatus) -> Sequence[OutboxItem]:
        return await self._reader.run(lambda database: listed(database, statuses))

    async def of_place(
        self, place: Place, *, ids: Sequence[str] | None = None, most: int
    ) -> Sequence[tuple[int, OutboxItem]]:
        return await self._reader.run(lambda database: _of_place(database, place, ids, most))

    async def attempts(self, *outgoing_ids: str) -> Mapping[str, Sequence[DeliveryAttempt]]:
        return await self._reader.run(lambda database: _attempts(database, outgoing_ids))

    async def to_retry(self) -> Sequence[OutboxItem]:
        return await self._reader.run(to_retry)


def as_row(outgoing: OutboxItem) -> OutboxRow:
    return outgoing, _mutable_columns(outgoing) | {
        "run_id": None if outgoing.run is None else validate_id(outgoing.run, "run"),
        "task_id": None if outgoing.task is None else validate_id(outgoing.task, "task"),
        "kind": outgoing.kind,
        "text": clean(outgoing.reply.text),
        "made_at": outgoing.made_at.isoformat(),
        "turns": dumps(outgoing.turns),
        "reply": dumps(outgoing.reply),
        "reply_id": None if outgoing.reply_id is None else validate_id(outgoing.reply_id, "reply"),
        "part": outgoing.part,
        "separator": clean(outgoing.separator),
        "purpose": outgoing.purpose,
    }


def _mutable_columns(outgoing: OutboxItem) -> dict[str, Any]:
    """Return the id of a reply and its columns that change with its status."""
    return {
        "outgoing_id": validate_id(outgoing.id, "reply"),
        "status": outgoing.status,
        "attempts": outgoing.attempts,
        "unknown_attempts": outgoing.unknown_attempts,
        "sent_at": format_time(outgoing.sent_at),
        "message_id": None if outgoing.message_id is None else validate_id(outgoing.message_id, "message"),
        "why": clean(outgoing.why),
        "author": None if outgoing.author is None else dumps(outgoing.author),
        "edits": None if outgoing.edits is None else validate_id(outgoing.edits, "message"),
    }


_COLUMN_NAMES = """outgoing_id place run_id task_id kind status attempts text made_at sent_at message_id why author
    turns reply reply_id part separator edits unknown_attempts purpose""".split()
# stores a reply, unless it is there
_INSERT = f"""INSERT INTO outbox ({", ".join(_COLUMN_NAMES)})
    VALUES ({", ".join(f":{column}" for column in _COLUMN_NAMES)}) ON CONFLICT (outgoing_id) DO NOTHING"""
_MUTABLE = "status attempts unknown_attempts sent_at why author edits".split()
# changes the status of a reply that was not sent and, to send it, not dropped
_UPDATE = f"""UPDATE outbox SET {", ".join(f"{column} = :{column}" for column in _MUTABLE)},
    message_id = CASE WHEN :status = 'sent' THEN :message_id ELSE message_id END,
    position = CASE WHEN :status = 'sent' THEN (SELECT messages FROM places WHERE id = place) END
    WHERE outgoing_id = :outgoing_id AND status != 'sent'
    AND (status != 'dropped' OR :status NOT IN ('waiting', 'sending'))"""


# an attempt of a stored reply when it begins, and again when it ends
_UPSERT_ATTEMPT = """INSERT INTO delivery_attempts (outgoing_id, number, begun_at, ended_at, outcome, why)
    SELECT outgoing_id, :number, :begun_at, :ended_at, :outcome, :why FROM outbox WHERE outgoing_id = :outgoing_id
    ON CONFLICT (outgoing_id, number) DO UPDATE SET
    ended_at = excluded.ended_at, outcome = excluded.outcome, why = excluded.why"""


def _attempt_columns(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "begun_at": attempt.begun_at.isoformat(),
        "ended_at": format_time(attempt.ended_at),
        "outcome": attempt.outcome,
        "why": clean(attempt.why),
    }


def _attempts(database: Database, outgoing_ids: Sequence[str]) -> dict[str, list[DeliveryAttempt]]:
    select = """SELECT outgoing_id, number, begun_at, ended_at, outcome, why FROM delivery_attempts
        WHERE outgoing_id IN (:names) ORDER BY outgoing_id, number"""
    found: dict[str, list[DeliveryAttempt]] = {}
    for name, number, begun_at, ended_at, outcome, why in database.all(select, names=list(outgoing_ids)):
        attempt = DeliveryAttempt(
            number=number,
            begun_at=datetime.fromisoformat(begun_at),
            ended_at=parse_time(ended_at),
            outcome=outcome,
            why=why,
        )
        found.setdefault(name, []).append(validate(attempt))
    return found


def add(database: Database, row: OutboxRow) -> bool:
    """Store a reply if it is new; return whether it was."""
    outgoing, columns = row
    added = database.run(_INSERT, place=upsert_place(database, outgoing.reply.place), **columns) > 0
    if added:
        _apply_status(database, outgoing, None)
    return added


def put(database: Database, rows: Sequence[OutboxRow]) -> None:
    """Store replies or update their status; a sent reply becomes a message and stays sent."""
    for row in rows:
        if not add(database, row):
            change(database, row)


def change(database: Database, row: OutboxRow) -> None:
    """Update the status of a stored reply."""
    outgoing, columns = row
    if outgoing.attempt:
        database.run(_UPSERT_ATTEMPT, outgoing_id=outgoing.id, **_attempt_columns(outgoing.attempt))
    is_attempt = outgoing.status in ("waiting", "sending") and outgoing.attempts > 0
    if is_attempt and database.run(_UPDATE, **columns):
        return  # nothing follows from it
    found = database.one(_BY_ID, outgoing_id=outgoing.id)
    if found is None:
        raise InvalidValue(f"there is no reply {outgoing.id!r}; it was forgotten with its place")
    stored = _decode(found)
    if not is_attempt and database.run(_UPDATE, **columns):
        _apply_status(database, _as_sent(database, outgoing, stored), stored.message_id)
        if outgoing.status == "sent" and stored.kind == "notice" and stored.author is None and stored.run is None:
            _blank(database, stored)
        if outgoing.status == "dropped":
            _drop_rest(database, stored)
        return
    if stored.status == "dropped":
        raise InvalidValue(f"reply {outgoing.id!r} was dropped; it is not sent unless somebody decides so")
    if outgoing.status != "sent":
        raise InvalidValue(f"reply {outgoing.id!r} was sent already; it cannot be {outgoing.status} again")


def _as_sent(database: Database, outgoing: OutboxItem, stored: OutboxItem) -> OutboxItem:
    """Return a reply as it is stored; one that went in another form is stored like that first.

    Where media did not go, the turns of the model say more than was sent. What was forgotten meanwhile stays empty.
    """
    went, planned = outgoing.reply, stored.reply
    as_stored = replace(outgoing, reply=planned, turns=stored.turns)
    if outgoing.status not in ("sent", "doubtful") or own_messages.is_empty(stored):
        return as_stored
    reply = replace(planned, text=went.text, media=went.media, reply_to=went.reply_to and planned.reply_to)
    if reply == planned:
        return as_stored
    update = "UPDATE outbox SET text = :text, reply = :reply WHERE outgoing_id = :name"
    database.run(update, text=clean(reply.text), reply=dumps(reply), name=outgoing.id)
    if len(reply.media) == len(planned.media):
        return replace(as_stored, reply=reply)
    without_turns = "UPDATE outbox SET turns = '[]' WHERE outgoing_id = :name OR reply_id = :reply_id"
    database.run(without_turns, name=outgoing.id, reply_id=stored.reply_id)
    return replace(as_stored, reply=reply, turns=())


def _blank(database: Database, notice: OutboxItem) -> None:
    """Remove the text of a sent notice: the answer to `/memory` must not outlive forgotten facts."""
    blank = replace(notice.reply, text="", media=())
    update = "UPDATE outbox SET text = '', reply = :reply WHERE outgoing_id = :outgoing_id"
    database.run(update, reply=dumps(blank), outgoing_id=notice.id)


def _apply_status(database: Database, outgoing: OutboxItem, known_as: str | None) -> None:
    """Apply a new status: store or remove the message of a reply, which may be *known_as* an id; store the event."""
    if outgoing.status in ("sent", "doubtful"):
        own_messages.store_reply(database, outgoing, known_as)
    elif outgoing.status == "dropped":
        own_messages.remove_reply(database, outgoing, known_as)
    if event := _event(outgoing):
        events.add(database, event, at=outgoing.sent_at or outgoing.made_at)


def _event(outgoing: OutboxItem) -> DurableEvent | None:
    """Return the event of a reply's new status; None while it is being sent."""
    place, run, name = outgoing.reply.place, outgoing.run, outgoing.id
    if outgoing.kind == "draft" and outgoing.status != "doubtful":
        return None
    match outgoing.status:
        case "waiting" if outgoing.attempts == 0:
            return ReplyQueued(place=place, run_id=run, delivery_id=name, delivery_kind=outgoing.kind)
        case "sent":
            return ReplySent(place=place, run_id=run, delivery_id=name, message_id=outgoing.message_id or "")
        case "doubtful":
            return ReplyDoubtful(place=place, run_id=run, delivery_id=name)
        case "dropped":
            return ReplyRefused(place=place, run_id=run, delivery_id=name)
        case _:
            return None


def decide(database: Database, outgoing_id: str, status: NewStatus, why: str) -> OutboxItem | None:
    """Queue a doubtful or dropped reply again, or drop a doubtful or waiting one."""
    row = database.one(_BY_ID, outgoing_id=outgoing_id) if clean(outgoing_id) == outgoing_id else None
    if row is None:
        return None
    stored = _decode(row)
    if status == "waiting" and own_messages.is_empty(stored):
        raise InvalidValue(f"reply {outgoing_id!r} says nothing any more: {stored.why}")
    if status == "waiting" and stored.kind == "draft":
        raise InvalidValue(f"reply {outgoing_id!r} is a draft, which is never sent again: its answer was sent anew")
    one, other = _DECIDABLE[status]
    if stored.status in (one, other):
        update = "UPDATE outbox SET status = :status, why = :why WHERE outgoing_id = :outgoing_id"
        database.run(update, status=status, why=why, outgoing_id=outgoing_id)
        decided = replace(stored, status=status, why=why)
        if status == "dropped":
            _end_dropped(database, decided)
            _drop_rest(database, decided)
        else:
            queued = ReplyQueued(
                place=stored.reply.place, run_id=stored.run, delivery_id=stored.id, delivery_kind=stored.kind
            )
            events.add(database, queued)
        return decided
    what = "sent again" if status == "waiting" else "dropped"
    raise InvalidValue(f"reply {outgoing_id!r} is {stored.status}; only one that is {one} or {other} can be {what}")


def _draft(database: Database, run_id: str) -> OutboxItem | None:
    row = database.one(f"{_SELECT} WHERE run_id = :run_id AND kind = 'draft'", run_id=run_id)
    return None if row is None else _decode(row)


def _abandoned_drafts(database: Database) -> list[OutboxItem]:
    """Return the drafts that are still shown though their run has ended without another form of them."""
    select = f"""{_SELECT} d WHERE kind = 'draft' AND status = 'sent'
        AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = d.run_id AND r.status = 'open')
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.place = d.place AND o.edits = d.message_id)
        AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.run_id = d.run_id AND o.purpose = 'draft end') ORDER BY id"""
    return [_decode(row) for row in database.all(select)]


def _drop_answers(database: Database, runs: list[str], why: str) -> None:
    _drop(database, f"run_id IN (:runs) AND {WAITING_ANSWER}", why, runs=runs)


def drop_waiting(database: Database, place: int, why: str) -> None:
    """Drop the replies that wait to be sent to a place, by its row."""
    _drop(database, "place = :place AND status = 'waiting'", why, place=place)


def _drop_rest(database: Database, outgoing: OutboxItem) -> None:
    """Drop the waiting parts after a dropped one."""
    rest = "reply_id = :reply_id AND part > :part AND status = 'waiting'"
    why = f"part {outgoing.part + 1} of the reply was dropped"
    _drop(database, rest, why, reply_id=outgoing.reply_id, part=outgoing.part)


def _drop(database: Database, which: str, why: str, **values: Any) -> None:
    """Drop the replies of a WHERE clause, in the order in which they were made."""
    update = f"UPDATE outbox SET status = 'dropped', why = :why WHERE {which} RETURNING id, {_NAMES}"
    for _, *row in sorted(database.all(update, why=why, **values)):
        _end_dropped(database, _decode(tuple(row)))


def _end_dropped(database: Database, dropped: OutboxItem) -> None:
    """Remove the message of a reply that was dropped, and store the event."""
    own_messages.remove_reply(database, dropped, dropped.message_id)
    events.add(database, ReplyDropped(place=dropped.reply.place, run_id=dropped.run, delivery_id=dropped.id))


def listed(database: Database, statuses: Sequence[SendStatus]) -> list[OutboxItem]:
    """Return the replies with these statuses, or all; oldest first."""
    chosen = statuses or get_args(SendStatus)
    rows = database.all(f"{_SELECT} WHERE status IN (:statuses) ORDER BY id", statuses=list(chosen))
    return [_decode(row) for row in rows]


def _of_place(database: Database, place: Place, ids: Sequence[str] | None, most: int) -> list[tuple[int, OutboxItem]]:
    which = "" if ids is None else "AND outgoing_id IN (:ids)"
    select = f"""SELECT id, {_NAMES} FROM outbox WHERE place = :place AND kind <> 'draft' {which}
        ORDER BY id DESC LIMIT :most"""
    rows = database.all(select, place=find_place(database, place), ids=list(ids or ()), most=most)
    return [(order, _decode(tuple(row))) for order, *row in reversed(rows)]


def to_retry(database: Database) -> list[OutboxItem]:
    """Return the waiting replies with at least one attempt; oldest first."""
    return [_decode(row) for row in database.all(f"{_SELECT} WHERE status = 'waiting' AND attempts > 0 ORDER BY id")]


def _decode(row: Row) -> OutboxItem:
    outgoing_id, run, task, kind, status, attempts, made_at, sent_at, message_id, why, author, turns, *rest = row
    reply, reply_id, part, separator, edits, unknown_attempts, purpose = rest
    return validate(
        OutboxItem(
            id=outgoing_id,
            reply=REPLY.loads(reply),
            made_at=datetime.fromisoformat(made_at),
            run=run,
            task=task,
            kind=kind,
            status=status,
            attempts=attempts,
            unknown_attempts=unknown_attempts,
            purpose=purpose,
            message_id=message_id,
            sent_at=parse_time(sent_at),
            why=why,
            author=None if author is None else AUTHOR.loads(author),
            turns=TURNS.loads(turns),
            reply_id=reply_id,
            part=part,
            separator=separator,
            edits=edits,
        )
    )
