"""Rows of facts, and the SQL conditions that say who may see them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tertulia.errors import StoreBroken
from tertulia.events import FactsChanged
from tertulia.memory.values import Fact, FactRules, Subject, check_fact
from tertulia.store import events
from tertulia.store.database import DECODE_ERRORS, Database, upsert_into
from tertulia.store.encoding import Columns, clean
from tertulia.store.identities import find_author, upsert_author, upsert_place, upsert_title
from tertulia.store.message_rows import WAS_PRESENT

SOURCES = """fact_sources c JOIN messages m ON m.place = c.place AND m.message_id = c.message_id
    JOIN names n ON n.id = m.name"""

# whether somebody else said it, and never the subject; of an imported fact without messages it is assumed
HEARSAY = f"""coalesce((SELECT min(CASE WHEN n.author <> f.about THEN 1 ELSE 0 END) FROM {SOURCES} WHERE c.fact = f.id),
    CASE WHEN f.imported_from <> '' THEN 1 ELSE 0 END)"""

# whether the one who asks is the subject; without an asker: whether only the subject writes in that direct chat
IS_SUBJECT = """(:own = 1 OR (:anybody = 1 AND :direct = 1 AND (
        SELECT min(CASE WHEN n.author = :about THEN 1 ELSE 0 END) FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.role = 'user'
    ) = 1))"""

# whether all authors of its sources are blocked
ALL_SOURCES_BLOCKED = f"""coalesce((
        SELECT min(CASE WHEN n.author IN (SELECT author FROM blocked_authors) THEN 1 ELSE 0 END)
        FROM {SOURCES} WHERE c.fact = f.id
    ), 0) = 1"""

# whether it was said in a group, by the subject alone: it may be known in their direct chats
SAID_IN_GROUP = f"""(f.direct = 0 AND coalesce((
        SELECT min(CASE WHEN n.author = f.about AND m.forwarded_from IS NULL THEN 1 ELSE 0 END)
        FROM {SOURCES} WHERE c.fact = f.id
    ), 0) = 1)"""

VISIBLE = f"""f.about = :about AND f.direct <= :direct AND (
        (f.place = :place AND f.direct = :direct AND f.scope <> 'direct')
        OR (f.scope = 'everywhere' OR (:direct = 1 AND (f.scope = 'direct' OR {SAID_IN_GROUP}))) AND {IS_SUBJECT}
    ) AND f.superseded_by IS NULL AND (f.valid_until IS NULL OR f.valid_until > :now)
    AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author IN (f.about, :asked_by))
    AND NOT {ALL_SOURCES_BLOCKED}"""

# whether an agent sees it: its own and shared ones, of which a source was said while it was there
SEEN_BY = f"""(f.agent = :agent OR (f.agent IS NULL AND :only_own = 0)) AND ((f.direct = 0 AND :only_present = 0)
    OR EXISTS (SELECT 1 FROM {SOURCES} WHERE c.fact = f.id AND {WAS_PRESENT.format("m.place", "m.number")}))"""

_FACT = Columns(
    Fact,
    "id=fact_id text key scope confidence learned_at held_from=valid_from held_until=valid_until superseded_by "
    "imported_from agent",
    "f",
    place="(SELECT body FROM titles WHERE id = f.title)",
    hearsay=HEARSAY,
    subject=Columns(Subject, "platform id=author_id", "a", name="f.name"),
)
_SELECT = f"SELECT f.id, {_FACT} FROM facts f JOIN authors a ON a.id = f.about AND f.forgotten_at IS NULL"

# The messages that facts were learned from, in the order in which they were learned.
_SELECT_SOURCES = "SELECT fact, message_id FROM fact_sources WHERE fact IN (:facts) ORDER BY id"

# Stores a source of a stored fact.
_INSERT_SOURCE = """INSERT INTO fact_sources (fact, place, message_id)
    SELECT id, place, :message_id FROM facts WHERE fact_id = :fact_id"""


def find_subject(database: Database, subject: Subject) -> int | None:
    """Return the row of a person; None for an id that cannot be stored."""
    return find_author(database, clean(subject.platform), subject.id) if clean(subject.id) == subject.id else None


def _read_sources(database: Database, facts: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return the ids of the messages that facts were learned from, by the rows of the facts."""
    found: dict[int, tuple[str, ...]] = dict.fromkeys(facts, ())
    for fact, message_id in database.all(_SELECT_SOURCES, facts=list(found)) if found else ():
        found[fact] += (message_id,)
    return found


def select_facts(database: Database, where: str, order: str = "f.id", **values: Any) -> list[Fact]:
    """Select the facts that match *where*, by default in the order in which they were stored."""
    rows = database.all(f"{_SELECT} WHERE {where} ORDER BY {order}", **values)
    sources = _read_sources(database, [row[0] for row in rows])
    return [_FACT.decode(columns, sources=sources[row]) for row, *columns in rows]


def find_faults(database: Database) -> Iterator[str]:
    """Yield the facts that cannot be read."""
    rows = database.all(f"{_SELECT} ORDER BY f.id")
    sources = _read_sources(database, [row[0] for row in rows])
    for row, *columns in rows:
        try:
            check_fact(_FACT.decode(columns, sources=sources[row]))
        except (StoreBroken, *DECODE_ERRORS) as error:
            yield f"fact {columns[0]}: {error}"


def facts_with_ids(database: Database, fact_ids: Iterable[str]) -> dict[str, Fact]:
    """Return the stored facts with these ids, by id."""
    found = select_facts(database, "f.fact_id IN (:fact_ids)", fact_ids=[clean(one) for one in fact_ids])
    return {fact.id: fact for fact in found}


def rows_of_facts(database: Database, fact_ids: Collection[str]) -> list[int]:
    """Return the rows of facts by their ids."""
    select = "SELECT id FROM facts WHERE fact_id IN (:fact_ids) ORDER BY id"
    return database.column(select, fact_ids=list(fact_ids)) if fact_ids else []


def add_fact_changes(database: Database, facts: Collection[int], *, at: datetime | None = None) -> None:
    """Store that facts, by their rows, have changed or are removed, with an event for each place."""
    places = database.all("SELECT DISTINCT place FROM facts WHERE id IN (:facts)", facts=facts) if facts else []
    events.add_place_changes(database, [place for (place,) in places], at=at, kind=FactsChanged)


def upsert_facts(database: Database, facts: Sequence[Fact], rules: FactRules) -> None:
    """Store facts with their sources."""
    if not facts:
        return
    rows = [_row(database, fact, rules) for fact in facts]
    database.many(upsert_into("facts", "fact_id", *rows[0]), rows)
    delete = "DELETE FROM fact_sources WHERE fact IN (SELECT id FROM facts WHERE fact_id IN (:fact_ids))"
    database.run(delete, fact_ids=[fact.id for fact in facts])
    sources = [{"fact_id": fact.id, "message_id": source} for fact in facts for source in fact.sources]
    database.many(_INSERT_SOURCE, sources)


def _row(database: Database, fact: Fact, rules: FactRules) -> dict[str, Any]:
    place = upsert_place(database, fact.place)
    return _FACT.encode(fact) | {
        "place": place,
        "title": upsert_title(database, fact.place, place),
        "direct": int(fact.place.kind == "direct"),
        "about": upsert_author(database, fact.subject.platform, fact.subject.id),
        "name": fact.subject.name,
        "digest": rules.fact_digest(fact.text, fact.subject.name),
    }
