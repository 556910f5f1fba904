"""Replies until they are sent: kept before, and their receipts after."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from palaver.conversation.journal import Outgoing, SendStatus
from palaver.errors import InvalidValue
from palaver.messages import Message
from palaver.parts import Text
from palaver.store import messages
from palaver.store.people import keep_place
from palaver.store.sqlite import Database
from palaver.store.values import AUTHOR, REPLY, TURNS, an_id, clean, dumps, moment, stamp
from palaver.store.writer import Owner

_COLUMNS = """outgoing_id, run_id, task_id, status, attempts, made_at, sent_at, message_id, why, author, turns, reply
    FROM outbox"""

Row = tuple[Outgoing, dict[str, Any]]  # a reply, and its columns worded


class Outbox:
    """`conversation.journal.Outbox`, kept."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader

    async def unsent(self) -> Sequence[Outgoing]:
        return await self.listed("waiting", "sending")

    async def put(self, outgoing: Outgoing) -> None:
        row = as_row(outgoing)
        await self._writer.run(lambda database: put(database, row))

    async def listed(self, *statuses: SendStatus) -> Sequence[Outgoing]:
        return await self._reader.run(lambda database: listed(database, statuses))


def as_row(outgoing: Outgoing) -> Row:
    an_id(outgoing.id, "reply")
    if outgoing.message_id is not None:
        an_id(outgoing.message_id, "message")
    return outgoing, {
        "outgoing_id": outgoing.id,
        "run_id": outgoing.run,
        "task_id": outgoing.task,
        "status": outgoing.status,
        "attempts": outgoing.attempts,
        "text": clean(outgoing.reply.text),
        "made_at": outgoing.made_at.isoformat(),
        "sent_at": stamp(outgoing.sent_at),
        "message_id": outgoing.message_id,
        "why": clean(outgoing.why),
        "author": None if outgoing.author is None else dumps(outgoing.author),
        "turns": dumps(outgoing.turns),
        "reply": dumps(outgoing.reply),
    }


def add(database: Database, row: Row) -> None:
    """Keep a reply, unless it is there already: what has become of it since counts."""
    select = "SELECT 1 FROM outbox WHERE outgoing_id = ?"
    if database.execute(select, (row[0].id,)).fetchone() is None:
        put(database, row)


def put(database: Database, row: Row) -> None:
    """Keep a reply as it is now; once it is sent, it is a message of the place, and stays sent."""
    outgoing, columns = row
    found = database.execute("SELECT status FROM outbox WHERE outgoing_id = ?", (outgoing.id,)).fetchone()
    was_sent = found is not None and found[0] == "sent"
    if was_sent and outgoing.status != "sent":
        raise InvalidValue(f"reply {outgoing.id!r} was sent already; it cannot be {outgoing.status} again")
    values = {"place": keep_place(database, outgoing.reply.place), **columns}
    changed = ", ".join(f"{column} = excluded.{column}" for column in values)
    keep = f"""INSERT INTO outbox ({", ".join(values)}) VALUES ({", ".join("?" * len(values))})
        ON CONFLICT (outgoing_id) DO UPDATE SET {changed}"""  # noqa: S608
    database.execute(keep, tuple(values.values()))
    if outgoing.status == "sent" and not was_sent:
        _say(database, outgoing)


def listed(database: Database, statuses: Sequence[SendStatus]) -> list[Outgoing]:
    """The replies of these statuses, or all; the oldest first."""
    chosen = f"WHERE status IN ({', '.join('?' * len(statuses))})" if statuses else ""
    select = f"SELECT {_COLUMNS} {chosen} ORDER BY id"
    return [_outgoing(row) for row in database.execute(select, tuple(statuses))]


def _say(database: Database, outgoing: Outgoing) -> None:
    """The message that people see now."""
    if outgoing.message_id is None or outgoing.author is None:
        return
    reply = outgoing.reply
    message = Message(
        id=outgoing.message_id,
        place=reply.place,
        author=outgoing.author,
        sent_at=outgoing.sent_at,
        parts=(*([Text(text=reply.text)] if reply.text else []), *reply.media),
        reply_to=None if reply.reply_to is None else messages.quoted(database, reply.place, reply.reply_to),
    )
    messages.say(database, messages.Row(message), dumps(outgoing.turns) if outgoing.turns else None)


def _outgoing(row: tuple[Any, ...]) -> Outgoing:
    outgoing_id, run, task, status, attempts, made_at, sent_at, message_id, why, author, turns, reply = row
    return Outgoing(
        id=outgoing_id,
        reply=REPLY.loads(reply),
        made_at=datetime.fromisoformat(made_at),
        run=run,
        task=task,
        status=status,
        attempts=attempts,
        message_id=message_id,
        sent_at=moment(sent_at),
        why=why,
        author=None if author is None else AUTHOR.loads(author),
        turns=TURNS.loads(turns),
    )
