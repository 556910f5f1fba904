"""Removes titles, runs, places, answers, replies and tasks that were for a person or have their words."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.messages import Reply
from tertulia.store import decisions, message_rows, search_index, tasks, usage
from tertulia.store.encoding import MESSAGE, PLACE, REPLY, STRINGS, TASK, JsonType, dumps
from tertulia.store.forget.person_words import PersonWords, Vocabulary
from tertulia.store.message_rows import insert_change
from tertulia.store.prompts import layer_content, remove_layers
from tertulia.store.sqlite.connection import Database
from tertulia.tasks import graph
from tertulia.tasks.task import Task

MessageKey = tuple[int, str]  # a message: its place and its id

REASON = "somebody it came from was forgotten"

_WITH_TITLE = ("messages", "runs", "facts", "episodes")
_COPIES: tuple[tuple[str, str, JsonType[Any]], ...] = (
    ("tasks", "body", TASK),
    ("outbox", "reply", REPLY),
    ("message_changes", "before", MESSAGE),
)
_PLACE_TABLES = (
    "search_terms search_vectors search_messages search_stale search_progress search_places "
    "runs outbox tasks fact_sources facts summaries episodes window_pasts reading_cursors "
    "description_positions message_changes message_parts messages titles"
).split()  # referring tables first
_REPLY_ID = "coalesce(reply_id, outgoing_id)"
_OVERLAP = 4096  # bytes before a suffix that may contain the beginning of a match
_CACHE_SIZE = 64  # contents of layers
_MAX_IDS = 500  # ids in one query


def remove_titles(database: Database, words: Vocabulary) -> int:
    """Remove titles of groups with the person's words; the next message brings the current title.

    A group may have had thousands of titles: each table is read once for all of them.
    """
    select = "SELECT id, place, title, body FROM titles"
    found = [row for row in database.execute(select).fetchall() if words.at(row[1]).is_in(row[2])]
    bare_rows: dict[str, int] = {}
    replaced: dict[int, list[int]] = {}  # rows of titles by the row that stands for them from now on
    removed: dict[int, set[str]] = {}  # titles by place
    for row, place, title, body in found:
        bare = dumps(replace(PLACE.loads(body), title=""))
        if bare not in bare_rows:
            bare_rows[bare] = _bare_row(database, row, bare)
        replaced.setdefault(bare_rows[bare], []).append(row)
        removed.setdefault(place, set()).add(title)
    for bare_row, rows in replaced.items():
        if others := [row for row in rows if row != bare_row]:
            _replace_titles(database, others, bare_row)
    for place, titles in removed.items():
        _remove_copies(database, place, titles)
    return len(found)


def _bare_row(database: Database, row: int, bare: str) -> int:
    """Return the row of the place without a title: an existing one, else *row*, which becomes it."""
    same = database.execute("SELECT id FROM titles WHERE body = ?", (bare,)).fetchone()
    if same is not None:
        return int(same[0])
    database.execute("UPDATE titles SET title = '', body = ? WHERE id = ?", (bare, row))
    return row


def _replace_titles(database: Database, rows: list[int], by: int) -> None:
    """Replace references to *rows* by the row *by*, and remove *rows*.

    SQLite looks for references to every deleted row; without an index it would read the whole table each time.
    """
    which = dumps(rows)
    for table in _WITH_TITLE:
        update = f"UPDATE {table} SET title = ? WHERE title IN (SELECT value FROM json_each(?))"
        database.execute(update, (by, which))
        database.execute(f"CREATE INDEX {table}_title ON {table} (title)")
    database.execute("DELETE FROM titles WHERE id IN (SELECT value FROM json_each(?))", (which,))
    for table in _WITH_TITLE:
        database.execute(f"DROP INDEX {table}_title")


def _remove_copies(database: Database, place: int, titles: set[str]) -> None:
    """Remove titles from stored values with that place."""
    for table, column, kind in _COPIES:
        select = f"SELECT id, {column} FROM {table} WHERE place = ? AND {column} IS NOT NULL"
        for row, text in database.execute(select, (place,)).fetchall():
            value = kind.loads(text)
            if value.place.title in titles:
                bare = dumps(replace(value, place=replace(value.place, title="")))
                database.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (bare, row))


class RemovedRuns(Struct, frozen=True, kw_only=True):
    prompts: int
    records: int
    tool_runs: int


class PersonRuns(Struct, frozen=True, kw_only=True):
    """The runs that concern a person."""

    answering: frozenset[str]  # their target is a message of the person
    showing: frozenset[str]  # these, and all that showed the person's words or were given them


def find_runs(
    database: Database, words: Vocabulary, theirs: Collection[MessageKey], forwards: Collection[MessageKey]
) -> PersonRuns:
    """Find the runs that answered a message of *theirs*, were given *forwards* of them, or have the person's words."""
    answering: set[str] = set()
    showing: set[str] = set()
    places: dict[int, None] = {}
    for run, place, target, taken, why in database.execute("SELECT run_id, place, target, message_ids, why FROM runs"):
        places[place] = None
        if (place, target) in theirs:
            answering.add(run)
        given = {(place, message) for message in STRINGS.loads(taken)}
        if not given.isdisjoint(theirs) or not given.isdisjoint(forwards) or words.at(place).is_in(why):
            showing.add(run)
    for place in places:
        if words.at(place):
            showing |= _showing(database, place, words.at(place))
    return PersonRuns(answering=frozenset(answering), showing=frozenset(answering | showing))


