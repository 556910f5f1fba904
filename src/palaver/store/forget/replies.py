"""Removes answers, replies and tasks that were for a person or have their words."""

from collections.abc import Collection, Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from palaver.messages import Reply
from palaver.store import message_rows, search_index, tasks
from palaver.store.encoding import REPLY, TASK, dumps
from palaver.store.forget.person_words import Vocabulary
from palaver.store.forget.removal import PersonRuns
from palaver.store.message_rows import insert_change
from palaver.store.sqlite.connection import Database
from palaver.tasks.task import Task

REASON = "somebody it came from was forgotten"

Key = tuple[int, str]  # a message: its place and its id

_REPLY_ID = "coalesce(reply_id, outgoing_id)"


class RemovedReplies(Struct, frozen=True, kw_only=True):
    answers: frozenset[Key]
    replies: int
    tasks: int


def remove(
    database: Database, words: Vocabulary, runs: PersonRuns, theirs: Collection[Key], at: datetime
) -> RemovedReplies:
    """Remove what was for the person or has their words; replies to others only lose their turns."""
    planned = _remove_tasks(database, words, runs)
    sent: set[Key] = set()
    replies = 0
    gone = set(_replies(database, words, runs.answering, planned, theirs))
    select = f"SELECT id, {_REPLY_ID}, place, run_id, message_id, reply FROM outbox"
    for row, reply_id, place, run, message_id, reply in database.execute(select).fetchall():
        said = REPLY.loads(reply)
        if reply_id in gone:
            replies += 1
            sent |= {(place, message_id)} if message_id else set()
            empty_reply(database, row, said, REASON)
        elif run in runs.showing:
            database.execute("UPDATE outbox SET turns = '[]' WHERE id = ?", (row,))
            _remove_turns(database, place, message_id)
    answers = sent | set(_answers(database, words, theirs))
    for place, message_id in answers:
        select = "SELECT id FROM messages WHERE place = ? AND message_id = ? AND role = 'model'"
        for (row,) in database.execute(select, (place, message_id)).fetchall():
            empty(database, row, at)
    return RemovedReplies(answers=frozenset(answers), replies=replies, tasks=len(planned))


def _replies(
    database: Database, words: Vocabulary, answering: Collection[str], planned: Collection[str], theirs: Collection[Key]
) -> Iterator[str]:
    """Yield the ids of replies, with all parts, that were for the person or have their words."""
    select = f"""SELECT {_REPLY_ID}, place, run_id, task_id, reply, turns, why, separator FROM outbox
        ORDER BY reply_id, part"""
    said: dict[str, tuple[int, list[str]]] = {}
    for reply_id, place, run, task, body, turns, why, separator in database.execute(select):
        reply = REPLY.loads(body)
        if run in answering or task in planned or (place, reply.reply_to) in theirs:
            yield reply_id
        before = said.get(reply_id, (place, [""]))[1]
        said[reply_id] = place, [f"{before[0]}{separator}{reply.text}", *before[1:], dumps(reply.media), turns, why]
    yield from (reply_id for reply_id, (place, texts) in said.items() if words.at(place).is_in(*texts))


def empty(database: Database, row: int, at: datetime) -> None:
    """Empty a message; its number and id stay."""
    insert_change(database, row, "removed", at, None)
    database.execute("UPDATE message_changes SET before = NULL WHERE message = ?", (row,))
    database.execute("DELETE FROM turns WHERE message = ?", (row,))
    database.execute("DELETE FROM media WHERE message = ?", (row,))
    message_rows.empty_parts(database, row)
    database.execute("DELETE FROM hidden_sentences WHERE message = ?", (row,))
    update = """UPDATE messages SET text = '', media = NULL, parts = '[]', edited_at = NULL, deleted = 1,
        reply_to = NULL, reply_author = NULL, reply = NULL, album = NULL,
        state = CASE WHEN state = 'waiting' THEN 'passed' ELSE state END WHERE id = ?"""
    database.execute(update, (row,))
    search_index.reindex(database, row)


def _answers(database: Database, words: Vocabulary, theirs: Collection[Key]) -> Iterator[Key]:
    """Yield the agent's messages that reply to one of *theirs*, or have or had the person's words."""
    select = """SELECT m.id, m.place, m.message_id, m.reply_to, m.parts, t.turns FROM messages m
        LEFT JOIN turns t ON t.message = m.id WHERE m.role = 'model'"""
    before = "SELECT before FROM message_changes WHERE message = ? AND before IS NOT NULL"
    for row, place, message_id, reply_to, parts, turns in database.execute(select).fetchall():
        past = [text for (text,) in database.execute(before, (row,)).fetchall()]
        if (place, reply_to) in theirs or words.at(place).is_in(parts, *past):
            yield place, message_id
        elif words.at(place).is_in(turns):
            _remove_turns(database, place, message_id)


def _remove_turns(database: Database, place: int, message_id: str | None) -> None:
    """Remove the turns of a message."""
    select = """SELECT m.id FROM messages m JOIN turns t ON t.message = m.id
        WHERE m.place = ? AND m.message_id = ? AND m.role = 'model'"""
    for (row,) in database.execute(select, (place, message_id)).fetchall():
        insert_change(database, row, "removed", None, None)
        database.execute("DELETE FROM turns WHERE message = ?", (row,))


def empty_reply(database: Database, row: int, reply: Reply, why: str) -> None:
    """Empty a reply, and drop it if it is not sent."""
    update = """UPDATE outbox SET text = '', reply = ?, turns = '[]', why = ?,
        status = CASE WHEN status = 'sent' THEN 'sent' ELSE 'dropped' END WHERE id = ?"""
    database.execute(update, (dumps(Reply(place=reply.place, text="")), why, row))


def _remove_tasks(database: Database, words: Vocabulary, runs: PersonRuns) -> set[str]:
    """Cancel the tasks for the person or with their words, and remove their arguments."""
    found: dict[str, Task] = {}
    for place, body in database.execute("SELECT place, body FROM tasks").fetchall():
        task = TASK.loads(body)
        is_theirs = task.run in runs.answering or task.made_by in runs.answering
        if is_theirs or words.at(place).is_in(dumps(task.args), task.why):
            status = "cancelled" if task.status in ("pending", "running") else task.status
            found[task.id] = replace(task, args={}, status=status, why=REASON)
    tasks.change(database, found)
    return set(found)
