"""Taking back what was learned from a message that is deleted, or says something else now."""

from collections.abc import Iterable, Sequence

from palaver.store.sqlite import Database


def retract(database: Database, message: int) -> None:
    """Let facts lose a message as their source; those that had no other go, and what was read of it is read again."""
    select = "SELECT place, message_id, number FROM messages WHERE id = ?"
    place, message_id, number = database.execute(select, (message,)).fetchone()
    lose_source(database, place, message_id)
    again = "UPDATE messages SET again = 1 WHERE id = ? AND number < (SELECT facts FROM learned WHERE place = ?)"
    database.execute(again, (message, place))
    _remove_episodes(database, place, number)


def lose_source(database: Database, place: int, message_id: str) -> int:
    """Facts that had only this source are removed; how many."""
    select = """SELECT fact, (SELECT count(*) FROM fact_sources o WHERE o.fact = s.fact) FROM fact_sources s
        WHERE place = ? AND message_id = ?"""
    found = database.execute(select, (place, message_id)).fetchall()
    if not found:
        return 0
    database.execute("DELETE FROM fact_sources WHERE place = ? AND message_id = ?", (place, message_id))
    remove_summaries(database, [fact for fact, _ in found])
    gone = [fact for fact, sources in found if sources == 1]
    remove(database, gone)
    return len(gone)


def remove(database: Database, facts: Sequence[int]) -> None:
    """Remove facts, and the summaries they went into; what one had superseded stands as if it had never been."""
    remove_summaries(database, facts)
    restore = """UPDATE facts SET superseded_by = f.superseded_by, held_until = f.held_until
        FROM facts f WHERE f.id = ? AND facts.superseded_by = f.fact_id"""
    for fact in facts:
        database.execute(restore, (fact,))
        database.execute("DELETE FROM fact_sources WHERE fact = ?", (fact,))
        database.execute("DELETE FROM facts WHERE id = ?", (fact,))


def with_superseded(database: Database, facts: Iterable[int]) -> list[int]:
    """Facts and all that they superseded."""
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
    """Those of the people that facts are about."""
    delete = "DELETE FROM summaries WHERE about = (SELECT about FROM facts WHERE id = ?)"
    database.executemany(delete, [(fact,) for fact in facts])


def _remove_episodes(database: Database, place: int, number: int) -> None:
    """Those that tell of a message, and the pasts in which they begin: they are told anew, the newest is read again."""
    delete = "DELETE FROM episodes WHERE place = ? AND start <= ? AND stop > ? RETURNING start"
    for (start,) in database.execute(delete, (place, number, number)).fetchall():
        if start < 0:
            continue
        database.execute("DELETE FROM episodes WHERE place = ? AND start < 0 AND stop > ?", (place, start))
        later = database.execute("SELECT 1 FROM episodes WHERE place = ? AND start > ?", (place, start)).fetchone()
        if not later:
            database.execute("UPDATE learned SET episodes = min(episodes, ?) WHERE place = ?", (start, place))
