"""Retracts what was learned from messages that are deleted or have changed, and hides messages.

A fact without a source is removed, and the facts that it stood over are merged again, by the rules of memory.

A hidden message is stored, but in no prompt, search result, episode or quote.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tertulia.memory.values import Fact, FactRules
from tertulia.messages import Quote
from tertulia.store import episodes, search_index
from tertulia.store.database import Database
from tertulia.store.encoding import parse_time
from tertulia.store.fact_rows import SOURCES, add_fact_changes, rows_of_facts, select_facts, upsert_facts
from tertulia.store.json_columns import rewrite
from tertulia.store.message_rows import insert_changes
from tertulia.timezones import utc

# The facts that were learned from messages, without those that are being forgotten, and when these were sent.
_LEARNED_FROM = f"""SELECT DISTINCT c.fact, f.fact_id, f.about, f.valid_from, m.sent_at
    FROM {SOURCES} JOIN facts f ON f.id = c.fact AND f.forgotten_at IS NULL
    WHERE m.id IN (:messages) ORDER BY c.fact"""

# Messages as sources of facts.
_REMOVE_SOURCES = """DELETE FROM fact_sources WHERE fact IN (:facts) AND id IN (SELECT c.id FROM fact_sources c
    JOIN messages m ON m.place = c.place AND m.message_id = c.message_id WHERE m.id IN (:messages))"""

# Messages that were read for facts, to be read again.
_MARK_STALE = """UPDATE messages SET stale = 1 WHERE id IN (:messages)
    AND number < (SELECT facts FROM reading_cursors l WHERE l.place = messages.place)"""

# The moments at which the sources of facts were sent.
_SENT_AT = f"SELECT c.fact, m.sent_at FROM {SOURCES} WHERE c.fact IN (:facts) AND m.sent_at IS NOT NULL"

# Facts, and all that they superseded.
_WITH_SUPERSEDED = """WITH RECURSIVE found (id, fact_id) AS (
        SELECT id, fact_id FROM facts WHERE id IN (:facts)
        UNION SELECT o.id, o.fact_id FROM found f JOIN facts o ON o.superseded_by = f.fact_id
    ) SELECT id FROM found ORDER BY id"""


# The quotes of messages, or of their parts.
_QUOTES_OF = """SELECT q.id FROM messages m JOIN messages q ON q.place = m.place AND q.reply_to = m.message_id
    WHERE m.id IN (:messages)
    UNION SELECT q.id FROM message_parts p JOIN messages q ON q.place = p.place AND q.reply_to = p.message_id
    WHERE p.message IN (:messages)"""

# A sentence for which a message is hidden.
_INSERT_SENTENCE = "INSERT INTO hidden_sentences (message, text) VALUES (:row, :text) ON CONFLICT DO NOTHING"


def retract(database: Database, messages: Collection[int], rules: FactRules) -> None:
    """Remove messages as sources of facts, mark them as stale, and remove the episodes with them."""
    remove_sources(database, messages, rules)
    database.run(_MARK_STALE, messages=messages)
    episodes.remove_containing(database, messages)


def remove_sources(database: Database, messages: Collection[int], rules: FactRules) -> int:
    """Remove sources of facts; facts without another one are removed too. Return the number of removed facts."""
    learned = database.all(_LEARNED_FROM, messages=messages)
    if not learned:
        return 0
    ids = {row: fact_id for row, fact_id, *_ in learned}
    database.run(_REMOVE_SOURCES, facts=list(ids), messages=messages)
    select = "SELECT DISTINCT fact FROM fact_sources WHERE fact IN (:facts)"
    left = {row: ids[row] for (row,) in database.all(select, facts=list(ids))}
    since = {row for row, *_, start, sent_at in learned if start and parse_time(start) == parse_time(sent_at)}
    _update_starts(database, since & left.keys())
    gone = {row: fact_id for row, fact_id in ids.items() if row not in left}
    people = {about for _, _, about, *_ in learned}
    _remove_rows(database, list(gone))
    _merge_again(database, people, gone.values(), [left[row] for row in ids if row in left], rules)
    return len(gone)


def remove(database: Database, facts: Collection[int], rules: FactRules, author: int | None = None) -> None:
    """Remove facts and the summaries of their people; facts that they superseded are merged again.

    Those about an *author* are not, since all of them go.
    """
    found = database.all("SELECT fact_id, about FROM facts WHERE id IN (:facts)", facts=facts)
    _remove_rows(database, facts)
    _merge_again(database, {about for _, about in found} - {author}, [fact_id for fact_id, _ in found], [], rules)


def with_superseded(database: Database, facts: Iterable[int]) -> list[int]:
    """Return the facts and all that they superseded."""
    return [row for (row,) in database.all(_WITH_SUPERSEDED, facts=facts)]


def remove_summaries(database: Database, people: Collection[int]) -> None:
    """Remove the summaries of people."""
    database.run("DELETE FROM summaries WHERE about IN (:people)", people=people)


def _update_starts(database: Database, facts: Collection[int]) -> None:
    """Set `valid_from` of facts to the time of their oldest source."""
    starts: dict[int, datetime] = {}
    for fact, sent_at in database.all(_SENT_AT, facts=facts) if facts else ():
        moment = utc(datetime.fromisoformat(sent_at))
        starts[fact] = min(moment, starts.get(fact, moment))
    rows = [{"fact": fact, "start": start.isoformat()} for fact, start in starts.items()]
    database.many("UPDATE facts SET valid_from = :start WHERE id = :fact", rows)


def _remove_rows(database: Database, facts: Collection[int]) -> None:
    if not facts:
        return
    add_fact_changes(database, facts)
    database.run("DELETE FROM fact_sources WHERE fact IN (:facts)", facts=facts)
    database.run("DELETE FROM facts WHERE id IN (:facts)", facts=facts)


def _merge_again(
    database: Database, people: Collection[int], gone: Collection[str], left: Sequence[str], rules: FactRules
) -> None:
    """Merge the facts about *people* again: some are *gone*, those *left* have lost a source."""
    remove_summaries(database, people)
    for person in people:
        before = select_facts(database, "f.about = :about", about=person)
        after: dict[str, Fact] = {}
        for agent in {fact.agent for fact in before}:  # facts of one owner are merged
            theirs = [fact for fact in before if fact.agent == agent]
            after |= {fact.id: fact for fact in rules.merge_again(theirs, frozenset(gone), left)}
        changed = [after[fact.id] for fact in before if after.get(fact.id, fact) != fact]
        upsert_facts(database, changed, rules)
        add_fact_changes(database, rows_of_facts(database, [fact.id for fact in changed]))
        _remove_rows(database, rows_of_facts(database, [fact.id for fact in before if fact.id not in after]))


def _without_content(quote: Quote) -> Quote:
    return Quote(message_id=quote.message_id, author=quote.author)


def strip_quotes(
    database: Database, rows: Collection[int], at: datetime | None, bare: Callable[[Quote], Quote] = _without_content
) -> None:
    """Reduce the quotes in these messages, to the id and author of the quoted message or less."""
    insert_changes(database, rows, "removed", at)
    rewrite(database, "messages", "reply", bare, "id IN (:rows)", rows=rows)


def hide_messages(database: Database, rows: Sequence[Any], at: datetime | None) -> list[int]:
    """Hide messages: what was read of them and is not stored yet is refused. Return those that were seen until now."""
    update = "UPDATE messages SET hidden = 1 WHERE id IN (:rows) AND hidden = 0 RETURNING id"
    hidden = sorted(row for (row,) in database.all(update, rows=rows))
    insert_changes(database, hidden, "removed", at)
    search_index.unindex(database, hidden)
    return hidden


def hide_stating(database: Database, sentences: Mapping[int, Sequence[str]], at: datetime | None) -> None:
    """Hide messages, by their rows, and the quotes of them.

    The sentences for which each is hidden are stored: an edit that removes all of them makes it visible again.
    """
    database.many(_INSERT_SENTENCE, [{"row": row, "text": text} for row in sentences for text in sentences[row]])
    if hidden := hide_messages(database, list(sentences), at):
        episodes.remove_containing(database, hidden)
        strip_quotes(database, [row for (row,) in database.all(_QUOTES_OF, messages=hidden)], at)


def unhide_edited(database: Database, row: int, text: str, at: datetime, rules: FactRules) -> None:
    """Make a hidden message visible again if its new *text* has none of the sentences for which it was hidden."""
    if database.one("SELECT 1 FROM messages WHERE id = :row AND hidden = 1", row=row) is None:
        return
    sentences = database.all("SELECT text FROM hidden_sentences WHERE message = :row", row=row)
    if any(rules.is_repetition(text, sentence) for (sentence,) in sentences):
        return
    database.run("UPDATE messages SET hidden = 0 WHERE id = :row", row=row)
    database.run("DELETE FROM hidden_sentences WHERE message = :row", row=row)
    insert_changes(database, [row], "removed", at)
    search_index.unindex(database, [row])
