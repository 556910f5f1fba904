"""Facts of people, their summaries, and the proposals of models to forget facts.

Every query includes visibility and validity. A proposal is valid until its person confirms it or it expires.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.engine.store_protocols import PROPOSAL
from tertulia.events import FactsLearned
from tertulia.memory.facts import MAX_FACTS, check_fact, facts_to_drop, is_current, merge_facts
from tertulia.memory.values import Fact, Scope, Subject, Summary, UnreadRange
from tertulia.memory.verify.comparison import comparable_words
from tertulia.messages import Message, Place
from tertulia.store import cursors, episodes, events
from tertulia.store.cursors import EXCLUDED
from tertulia.store.encoding import clean, validate, validate_id
from tertulia.store.fact_rows import ALL_SOURCES_BLOCKED, SOURCES, VISIBLE, find_subject, select_facts, upsert_fact
from tertulia.store.forget import retraction
from tertulia.store.forget.facts import hide_facts
from tertulia.store.identities import IdentityCache, audience_start, find_place, upsert_author, upsert_place
from tertulia.store.message_rows import MESSAGE_COLUMNS, decode_message
from tertulia.store.messages import text_of
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import ConnectionThread, Repository
from tertulia.timezones import utc

_ALL = 2**31


class SqlFacts(Repository):
    """Implements `memory.values.Facts` and `Summaries`."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread, *, most: int = MAX_FACTS) -> None:
        super().__init__(writer, reader)
        self._most = most  # of one person from one place

    async def learn(self, facts: Sequence[Fact], *, reading: UnreadRange | None = None) -> Sequence[Fact]:
        given = [normalize(check_fact(fact)) for fact in facts]
        return await self._writer.run(lambda database: _learn(database, given, reading, self._most))

    async def about(
        self,
        subject: Subject,
        *,
        place: Place,
        asked_by: Subject | None = None,
        limit: int = 50,
        at: datetime | None = None,
    ) -> Sequence[Fact]:
        now = utc(at or datetime.now(UTC))
        return await self._reader.run(lambda database: _visible(database, subject, place, asked_by, now, limit))

    async def listed(self, subject: Subject | None = None, place: Place | None = None) -> Sequence[Fact]:
        return await self._reader.run(lambda database: _list(database, subject, place))

    async def get(self, fact_id: str) -> Fact | None:
        return await self._reader.run(lambda database: _find(database, fact_id))

    async def why(self, fact_id: str) -> Sequence[Message]:
        return await self._reader.run(lambda database: _source_messages(database, fact_id))

    async def forget(self, fact_ids: Sequence[str], *, at: datetime | None = None) -> int:
        now = utc(at or datetime.now(UTC))
        count = await self._writer.run(lambda database: _forget(database, fact_ids, now))
        if count:
            await self._writer.run(connection.checkpoint, autocommit=True)
        return count

    async def forget_all(self, subject: Subject, *, at: datetime | None = None) -> int:
        now = utc(at or datetime.now(UTC))
        count = await self._writer.run(lambda database: _forget_all(database, subject, now))
        await self._writer.run(connection.checkpoint, autocommit=True)
        return count

    async def summary(self, subject: Subject, *, place: Place, at: datetime | None = None) -> Summary | None:
        now = utc(at or datetime.now(UTC))
        return await self._reader.run(lambda database: _read_summary(database, subject, place, now))

    async def summarise(self, summary: Summary, *, made_of: Sequence[str] = ()) -> None:
        await self._writer.run(lambda database: _upsert_summary(database, summary, made_of))


def _visible(
    database: Database, subject: Subject, place: Place, asked_by: Subject | None, now: datetime, limit: int
) -> list[Fact]:
    about, asking = find_subject(database, subject), asked_by and find_subject(database, asked_by)
    values = {
        "about": about,
        "asked_by": asking,
        "place": find_place(database, place),
        "direct": int(place.kind == "direct"),
        "own": int(about == asking and place.author_namespace == subject.platform),
        "anybody": int(asked_by is None),
        "now": now.isoformat(),
        "limit": max(0, min(limit, _ALL)),
    }
    return select_facts(database, VISIBLE, values, "f.confidence DESC, f.learned_at DESC, f.id DESC LIMIT :limit")


