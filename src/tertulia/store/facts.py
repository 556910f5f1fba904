"""Facts of people, their summaries, and the proposals of models to forget facts.

Every query includes visibility and validity. A proposal is valid until its person confirms it or it expires.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.engine.store_protocols import Proposal
from tertulia.events import FactsLearned
from tertulia.memory.values import (
    AnsweredMessages,
    Fact,
    FactRules,
    Scope,
    Subject,
    Summary,
    UnreadRange,
    check_fact,
    is_current,
)
from tertulia.messages import Message, Place
from tertulia.seen_by import SeenBy
from tertulia.store import cursors, episodes, events
from tertulia.store.database import Database, send_row
from tertulia.store.encoding import PLACE, Columns, clean, validate_id
from tertulia.store.fact_rows import (
    ALL_SOURCES_BLOCKED,
    SEEN_BY,
    SOURCES,
    VISIBLE,
    add_fact_changes,
    facts_with_ids,
    find_subject,
    rows_of_facts,
    select_facts,
    upsert_facts,
)
from tertulia.store.forget import retraction
from tertulia.store.forget.facts import Forgetting, mark
from tertulia.store.identities import audience_start, find_place, upsert_author, upsert_place
from tertulia.store.message_rows import MESSAGES, SEEN, WAS_PRESENT
from tertulia.store.messages import text_of
from tertulia.store.threads import Access, Repository, reading, writing
from tertulia.timezones import utc

_ALL = 2**31

# The messages that a fact was learned from and that can still be read.
_SOURCE_MESSAGES = f"""JOIN names n ON n.id = m.name
    JOIN fact_sources s ON s.place = m.place AND s.message_id = m.message_id JOIN facts f ON f.id = s.fact
    WHERE f.fact_id = :fact_id AND f.forgotten_at IS NULL AND {SEEN} {{}} ORDER BY m.number"""
_SEEN_SOURCES = f"AND ((f.direct = 0 AND :only_present = 0) OR {WAS_PRESENT.format('m.place', 'm.number')})"

# The facts with some ids, and those about the same people that say the same, from any place.
_SAME = """SELECT DISTINCT o.id FROM facts f JOIN facts o ON o.about = f.about AND o.digest = f.digest
    WHERE f.fact_id IN (:fact_ids) ORDER BY o.id"""

# Messages of a place that facts may be learned from, since the place has had its readers.
_EVIDENCE = f"""SELECT m.message_id, m.id, n.author, m.role FROM messages m JOIN names n ON n.id = m.name
    WHERE m.place = :place AND m.message_id IN (:sources) AND m.number >= :first AND {SEEN}"""

_STORED = Columns(Summary, "text facts digest made_at agent", "s")

# The summaries of a person, each with its place.
_SUMMARIES = f"""SELECT t.body, {_STORED} FROM summaries s
    JOIN titles t ON t.id = (SELECT max(id) FROM titles WHERE place = s.place)
    WHERE s.about = :about AND s.about NOT IN (SELECT author FROM blocked_authors) ORDER BY s.id"""

# The summary of a person in a place, unless a fact has ceased to hold since, or one of its sources was blocked.
_SUMMARY = f"""SELECT {_STORED} FROM summaries s
    WHERE about = :about AND place = :place AND direct = :direct AND agent IS NOT DISTINCT FROM :agent
    AND about NOT IN (SELECT author FROM blocked_authors) AND NOT EXISTS (
        SELECT 1 FROM facts f WHERE f.about = s.about AND f.superseded_by IS NULL
        AND f.valid_until > s.made_at AND f.valid_until <= :now
    ) AND NOT EXISTS (
        SELECT 1 FROM {SOURCES} JOIN facts f ON f.id = c.fact JOIN blocked_authors b ON b.author = n.author
        WHERE f.about = s.about AND b.at >= s.made_at
    )"""


class SqlFacts(Repository):
    """Implements `memory.values.Facts` and `Summaries`."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._forgetting = Forgetting(access)

    @writing
    def learn(
        self, database: Database, facts: Sequence[Fact], *, reading: UnreadRange | AnsweredMessages | None = None
    ) -> Sequence[Fact]:
        given = [normalize(check_fact(fact)) for fact in facts]
        if reading and not cursors.is_current(database, reading):
            return []
        grounded = _grounded(database, given, self._access.facts)
        changed: list[Fact] = []
        for _, theirs in groupby(sorted(grounded, key=_owner), key=_owner):  # sorting keeps their order
            changed += learn_about(database, list(theirs), self._access.facts)
        if reading:
            cursors.mark_read(database, reading)
        given_ids = {fact.id for fact in given}
        new = [
            one for one in changed if one.id in given_ids and is_current(one, one.learned_at)
        ]  # others: known before
        learned = [
            FactsLearned(place=place, fact_ids=tuple(fact.id for fact in new if fact.place.key == place.key))
            for place in {fact.place.key: fact.place for fact in new}.values()
        ]
        events.add(database, *learned, at=max((fact.learned_at for fact in new), default=None))
        return changed

    @reading
    def about(
        self,
        database: Database,
        subject: Subject,
        *,
        place: Place,
        asked_by: Subject | None = None,
        limit: int = 50,
        at: datetime | None = None,
        seen_by: SeenBy | None = None,
    ) -> Sequence[Fact]:
        now = utc(at or datetime.now(UTC))
        about, asking = find_subject(database, subject), asked_by and find_subject(database, asked_by)
        return select_facts(
            database,
            f"{VISIBLE} AND {SEEN_BY}" if seen_by else VISIBLE,
            "f.confidence DESC, f.learned_at DESC, f.id DESC LIMIT :most",
            about=about,
            asked_by=asking,
            place=find_place(database, place),
            direct=int(place.kind == "direct"),
            own=int(about == asking and place.author_namespace == subject.platform),
            anybody=int(asked_by is None),
            now=now.isoformat(),
            most=max(0, min(limit, _ALL)),
            **_asked_by(seen_by),
        )

    @reading
    def listed(self, database: Database, subject: Subject | None = None, place: Place | None = None) -> Sequence[Fact]:
        wanted = {
            **({} if subject is None else {"about": find_subject(database, subject)}),
            **({} if place is None else {"place": find_place(database, place)}),
        }
        where = " AND ".join(["f.id > 0", *(f"f.{name} = :{name}" for name in wanted)])
        return select_facts(database, where, "f.id", **wanted)

    @reading
    def get(self, database: Database, fact_id: str) -> Fact | None:
        return facts_with_ids(database, [fact_id]).get(fact_id)

    @reading
    def why(self, database: Database, fact_id: str, *, seen_by: SeenBy | None = None) -> Sequence[Message]:
        which = _SOURCE_MESSAGES.format(_SEEN_SOURCES if seen_by else "")
        return MESSAGES.all(database, which, fact_id=clean(fact_id), **_asked_by(seen_by))

    async def forget(self, fact_ids: Sequence[str], *, at: datetime | None = None) -> int:
        now = utc(at or datetime.now(UTC))
        count = await self._writer.run(lambda database: forget(database, fact_ids, now))
        await self.resume_forgetting()
        return count

    async def forget_all(self, subject: Subject, *, at: datetime | None = None) -> int:
        now = utc(at or datetime.now(UTC))
        count = await self._writer.run(lambda database: _forget_all(database, subject, now))
        await self._forgetting.finish()
        await self._empty_log()  # episodes were removed in any case
        return count

    async def resume_forgetting(self) -> None:
        if await self._forgetting.finish():
            await self._empty_log()

    async def _empty_log(self) -> None:
        await self._writer.run(lambda database: database.checkpoint(), autocommit=True)

    @reading
    def summary(
        self,
        database: Database,
        subject: Subject,
        *,
        place: Place,
        at: datetime | None = None,
        seen_by: SeenBy | None = None,
    ) -> Summary | None:
        now = utc(at or datetime.now(UTC))
        row = database.one(
            _SUMMARY,
            agent=seen_by.agent if seen_by and (seen_by.own or seen_by.is_limited_in(place)) else None,
            about=find_subject(database, subject),
            place=find_place(database, place),
            direct=int(place.kind == "direct"),
            now=now.isoformat(),
        )
        return None if row is None else _STORED.decode(row, subject=subject, place=place)

    @writing
    def summarise(self, database: Database, summary: Summary, *, made_of: Sequence[str] = ()) -> None:
        given = {clean(fact_id) for fact_id in made_of}
        select = f"""SELECT count(*) FROM facts f WHERE fact_id IN (:given)
            AND superseded_by IS NULL AND forgotten_at IS NULL AND NOT {ALL_SOURCES_BLOCKED}"""
        if database.all(select, given=list(given)) != [(len(given),)]:
            return
        key = {
            "about": upsert_author(database, summary.subject.platform, summary.subject.id),
            "place": upsert_place(database, summary.place),
            "direct": int(summary.place.kind == "direct"),
        }
        stored = _STORED.encode(replace(summary, made_at=utc(summary.made_at)))
        delete = """DELETE FROM summaries WHERE about = :about AND place = :place AND direct = :direct
            AND agent IS NOT DISTINCT FROM :agent"""
        database.run(delete, **key, agent=stored["agent"])  # of which NULL is no key
        send_row(database, "summaries", **key, **stored)