def remove_runs(database: Database, runs: Collection[str]) -> RemovedRuns:
    """Remove prompts, records and tool runs of these runs, and unused layers; the runs stay."""
    counts = {"prompts": 0, "records": 0, "tool_runs": 0}
    for some, marks in _chunks(runs):
        prompts = f"SELECT id FROM prompts WHERE run_id IN ({marks})"
        database.execute(f"DELETE FROM prompt_layers WHERE prompt IN ({prompts})", some)
        for table in counts:
            counts[table] += database.execute(f"DELETE FROM {table} WHERE run_id IN ({marks})", some).rowcount
        database.execute(f"UPDATE runs SET why = '' WHERE run_id IN ({marks})", some)
    usage.remove_calls(database, [*runs])
    remove_unused_layers(database)
    return RemovedRuns(**counts)


def remove_unused_layers(database: Database) -> None:
    """Remove the layers that no prompt has."""
    select = "SELECT id FROM layers WHERE id NOT IN (SELECT layer FROM prompt_layers)"
    remove_layers(database, {row for (row,) in database.execute(select)})


def _showing(database: Database, place: int, words: PersonWords) -> set[str]:
    found = _by_layers(database, place, _layers_holding(database, place, words))
    of_place = "JOIN runs r ON r.run_id = c.run_id WHERE r.place = ?"
    for select in (
        f"SELECT c.run_id, c.turn, c.raw FROM records c {of_place}",
        f"SELECT c.run_id, c.call, c.result FROM tool_runs c {of_place}",
    ):
        found |= {run for run, *texts in database.execute(select, (place,)) if words.is_in(*texts)}
    return found


def _by_layers(database: Database, place: int, layers: Collection[int]) -> set[str]:
    """Return the runs of a place with a prompt that has one of these layers."""
    found: set[str] = set()
    for some, marks in _chunks(layers):
        select = f"""SELECT DISTINCT p.run_id FROM prompt_layers l JOIN prompts p ON p.id = l.prompt
            JOIN runs r ON r.run_id = p.run_id WHERE r.place = ? AND l.layer IN ({marks})"""
        found |= {run for (run,) in database.execute(select, (place, *some))}
    return found


def _layers_holding(database: Database, place: int, words: PersonWords) -> set[int]:
    """Return the layers of a place with *words*; of a delta only its suffix is searched.

    Layers come in the order in which they were stored, so the base of a layer was searched before it. If the first
    match in the base ends within the common prefix, the layer has it too. If it ends later or there is none, the
    prefix has no match, and the search begins shortly before the suffix.

    Example: the base has 100 bytes, the layer shares the first 60. A match that ends at byte 40 is in both. If the
    first match ends at byte 80, the shared 60 bytes have none, so only the suffix of the layer is searched.
    """
    held: dict[int, int | None] = {}
    contents: OrderedDict[int, bytes] = OrderedDict()
    select = """SELECT id, base, prefix_length, suffix FROM layers WHERE removed = 0 AND id IN (
        SELECT l.layer FROM prompt_layers l JOIN prompts p ON p.id = l.prompt JOIN runs r ON r.run_id = p.run_id
        WHERE r.place = ?) ORDER BY id"""
    for row, base, shared, rest in database.execute(select, (place,)).fetchall():
        before = held.get(base)
        if before is not None and before <= shared:
            held[row] = before
            continue
        content = _content(database, contents, row, base, shared, rest)
        start = max(0, shared - _OVERLAP) if base in held else 0
        text = content[start:].decode("utf-8", "ignore")
        end = words.end(text)
        held[row] = None if end is None else start + len(text[:end].encode()) + 4  # a character may be cut at start
    return {row for row, end in held.items() if end is not None}