def _list(database: Database, subject: Subject | None, place: Place | None) -> list[Fact]:
    wanted: dict[str, int | None] = {}
    if subject is not None:
        wanted["f.about = ?"] = find_subject(database, subject)
    if place is not None:
        wanted["f.place = ?"] = find_place(database, place)
    return select_facts(database, " AND ".join(["1", *wanted]), tuple(wanted.values()))


def _find(database: Database, fact_id: str) -> Fact | None:
    return next(iter(select_facts(database, "f.fact_id = ?", (clean(fact_id),))), None)


def _source_messages(database: Database, fact_id: str) -> list[Message]:
    select = f"""SELECT {MESSAGE_COLUMNS} FROM facts f JOIN fact_sources s ON s.fact = f.id
        JOIN messages m ON m.place = s.place AND m.message_id = s.message_id JOIN names n ON n.id = m.name
        WHERE f.fact_id = ? AND m.deleted = 0 AND m.hidden = 0 AND n.author NOT IN (SELECT author FROM blocked_authors)
        ORDER BY m.number"""
    identities = IdentityCache()
    return [decode_message(database, row, identities) for row in database.execute(select, (clean(fact_id),)).fetchall()]


def _forget(database: Database, fact_ids: Iterable[str], at: datetime) -> int:
    select = "SELECT id FROM facts WHERE fact_id = ?"
    named = [database.execute(select, (clean(fact_id),)).fetchone() for fact_id in fact_ids]
    same = {one for row in named if row for one in _same(database, row[0])}
    facts = retraction.with_superseded(database, sorted(same))
    for fact in facts:
        cursors.exclude_fact(database, fact)
    hide_facts(database, facts, at)
    retraction.remove(database, facts)
    return len(facts)


def _same(database: Database, fact: int) -> list[int]:
    """Return the facts about the same person that say the same, from any place."""
    select = "SELECT o.id, o.text, o.name FROM facts f JOIN facts o ON o.about = f.about WHERE f.id = ?"
    words = {row: comparable_words(text, name) for row, text, name in database.execute(select, (fact,))}
    return [row for row, said in words.items() if said == words[fact]]


def _forget_all(database: Database, subject: Subject, at: datetime) -> int:
    author = find_subject(database, subject)
    if author is None:
        return 0
    facts = [row for (row,) in database.execute("SELECT id FROM facts WHERE about = ?", (author,))]
    hide_facts(database, facts, at)
    retraction.remove(database, facts)
    database.execute("DELETE FROM summaries WHERE about = ?", (author,))
    episodes.forget_direct_chats(database, author)
    cursors.exclude(database, author)
    return len(facts)


def _learn(database: Database, facts: Sequence[Fact], reading: UnreadRange | None, most: int) -> list[Fact]:
    if reading and not cursors.is_current(database, reading):
        return []
    grounded = [fact for fact in (_with_valid_sources(database, given) for given in facts) if fact]
    changed: list[Fact] = []
    for _, theirs in groupby(sorted(grounded, key=_person), key=_person):  # sorting keeps their order
        changed += learn_about(database, list(theirs), most)
    if reading:
        cursors.mark_read(database, reading)
    given_ids = {fact.id for fact in facts}
    new = [
        fact for fact in changed if fact.id in given_ids and is_current(fact, fact.learned_at)
    ]  # others: known before
    for place in {fact.place.key: fact.place for fact in new}.values():
        there = tuple(fact.id for fact in new if fact.place.key == place.key)
        events.add(database, FactsLearned(place=place, fact_ids=there), at=max(fact.learned_at for fact in new))
    return changed


