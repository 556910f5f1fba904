"""Forgetting a person: what they said, what they are called, and what of it went into prompts, records and replies."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.messages import Author, Quote, Reply
from palaver.parts import Media, Part, Text, ToolCall, ToolResult
from palaver.store import indexing, layers, retracting, tasks
from palaver.store.hearing import SAID
from palaver.store.messages import keep_event
from palaver.store.people import find_author, keep_name
from palaver.store.prompts import REMOVED
from palaver.store.sqlite import Database, unlearn
from palaver.store.values import CALL, MESSAGE, PARTS, PLACE, QUOTE, REPLY, RESULT, TASK, WORDS, clean, dumps
from palaver.store.words import Words
from palaver.tasks.values import Task
from palaver.turns import Turn

NOBODY = Author(id="", name="")  # who is said to have written what a forgotten person wrote
_OF_A_PLACE = (
    "search_words search_vectors search_said search_embedded search_places "
    "runs outbox tasks fact_sources facts summaries episodes learned events messages titles"
).split()  # in an order in which nothing refers to what is gone
WHY = "somebody it came from was forgotten"


class Forgotten(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was removed, counted. Of a message in a group its number and id stay, so that it does not come again."""

    places: int = 0  # direct chats, with everything in them
    messages: int = 0
    quotes: int = 0
    names: int = 0
    descriptions: int = 0
    layers: int = 0
    records: int = 0
    tool_runs: int = 0
    said: int = 0  # messages of the agent's that held words of the person
    turns: int = 0
    replies: int = 0
    tasks: int = 0
    facts: int = 0
    summaries: int = 0
    episodes: int = 0
    blocks: int = 0


def forget(database: Database, platform: str, author_id: str, at: datetime) -> Forgotten:
    """Remove a person; one transaction, after which the file must still be written anew."""
    author = find_author(database, clean(platform), clean(author_id))
    if author is None:
        return Forgotten()
    words = _words(database, author, author_id)
    near = _places(database, author)
    direct = [place for place in near if _is_direct(database, place)]
    described = _remove_descriptions(database, author, direct)
    counts = {
        "descriptions": described,
        "summaries": _remove_summaries(database, author, words, near),
        "episodes": _remove_episodes(database, author, words, near, direct),
        "facts": _remove_facts(database, author, direct) + _scrub_facts(database, words, near),
        "quotes": _remove_quotes(database, author, at),
        "messages": _remove_messages(database, author, direct, at),
        "places": _remove_places(database, direct),
        **_scrub(database, words, near - set(direct)),
        "layers": layers.remove(database, words, near),
        "blocks": database.execute("DELETE FROM blocked WHERE author = ?", (author,)).rowcount,
        "names": _remove_names(database, author),
    }
    unlearn(database)
    return Forgotten(**counts)


def _words(database: Database, author: int, author_id: str) -> Words:
    texts: set[str] = set()
    media: set[str] = set()
    for parts in _spoken(database, author):
        texts |= {part.text for part in parts if isinstance(part, Text)}
        media |= {part.unique_id for part in parts if isinstance(part, Media)}
    remembered = f"""SELECT text FROM facts WHERE about = ? UNION SELECT text FROM summaries WHERE about = ?
        UNION SELECT f.text FROM {SAID} JOIN facts f ON f.id = c.fact GROUP BY f.text HAVING min(n.author = ?) = 1
        """  # noqa: S608
    texts |= {text for (text,) in database.execute(remembered, (author,) * 3)}
    select = "SELECT name, username FROM names WHERE author = ? UNION SELECT name, NULL FROM facts WHERE about = ?"
    names = {name for row in database.execute(select, (author, author)) for name in row if name}
    return Words(texts=texts, names={*names, author_id}, media=media)


def _spoken(database: Database, author: int) -> Iterator[tuple[Part, ...]]:
    """The parts of everything the person said, before edits too, and of what was quoted of them."""
    for row, parts, *_ in _theirs(database, author):
        yield PARTS.loads(parts)
        select = "SELECT before FROM events WHERE message = ? AND before IS NOT NULL"
        yield from (MESSAGE.loads(before).parts for (before,) in database.execute(select, (row,)).fetchall())
    select = "SELECT reply FROM messages WHERE reply_author = ? AND reply IS NOT NULL"
    for (reply,) in database.execute(select, (author,)).fetchall():
        quote = QUOTE.loads(reply)
        yield (*quote.parts, *([Text(text=quote.excerpt)] if quote.excerpt else []))


