"""Rows of facts, and the SQL conditions that say who may see them."""

from datetime import datetime
from typing import Any

from tertulia.memory.values import Fact, Subject
from tertulia.store.encoding import clean, parse_time, validate
from tertulia.store.identities import IdentityCache, find_author, upsert_author, upsert_place, upsert_title
from tertulia.store.sqlite.connection import Database

SOURCES = """fact_sources c JOIN messages m ON m.place = c.place AND m.message_id = c.message_id
    JOIN names n ON n.id = m.name"""


HEARSAY = f"coalesce((SELECT min(n.author <> f.about) FROM {SOURCES} WHERE c.fact = f.id), f.imported_from <> '')"


IS_SUBJECT = """(:own OR (:anybody AND :direct AND (
        SELECT min(n.author = :about) FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.role = 'user'
    )))"""  # the one who asks is the subject; without an asker: only the subject writes in that direct chat


ALL_SOURCES_BLOCKED = f"""coalesce((
        SELECT min(n.author IN (SELECT author FROM blocked_authors)) FROM {SOURCES} WHERE c.fact = f.id
    ), 0)"""  # whether all authors of its sources are blocked


SAID_IN_GROUP = f"""(f.direct = 0 AND coalesce((
        SELECT min(n.author = f.about AND m.forwarded_from IS NULL) FROM {SOURCES} WHERE c.fact = f.id
    ), 0))"""  # whether it was said in a group, by the subject alone: it may be known in their direct chats


VISIBLE = f"""f.about = :about AND f.direct <= :direct AND (
        (f.place = :place AND f.direct = :direct AND f.scope <> 'direct')
        OR (f.scope = 'everywhere' OR (:direct AND (f.scope = 'direct' OR {SAID_IN_GROUP}))) AND {IS_SUBJECT}
    ) AND f.superseded_by IS NULL AND (f.valid_until IS NULL OR f.valid_until > :now)
    AND NOT EXISTS (SELECT 1 FROM blocked_authors b WHERE b.author IN (f.about, :asked_by))
    AND NOT {ALL_SOURCES_BLOCKED}"""


def has_blocked(people: str) -> str:
    """Condition: a blocked author is among *people*, a column with a JSON list of ids; `p` is the place."""
    return f"""EXISTS (SELECT 1 FROM blocked_authors b JOIN authors a ON a.id = b.author
        WHERE a.platform = p.service AND a.author_id IN (SELECT value FROM json_each({people})))"""


def find_subject(database: Database, subject: Subject) -> int | None:
    """Return the row of a person; None for an id that cannot be stored."""
    return find_author(database, clean(subject.platform), subject.id) if clean(subject.id) == subject.id else None


FACT_COLUMNS = f"""f.id, f.fact_id, f.title, a.platform, a.author_id, f.name, f.text, f.key, f.scope, f.confidence,
    f.learned_at, f.valid_from, f.valid_until, f.superseded_by, {HEARSAY},
    f.imported_from"""
FACT_TABLES = "FROM facts f JOIN authors a ON a.id = f.about"


def decode_fact(database: Database, row: tuple[Any, ...], identities: IdentityCache) -> Fact:
    """Decode a row of `FACT_COLUMNS`."""
    fact, fact_id, title, platform, author, name, text, key, scope, confidence, learned_at, *since = row
    held_from, held_until, newer, hearsay, imported_from = since
    sources = database.execute("SELECT message_id FROM fact_sources WHERE fact = ? ORDER BY id", (fact,))
    return validate(
        Fact(
            id=fact_id,
            subject=validate(Subject(platform=platform, id=author, name=name)),
            text=text,
            place=identities.place(database, title),
            sources=tuple(message_id for (message_id,) in sources.fetchall()),
            learned_at=datetime.fromisoformat(learned_at),
            scope=scope,
            confidence=confidence,
            hearsay=bool(hearsay),
            key=key,
            held_from=parse_time(held_from),
            held_until=parse_time(held_until),
            superseded_by=newer,
            imported_from=imported_from,
        )
    )


def select_facts(database: Database, where: str, values: Any = (), order: str = "f.id") -> list[Fact]:
    """Select the facts that match *where*, by default in the order in which they were stored."""
    identities = IdentityCache()
    rows = database.execute(f"SELECT {FACT_COLUMNS} {FACT_TABLES} WHERE {where} ORDER BY {order}", values).fetchall()
    return [decode_fact(database, row, identities) for row in rows]


def upsert_fact(database: Database, fact: Fact) -> int:
    """Store a fact with its sources; return its row."""
    place = upsert_place(database, fact.place)
    values = {
        "fact_id": fact.id,
        "place": place,
        "title": upsert_title(database, fact.place, place),
        "direct": int(fact.place.kind == "direct"),
        "about": upsert_author(database, fact.subject.platform, fact.subject.id),
        "name": fact.subject.name,
        "text": fact.text,
        "key": fact.key,
        "scope": fact.scope,
        "confidence": fact.confidence,
        "learned_at": fact.learned_at.isoformat(),
        "valid_from": fact.held_from and fact.held_from.isoformat(),
        "valid_until": fact.held_until and fact.held_until.isoformat(),
        "superseded_by": fact.superseded_by,
        "imported_from": fact.imported_from,
    }
    changed = ", ".join(f"{column} = excluded.{column}" for column in values)
    insert = f"""INSERT INTO facts ({", ".join(values)}) VALUES ({", ".join("?" * len(values))})
        ON CONFLICT (fact_id) DO UPDATE SET {changed} RETURNING id"""
    row: int = database.execute(insert, tuple(values.values())).fetchone()[0]
    database.execute("DELETE FROM fact_sources WHERE fact = ?", (row,))
    insert = "INSERT INTO fact_sources (fact, place, message_id) VALUES (?, ?, ?)"
    database.executemany(insert, [(row, place, source) for source in fact.sources])
    return row
