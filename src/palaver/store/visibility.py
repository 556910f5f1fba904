"""Visibility: SQL conditions that say who may see what is known of people (`memory.facts.may_hear`)."""

from palaver.memory.facts import Subject
from palaver.store.encoding import clean
from palaver.store.identities import find_author
from palaver.store.sqlite.connection import Database

SAID = """fact_sources c JOIN messages m ON m.place = c.place AND m.message_id = c.message_id
    JOIN names n ON n.id = m.name"""


HEARSAY = f"coalesce((SELECT min(n.author <> f.about) FROM {SAID} WHERE c.fact = f.id), 0)"  # noqa: S608


OWN = """(:own OR (:anybody AND :direct AND (
        SELECT min(n.author = :about) FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = :place AND m.role = 'user'
    )))"""  # whether whoever asks is the person: for anybody, whether they alone write in that direct chat


UNHEARD = f"""coalesce((
        SELECT min(n.author IN (SELECT author FROM blocked)) FROM {SAID} WHERE c.fact = f.id
    ), 0)"""  # noqa: S608 (whether all who said it are blocked)


HEARD = f"""f.about = :about AND f.direct <= :direct AND (
        (f.place = :place AND f.direct = :direct AND f.scope <> 'direct')
        OR (f.scope = 'everywhere' OR (f.scope = 'direct' AND :direct)) AND {OWN}
    ) AND f.superseded_by IS NULL AND (f.held_until IS NULL OR f.held_until > :now)
    AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.author IN (f.about, :listener))
    AND NOT {UNHEARD}"""  # noqa: S608 (`memory.facts.may_hear`)


def with_blocked(people: str) -> str:
    """Whether somebody who is blocked is among *people*, a column of JSON with ids; `p` is the place."""
    return f"""EXISTS (SELECT 1 FROM blocked b JOIN authors a ON a.id = b.author
        WHERE a.platform = p.service AND a.author_id IN (SELECT value FROM json_each({people})))"""  # noqa: S608


def author_of(database: Database, subject: Subject) -> int | None:
    """Their row; nobody who was ever kept has an id that cannot be."""
    return find_author(database, clean(subject.platform), subject.id) if clean(subject.id) == subject.id else None