def _asked_by(seen_by: SeenBy | None) -> dict[str, Any]:
    """Return the values of the conditions on what an agent sees."""
    if seen_by is None:
        return {}
    return {"agent": seen_by.agent, "only_own": int(seen_by.own), "only_present": int(seen_by.present)}


def forget(database: Database, fact_ids: Iterable[str], at: datetime) -> int:
    facts = retraction.with_superseded(database, same_facts(database, fact_ids))
    mark(database, facts, at)
    return len(facts)


def _forget_all(database: Database, subject: Subject, at: datetime) -> int:
    author = find_subject(database, subject)
    if author is None:
        return 0
    facts = database.column("SELECT id FROM facts WHERE about = :author", author=author)
    mark(database, facts, at)
    retraction.remove_summaries(database, [author])
    episodes.forget_direct_chats(database, author)
    database.run(cursors.EXCLUDE_ALL, author=author)
    return len(facts)


def learn_about(database: Database, facts: Sequence[Fact], rules: FactRules) -> list[Fact]:
    """Merge new facts of one owner about one person into the stored ones; return what is new or changed.

    A new fact may repeat or supersede those that are not only for other chats.
    """
    places = {upsert_place(database, fact.place) for fact in facts}
    about = find_subject(database, facts[0].subject)
    where = """f.about = :about AND f.agent IS NOT DISTINCT FROM :agent
        AND (f.scope <> 'chat' OR f.place IN (:places))"""
    stored = select_facts(database, where, about=about, agent=facts[0].agent, places=list(places))
    known = {fact.id: fact for fact in stored}
    given = [fact.id for fact in facts if fact.id not in known]
    others = set(database.column("SELECT fact_id FROM facts WHERE fact_id IN (:given)", given=given))
    merged = rules.merge_facts(known.values(), [fact for fact in facts if fact.id not in others])
    changed = [fact for fact in merged if known.get(fact.id) != fact]
    upsert_facts(database, changed, rules)
    add_fact_changes(database, rows_of_facts(database, [fact.id for fact in changed if fact.id in known]))
    if any(fact.superseded_by and fact.id in known for fact in changed):
        retraction.remove_summaries(database, [about] if about else [])
    here: dict[int, list[Fact]] = {place: [] for place in places}
    for fact in reversed(merged):  # of equal ones the newest stay
        here.setdefault(upsert_place(database, fact.place), []).append(fact)
    dropped = [fact.id for place in places for fact in rules.facts_to_drop(here[place])]
    if dropped:
        rows = rows_of_facts(database, dropped)
        retraction.remove(database, retraction.with_superseded(database, rows), rules)
    now = facts_with_ids(database, [fact.id for fact in changed])
    return [now[fact.id] for fact in changed if fact.id in now]


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


