"""Forgets facts: hides the messages that state them, and withdraws unsent replies, tasks and runs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from tertulia.memory.person_words import PersonWords, name_marks
from tertulia.memory.verify.statements import (
    Statement,
    answers_any,
    asks_to_forget,
    mentioned_in,
    states_any,
    states_any_by_anyone,
)
from tertulia.store import chats, decisions, tasks
from tertulia.store.encoding import REPLY, TASK, dumps
from tertulia.store.fact_rows import SAID_IN_GROUP
from tertulia.store.forget import removal
from tertulia.store.forget.removal import empty_reply
from tertulia.store.forget.retraction import hide_message
from tertulia.store.model_caches import drop_caches
from tertulia.store.prompts import layer_content
from tertulia.store.sqlite.connection import Database, clear_cache
from tertulia.tasks import graph
from tertulia.tasks.task import FORGET_CONFIRMED, Task

REASON = "it would have told what was forgotten since"

StatementsByPlace = Mapping[tuple[int, int], Sequence[Statement]]  # by person and place

_ASKED = """LEFT JOIN runs r ON r.run_id = {run}
    LEFT JOIN messages m ON m.place = r.place AND m.message_id = r.target LEFT JOIN names n ON n.id = m.name"""
_QUESTION = """(SELECT group_concat(q.text, ' ') FROM json_each(r.message_ids) t
    JOIN messages q ON q.place = r.place AND q.message_id = t.value)"""


def withdraw(database: Database, by_place: StatementsByPlace, hidden: Collection[int]) -> None:
    """Drop unsent replies and tasks that state these facts, and withdraw the runs that were shown them.

    A prompt that was built and not sent yet is built again, because its place has changed.
    """
    for (about, place), statements in by_place.items():
        _drop_replies(database, statements, about, place)
        _cancel_tasks(database, statements, about, place)
    _withdraw_runs(database, by_place, hidden)
    changed = {place for _, place in by_place}
    database.executemany(
        "UPDATE places SET changes = changes + 1, removed = changes + 1 WHERE id = ?", [(place,) for place in changed]
    )


def _drop_replies(database: Database, statements: Sequence[Statement], about: int, place: int) -> None:
    """Empty the replies that state a fact; one that is just being sent may still arrive, but is in no prompt.

    The unsent parts of a split reply are emptied if all its parts together state it.
    """
    whole = """coalesce((SELECT group_concat(p.text, ' ') FROM outbox p WHERE p.reply_id = o.reply_id), o.text)"""
    select = f"""SELECT o.id, o.reply, {whole}, o.turns, coalesce(n.author = ?, 1), {_QUESTION} FROM outbox o
        {_ASKED.format(run="o.run_id")} WHERE o.place = ? AND o.status IN ('waiting', 'sending', 'doubtful')"""
    for row, reply, text, turns, to_them, question in database.execute(select, (about, place)).fetchall():
        if _states_fact(text, statements, to_them=bool(to_them), question=question or ""):
            empty_reply(database, row, REPLY.loads(reply), REASON)
        elif _states_fact(turns, statements, to_them=bool(to_them)):
            database.execute("UPDATE outbox SET turns = '[]' WHERE id = ?", (row,))


def _cancel_tasks(database: Database, statements: Sequence[Statement], about: int, place: int) -> None:
    select = f"""SELECT k.body, coalesce(n.author = ?, 1) FROM tasks k
        {_ASKED.format(run="coalesce(json_extract(k.body, '$.run'), json_extract(k.body, '$.made_by'))")}
        WHERE k.place = ? AND k.status IN ('pending', 'running')"""
    found: dict[str, Task] = {}
    for body, to_them in database.execute(select, (about, place)).fetchall():
        task = TASK.loads(body)
        if _states_fact(dumps(task.args), statements, to_them=bool(to_them)):
            found[task.id] = replace(task, args={}, status="cancelled", why=REASON)
    tasks.change(database, found, graph)


def _states_fact(text: str, statements: Sequence[Statement], *, to_them: bool, question: str = "") -> bool:
    """Return whether a text of the agent states a fact; to another person it must be clear by itself."""
    found = mentioned_in(text, statements if to_them else [one for one in statements if one.is_telling])
    return bool(found) and (states_any(text, found, by_them=False) or answers_any(question, text, found))


def _withdraw_runs(database: Database, by_place: StatementsByPlace, hidden: Collection[int]) -> None:
    """Remove the runs that were shown a fact, so that they begin again; those with a tool run only lose their prompts.

    A withdrawn run is deleted and its messages wait again. The next write of its worker is refused as outdated. A
    tool must not run twice, so a run that has started one stays without its prompts, and can only end as failed.
    """
    shown = [
        run
        for run, place, horizon in database.execute("SELECT run_id, place, horizon FROM runs WHERE status = 'open'")
        if (statements := [one for (_, where), made_there in by_place.items() if where == place for one in made_there])
        and (
            _is_in_window(database, hidden, place, horizon)
            or states_any_by_anyone(_run_text(database, run), statements)
        )
    ]
    if not shown:
        return
    begun = "SELECT 1 FROM tool_runs WHERE run_id = ?"
    anew = [run for run in shown if database.execute(begun, (run,)).fetchone() is None]
    removal.remove_runs(database, shown)
    clear_cache(database)
    for run in anew:
        decisions.release(database, run)
        database.execute("DELETE FROM runs WHERE run_id = ?", (run,))


def _is_in_window(database: Database, hidden: Iterable[int], place: int, horizon: int) -> bool:
    """Return whether a run knew one of the messages that are about to be hidden."""
    select = "SELECT 1 FROM messages WHERE id = ? AND place = ? AND number < ?"
    return any(database.execute(select, (row, place, horizon)).fetchone() for row in hidden)


def _run_text(database: Database, run: str) -> str:
    """Return the text of the last prompt of a run, its records and its tool runs."""
    layers = """SELECT layer FROM prompt_layers WHERE prompt = (
        SELECT max(id) FROM prompts WHERE run_id = ?)"""
    contents = [layer_content(database, layer) or b"" for (layer,) in database.execute(layers, (run,)).fetchall()]
    turns = [turn for (turn,) in database.execute("SELECT turn FROM records WHERE run_id = ?", (run,))]
    select = "SELECT call, coalesce(result, '') FROM tool_runs WHERE run_id = ?"
    tool_texts = [text for row in database.execute(select, (run,)) for text in row]
    return "\n".join([*(content.decode() for content in contents), *turns, *tool_texts])


def hide_facts(database: Database, facts: Sequence[int], at: datetime) -> None:
    """Hide the sources of facts, the answers to them, and other messages that state these facts.

    Requests to forget them, the answers to those and their confirmation are hidden too. Unsent replies are withdrawn.
    Waiting messages are still answered, except the sources.
    """
    by_place = _statements(database, facts)
    sources = {row for fact in facts for row in _sources(database, fact)}
    found = sources | {row for fact in facts for row in _forget_requests(database, fact)}
    stating: set[int] = set()
    for (about, place), statements in by_place.items():
        found |= set(_messages_asking_to_forget(database, statements, about, place))
        stating |= set(_messages_stating(database, statements, about, place))
    found |= {answer for row in found for answer in _answer_rows(database, row)} | stating
    withdraw(database, by_place, found)
    _remove_exchanges(database, [_statement_and_names(database, fact) for fact in facts], at)
    every = [statement for statements in by_place.values() for statement in statements]
    for row in sorted(found):
        hide_message(database, row, at, facts=every)
    drop_caches(database)
    decisions.end_waiting(database, sorted(sources), "forgotten", at)


def _sources(database: Database, fact: int) -> list[int]:
    select = """SELECT m.id FROM fact_sources s JOIN messages m ON m.place = s.place AND m.message_id = s.message_id
        WHERE s.fact = ?"""
    return [row for (row,) in database.execute(select, (fact,))]


def _answer_rows(database: Database, message: int) -> list[int]:
    """Return the answers of the agent to a message."""
    select = """SELECT a.id FROM decisions d JOIN outbox o ON o.run_id = d.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id WHERE d.message = ?"""
    return [row for (row,) in database.execute(select, (message,))]


def _forget_requests(database: Database, fact: int) -> list[int]:
    """Return the person's messages in the runs that proposed to forget a fact, and in the one that confirmed it."""
    select = """WITH asked (run_id) AS (
            SELECT run_id FROM proposals WHERE fact = :fact
            UNION SELECT json_extract(t.body, '$.made_by') FROM tasks t
                JOIN json_each(t.body, '$.args.facts') named JOIN facts f ON f.fact_id = named.value
            WHERE t.kind = :kind AND f.id = :fact
        ) SELECT m.id FROM asked JOIN runs r ON r.run_id = asked.run_id JOIN json_each(r.message_ids) taken
        JOIN messages m ON m.place = r.place AND m.message_id = taken.value JOIN names n ON n.id = m.name
        WHERE n.author = (SELECT about FROM facts WHERE id = :fact)"""
    return [row for (row,) in database.execute(select, {"fact": fact, "kind": FORGET_CONFIRMED})]


