"""Retracts what was learned from a message that is deleted or has changed.

Merging after removal. A fact stands on its sources. When it loses its last source it is removed, and facts that it had
superseded are freed: `superseded_by` and `valid_until` are cleared. Each freed fact, and each fact that lost one of
several sources, is then merged with the other facts about the person as if it were new. So the rows end as they would
be if the lost source had never existed: another fact may supersede the freed one, or it may repeat one and go.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from palaver.memory.facts import merge_facts
from palaver.store import summaries
from palaver.store.encoding import parse_time
from palaver.store.fact_rows import select_facts, upsert_fact
from palaver.store.sqlite.connection import Database
from palaver.store.visibility import SOURCES
from palaver.timezones import utc


def retract(database: Database, message: int) -> None:
    """Remove a message as a source of facts, mark it as stale, and remove the episodes with it."""
    select = "SELECT place, message_id, number FROM messages WHERE id = ?"
    place, message_id, number = database.execute(select, (message,)).fetchone()
    remove_source(database, place, message_id)
    again = (
        "UPDATE messages SET stale = 1 WHERE id = ? AND number < (SELECT facts FROM reading_cursors WHERE place = ?)"
    )
    database.execute(again, (message, place))
    remove_episodes(database, place, number)


def remove_source(database: Database, place: int, message_id: str) -> int:
    """Remove a source; facts without another one are removed too. Return the number of removed facts."""
    select = f"""SELECT c.fact, f.valid_from, m.sent_at FROM {SOURCES} JOIN facts f ON f.id = c.fact
        WHERE c.place = ? AND c.message_id = ?"""
    found = database.execute(select, (place, message_id)).fetchall()
    database.execute("DELETE FROM fact_sources WHERE place = ? AND message_id = ?", (place, message_id))
    left = [fact for fact, *_ in found if _has_sources(database, fact)]
    for fact, held_from, sent_at in found:
        if held_from and parse_time(held_from) == parse_time(sent_at):
            _update_start(database, fact)
    gone = [fact for fact, *_ in found if fact not in left]
    _remove_and_merge(database, gone, left)
    return len(gone)


def remove(database: Database, facts: Sequence[int]) -> None:
    """Remove facts and the summaries of their people; facts that they superseded are merged again."""
    _remove_and_merge(database, facts, [])


def with_superseded(database: Database, facts: Iterable[int]) -> list[int]:
    """Return the facts and all that they superseded."""
    select = "SELECT o.id FROM facts f JOIN facts o ON o.superseded_by = f.fact_id WHERE f.id = ?"
    found: dict[int, None] = {}
    left = list(facts)
    while left:
        fact = left.pop()
        if fact not in found:
            found[fact] = None
            left += [row for (row,) in database.execute(select, (fact,))]
    return list(found)


def remove_summaries(database: Database, facts: Iterable[int]) -> None:
    """Remove the summaries of the people that facts are about."""
    delete = "DELETE FROM summaries WHERE about = (SELECT about FROM facts WHERE id = ?)"
    database.executemany(delete, [(fact,) for fact in facts])


def _has_sources(database: Database, fact: int) -> bool:
    return database.execute("SELECT 1 FROM fact_sources WHERE fact = ?", (fact,)).fetchone() is not None


def _update_start(database: Database, fact: int) -> None:
    """Set `valid_from` to the time of the oldest source."""
    select = f"SELECT m.sent_at FROM {SOURCES} WHERE c.fact = ? AND m.sent_at IS NOT NULL"
    times = [utc(datetime.fromisoformat(sent_at)) for (sent_at,) in database.execute(select, (fact,))]
    if times:
        database.execute("UPDATE facts SET valid_from = ? WHERE id = ?", (min(times).isoformat(), fact))


def _remove_and_merge(database: Database, gone: Sequence[int], left: Sequence[int]) -> None:
    """Remove the facts *gone*; merge those *left*, and all that both had superseded, with the others."""
    remove_summaries(database, [*gone, *left])
    free = """UPDATE facts SET superseded_by = NULL, valid_until = NULL WHERE superseded_by IS NOT NULL
        AND (id = :fact OR superseded_by = (SELECT fact_id FROM facts WHERE id = :fact)) RETURNING id"""
    freed = [row for fact in (*gone, *left) for (row,) in database.execute(free, {"fact": fact}).fetchall()]
    database.executemany("DELETE FROM fact_sources WHERE fact = ?", [(fact,) for fact in gone])
    database.executemany("DELETE FROM facts WHERE id = ?", [(fact,) for fact in gone])
    for fact in dict.fromkeys((*left, *freed)):
        _merge(database, fact)


def _merge(database: Database, row: int) -> None:
    """Merge a stored fact with the others about its person, unless it is superseded by now."""
    for fact in select_facts(database, "f.id = ? AND f.superseded_by IS NULL", (row,)):
        others = "f.about = (SELECT about FROM facts WHERE id = :fact) AND f.id <> :fact"
        known = {other.id: other for other in select_facts(database, others, {"fact": row})}
        after = merge_facts(known.values(), [fact])
        for changed in after:
            if changed != fact and changed != known.get(changed.id):
                upsert_fact(database, changed)
        if all(one.id != fact.id for one in after):  # another says the same
            remove(database, [row])


def remove_episodes(database: Database, place: int, number: int) -> None:
    """Remove the episodes and window summaries that contain a message; they are created again."""
    summaries.remove_containing(database, place, number)
    delete = "DELETE FROM episodes WHERE place = ? AND start <= ? AND stop > ? RETURNING start"
    for (start,) in database.execute(delete, (place, number, number)).fetchall():
        summaries.remove_containing(database, place, start)
        later = database.execute("SELECT 1 FROM episodes WHERE place = ? AND start > ?", (place, start)).fetchone()
        if not later:
            database.execute("UPDATE reading_cursors SET episodes = min(episodes, ?) WHERE place = ?", (start, place))
