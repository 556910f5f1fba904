"""Messages that are hidden: they stay in the file, and no prompt, search, episode or quote holds them any more."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from palaver.memory.support import Sentence, repeats_any
from palaver.messages import Quote
from palaver.store import indexing, retracting
from palaver.store.messages import keep_event
from palaver.store.sqlite import Database
from palaver.store.values import QUOTE, dumps


def hide_facts(database: Database, facts: Sequence[int], at: datetime) -> None:
    """Hide the messages that facts were learned from, the answers to them, and what else repeats these facts."""
    found = {row for fact in facts for row in _sources(database, fact)}
    found |= {answer for row in found for answer in _answers(database, row)}
    found |= {row for fact in facts for row in _proposing(database, fact)}
    for about, place in _where(database, facts):
        found |= set(_repeating(database, facts, about, place))
    for row in sorted(found):
        _hide(database, row, at)


def bare_quotes(database: Database, found: Iterable[tuple[int, str]], at: datetime) -> None:
    """Leave of the quotes in these messages, given by row and quote, only which message was meant, and whose."""
    for row, reply in found:
        keep_event(database, row, "removed", at, None)
        quote = QUOTE.loads(reply)
        bare = dumps(Quote(message_id=quote.message_id, author=quote.author))
        database.execute("UPDATE messages SET reply = ? WHERE id = ?", (bare, row))


def _hide(database: Database, row: int, at: datetime) -> None:
    update = "UPDATE messages SET hidden = 1 WHERE id = ? AND hidden = 0 RETURNING place, number, message_id"
    found = database.execute(update, (row,)).fetchone()
    if found is None:
        return
    place, number, message_id = found
    keep_event(database, row, "removed", at, None)
    indexing.reindex(database, row)
    retracting.remove_episodes(database, place, number)
    quoting = "SELECT id, reply FROM messages WHERE place = ? AND reply_to = ?"
    bare_quotes(database, database.execute(quoting, (place, message_id)).fetchall(), at)


def _sources(database: Database, fact: int) -> list[int]:
    select = """SELECT m.id FROM fact_sources s JOIN messages m ON m.place = s.place AND m.message_id = s.message_id
        WHERE s.fact = ?"""
    return [row for (row,) in database.execute(select, (fact,))]


def _answers(database: Database, message: int) -> list[int]:
    """What the agent said to a message."""
    select = """SELECT a.id FROM messages m JOIN outbox o ON o.run_id = m.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id WHERE m.id = ?"""
    return [row for (row,) in database.execute(select, (message,))]


def _proposing(database: Database, fact: int) -> list[int]:
    """What the agent said in runs that proposed to forget a fact."""
    select = """SELECT a.id FROM proposals p JOIN outbox o ON o.run_id = p.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id WHERE p.fact = ?"""
    return [row for (row,) in database.execute(select, (fact,))]


def _where(database: Database, facts: Iterable[int]) -> set[tuple[int, int]]:
    """Whom facts are about, and where they were said."""
    select = "SELECT about, place FROM facts WHERE id = ?"
    return {database.execute(select, (fact,)).fetchone() for fact in facts}


def _repeating(database: Database, facts: Iterable[int], about: int, place: int) -> Iterable[int]:
    """Messages of the person and of the agent in a place that hold all the words of a fact, also in a tool's result."""
    select = "SELECT text, name FROM facts WHERE id = ? AND about = ? AND place = ?"
    known = (database.execute(select, (fact, about, place)).fetchone() for fact in facts)
    sentences = [Sentence.of(text, called=[name]) for text, name in filter(None, known)]
    said = """SELECT m.id, m.text, coalesce(t.turns, '') FROM messages m JOIN names n ON n.id = m.name
        LEFT JOIN turns t ON t.message = m.id WHERE m.place = ? AND (n.author = ? OR m.role = 'model')"""
    for row, text, turns in database.execute(said, (place, about)).fetchall():
        if repeats_any(f"{text} {turns}", sentences):
            yield row