class _Evidence(Struct, frozen=True):
    """A message that a fact may be learned from: its row, its author, and whether a person wrote it."""

    row: int
    author: int
    by_person: bool


def _grounded(database: Database, facts: Sequence[Fact], rules: FactRules) -> list[Fact]:
    """Return the facts that have valid sources, with these and with a scope no wider than they allow."""
    people = {fact.subject: find_subject(database, fact.subject) for fact in facts}
    rows = [row for row in people.values() if row is not None]
    blocked = {
        row for (row,) in database.all("SELECT author FROM blocked_authors WHERE author IN (:people)", people=rows)
    }
    excluded: dict[tuple[int, str], int] = {
        (about, digest): last
        for about, digest, last in database.all(
            "SELECT about, digest, last_message FROM fact_exclusions WHERE about IN (:people)", people=rows
        )
    }
    evidence = {place: _evidence(database, place, facts) for place in {fact.place for fact in facts}}
    authors = {place: _authors(database, place) for place in evidence if place.kind == "direct"}
    found: list[Fact] = []
    for fact in facts:
        person = people[fact.subject]
        if is_blank(clean(fact.subject.id)) or person in blocked:  # nobody knows whom it is about
            continue
        digests = ("", rules.fact_digest(fact.text, fact.subject.name))
        last = max(excluded.get((person, digest), 0) if person else 0 for digest in digests)
        sources = {
            source: one
            for source in fact.sources
            if (one := evidence[fact.place].get(source)) and one.row > last and (one.by_person or one.author == person)
        }
        if sources:
            scope = _scope(fact, authors.get(fact.place, frozenset()), person)
            hearsay = all(one.author != person for one in sources.values())
            found.append(replace(fact, sources=tuple(sources), scope=scope, hearsay=hearsay))
    return found