def _theirs(database: Database, author: int) -> list[tuple[int, str, int, str]]:
    select = """SELECT m.id, m.parts, m.place, m.message_id FROM messages m JOIN names n ON n.id = m.name
        WHERE n.author = ?"""
    return database.execute(select, (author,)).fetchall()


def _places(database: Database, author: int) -> set[int]:
    """Where the person wrote, was quoted or is remembered, and their direct chats."""
    select = """SELECT m.place FROM messages m JOIN names n ON n.id = m.name WHERE n.author = ?
        UNION SELECT place FROM messages WHERE reply_author = ?
        UNION SELECT place FROM facts WHERE about = ? UNION SELECT place FROM summaries WHERE about = ?
        UNION SELECT p.id FROM places p JOIN authors a ON a.platform = p.platform AND a.author_id = p.place_id
        WHERE a.id = ?"""
    return {place for (place,) in database.execute(select, (author,) * 5)}


def _is_direct(database: Database, place: int) -> bool:
    bodies = database.execute("SELECT body FROM titles WHERE place = ?", (place,))
    return any(PLACE.loads(body).kind == "direct" for (body,) in bodies)


def _remove_descriptions(database: Database, author: int, direct: list[int]) -> int:
    """Those of media that nobody else has sent, anywhere."""
    marks = ", ".join("?" * len(direct))
    mine = f"""SELECT m.id FROM messages m JOIN names n ON n.id = m.name
        WHERE n.author = ? OR m.place IN ({marks})"""  # noqa: S608
    delete = f"""DELETE FROM descriptions WHERE unique_id IN (SELECT unique_id FROM media WHERE message IN ({mine}))
        AND unique_id NOT IN (SELECT unique_id FROM media WHERE message NOT IN ({mine}))"""  # noqa: S608
    return database.execute(delete, (author, *direct, author, *direct)).rowcount


def _remove_facts(database: Database, author: int, direct: list[int]) -> int:
    """What is remembered of the person, and what was learned from nobody else or in their direct chats."""
    marks = ", ".join("?" * len(direct))
    select = f"SELECT id FROM facts WHERE about = ? OR place IN ({marks})"  # noqa: S608
    theirs = [row for (row,) in database.execute(select, (author, *direct))]
    retracting.remove(database, theirs)
    learned = sum(retracting.lose_source(database, place, name) for _, _, place, name in _theirs(database, author))
    return len(theirs) + learned


def _remove_summaries(database: Database, author: int, words: Words, near: set[int]) -> int:
    """Those of the person, and those of others that hold their words."""
    count = database.execute("DELETE FROM summaries WHERE about = ?", (author,)).rowcount
    found = _holding(database, words, near, "SELECT place, id, text FROM summaries")
    database.executemany("DELETE FROM summaries WHERE id = ?", [(row,) for row, _ in found])
    return count + len(found)


def _remove_episodes(database: Database, author: int, words: Words, near: set[int], direct: list[int]) -> int:
    """Those the person had a part in, of their direct chats, or with their words."""
    platform, author_id = database.execute("SELECT platform, author_id FROM authors WHERE id = ?", (author,)).fetchone()
    select = """SELECT e.id, e.place, e.people FROM episodes e JOIN places p ON p.id = e.place WHERE p.platform = ?"""
    told = database.execute(select, (platform,)).fetchall()
    found = {row for row, place, people in told if place in direct or author_id in WORDS.loads(people)}
    held = _holding(database, words, near, "SELECT place, id, topic, summary, tags, people FROM episodes")
    found |= {row[0] for row in held}
    database.executemany("DELETE FROM episodes WHERE id = ?", [(row,) for row in found])
    return len(found)


def _remove_messages(database: Database, author: int, direct: list[int], at: datetime) -> int:
    """Leave of each message that it was there; those in direct chats go with the chat."""
    count = 0
    for row, _, place, _ in _theirs(database, author):
        count += 1
        if place not in direct:
            _empty(database, row, at)
    return count