def learn_about(database: Database, facts: Sequence[Fact], most: int) -> list[Fact]:
    """Merge new facts about one person into the stored ones; return what is new or changed."""
    places = {upsert_place(database, fact.place): fact.place for fact in facts}
    known = _related(database, facts[0].subject, places)
    there = [fact for fact in facts if fact.id in known or _find(database, fact.id) is None]
    changed = [fact for fact in merge_facts(known.values(), there) if known.get(fact.id) != fact]
    rows = {fact: upsert_fact(database, fact) for fact in changed}
    superseded = [row for fact, row in rows.items() if fact.superseded_by and fact.id in known]
    retraction.remove_summaries(database, superseded)
    for place in places:
        _remove_least_useful(database, facts[0].subject, place, most)
    return [now for fact in changed if (now := _find(database, fact.id))]


def _related(database: Database, subject: Subject, places: Iterable[int]) -> dict[str, Fact]:
    """Return the stored facts that a new one from these places may repeat or supersede."""
    here = tuple(places)
    where = f"f.about = ? AND (f.scope <> 'chat' OR f.place IN ({', '.join('?' * len(here))}))"
    found = select_facts(database, where, (find_subject(database, subject), *here))
    return {fact.id: fact for fact in found}


def _remove_least_useful(database: Database, subject: Subject, place: int, most: int) -> None:
    """Remove the least useful facts beyond the limit, with what they superseded."""
    known = select_facts(database, "f.about = ? AND f.place = ?", (find_subject(database, subject), place), "f.id DESC")
    select = "SELECT id FROM facts WHERE fact_id = ?"
    gone = [database.execute(select, (fact.id,)).fetchone()[0] for fact in facts_to_drop(known, most)]
    retraction.remove(database, retraction.with_superseded(database, gone))


def normalize(fact: Fact) -> Fact:
    """Return the fact with fields that its row can hold."""
    return replace(
        fact,
        id=validate_id(fact.id, "fact"),
        subject=replace(fact.subject, platform=clean(fact.subject.platform), name=clean(fact.subject.name)),
        text=clean(fact.text).strip(),
        key=clean(fact.key),
        sources=tuple(dict.fromkeys(validate_id(source, "message") for source in fact.sources)),
        confidence=float(fact.confidence),
        learned_at=utc(fact.learned_at),
        held_from=fact.held_from and utc(fact.held_from),
        held_until=fact.held_until and utc(fact.held_until),
        superseded_by=None,
    )


def _with_valid_sources(database: Database, fact: Fact) -> Fact | None:
    """Return the fact with its valid sources and a scope no wider than they allow; None without a valid source."""
    if is_blank(clean(fact.subject.id)):
        return None  # nobody knows whom it is about
    place, subject = find_place(database, fact.place), find_subject(database, fact.subject)
    if database.execute("SELECT 1 FROM blocked_authors WHERE author = ?", (subject,)).fetchone():
        return None
    stands = f"""SELECT n.author IS ? FROM messages m JOIN names n ON n.id = m.name WHERE m.place = ?
        AND m.message_id = ? AND m.number >= ? AND m.deleted = 0 AND m.hidden = 0 AND (m.role = 'user' OR n.author = ?)
        AND n.author NOT IN (SELECT author FROM blocked_authors) AND NOT {EXCLUDED}"""
    excluded = (subject, subject, cursors.fact_digest(fact.text, fact.subject.name))
    first = audience_start(database, fact.place)  # earlier messages had other readers: they are no source
    found = {one: database.execute(stands, (subject, place, one, first, *excluded)).fetchone() for one in fact.sources}
    own = {one: row[0] for one, row in found.items() if row}  # whether the person themselves said so
    if not own:
        return None
    return replace(fact, sources=tuple(own), scope=_scope(database, fact, place), hearsay=not any(own.values()))


def _scope(database: Database, fact: Fact, place: int | None) -> Scope:
    """Return the scope of a fact; what A says about B in a direct chat of A stays in that chat."""
    if fact.scope == "chat" or fact.place.kind != "direct":
        return fact.scope
    select = (
        "SELECT 1 FROM messages m JOIN names n ON n.id = m.name WHERE m.place = ? AND m.role = 'user' AND {} LIMIT 1"
    )
    subject = find_subject(database, fact.subject)
    is_theirs = database.execute(select.format("n.author = ?"), (place, subject)).fetchone()
    is_anothers = database.execute(select.format("n.author IS NOT ?"), (place, subject)).fetchone()
    return "chat" if is_anothers and not is_theirs else fact.scope