def _evidence(database: Database, place: Place, facts: Iterable[Fact]) -> dict[str, _Evidence]:
    """Return the messages of a place that facts there name as sources, by their ids."""
    sources = {source for fact in facts if fact.place == place for source in fact.sources}
    first = audience_start(database, place)  # earlier messages had other readers: they are no source
    rows = database.all(_EVIDENCE, place=find_place(database, place), sources=list(sources), first=first)
    return {message_id: _Evidence(row, author, role == "user") for message_id, row, author, role in rows}


def _authors(database: Database, place: Place) -> frozenset[int]:
    """Return the people who wrote in a place."""
    select = """SELECT DISTINCT n.author FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.role = 'user'"""
    return frozenset(database.column(select, place=find_place(database, place)))


def _scope(fact: Fact, authors: Collection[int], person: int | None) -> Scope:
    """Return the scope of a fact; what A says about B in a direct chat of A stays in that chat."""
    if fact.scope == "chat" or fact.place.kind != "direct":
        return fact.scope
    return "chat" if authors and person not in authors else fact.scope


def _owner(fact: Fact) -> tuple[str, str, bool, str]:
    """Return whom a fact is about, and whose it is: facts of one owner are merged."""
    return fact.subject.platform, fact.subject.id, fact.agent is not None, fact.agent or ""


# The proposals that a message *y*, not edited since, may confirm: about its author, in its place, and shown by a reply
# *o* that was sent before it.
_CANDIDATES = """SELECT f.fact_id, o.message_id, o.id, o.position, coalesce(o.reply_id, o.outgoing_id), y.number,
        y.received_at
    FROM proposals p JOIN facts f ON f.id = p.fact AND f.forgotten_at IS NULL
    JOIN runs r ON r.run_id = p.run_id AND r.status = 'done'
    JOIN outbox o ON o.run_id = p.run_id AND o.purpose = 'proposal' AND o.part = 0 AND o.status = 'sent'
    JOIN messages y ON y.place = r.place AND y.message_id = :message AND y.number >= o.position
        AND y.deleted = 0 AND y.text = :text
    JOIN names n ON n.id = y.name
    WHERE r.place = :place AND n.author = f.about AND p.until > :now ORDER BY f.id, o.id"""