def _empty(database: Database, row: int, at: datetime) -> None:
    platform = "SELECT p.platform FROM messages m JOIN places p ON p.id = m.place WHERE m.id = ?"
    nobody = keep_name(database, database.execute(platform, (row,)).fetchone()[0], NOBODY, None)
    keep_event(database, row, "removed", at, None)
    database.execute("UPDATE events SET before = NULL WHERE message = ?", (row,))
    database.execute("DELETE FROM turns WHERE message = ?", (row,))
    database.execute("DELETE FROM media WHERE message = ?", (row,))
    update = """UPDATE messages SET text = '', media = NULL, parts = '[]', name = ?, sent_at = NULL, edited_at = NULL,
        deleted = 1, reply_to = NULL, reply_author = NULL, reply = NULL, album = NULL,
        state = CASE WHEN state = 'waiting' THEN 'passed' ELSE state END WHERE id = ?"""
    database.execute(update, (nobody, row))
    indexing.reindex(database, row)


def _remove_quotes(database: Database, author: int, at: datetime) -> int:
    """Leave of each quote of the person which message was meant."""
    select = """SELECT id, reply_to FROM messages WHERE reply_author = ? UNION
        SELECT m.id, m.reply_to FROM names n JOIN messages q ON q.name = n.id
        JOIN messages m ON m.place = q.place AND m.reply_to = q.message_id WHERE n.author = ?"""
    found = database.execute(select, (author, author)).fetchall()
    for row, reply_to in found:
        keep_event(database, row, "removed", at, None)
        bare = dumps(Quote(message_id=reply_to))
        database.execute("UPDATE messages SET reply = ?, reply_author = NULL WHERE id = ?", (bare, row))
    return len(found) + _remove_old_quotes(database, author)


def _remove_old_quotes(database: Database, author: int) -> int:
    """The same in what messages said before they were edited."""
    platform, author_id = database.execute("SELECT platform, author_id FROM authors WHERE id = ?", (author,)).fetchone()
    theirs = {(place, message_id) for _, _, place, message_id in _theirs(database, author)}
    select = """SELECT e.id, e.place, e.before FROM events e JOIN places p ON p.id = e.place
        WHERE p.platform = ? AND e.before LIKE '%"reply_to"%'"""
    count = 0
    for row, place, before in database.execute(select, (platform,)).fetchall():
        message = MESSAGE.loads(before)
        quote = message.reply_to
        if quote and ((quote.author and quote.author.id == author_id) or (place, quote.message_id) in theirs):
            count += 1
            bare = replace(message, reply_to=Quote(message_id=quote.message_id))
            database.execute("UPDATE events SET before = ? WHERE id = ?", (dumps(bare), row))
    return count


def _remove_places(database: Database, direct: list[int]) -> int:
    """Direct chats with the person, with everything in them; the layers of their prompts are removed by themselves."""
    runs = "SELECT run_id FROM runs WHERE place = ?"
    messages = "SELECT id FROM messages WHERE place = ?"
    statements = (
        f"DELETE FROM prompt_layers WHERE prompt IN (SELECT id FROM prompts WHERE run_id IN ({runs}))",  # noqa: S608
        *[f"DELETE FROM {table} WHERE run_id IN ({runs})" for table in ("prompts", "records", "tool_runs")],  # noqa: S608
        *[f"DELETE FROM {table} WHERE message IN ({messages})" for table in ("turns", "media")],  # noqa: S608
        *[f"DELETE FROM {table} WHERE place = ?" for table in _OF_A_PLACE],  # noqa: S608
        "DELETE FROM places WHERE id = ?",
    )
    for place in direct:
        for statement in statements:
            database.execute(statement, (place,))
    return len(direct)


def _remove_names(database: Database, author: int) -> int:
    count = database.execute("DELETE FROM names WHERE author = ?", (author,)).rowcount
    database.execute("DELETE FROM forgotten WHERE about = ?", (author,))
    database.execute("DELETE FROM authors WHERE id = ?", (author,))
    return count


def _scrub(database: Database, words: Words, near: set[int]) -> dict[str, int]:
    """Take the person's words out of what the agent did and said."""
    return {
        "records": _scrub_records(database, words, near),
        "tool_runs": _scrub_tools(database, words, near),
        "said": _scrub_said(database, words, near),
        "turns": _scrub_turns(database, words, near),
        "replies": _scrub_replies(database, words, near),
        "tasks": _scrub_tasks(database, words, near),
    }