def _messages_asking_to_forget(
    database: Database, statements: Sequence[Statement], about: int, place: int
) -> Iterable[int]:
    """Return the messages of the person in a place that ask to forget one of these facts."""
    select = """SELECT m.id, m.text FROM messages m JOIN names n ON n.id = m.name
        WHERE m.place = ? AND n.author = ? AND m.hidden = 0"""
    return [row for row, text in database.execute(select, (place, about)) if asks_to_forget(text, statements)]


def _statements(database: Database, facts: Iterable[int]) -> dict[tuple[int, int], list[Statement]]:
    """Return the statements of facts, by person and by each place where they are visible."""
    found: dict[tuple[int, int], list[Statement]] = {}
    for fact in facts:
        select = f"""SELECT about, place, scope, text, name, CASE WHEN {SAID_IN_GROUP} THEN 1 ELSE 0 END
            FROM facts f WHERE id = ?"""
        about, place, scope, text, name, in_group = database.execute(select, (fact,)).fetchone()
        elsewhere = scope != "chat" or in_group
        visible = _places_of(database, about, direct=scope != "everywhere") if elsewhere else set()
        for where in {place} | visible:
            found.setdefault((about, where), []).append(Statement.of(text, name))
    return found


def _remove_exchanges(database: Database, facts: Sequence[tuple[Statement, PersonWords]], at: datetime) -> None:
    """Remove the exchanges of chats that state one of these facts, each given with the names of its person."""
    telling = [(fact, called) for fact, called in facts if fact.is_telling and called]

    def states(text: str) -> bool:
        found = mentioned_in(text, [fact for fact, _ in telling])
        return any(fact in found and called.is_in_json(*text.split("\n")) for fact, called in telling)

    if telling:
        chats.remove_exchanges_stating(database, states, at)


