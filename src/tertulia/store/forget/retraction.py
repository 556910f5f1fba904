"""Retracts what was learned from a message that is deleted or has changed, and hides messages.

Merging after removal. A fact stands on its sources. When it loses its last source it is removed, and facts that it had
superseded are freed: `superseded_by` and `valid_until` are cleared. Each freed fact, and each fact that lost one of
several sources, is then merged with the other facts about the person as if it were new. So the rows end as they would
be if the lost source had never existed: another fact may supersede the freed one, or it may repeat one and go.

A hidden message is stored, but in no prompt, search result, episode or quote.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from tertulia.memory.facts import merge_facts
from tertulia.memory.verify.statements import Statement, is_repetition, sentences_about
from tertulia.messages import Quote
from tertulia.store import episodes, search_index
from tertulia.store.encoding import QUOTE, dumps, parse_time
from tertulia.store.fact_rows import SOURCES, select_facts, upsert_fact
from tertulia.store.message_rows import insert_change
from tertulia.store.sqlite.connection import Database
from tertulia.timezones import utc


def retract(database: Database, message: int) -> None:
    """Remove a message as a source of facts, mark it as stale, and remove the episodes with it."""
    select = "SELECT place, message_id, number FROM messages WHERE id = ?"
    place, message_id, number = database.execute(select, (message,)).fetchone()
    remove_source(database, place, message_id)
    again = (
        "UPDATE messages SET stale = 1 WHERE id = ? AND number < (SELECT facts FROM reading_cursors WHERE place = ?)"
    )
    database.execute(again, (message, place))
    episodes.remove_containing(database, place, number)


def remove_source(database: Database, place: int, message_id: str) -> int:
    """Remove a source; facts without another one are removed too. Return the number of removed facts."""
    select = f"""SELECT c.fact, f.valid_from, m.sent_at FROM {SOURCES} JOIN facts f ON f.id = c.fact
        WHERE c.place = ? AND c.message_id = ?"""
    found = database.execute(select, (place, message_id)).fetchall()
    database.execute("DELETE FROM fact_sources WHERE place = ? AND message_id = ?", (place, message_id))
    others = "SELECT 1 FROM fact_sources WHERE fact = ?"
    left = [fact for fact, *_ in found if database.execute(others, (fact,)).fetchone()]
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


def strip_quotes(database: Database, found: Iterable[tuple[int, str]], at: datetime | None) -> None:
    """Reduce the quotes in these messages, given by row and quote, to the id and author of the quoted message."""
    for row, reply in found:
        insert_change(database, row, "removed", at, None)
        quote = QUOTE.loads(reply)
        bare = dumps(Quote(message_id=quote.message_id, author=quote.author))
        database.execute("UPDATE messages SET reply = ? WHERE id = ?", (bare, row))


def hide_message(database: Database, row: int, at: datetime | None, *, facts: Sequence[Statement] = ()) -> None:
    """Hide a message and the quotes of it, because of the *facts* that it states.

    The sentences that state them are stored: an edit that removes all of them makes the message visible again. If no
    single sentence states a fact, the whole text is stored.
    """
    (text,) = database.execute("SELECT text FROM messages WHERE id = ?", (row,)).fetchone()
    sentences = sentences_about(text, facts) or [text]
    note = "INSERT INTO hidden_sentences (message, text) VALUES (?, ?) ON CONFLICT DO NOTHING"
    database.executemany(note, [(row, sentence) for sentence in sentences])
    update = "UPDATE messages SET hidden = 1 WHERE id = ? AND hidden = 0 RETURNING place, number, message_id"
    found = database.execute(update, (row,)).fetchone()
    if found is None:
        return
    place, number, message_id = found
    insert_change(database, row, "removed", at, None)
    search_index.unindex(database, [row])
    episodes.remove_containing(database, place, number)
    quoting = """SELECT id, reply FROM messages WHERE place = ?
        AND reply_to IN (SELECT ? UNION SELECT message_id FROM message_parts WHERE message = ?)"""
    strip_quotes(database, database.execute(quoting, (place, message_id, row)).fetchall(), at)


def unhide_edited(database: Database, row: int, text: str, at: datetime) -> None:
    """Make a hidden message visible again if its new *text* has none of the sentences for which it was hidden."""
    if not database.execute("SELECT hidden FROM messages WHERE id = ?", (row,)).fetchone()[0]:
        return
    select = "SELECT text FROM hidden_sentences WHERE message = ?"
    if any(is_repetition(text, sentence) for (sentence,) in database.execute(select, (row,)).fetchall()):
        return
    database.execute("UPDATE messages SET hidden = 0 WHERE id = ?", (row,))
    database.execute("DELETE FROM hidden_sentences WHERE message = ?", (row,))
    insert_change(database, row, "removed", at, None)
    search_index.unindex(database, [row])
