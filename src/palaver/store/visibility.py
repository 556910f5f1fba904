"""Visibility of facts, as SQL conditions."""

from palaver.memory.facts import Subject
from palaver.store.encoding import clean
from palaver.store.identities import find_author
from palaver.store.sqlite.connection import Database

SOURCES = """fact_sources c JOIN messages m ON m.place = c.place AND m.message_id = c.message_id
    JOIN names n ON n.id = m.name"""


HEARSAY = f"coalesce((SELECT min(n.author <> f.about) FROM {SOURCES} WHERE c.fact = f.id), 0)"


IS_SUBJECT = """(:own OR (:anybody AND :direct AND (
        SELECT min(n.author = :about) FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.role = 'user'
    )))"""  # whether the person asks; if anybody may ask: whether only the person writes in that direct chat


ALL_SOURCES_BLOCKED = f"""coalesce((
        SELECT min(n.author IN (SELECT author FROM blocked_authors)) FROM {SOURCES} WHERE c.fact = f.id
    ), 0)"""  # whether all authors of its sources are blocked


VISIBLE = f"""f.about = :about AND f.direct <= :direct AND (
        (f.place = :place AND f.direct = :direct AND f.scope <> 'direct')
        OR (f.scope = 'everywhere' OR (f.scope = 'direct' AND :direct)) AND {IS_SUBJECT}
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
