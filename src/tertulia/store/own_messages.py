"""The agent's own messages: what a reply becomes in the log once it is sent, or may have been.

A doubtful reply is a message too, since most of them have arrived: its id is that of its delivery, and it is marked as
doubtful. `outbox.message_id` names the message in either case. A receipt gives both the id of the platform, in the same
row, so nothing is in the log twice. A reply that is dropped is removed again.
"""

from datetime import datetime

from msgspec.structs import replace

from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.messages import Message
from tertulia.parts import Text
from tertulia.store import decisions, message_rows, messages, search_index
from tertulia.store.database import Database, upsert_row
from tertulia.store.encoding import STRINGS, dumps
from tertulia.store.forget.retraction import hide_stating
from tertulia.store.identities import upsert_place
from tertulia.store.message_rows import insert_changes


def is_empty(outgoing: OutboxItem) -> bool:
    """Return whether the content of a reply was removed."""
    return not outgoing.reply.text and not outgoing.reply.media


def store_reply(database: Database, outgoing: OutboxItem, known_as: str | None) -> None:
    """Store a sent or doubtful reply as a message of its place; *known_as* is the id under which it is there."""
    if outgoing.author is None or is_empty(outgoing):
        return
    name = outgoing.message_id if outgoing.status == "sent" else known_as or outgoing.id
    if name is None or name == known_as:
        return
    row, reply = upsert_place(database, outgoing.reply.place), outgoing.reply
    if outgoing.reply_id is not None or known_as is not None:
        messages.refuse_own(database, row, name)
    if outgoing.status == "doubtful":
        _set_message_id(database, outgoing, name)
    message = Message(
        id=name,
        place=reply.place,
        author=outgoing.author,
        sent_at=outgoing.sent_at,
        parts=(*([Text(text=reply.text)] if reply.text else []), *reply.media),
        reply_to=None if reply.reply_to is None else messages.quote_of(database, reply.place, reply.reply_to),
        agent=outgoing.agent,
    )
    if known_as is not None:
        _rename(database, row, known_as, message)
    if outgoing.reply_id is None:
        turns = dumps(outgoing.turns) if outgoing.turns else None
        message_row = messages.insert_own(database, messages.MessageRow(message), turns, is_new=known_as is None)
    else:
        message_row = _add_part(database, outgoing, messages.MessageRow(message), outgoing.reply_id)
    if outgoing.status == "doubtful" or outgoing.reply_id is not None or known_as is not None:
        _mark(database, message_row, outgoing)
    if outgoing.waits and outgoing.status == "sent":
        _await_others(database, message_row, outgoing)
    if outgoing.run is not None and _answers_hidden(database, row, outgoing.run):
        said = database.column("SELECT text FROM messages WHERE id = :message", message=message_row)
        hide_stating(database, {message_row: said}, outgoing.sent_at)


def remove_reply(database: Database, outgoing: OutboxItem, known_as: str | None) -> None:
    """Remove the message of a dropped reply, if it has one; of a split reply only this part."""
    if outgoing.waits and outgoing.reply_id is not None:
        _await_others_of_rest(database, outgoing)
    if known_as is None:
        return
    _set_message_id(database, outgoing, None)
    place = upsert_place(database, outgoing.reply.place)
    row = message_rows.find_message(database, place, known_as)
    if row is None:
        return
    database.run("DELETE FROM message_parts WHERE place = :place AND message_id = :part", place=place, part=known_as)
    left = message_rows.join_parts(database, row)
    if not left:
        _remove(database, row, outgoing.sent_at)
        return
    before = _read(database, row)
    if before.id == known_as:
        first = "SELECT message_id FROM message_parts WHERE message = :message ORDER BY part LIMIT 1"
        database.run(f"UPDATE messages SET message_id = ({first}) WHERE id = :message", message=row)
    whole = replace(before, parts=left)
    messages.rewrite(database, row, before, messages.MessageRow(whole), outgoing.sent_at, "said")
    database.run("DELETE FROM turns WHERE message = :message", message=row)  # they say more than is left
    _mark(database, row, outgoing)


def _await_others(database: Database, message: int, outgoing: OutboxItem) -> None:
    """Let a message wait for the other agents, once no part of it is left to send."""
    left = "SELECT 1 FROM outbox WHERE reply_id = :reply_id AND status IN ('waiting', 'sending') LIMIT 1"
    if outgoing.reply_id is None or not database.one(left, reply_id=outgoing.reply_id):
        decisions.add_undecided(database, message, outgoing.sent_at or outgoing.made_at)


def _await_others_of_rest(database: Database, dropped: OutboxItem) -> None:
    """Let the message of a split reply wait, of which a part was dropped after others were sent."""
    sent = (
        """SELECT place, message_id FROM outbox WHERE reply_id = :reply_id AND status = 'sent' ORDER BY part LIMIT 1"""
    )
    found = database.one(sent, reply_id=dropped.reply_id)
    message = found and message_rows.find_message(database, *found)
    if message:
        _await_others(database, message, dropped)


def _set_message_id(database: Database, outgoing: OutboxItem, message_id: str | None) -> None:
    """Name the message of a reply in the outbox."""
    update = "UPDATE outbox SET message_id = :message_id WHERE outgoing_id = :outgoing_id"
    database.run(update, message_id=message_id, outgoing_id=outgoing.id)


