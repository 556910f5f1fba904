"""The messages that a forgotten fact came from or that state it: found and hidden, and what is unsent taken back."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from palaver.memory.verify.statements import Statement, answers_any, asks_to_forget, mentioned_in, states_any
from palaver.store import chat_forgetting, unsent
from palaver.store.hidden import hide
from palaver.store.person_words import PersonWords, name_marks
from palaver.store.sqlite import Database
from palaver.tasks.policy import FORGET_CONFIRMED


def hide_facts(database: Database, facts: Sequence[int], at: datetime) -> None:
    """Hide the messages that facts were learned from, the answers to them, and what else states these facts.

    So are the requests to forget them, what was answered to these, and the yes that confirmed it. What is not sent yet
    is taken back. What waits is still answered, but for what the facts were learned from.
    """
    told = _statements(database, facts)
    sources = {row for fact in facts for row in _sources(database, fact)}
    found = sources | {row for fact in facts for row in _requests(database, fact)}
    stating: set[int] = set()
    for (about, place), statements in told.items():
        found |= set(_asking(database, statements, about, place))
        stating |= set(_stating(database, statements, about, place))
    found |= {answer for row in found for answer in _answers(database, row)} | stating
    unsent.take_back(database, told, found)
    chat_forgetting.remove_statements(database, [_named(database, fact) for fact in facts], at)
    every = [statement for statements in told.values() for statement in statements]
    for row in sorted(found):
        hide(database, row, at, facts=every)
    passed = "UPDATE messages SET state = 'passed' WHERE id = ? AND state = 'waiting'"
    database.executemany(passed, [(row,) for row in sources])


def _sources(database: Database, fact: int) -> list[int]:
    select = """SELECT m.id FROM fact_sources s JOIN messages m ON m.place = s.place AND m.message_id = s.message_id
        WHERE s.fact = ?"""
    return [row for (row,) in database.execute(select, (fact,))]


def _answers(database: Database, message: int) -> list[int]:
    """What the agent said to a message."""
    select = """SELECT a.id FROM messages m JOIN outbox o ON o.run_id = m.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id WHERE m.id = ?"""
    return [row for (row,) in database.execute(select, (message,))]


def _requests(database: Database, fact: int) -> list[int]:
    """What the person said to the runs that proposed to forget a fact about them, and to that which confirmed it."""
    select = """WITH asked (run_id) AS (
            SELECT run_id FROM proposals WHERE fact = :fact
            UNION SELECT json_extract(t.body, '$.made_by') FROM tasks t
                JOIN json_each(t.body, '$.args.facts') named JOIN facts f ON f.fact_id = named.value
            WHERE t.kind = :kind AND f.id = :fact
        ) SELECT m.id FROM asked JOIN runs r ON r.run_id = asked.run_id JOIN json_each(r.taken) taken
        JOIN messages m ON m.place = r.place AND m.message_id = taken.value JOIN names n ON n.id = m.name
        WHERE n.author = (SELECT about FROM facts WHERE id = :fact)"""
    return [row for (row,) in database.execute(select, {"fact": fact, "kind": FORGET_CONFIRMED})]


def _asking(database: Database, statements: Sequence[Statement], about: int, place: int) -> Iterable[int]:
    """Messages of the person in a place that ask for one of these facts to be forgotten."""
    select = """SELECT m.id, m.text FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND n.author = ? AND m.hidden = 0"""
    return [row for row, text in database.execute(select, (place, about)) if asks_to_forget(text, statements)]


def _statements(database: Database, facts: Iterable[int]) -> dict[tuple[int, int], list[Statement]]:
    """What the facts say, by whom they are about and each place where they could be told."""
    found: dict[tuple[int, int], list[Statement]] = {}
    for fact in facts:
        select = "SELECT about, place, scope, text, name FROM facts WHERE id = ?"
        about, place, scope, text, name = database.execute(select, (fact,)).fetchone()
        for where in {place} | (set() if scope == "chat" else _of_person(database, about, direct=scope == "direct")):
            found.setdefault((about, where), []).append(Statement.of(text, name))
    return found


def _named(database: Database, fact: int) -> tuple[Statement, PersonWords]:
    """What a fact says, and what the person it is about was ever called."""
    about, text, name = database.execute("SELECT about, text, name FROM facts WHERE id = ?", (fact,)).fetchone()
    names = [name, *(other for (other,) in database.execute("SELECT name FROM names WHERE author = ?", (about,)))]
    return Statement.of(text, name), PersonWords(mark for one in names for mark in name_marks(one))


def _of_person(database: Database, author: int, *, direct: bool) -> set[int]:
    """The places where somebody wrote, or only the direct chats among them."""
    select = """SELECT DISTINCT m.place FROM messages m JOIN names n ON n.id = m.name JOIN titles t ON t.id = m.title
        WHERE n.author = ? AND (? OR json_extract(t.body, '$.kind') = 'direct')"""
    return {place for (place,) in database.execute(select, (author, not direct))}


def _stating(database: Database, statements: Sequence[Statement], about: int, place: int) -> Iterable[int]:
    """Messages of the person and of the agent in a place that state one of these facts, also in a tool's result.

    What the agent said to somebody else counts only if it says enough by itself: “you like tea” is then about them.
    """
    select = """SELECT m.id, m.text, coalesce(t.turns, ''), n.author = :about, coalesce(m.reply_author, :about) = :about
        FROM messages m JOIN names n ON n.id = m.name LEFT JOIN turns t ON t.message = m.id
        WHERE m.place = :place AND m.hidden = 0 AND (n.author = :about OR m.role = 'model')"""
    enough = [one for one in statements if one.is_telling]
    doubtful: list[tuple[int, str, list[Statement]]] = []  # of the agent's
    for row, text, turns, theirs, to_them in database.execute(select, {"about": about, "place": place}):
        said = f"{text}\n{turns}"
        found = mentioned_in(said, statements if theirs or to_them else enough)
        if found and states_any(said, found, by_them=bool(theirs)):
            yield row
        elif found and not theirs:
            doubtful.append((row, text, found))
    questions = _questions(database, place) if doubtful else {}
    yield from (row for row, text, found in doubtful if answers_any(questions.get(row, ""), text, found))


def _questions(database: Database, place: int) -> dict[int, str]:
    """What the agent was asked, by the rows of its answers in a place."""
    select = """SELECT a.id, group_concat(q.text, ' ') FROM outbox o JOIN runs r ON r.run_id = o.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id
        JOIN json_each(r.taken) t JOIN messages q ON q.place = o.place AND q.message_id = t.value
        WHERE o.place = ? GROUP BY a.id"""
    return dict(database.execute(select, (place,)).fetchall())