def _statement_and_names(database: Database, fact: int) -> tuple[Statement, PersonWords]:
    """Return the statement of a fact, and all names of its person."""
    about, text, name = database.execute("SELECT about, text, name FROM facts WHERE id = ?", (fact,)).fetchone()
    names = [name, *(other for (other,) in database.execute("SELECT name FROM names WHERE author = ?", (about,)))]
    return Statement.of(text, name), PersonWords(mark for one in names for mark in name_marks(one))


def _places_of(database: Database, author: int, *, direct: bool) -> set[int]:
    """Return the places where an author wrote, or only their direct chats."""
    select = """SELECT DISTINCT m.place FROM messages m JOIN names n ON n.id = m.name JOIN titles t ON t.id = m.title
        WHERE n.author = ? AND (? OR json_extract(t.body, '$.kind') = 'direct')"""
    return {place for (place,) in database.execute(select, (author, not direct))}


def _messages_stating(database: Database, statements: Sequence[Statement], about: int, place: int) -> Iterable[int]:
    """Yield the messages of the person and of the agent in a place that state one of these facts, also in tool results.

    A message of the agent to another person must be clear by itself: there “you like tea” is about that person.
    """
    select = """SELECT m.id, m.text, coalesce(t.turns, ''), n.author = :about, coalesce(m.reply_author, :about) = :about
        FROM messages m JOIN names n ON n.id = m.name LEFT JOIN turns t ON t.message = m.id
        WHERE m.place = :place AND m.hidden = 0 AND (n.author = :about OR m.role = 'model')"""
    enough = [one for one in statements if one.is_telling]
    doubtful: list[tuple[int, str, list[Statement]]] = []  # of the agent's
    for row, text, turns, theirs, to_them in database.execute(select, {"about": about, "place": place}):
        content = f"{text}\n{turns}"
        found = mentioned_in(content, statements if theirs or to_them else enough)
        if found and states_any(content, found, by_them=bool(theirs)):
            yield row
        elif found and not theirs:
            doubtful.append((row, text, found))
    questions = _questions_by_answer(database, place) if doubtful else {}
    yield from (row for row, text, found in doubtful if answers_any(questions.get(row, ""), text, found))


def _questions_by_answer(database: Database, place: int) -> dict[int, str]:
    """Return the questions to the agent in a place, by the rows of its answers."""
    select = """SELECT a.id, group_concat(q.text, ' ') FROM outbox o JOIN runs r ON r.run_id = o.run_id
        JOIN messages a ON a.place = o.place AND a.message_id = o.message_id
        JOIN json_each(r.message_ids) t JOIN messages q ON q.place = o.place AND q.message_id = t.value
        WHERE o.place = ? GROUP BY a.id"""
    return dict(database.execute(select, (place,)).fetchall())
