"""The outbox: replies with their status, and the receipts of sent ones."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec.structs import replace

from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem, SendStatus
from tertulia.errors import InvalidValue
from tertulia.events import DurableEvent, ReplyDoubtful, ReplyDropped, ReplyQueued, ReplyRefused, ReplySent
from tertulia.messages import Message
from tertulia.parts import Media
from tertulia.platform import Delivered
from tertulia.store import events, message_rows, own_messages
from tertulia.store.database import Database, insert_into
from tertulia.store.encoding import Columns, clean, dumps, format_time, validate_id
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing

log = logging.getLogger(__name__)

_STATE = "status attempts unknown_attempts sent_at why author edits plain waits"
_CHANGED = Columns(OutboxItem, f"{_STATE} id=outgoing_id message_id")
_NEW = "run=run_id task=task_id agent kind made_at turns reply reply_id part separator purpose"
REPLIES = Rows(OutboxItem, "outbox", f"{_STATE} id=outgoing_id message_id {_NEW}")
_ATTEMPTS = Rows(DeliveryAttempt, "delivery_attempts", "number begun_at ended_at outcome why")
_BY_ID = "WHERE outgoing_id = :outgoing_id"
# whether a reply is an answer that waits; a condition
WAITING_ANSWER = "status = 'waiting' AND kind = 'answer' AND run_id IS NOT NULL"

# stores a reply, unless it is there
_INSERT = f"{insert_into('outbox', 'place', 'text', *REPLIES.names)} ON CONFLICT (outgoing_id) DO NOTHING"
_SET = f"UPDATE outbox SET {', '.join(f'{column} = :{column}' for column in _STATE.split())}"
# changes the status of a reply that is about to be sent: what is indexed of its message stays
_ATTEMPTED = f"{_SET} WHERE outgoing_id = :outgoing_id AND status NOT IN ('sent', 'dropped')"
# changes the status of a reply that was not sent and, to send it, not dropped
_UPDATE = f"""{_SET},
    message_id = CASE WHEN :status = 'sent' THEN :message_id ELSE message_id END,
    position = CASE WHEN :status = 'sent' THEN (SELECT messages FROM places WHERE id = place) END
    WHERE outgoing_id = :outgoing_id AND status != 'sent'
    AND (status != 'dropped' OR :status NOT IN ('waiting', 'sending'))"""

# the replies of a place that may have been sent, and of which nobody knows it
_IN_DOUBT = """WHERE place = :place AND status IN ('waiting', 'sending', 'doubtful') AND sent_at IS NOT NULL
    AND edits IS NULL ORDER BY id"""
# ends the attempt that is under way, or in which the process ended
_END_ATTEMPT = """UPDATE delivery_attempts SET ended_at = :at, outcome = 'sent'
    WHERE outgoing_id = :outgoing_id AND ended_at IS NULL"""

_WITHOUT_MARKUP = dict.fromkeys(map(ord, "*_`~\\"))

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

    @reading
    def draft(self, database: Database, run_id: str) -> OutboxItem | None:
        return REPLIES.one(database, "WHERE run_id = :run_id AND kind = 'draft'", run_id=run_id)

    @reading
    def abandoned_drafts(self, database: Database) -> Sequence[OutboxItem]:
        """Return the drafts that are still shown though their run has ended without another form of them."""
        which = """WHERE kind = 'draft' AND status = 'sent'
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = outbox.run_id AND r.status = 'open')
            AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.place = outbox.place AND o.edits = outbox.message_id)
            AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.run_id = outbox.run_id AND o.purpose = 'draft end')
            ORDER BY id"""
        return REPLIES.all(database, which)

    async def change(self, outgoing: OutboxItem) -> None:
        _require_ids(outgoing)
        row = outgoing, _CHANGED.encode(outgoing)
        await self._writer.run(lambda database: change(database, row), places=[outgoing.reply.place])

    @writing
    def drop_answers(self, database: Database, runs: Sequence[str], *, why: str) -> None:
        _drop(database, f"run_id IN (:runs) AND {WAITING_ANSWER}", why, runs=list(runs))

    @writing
    def decide(self, database: Database, outgoing_id: str, status: NewStatus, *, why: str = "") -> OutboxItem | None:
        return decide(database, outgoing_id, status, why)

    @reading
    def listed(self, database: Database, *statuses: SendStatus) -> Sequence[OutboxItem]:
        """Return the replies with these statuses, or all; oldest first."""
        chosen = statuses or get_args(SendStatus)
        return REPLIES.all(database, "WHERE status IN (:statuses) ORDER BY id", statuses=list(chosen))

    @reading
    def attempts(self, database: Database, *outgoing_ids: str) -> Mapping[str, Sequence[DeliveryAttempt]]:
        which = "WHERE outgoing_id IN (:names) ORDER BY outgoing_id, number"
        return _ATTEMPTS.by(database, "outgoing_id", which, names=list(outgoing_ids))

    @reading
    def to_retry(self, database: Database) -> Sequence[OutboxItem]:
        """Return the waiting replies with at least one attempt; oldest first."""
        return REPLIES.all(database, "WHERE status = 'waiting' AND attempts > 0 ORDER BY id")


def decide(database: Database, outgoing_id: str, status: NewStatus, why: str) -> OutboxItem | None:
    """Queue a doubtful or dropped reply again, or drop a doubtful or waiting one."""
    is_id = clean(outgoing_id) == outgoing_id
    stored = REPLIES.one(database, _BY_ID, outgoing_id=outgoing_id) if is_id else None
    if stored is None:
        return None
    if status == "waiting" and own_messages.is_empty(stored):
        raise InvalidValue(f"reply {outgoing_id!r} says nothing any more: {stored.why}")
    if status == "waiting" and stored.kind == "draft":
        raise InvalidValue(f"reply {outgoing_id!r} is a draft, which is never sent again: its answer was sent anew")
    one, other = _DECIDABLE[status]
    if stored.status in (one, other):
        update = "UPDATE outbox SET status = :status, why = :why WHERE outgoing_id = :outgoing_id"
        database.run(update, status=status, why=clean(why), outgoing_id=outgoing_id)
        decided = replace(stored, status=status, why=clean(why))
        if status == "dropped":
            _end_dropped(database, decided)
            _drop_rest(database, decided)
        else:
            place, run, kind = stored.reply.place, stored.run, stored.kind
            events.add(database, ReplyQueued(place=place, run_id=run, delivery_id=stored.id, delivery_kind=kind))
        return decided
    what = "sent again" if status == "waiting" else "dropped"
    raise InvalidValue(f"reply {outgoing_id!r} is {stored.status}; only one that is {one} or {other} can be {what}")


def as_row(outgoing: OutboxItem) -> OutboxRow:
    """Return a reply with its columns; raise `InvalidValue` for an id that cannot be stored."""
    for what, one in (("reply", outgoing.reply_id), ("run", outgoing.run), ("task", outgoing.task)):
        validate_id(one or "", what)
    _require_ids(outgoing)
    return outgoing, REPLIES.encode(outgoing) | {"text": clean(outgoing.reply.text)}


def _require_ids(outgoing: OutboxItem) -> None:
    """Raise `InvalidValue` for an id that changes with the status and cannot be stored."""
    for what, one in (("reply", outgoing.id), ("message", outgoing.message_id), ("message", outgoing.edits)):
        validate_id(one or "", what)


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
    to_send = outgoing.status in ("waiting", "sending")
    is_attempt = to_send and outgoing.attempts > 0
    if is_attempt and database.run(_ATTEMPTED, **columns):
        _store_attempt(database, outgoing)
        return  # nothing else follows from it
    stored = REPLIES.one(database, _BY_ID, outgoing_id=outgoing.id)
    if stored is None:
        raise InvalidValue(f"there is no reply {outgoing.id!r}; it was forgotten with its place")
    _store_attempt(database, outgoing)
    if not is_attempt and stored.status != "sent" and not (to_send and stored.status == "dropped"):
        database.send(_UPDATE, **columns)
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


def _store_attempt(database: Database, outgoing: OutboxItem) -> None:
    """Store an attempt at a stored reply when it begins, and again when it ends."""
    if outgoing.attempt:
        _ATTEMPTS.upsert(database, "outgoing_id, number", outgoing.attempt, outgoing_id=outgoing.id)


def settle(database: Database, delivered: Delivered, at: datetime) -> None:
    """Take a reply of a place as sent: the platform saw it arrive. A receipt that comes later changes nothing."""
    place = find_place(database, delivered.place)
    found = REPLIES.one(database, f"{_BY_ID} AND place = :place", outgoing_id=delivered.delivery_id, place=place)
    if found is None:
        log.warning("%r arrived, but is no reply of its place", delivered.delivery_id)
    elif found.status != "sent":
        _settle(database, found, delivered.message_id, at)


def settle_shown(database: Database, shown: Message, at: datetime) -> bool:
    """Return whether a message of our account is a reply. The oldest in doubt that says the same is sent then."""
    place = find_place(database, shown.place)
    if place is None or shown.forwarded_from or message_rows.find_message(database, place, shown.id) is not None:
        return False
    is_sent = "SELECT 1 FROM outbox WHERE place = :place AND message_id = :message_id AND status = 'sent'"
    if database.one(is_sent, place=place, message_id=shown.id):
        return True
    said = next((one for one in REPLIES.all(database, _IN_DOUBT, place=place) if _says(one, shown)), None)
    if said is not None:
        _settle(database, said, shown.id, at)
    return said is not None


def _says(outgoing: OutboxItem, shown: Message) -> bool:
    """Return whether a message of our account may be a reply: it has its words, in any markup, and as many media."""
    reply, media = outgoing.reply, [part for part in shown.parts if isinstance(part, Media)]
    is_ours = outgoing.author is None or outgoing.author.id == shown.author.id
    return is_ours and _words(reply.text) == _words(shown.text) and len(reply.media) == len(media)


def _words(text: str) -> list[str]:
    return text.translate(_WITHOUT_MARKUP).split()


def _settle(database: Database, outgoing: OutboxItem, message_id: str, at: datetime) -> None:
    sent = replace(outgoing, status="sent", message_id=message_id, sent_at=outgoing.sent_at or at, why="")
    change(database, (sent, _CHANGED.encode(sent)))
    database.run(_END_ATTEMPT, outgoing_id=outgoing.id, at=format_time(at))


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
    update = f"UPDATE outbox SET status = 'dropped', why = :why WHERE {which} RETURNING id, {REPLIES}"
    for _, *row in sorted(database.all(update, why=why, **values)):
        _end_dropped(database, REPLIES.decode(row))


def _end_dropped(database: Database, dropped: OutboxItem) -> None:
    """Remove the message of a reply that was dropped, and store the event."""
    own_messages.remove_reply(database, dropped, dropped.message_id)
    events.add(database, ReplyDropped(place=dropped.reply.place, run_id=dropped.run, delivery_id=dropped.id))