# What was said in a place between two numbers.
_SAID_BETWEEN = """SELECT m.number, a.author_id, m.role FROM messages m JOIN names n ON n.id = m.name
    JOIN authors a ON a.id = n.author WHERE m.place = :place AND m.number >= :start AND m.number < :stop
    ORDER BY m.number"""

# The replies that were being sent when a message came: people may see one before we know that it was sent. Answers
# to commands, without author and run, do not count.
_SENT_BETWEEN = """SELECT id, coalesce(reply_id, outgoing_id) FROM outbox
    WHERE place = :place AND id > :row AND made_at <= :received_at
    AND status NOT IN ('waiting', 'dropped') AND (author IS NOT NULL OR run_id IS NOT NULL)"""


class SqlProposals(Repository):
    """Implements `engine.store_protocols.ProposalStore`."""

    @writing
    def propose(
        self, database: Database, run_id: str, fact_id: str, *, now: datetime, until: datetime, most: int
    ) -> bool:
        database.run("DELETE FROM proposals WHERE until <= :now", now=utc(now).isoformat())
        insert = """INSERT INTO proposals (run_id, fact, until)
            SELECT :run_id, id, :until FROM facts WHERE fact_id = :fact_id AND forgotten_at IS NULL
            AND (SELECT count(*) FROM proposals WHERE run_id = :run_id) < :most ON CONFLICT (run_id, fact) DO NOTHING"""
        database.run(insert, run_id=run_id, until=utc(until).isoformat(), fact_id=clean(fact_id), most=most)
        return any(fact.id == fact_id for fact in _proposed(database, run_id))

    @reading
    def made_by(self, database: Database, run_id: str) -> Sequence[Fact]:
        return _proposed(database, run_id)

    @reading
    def candidates(self, database: Database, message: Message, *, now: datetime) -> Sequence[Proposal]:
        place, at = find_place(database, message.place), utc(now).isoformat()
        rows = database.all(_CANDIDATES, place=place, message=message.id, text=text_of(message), now=at)
        if not rows:
            return []
        facts = facts_with_ids(database, [fact_id for fact_id, *_ in rows])
        *_, number, received_at = rows[0]  # of the message
        first, start = min(row for _, _, row, *_ in rows), min(position for _, _, _, position, *_ in rows)
        said = database.all(_SAID_BETWEEN, place=place, start=start, stop=number)
        sent = database.all(_SENT_BETWEEN, place=place, row=first, received_at=received_at)
        found: list[Proposal] = []
        for fact_id, shown_as, row, position, reply_id, *_ in rows:
            since = [(author, role) for at, author, role in said if at >= position]
            is_sending = any(one > row and other != reply_id for one, other in sent)
            proposal = Proposal(
                fact=facts[fact_id],
                shown_as=shown_as,
                authors_since=frozenset(author for author, role in since if role == "user"),
                is_last=all(role == "user" for _, role in since) and not is_sending,
            )
            found.append(proposal)
        return found


def _proposed(database: Database, run_id: str) -> list[Fact]:
    return select_facts(database, "f.id IN (SELECT fact FROM proposals WHERE run_id = :run_id)", run_id=run_id)


def same_facts(database: Database, fact_ids: Iterable[str]) -> list[int]:
    """Return the rows of facts, and of those about the same people that say the same."""
    return database.column(_SAME, fact_ids=[clean(one) for one in fact_ids])


def summaries_of(database: Database, person: Subject) -> list[Summary]:
    """Return the summaries of a person, one for each place; none of a blocked one."""
    rows = database.all(_SUMMARIES, about=find_subject(database, person))
    return [_STORED.decode(row, subject=person, place=PLACE.loads(place)) for place, *row in rows]
