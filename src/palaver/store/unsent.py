"""Takes back what is not sent yet and would tell a forgotten fact: replies on their way, tasks, runs under way."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from palaver.memory.verify.statements import Statement, answers_any, mentioned_in, states_any, tells_any
from palaver.store import run_removal, tasks
from palaver.store.prompts import content_of
from palaver.store.repetition import empty_reply
from palaver.store.sqlite import Database, unlearn
from palaver.store.values import REPLY, TASK, dumps
from palaver.tasks.values import Task

WHY = "it would have told what was forgotten since"

Told = Mapping[tuple[int, int], Sequence[Statement]]  # what facts say, by whom they are about and where

_ASKED = """LEFT JOIN runs r ON r.run_id = {run}
    LEFT JOIN messages m ON m.place = r.place AND m.message_id = r.target LEFT JOIN names n ON n.id = m.name"""
_QUESTION = """(SELECT group_concat(q.text, ' ') FROM json_each(r.taken) t
    JOIN messages q ON q.place = r.place AND q.message_id = t.value)"""


def take_back(database: Database, told: Told, hidden: Collection[int]) -> None:
    """Drop what states these facts and is not sent, and withdraw the runs that were shown them.

    A prompt that was made and not asked yet is made anew: its place has changed.
    """
    for (about, place), statements in told.items():
        _drop_replies(database, statements, about, place)
        _cancel_tasks(database, statements, about, place)
    _withdraw_runs(database, told, hidden)
    changed = {place for _, place in told}
    database.executemany("UPDATE places SET changes = changes + 1 WHERE id = ?", [(place,) for place in changed])


def _drop_replies(database: Database, statements: Sequence[Statement], about: int, place: int) -> None:
    """Empty the replies that state a fact; one that is just being sent may be seen, and is in no prompt.

    Of one that was split, what is not sent is emptied where all its parts together state it.
    """
    whole = """coalesce((SELECT group_concat(p.text, ' ') FROM outbox p WHERE p.reply_id = o.reply_id), o.text)"""
    select = f"""SELECT o.id, o.reply, {whole}, o.turns, coalesce(n.author = ?, 1), {_QUESTION} FROM outbox o
        {_ASKED.format(run="o.run_id")} WHERE o.place = ? AND o.status IN ('waiting', 'sending', 'doubtful')"""  # noqa: S608
    for row, reply, text, turns, to_them, question in database.execute(select, (about, place)).fetchall():
        if _is_told(text, statements, to_them=bool(to_them), question=question or ""):
            empty_reply(database, row, REPLY.loads(reply), WHY)
        elif _is_told(turns, statements, to_them=bool(to_them)):
            database.execute("UPDATE outbox SET turns = '[]' WHERE id = ?", (row,))


def _cancel_tasks(database: Database, statements: Sequence[Statement], about: int, place: int) -> None:
    select = f"""SELECT k.body, coalesce(n.author = ?, 1) FROM tasks k
        {_ASKED.format(run="coalesce(json_extract(k.body, '$.run'), json_extract(k.body, '$.made_by'))")}
        WHERE k.place = ? AND k.status IN ('pending', 'running')"""  # noqa: S608
    found: dict[str, Task] = {}
    for body, to_them in database.execute(select, (about, place)).fetchall():
        task = TASK.loads(body)
        if _is_told(dumps(task.args), statements, to_them=bool(to_them)):
            found[task.id] = replace(task, args={}, status="cancelled", why=WHY)
    tasks.change(database, found)


def _is_told(said: str, statements: Sequence[Statement], *, to_them: bool, question: str = "") -> bool:
    """Whether words of the agent state a fact; to somebody else they must say enough by themselves."""
    found = mentioned_in(said, statements if to_them else [one for one in statements if one.is_telling])
    return bool(found) and (states_any(said, found, by_them=False) or answers_any(question, said, found))


def _withdraw_runs(database: Database, told: Told, hidden: Collection[int]) -> None:
    """Let runs that were shown a fact begin anew; those that have begun a tool cannot, and end without their answer.

    Of a run that is withdrawn nothing is left, and what it took waits again: the next write of whoever carries it out
    is refused as outdated, and a process that begins later finds only the messages. A tool must not run twice, so
    a run that has begun one only loses its prompts, and can no longer end but with an honest line.
    """
    shown = [
        (run, place)
        for run, place, horizon in database.execute("SELECT run_id, place, horizon FROM runs WHERE status = 'open'")
        if (statements := [one for (_, where), said in told.items() if where == place for one in said])
        and (_is_in_window(database, hidden, place, horizon) or tells_any(_text(database, run), statements))
    ]
    if not shown:
        return
    begun = "SELECT 1 FROM tool_runs WHERE run_id = ?"
    anew = [(run, place) for run, place in shown if database.execute(begun, (run,)).fetchone() is None]
    run_removal.remove(database, [run for run, _ in shown])
    unlearn(database)
    waits = """UPDATE messages SET state = 'waiting', run_id = NULL
        WHERE place = ? AND run_id = ? AND state = 'taken'"""
    for run, place in anew:
        database.execute(waits, (place, run))
        database.execute("DELETE FROM runs WHERE run_id = ?", (run,))


def _is_in_window(database: Database, hidden: Iterable[int], place: int, horizon: int) -> bool:
    """Whether one of the messages that are about to be hidden was known when a run began."""
    select = "SELECT 1 FROM messages WHERE id = ? AND place = ? AND number < ?"
    return any(database.execute(select, (row, place, horizon)).fetchone() for row in hidden)


def _text(database: Database, run: str) -> str:
    """What a run was asked last, and what came back."""
    layers = """SELECT layer FROM prompt_layers WHERE prompt = (
        SELECT max(id) FROM prompts WHERE run_id = ?)"""
    contents = [content_of(database, layer) or b"" for (layer,) in database.execute(layers, (run,)).fetchall()]
    said = [turn for (turn,) in database.execute("SELECT turn FROM records WHERE run_id = ?", (run,))]
    select = "SELECT call, coalesce(result, '') FROM tool_runs WHERE run_id = ?"
    done = [text for row in database.execute(select, (run,)) for text in row]
    return "\n".join([*(content.decode() for content in contents), *said, *done])