def _rename(database: Database, place: int, known_as: str, message: Message) -> None:
    """Give the message of a doubtful reply, or a part of it, the id of the platform."""
    row = message_rows.find_message(database, place, known_as)
    if shown := message_rows.find_message(database, place, message.id):  # the platform has shown it to us already
        decisions.move(database, shown, row)
        _remove_shown(database, shown, message)
    for table in ("messages", "message_parts"):
        update = f"UPDATE {table} SET message_id = :message_id WHERE place = :place AND message_id = :known_as"
        database.run(update, message_id=message.id, place=place, known_as=known_as)
    if row is not None:
        insert_changes(database, [row], "said", message.sent_at)


def _mark(database: Database, row: int, outgoing: OutboxItem) -> None:
    """Mark a message as doubtful as long as one of its parts is."""
    doubtful = outgoing.status == "doubtful"
    if outgoing.reply_id is not None:
        select = """SELECT 1 FROM outbox WHERE reply_id = :reply_id AND status <> 'sent' AND message_id IS NOT NULL
            LIMIT 1"""
        doubtful = database.one(select, reply_id=outgoing.reply_id) is not None
    update = "UPDATE messages SET doubtful = :doubtful WHERE id = :message AND doubtful <> :doubtful"
    database.run(update, doubtful=int(doubtful), message=row)


def _add_part(database: Database, outgoing: OutboxItem, row: messages.MessageRow, reply_id: str) -> int:
    """Store the first part as a message, and add later parts to it; return the row of the message.

    The turns of the model are stored with the message once no part is left to send.
    """
    select = "SELECT message_id, status, turns FROM outbox WHERE reply_id = :reply_id ORDER BY part"
    parts = database.all(select, reply_id=reply_id)
    is_whole = all(status in ("sent", "doubtful") for _, status, _ in parts)
    turns = next((turns for _, _, turns in parts if is_whole and turns != "[]"), None)
    place, at = upsert_place(database, row.message.place), (outgoing.part, outgoing.separator)
    others = [one for one, *_ in parts if one is not None and one != row.message.id]
    known = [found for one in others if (found := message_rows.find_message(database, place, one)) is not None]
    if message_rows.is_part(database, place, row.message.id):  # it was doubtful
        message_row = message_rows.find_message(database, place, row.message.id) or 0
    elif known:
        message_row = known[0]
        _extend(database, message_row, row, at)
    else:
        message_row = messages.insert_own(database, row, None)
        message_rows.add_part(database, place, message_row, row.message.id, row.message.parts, at)
    if turns:
        upsert_row(database, "turns", "message", message=message_row, turns=turns)
    return message_row


def _extend(database: Database, message: int, row: messages.MessageRow, at: tuple[int, str]) -> None:
    """Add a part to a message of the agent; *at* is its number and the separator before it."""
    sent = row.message
    place = upsert_place(database, sent.place)
    before = _read(database, message)
    if shown := message_rows.find_message(database, place, sent.id):  # as a message of its own
        _remove_shown(database, shown, sent)
    message_rows.add_part(database, place, message, sent.id, sent.parts, at)
    quote = before.reply_to or sent.reply_to
    whole = messages.MessageRow(replace(before, parts=message_rows.join_parts(database, message), reply_to=quote))
    messages.rewrite(database, message, before, whole, sent.sent_at, "said")


def _read(database: Database, row: int) -> Message:
    (found,) = message_rows.MESSAGES.all(database, "WHERE m.id = :message", message=row)
    return found


def _remove_shown(database: Database, row: int, sent: Message) -> None:
    """Remove a message that the platform showed us, and that is one of ours under another row."""
    author = """SELECT a.author_id FROM messages m JOIN names n ON n.id = m.name JOIN authors a ON a.id = n.author
        WHERE m.id = :message"""
    if database.value(author, message=row) != sent.author.id:
        raise InvalidValue(f"{sent.id!r} is the id of a message of somebody else")
    _remove(database, row, sent.sent_at)


def _remove(database: Database, row: int, at: datetime | None) -> None:
    """Empty a message and free its id; its number stays in use."""
    database.run(
        """UPDATE messages SET message_id = message_id || ' (removed ' || CAST(number AS TEXT) || ')', hidden = 1,
            deleted = 1, doubtful = 0, text = '', parts = '[]', media = NULL WHERE id = :message""",
        message=row,
    )
    insert_changes(database, [row], "removed", at)
    for table in ("turns", "media"):
        database.run(f"DELETE FROM {table} WHERE message = :message", message=row)
    decisions.remove(database, row)
    search_index.unindex(database, [row])


def _answers_hidden(database: Database, place: int, run: str) -> bool:
    """Return whether a message of a run is hidden; then its reply is hidden too."""
    select = """SELECT message_ids FROM runs r WHERE run_id = :run AND place = :place
        AND EXISTS (SELECT 1 FROM messages m WHERE m.place = r.place AND m.hidden = 1)"""
    taken = database.value(select, run=run, place=place)
    hidden = "SELECT 1 FROM messages WHERE place = :place AND message_id IN (:taken) AND hidden = 1 LIMIT 1"
    return taken is not None and database.one(hidden, place=place, taken=list(STRINGS.loads(taken))) is not None