def _holding(database: Database, words: Words, near: set[int], select: str) -> list[tuple[Any, ...]]:
    """The rows of *select*, which begin with a place, that hold words of the person in any of their columns."""
    return [
        row[1:]
        for row in database.execute(select)
        if any(isinstance(text, str) and words.end(text, near=row[0] in near) is not None for text in row[2:])
    ]


def _scrub_records(database: Database, words: Words, near: set[int]) -> int:
    select = "SELECT r.place, c.id, c.turn, c.raw FROM records c JOIN runs r ON r.run_id = c.run_id"
    found = _holding(database, words, near, select)
    for row, turn, _ in found:
        role = "model" if '"role":"model"' in turn else "user"
        bare = dumps(Turn(role=role, parts=(Text(text=REMOVED),)))  # type: ignore[arg-type]
        database.execute("UPDATE records SET turn = ?, raw = NULL, removed = 1 WHERE id = ?", (bare, row))
    return len(found)


def _scrub_tools(database: Database, words: Words, near: set[int]) -> int:
    select = "SELECT r.place, t.id, t.call, t.result FROM tool_runs t JOIN runs r ON r.run_id = t.run_id"
    found = _holding(database, words, near, select)
    for row, call, result in found:
        asked = CALL.loads(call)
        bare = dumps(ToolCall(name=asked.name, id=asked.id))
        told = None if result is None else dumps(_removed_result(RESULT.loads(result)))
        database.execute("UPDATE tool_runs SET call = ?, result = ?, removed = 1 WHERE id = ?", (bare, told, row))
    return len(found)


def _removed_result(result: ToolResult) -> ToolResult:
    return ToolResult(name=result.name, id=result.id, value=REMOVED, failed=result.failed)


def _scrub_turns(database: Database, words: Words, near: set[int]) -> int:
    select = "SELECT m.place, t.message, t.turns FROM turns t JOIN messages m ON m.id = t.message"
    found = _holding(database, words, near, select)
    for row, _ in found:
        keep_event(database, row, "removed", None, None)
        database.execute("DELETE FROM turns WHERE message = ?", (row,))
    return len(found)


def _scrub_said(database: Database, words: Words, near: set[int]) -> int:
    """What the agent said that holds words of the person."""
    found = _holding(database, words, near, "SELECT place, id, parts FROM messages WHERE state = 'own'")
    bare = dumps((Text(text=REMOVED),))
    for row, _ in found:
        keep_event(database, row, "removed", None, None)
        database.execute("UPDATE events SET before = NULL WHERE message = ?", (row,))
        database.execute("DELETE FROM turns WHERE message = ?", (row,))
        update = "UPDATE messages SET text = ?, media = NULL, parts = ? WHERE id = ?"
        database.execute(update, (REMOVED, bare, row))
        indexing.reindex(database, row)
    return len(found)


def _scrub_replies(database: Database, words: Words, near: set[int]) -> int:
    found = _holding(database, words, near, "SELECT place, id, reply, turns, status FROM outbox")
    for row, reply, _, status in found:
        now = status if status in ("sent", "dropped") else "dropped"
        bare = dumps(Reply(place=REPLY.loads(reply).place, text=REMOVED))
        update = "UPDATE outbox SET text = ?, reply = ?, turns = '[]', status = ?, why = ? WHERE id = ?"
        database.execute(update, (REMOVED, bare, now, WHY, row))
    return len(found)


def _scrub_tasks(database: Database, words: Words, near: set[int]) -> int:
    found = _holding(database, words, near, "SELECT place, id, body FROM tasks")
    bare = {task.id: _removed_task(task) for task in (TASK.loads(body) for _, body in found)}
    for plan in tasks.plans(database, bare.values()):
        kept = tasks.plan_of(database, plan)
        tasks.keep(database, plan, kept, (bare.get(name, known.task) for name, known in kept.items()))
    return len(found)


def _removed_task(task: Task) -> Task:
    status = "cancelled" if task.status in ("pending", "running") else task.status
    return replace(task, args={}, status=status, why=WHY)


def _scrub_facts(database: Database, words: Words, near: set[int]) -> int:
    """What is remembered of others and holds words of the person."""
    found = _holding(database, words, near, "SELECT place, id, text FROM facts")
    retracting.remove(database, [row for row, _ in found])
    return len(found)