def _content(
    database: Database, contents: OrderedDict[int, bytes], row: int, base: int | None, shared: int, rest: str
) -> bytes:
    if base is None:
        content = rest.encode()
    elif base in contents:
        content = contents[base][:shared] + rest.encode()
    else:
        content = layer_content(database, row) or b""
    contents[row] = content
    if len(contents) > _CACHE_SIZE:
        contents.popitem(last=False)
    return content


def _chunks(values: Iterable[int | str]) -> Iterable[tuple[list[int | str], str]]:
    """Yield the values in chunks, with placeholders for a statement."""
    left = list(values)
    for start in range(0, len(left), _MAX_IDS):
        some = left[start : start + _MAX_IDS]
        yield some, ", ".join("?" * len(some))


def remove_places(database: Database, places: Iterable[int]) -> int:
    """Remove places with all their rows except layers; return their number."""
    runs = "SELECT run_id FROM runs WHERE place = ?"
    messages = "SELECT id FROM messages WHERE place = ?"
    statements = (
        f"DELETE FROM prompt_layers WHERE prompt IN (SELECT id FROM prompts WHERE run_id IN ({runs}))",
        *[f"DELETE FROM {table} WHERE run_id IN ({runs})" for table in ("prompts", "records", "tool_runs")],
        *[f"DELETE FROM {table} WHERE message IN ({messages})" for table in ("turns", "media")],
        *[f"DELETE FROM {table} WHERE place = ?" for table in _PLACE_TABLES],
        "UPDATE usage SET place = NULL WHERE place = ?",
        "DELETE FROM places WHERE id = ?",
    )
    count = 0
    for place in places:
        count += 1
        for statement in statements:
            database.execute(statement, (place,))
    return count


class RemovedReplies(Struct, frozen=True, kw_only=True):
    answers: frozenset[MessageKey]
    replies: int
    tasks: int


def remove_replies(
    database: Database,
    words: Vocabulary,
    runs: PersonRuns,
    theirs: Collection[MessageKey],
    at: datetime,
    *,
    author: int,
) -> RemovedReplies:
    """Remove what was for the person or has their words; replies to others only lose their turns."""
    planned = _remove_tasks(database, words, runs, author)
    sent: set[MessageKey] = set()
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
            empty_message(database, row, at)
    return RemovedReplies(answers=frozenset(answers), replies=replies, tasks=len(planned))


def _replies(
    database: Database,
    words: Vocabulary,
    answering: Collection[str],
    planned: Collection[str],
    theirs: Collection[MessageKey],
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


def empty_message(database: Database, row: int, at: datetime, *, with_quote: bool = True) -> None:
    """Empty a message, and its quote; its number and id stay."""
    insert_change(database, row, "removed", at, None)
    database.execute("UPDATE message_changes SET before = NULL WHERE message = ?", (row,))
    database.execute("DELETE FROM turns WHERE message = ?", (row,))
    database.execute("DELETE FROM media WHERE message = ?", (row,))
    message_rows.empty_parts(database, row)
    database.execute("DELETE FROM hidden_sentences WHERE message = ?", (row,))
    quote = "reply_to = NULL, reply_author = NULL, reply = NULL," if with_quote else ""
    update = f"""UPDATE messages SET text = '', media = NULL, parts = '[]', edited_at = NULL, deleted = 1, {quote}
        album = NULL, forwarded_from = NULL, forward_author = NULL WHERE id = ?"""
    database.execute(update, (row,))
    decisions.end_waiting(database, [row], "forgotten", at)
    search_index.unindex(database, [row])


def _answers(database: Database, words: Vocabulary, theirs: Collection[MessageKey]) -> Iterator[MessageKey]:
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


def _remove_tasks(database: Database, words: Vocabulary, runs: PersonRuns, author: int) -> set[str]:
    """Cancel the tasks for the person or with their words, and remove their arguments."""
    found: dict[str, Task] = {}
    by_command = """SELECT t.task_id FROM tasks t JOIN places p ON p.id = t.place JOIN authors a
        ON a.platform = p.service AND a.author_id = json_extract(t.body, '$.args.author.id') WHERE a.id = ?"""
    asked = {task for (task,) in database.execute(by_command, (author,))}
    for place, body in database.execute("SELECT place, body FROM tasks").fetchall():
        task = TASK.loads(body)
        is_theirs = task.run in runs.answering or task.made_by in runs.answering or task.id in asked
        if is_theirs or words.at(place).is_in(dumps(task.args), task.why):
            status = "cancelled" if task.status in ("pending", "running") else task.status
            found[task.id] = replace(task, args={}, status=status, why=REASON)
    tasks.change(database, found, graph)
    return set(found)