def _person(fact: Fact) -> tuple[str, str]:
    return fact.subject.platform, fact.subject.id


def _read_summary(database: Database, subject: Subject, place: Place, now: datetime) -> Summary | None:
    select = f"""SELECT text, facts, digest, made_at FROM summaries s WHERE about = ? AND place = ? AND direct = ?
        AND about NOT IN (SELECT author FROM blocked_authors) AND NOT EXISTS (
            SELECT 1 FROM facts f WHERE f.about = s.about AND f.superseded_by IS NULL
            AND f.valid_until > s.made_at AND f.valid_until <= ?  -- it has ceased to hold since
        ) AND NOT EXISTS (
            SELECT 1 FROM facts f JOIN {SOURCES} JOIN blocked_authors b ON b.author = n.author
            WHERE c.fact = f.id AND f.about = s.about AND b.at >= s.made_at
        )"""
    key = (find_subject(database, subject), find_place(database, place), int(place.kind == "direct"))
    row = database.execute(select, (*key, now.isoformat())).fetchone()
    if row is None:
        return None
    text, facts, digest, made_at = row
    made = datetime.fromisoformat(made_at)
    return validate(Summary(subject=subject, place=place, text=text, facts=facts, digest=digest, made_at=made))


def _upsert_summary(database: Database, summary: Summary, made_of: Sequence[str]) -> None:
    """Store a summary, unless a fact it was made of is gone, superseded or no longer visible."""
    select = f"SELECT 1 FROM facts f WHERE fact_id = ? AND superseded_by IS NULL AND NOT {ALL_SOURCES_BLOCKED}"
    if any(database.execute(select, (clean(fact_id),)).fetchone() is None for fact_id in made_of):
        return
    upsert = """INSERT INTO summaries (about, place, direct, text, facts, digest, made_at) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (about, place, direct) DO UPDATE
        SET text = excluded.text, facts = excluded.facts, digest = excluded.digest, made_at = excluded.made_at"""
    author = upsert_author(database, summary.subject.platform, summary.subject.id)
    values = (clean(summary.text), summary.facts, clean(summary.digest), utc(summary.made_at).isoformat())
    direct = int(summary.place.kind == "direct")
    database.execute(upsert, (author, upsert_place(database, summary.place), direct, *values))


# *o* is the reply that showed the proposal, *y* the message that may confirm it: the next one of the person there, not
# edited since. Without a quote it confirms only the last message of the agent; replies that are being sent count,
# because people may see a reply before we know that it was sent. Answers to commands, without author and run, do not.
_CONFIRMED = f"""f.id IN (
    SELECT p.fact FROM proposals p JOIN runs r ON r.run_id = p.run_id AND r.status = 'done'
        JOIN outbox o ON o.outgoing_id = p.run_id || '{PROPOSAL}' AND o.status = 'sent'
        JOIN messages y ON y.place = r.place AND y.message_id = :message AND y.number >= o.position
            AND y.deleted = 0 AND y.text = :text
        JOIN names n ON n.id = y.name
    WHERE r.place = :place AND n.author = f.about AND p.until > :now AND (
        y.reply_to = o.message_id OR (y.reply_to IS NULL AND NOT EXISTS (
            SELECT 1 FROM messages b WHERE b.place = y.place AND b.number >= o.position AND b.number < y.number
            AND b.role = 'model'
        ) AND NOT EXISTS (
            SELECT 1 FROM outbox b WHERE b.place = y.place AND b.id > o.id AND b.made_at <= y.received_at
            AND b.status NOT IN ('waiting', 'dropped') AND (b.author IS NOT NULL OR b.run_id IS NOT NULL)
            AND coalesce(b.reply_id, b.outgoing_id) <> coalesce(o.reply_id, o.outgoing_id)
        ))
    ) AND NOT EXISTS (
        SELECT 1 FROM messages b JOIN names m ON m.id = b.name
        WHERE b.place = y.place AND b.number >= o.position AND b.number < y.number AND m.author = n.author
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
