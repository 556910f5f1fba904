"""Proposals of models to forget a fact, valid until their person confirms or they expire."""

from collections.abc import Sequence
from datetime import datetime

from palaver.engine.store_protocols import PROPOSAL
from palaver.memory.facts import Fact
from palaver.messages import Message
from palaver.store.encoding import clean
from palaver.store.fact_rows import select_facts
from palaver.store.identities import find_place
from palaver.store.messages import text_of
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import Repository
from palaver.timezones import utc

# *s* is the message that showed the proposal, *y* the one that may confirm it: the next message of the person there,
# not edited since. Without a quote it confirms only the last message of the agent; replies that are being sent count,
# because people may see a reply before we know that it was sent. Answers to commands, without author and run, do not.
_CONFIRMED = f"""f.id IN (
    SELECT p.fact FROM proposals p JOIN runs r ON r.run_id = p.run_id AND r.status = 'done'
        JOIN outbox o ON o.outgoing_id = p.run_id || '{PROPOSAL}' AND o.status = 'sent'
        JOIN messages s ON s.place = r.place AND s.message_id = o.message_id AND s.deleted = 0
        JOIN messages y ON y.place = r.place AND y.message_id = :message AND y.number > s.number
            AND y.deleted = 0 AND y.text = :text
        JOIN names n ON n.id = y.name
    WHERE r.place = :place AND n.author = f.about AND p.until > :now AND (
        y.reply_to = s.message_id OR (y.reply_to IS NULL AND NOT EXISTS (
            SELECT 1 FROM messages b WHERE b.place = y.place AND b.number > s.number AND b.number < y.number
            AND b.role = 'model'
        ) AND NOT EXISTS (
            SELECT 1 FROM outbox b WHERE b.place = y.place AND b.id > o.id AND b.made_at <= y.received_at
            AND b.status NOT IN ('waiting', 'dropped') AND (b.author IS NOT NULL OR b.run_id IS NOT NULL)
            AND coalesce(b.reply_id, b.outgoing_id) <> coalesce(o.reply_id, o.outgoing_id)
        ))
    ) AND NOT EXISTS (
        SELECT 1 FROM messages b JOIN names m ON m.id = b.name
        WHERE b.place = y.place AND b.number > s.number AND b.number < y.number AND m.author = n.author
    )
)"""


class SqlProposals(Repository):
    """Implements `engine.store_protocols.ProposalStore`."""

    async def propose(self, run_id: str, fact_id: str, *, now: datetime, until: datetime, most: int) -> bool:
        return await self._writer.run(
            lambda database: _propose(database, run_id, fact_id, (utc(now), utc(until)), most)
        )

    async def made_by(self, run_id: str) -> Sequence[Fact]:
        where = "f.id IN (SELECT fact FROM proposals WHERE run_id = ?)"
        return await self._reader.run(lambda database: select_facts(database, where, (run_id,)))

    async def confirmed_by(self, message: Message, *, now: datetime) -> Sequence[Fact]:
        return await self._reader.run(lambda database: _confirmed_by(database, message, utc(now)))


def _propose(database: Database, run_id: str, fact_id: str, between: tuple[datetime, datetime], most: int) -> bool:
    now, until = (moment.isoformat() for moment in between)
    database.execute("DELETE FROM proposals WHERE until <= ?", (now,))
    insert = """INSERT INTO proposals (run_id, fact, until) SELECT :run, id, :until FROM facts WHERE fact_id = :fact
        AND (SELECT count(*) FROM proposals WHERE run_id = :run) < :most ON CONFLICT (run_id, fact) DO NOTHING"""
    database.execute(insert, {"run": run_id, "until": until, "fact": clean(fact_id), "most": most})
    made = "SELECT 1 FROM proposals p JOIN facts f ON f.id = p.fact WHERE p.run_id = ? AND f.fact_id = ?"
    return database.execute(made, (run_id, clean(fact_id))).fetchone() is not None


def _confirmed_by(database: Database, message: Message, now: datetime) -> list[Fact]:
    place = find_place(database, message.place)
    asked = {"place": place, "message": message.id, "text": text_of(message), "now": now.isoformat()}
    return select_facts(database, _CONFIRMED, asked)
