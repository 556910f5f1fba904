"""Removes what a plan of forgetting names: each section in short transactions, in an order in which it can be resumed.

Rows that others refer to are emptied: the number and id of a message stay, so that a platform which delivers it again
adds nothing. What was derived from the person goes first. Their messages, names and direct chats are `OWN` and go last:
until then the plan, computed again, finds everything that is left.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.memory.forget import Key, Plan
from tertulia.memory.values import FactRules
from tertulia.messages import Author, Quote, Reply
from tertulia.run.chat_values import place_of_chat
from tertulia.store import chats, decisions, file_garbage, message_rows, prompts, search_index, tasks
from tertulia.store.database import Database
from tertulia.store.encoding import LEFT_OUT, MESSAGE, PLACE, QUOTE, REPLY, TASK, JsonType, clean, dumps
from tertulia.store.forget import retraction
from tertulia.store.identities import find_place, upsert_name
from tertulia.store.message_rows import insert_change
from tertulia.store.model_caches import drop_caches
from tertulia.tasks import graph
from tertulia.timezones import utc

_OF_RUNS = ("records", "tool_runs")  # tables of what a run showed and got, by `run_id`, beside its prompts and calls
REASON = "somebody it came from was forgotten"
NOBODY = Author(id="", name="")  # the author of emptied messages
COPIES_OF_TITLES: Mapping[str, tuple[str, str, JsonType[Any]]] = {
    "titles_in_tasks": ("tasks", "body", TASK),
    "titles_in_replies": ("outbox", "reply", REPLY),
    "titles_in_versions": ("message_changes", "before", MESSAGE),
}


class Work(Struct, frozen=True):
    """What is being removed, and when."""

    plan: Plan
    at: datetime
    rules: FactRules


class Remove(Protocol):
    def __call__(self, database: Database, keys: Sequence[Key], work: Work) -> None: ...


class Section(Struct, frozen=True):
    """How the rows of a section are removed."""

    remove: Remove
    at_once: int = 200  # rows in one transaction; 0: those with the same first column


def _delete(table: str, *columns: str) -> Section:
    """Delete rows by these columns, which are their key."""
    statement = f"DELETE FROM {table} WHERE {' AND '.join(f'{one} = :{one}' for one in columns)}"

    def remove(database: Database, keys: Sequence[Key], work: Work) -> None:
        database.many(statement, [dict(zip(columns, key, strict=True)) for key in keys])

    return Section(remove)


def _ids(keys: Iterable[Key]) -> list[Any]:
    return [key[0] for key in keys]


def _empty_updates(database: Database, keys: Sequence[Key], work: Work) -> None:
    database.run("UPDATE updates SET raw = NULL WHERE id IN (:rows)", rows=_ids(keys))


def _remove_descriptions(database: Database, keys: Sequence[Key], work: Work) -> None:
    _DESCRIPTIONS.remove(database, keys, work)
    select = """SELECT a.message FROM media a JOIN messages m ON m.id = a.message
        WHERE a.unique_id IN (:media) AND m.deleted = 0"""
    search_index.unindex(database, [message for (message,) in database.all(select, media=_ids(keys))])


def _remove_facts(database: Database, keys: Sequence[Key], work: Work) -> None:
    retraction.remove(database, _ids(keys), work.rules)


def _remove_sources(database: Database, keys: Sequence[Key], work: Work) -> None:
    select = """SELECT DISTINCT m.id FROM fact_sources s
        JOIN messages m ON m.place = s.place AND m.message_id = s.message_id WHERE s.id IN (:rows)"""
    messages = [row for (row,) in database.all(select, rows=_ids(keys))]
    retraction.remove_sources(database, messages, work.rules)


def _empty_titles(database: Database, keys: Sequence[Key], work: Work) -> None:
    """Remove titles from the rows that others refer to; the next message of the place brings the current one."""
    for row, body in database.all("SELECT id, body FROM titles WHERE id IN (:rows)", rows=_ids(keys)):
        bare = msgspec.to_builtins(replace(PLACE.loads(body), title="")) | {"removed_title": row}  # rows are unique
        database.run("UPDATE titles SET title = '', body = :body WHERE id = :row", body=dumps(bare), row=row)


def _empty_copies(section: str) -> Section:
    """Remove the titles in values that name a place."""
    table, column, kind = COPIES_OF_TITLES[section]

    def remove(database: Database, keys: Sequence[Key], work: Work) -> None:
        changed = []
        for row, text in database.all(f"SELECT id, {column} FROM {table} WHERE id IN (:rows)", rows=_ids(keys)):
            value = kind.loads(text)
            changed.append({"row": row, "text": dumps(replace(value, place=replace(value.place, title="")))})
        database.many(f"UPDATE {table} SET {column} = :text WHERE id = :row", changed)

    return Section(remove)


def _cancel_tasks(database: Database, keys: Sequence[Key], work: Work) -> None:
    select = "SELECT body FROM tasks WHERE id IN (:rows) AND place NOT IN (:direct)"
    found = [TASK.loads(body) for (body,) in database.all(select, rows=_ids(keys), direct=work.plan.direct)]
    tasks.change(database, {task.id: _cancelled(task) for task in found}, graph)


def _cancelled(task: Any) -> Any:
    status = "cancelled" if task.status in ("pending", "running") else task.status
    return replace(task, args={}, status=status, why=REASON)


def _empty_replies(database: Database, keys: Sequence[Key], work: Work) -> None:
    empty_replies(database, _ids(keys), REASON)


def empty_replies(database: Database, rows: Collection[int], why: str) -> None:
    """Empty replies and the errors of sending them, and drop those that are not sent.

    One that is just being sent may still arrive, but is in no prompt.
    """
    found = database.all("SELECT id, reply FROM outbox WHERE id IN (:rows)", rows=rows)
    bare = [(row, dumps(Reply(place=REPLY.loads(reply).place, text=""))) for row, reply in found]
    database.many(_EMPTY_REPLY, [{"row": row, "reply": reply, "why": why} for row, reply in bare])
    database.run(_EMPTY_ATTEMPTS, rows=rows)


_EMPTY_REPLY = """UPDATE outbox SET text = '', reply = :reply, turns = '[]', why = :why,
    status = CASE WHEN status = 'sent' THEN 'sent' ELSE 'dropped' END WHERE id = :row"""
_EMPTY_ATTEMPTS = """UPDATE delivery_attempts SET why = ''
    WHERE outgoing_id IN (SELECT outgoing_id FROM outbox WHERE id IN (:rows))"""


def _empty_turns_of_replies(database: Database, keys: Sequence[Key], work: Work) -> None:
    database.run("UPDATE outbox SET turns = '[]' WHERE id IN (:rows)", rows=_ids(keys))


def _remove_turns(database: Database, keys: Sequence[Key], work: Work) -> None:
    for message in _ids(keys):
        insert_change(database, message, "removed", None, None)
    database.run("DELETE FROM turns WHERE message IN (:messages)", messages=_ids(keys))


def _remove_exchanges(database: Database, keys: Sequence[Key], work: Work) -> None:
    """Remove exchanges of one chat, and what its runs showed that began since the plan was made."""
    name = str(keys[0][0])
    chats.remove_exchanges(database, name, [(int(start), int(stop)) for _, start, stop in keys])
    _remove_runs_of_chat(database, name)


def _end_exchanges(database: Database, keys: Sequence[Key], work: Work) -> None:
    for name in _ids(keys):
        _remove_runs_of_chat(database, name)
        chats.end_exchange(database, name, work.at)


def _remove_runs_of_chat(database: Database, name: str) -> None:
    select = "SELECT run_id FROM runs WHERE place = :place AND forgotten = 0"
    runs = database.all(select, place=find_place(database, place_of_chat(name)))
    remove_runs(database, [run for (run,) in runs])


def _empty_left_out(database: Database, keys: Sequence[Key], work: Work) -> None:
    """Remove the ids of facts that were left out of prompts; their number stays."""
    changed = []
    for row, text in database.all("SELECT id, left_out FROM prompts WHERE id IN (:rows)", rows=_ids(keys)):
        left = [replace(one, ids=(), text="") if one.source == "background" else one for one in LEFT_OUT.loads(text)]
        changed.append({"row": row, "text": dumps(left)})
    database.many("UPDATE prompts SET left_out = :text WHERE id = :row", changed)


def _remove_runs(database: Database, keys: Sequence[Key], work: Work) -> None:
    runs = database.all("SELECT run_id FROM runs WHERE id IN (:rows)", rows=_ids(keys))
    remove_runs(database, [run for (run,) in runs])


def remove_runs(database: Database, runs: Collection[str]) -> None:
    """Remove what these runs showed and got; that there were such runs stays."""
    for table in _OF_RUNS:
        database.run(f"DELETE FROM {table} WHERE run_id IN (:runs)", runs=runs)
    prompts.remove_prompts(database, list(runs), None)
    database.run("UPDATE runs SET why = '', forgotten = 1 WHERE run_id IN (:runs)", runs=runs)


def _empty_forwards(database: Database, keys: Sequence[Key], work: Work) -> None:
    retraction.retract(database, _ids(keys), work.rules)
    for row in _ids(keys):
        empty_message(database, row, work.at, with_quote=False)


def _empty_answers(database: Database, keys: Sequence[Key], work: Work) -> None:
    for row in _outside(database, _ids(keys), work.plan):
        empty_message(database, row, work.at)


def _outside(database: Database, rows: Sequence[int], plan: Plan) -> list[int]:
    """Return the messages that are not in a direct chat of the person, which goes as a whole."""
    select = "SELECT id FROM messages WHERE id IN (:rows) AND place NOT IN (:direct) ORDER BY id"
    return [row for (row,) in database.all(select, rows=rows, direct=plan.direct)]


def empty_message(database: Database, row: int, at: datetime, *, with_quote: bool = True) -> None:
    """Empty a message, and its quote; its number and id stay."""
    insert_change(database, row, "removed", at, None)
    for statement in _EMPTY_MESSAGE:
        database.run(statement, row=row)
    if with_quote:
        database.run("UPDATE messages SET reply_to = NULL, reply_author = NULL, reply = NULL WHERE id = :row", row=row)
    message_rows.empty_parts(database, row)
    decisions.end_waiting(database, [row], "forgotten", at)
    search_index.unindex(database, [row])


_EMPTY_MESSAGE = (  # all that a message has but its quote
    "UPDATE message_changes SET before = NULL WHERE message = :row",
    "DELETE FROM turns WHERE message = :row",
    "DELETE FROM media WHERE message = :row",
    "DELETE FROM hidden_sentences WHERE message = :row",
    "DELETE FROM recalled WHERE message = :row",
    """UPDATE messages SET text = '', media = NULL, parts = '[]', edited_at = NULL, deleted = 1, hidden = 0,
        album = NULL, forwarded_from = NULL, forward_author = NULL WHERE id = :row""",
)


def _reduce_quotes(database: Database, keys: Sequence[Key], work: Work) -> None:
    """Reduce quotes to the id of the quoted message."""
    for row, reply in database.all("SELECT id, reply FROM messages WHERE id IN (:rows) ORDER BY id", rows=_ids(keys)):
        insert_change(database, row, "removed", work.at, None)
        bare = dumps(Quote(message_id=QUOTE.loads(reply).message_id))
        database.run("UPDATE messages SET reply = :bare, reply_author = NULL WHERE id = :row", bare=bare, row=row)


def _reduce_quotes_in_versions(database: Database, keys: Sequence[Key], work: Work) -> None:
    changed = []
    for row, before in database.all("SELECT id, before FROM message_changes WHERE id IN (:rows)", rows=_ids(keys)):
        message = MESSAGE.loads(before)
        bare = replace(message, reply_to=message.reply_to and Quote(message_id=message.reply_to.message_id))
        changed.append({"row": row, "text": dumps(bare)})
    database.many("UPDATE message_changes SET before = :text WHERE id = :row", changed)


def _empty_messages(database: Database, keys: Sequence[Key], work: Work) -> None:
    rows = _outside(database, _ids(keys), work.plan)
    nobody = upsert_name(database, work.plan.platform, NOBODY, None) if rows else 0
    for row in rows:
        database.run("UPDATE messages SET name = :nobody, sent_at = NULL WHERE id = :row", nobody=nobody, row=row)
        empty_message(database, row, work.at)


def _remove_files(database: Database, keys: Sequence[Key], work: Work) -> None:
    file_garbage.remove_files(database, _ids(keys))


def _detach_usage(database: Database, keys: Sequence[Key], work: Work) -> None:
    rows = _ids(keys)
    database.run(
        "UPDATE usage SET author = NULL WHERE id IN (:rows) AND author = :author", rows=rows, author=work.plan.author
    )
    database.run(
        "UPDATE usage SET place = NULL WHERE id IN (:rows) AND place IN (:direct)", rows=rows, direct=work.plan.direct
    )


def _nothing(database: Database, keys: Sequence[Key], work: Work) -> None:
    """Remove nothing: these rows go with others, and are in the plan because they are shown."""


_DESCRIPTIONS = _delete("descriptions", "unique_id", "made_by")
_SHOWN = Section(_nothing)

DERIVED: Mapping[str, Section] = {
    "updates": Section(_empty_updates),
    "events": _delete("place_events", "id"),
    "tasks": Section(_cancel_tasks, at_once=50),
    "answers": Section(_empty_answers, at_once=10),
    "turns": Section(_remove_turns),
    "replies": Section(_empty_replies),
    "turns_of_replies": Section(_empty_turns_of_replies),
    "facts_about_others": Section(_remove_facts, at_once=10),
    "facts": Section(_remove_facts, at_once=10),
    "proposals": _SHOWN,
    "sources": Section(_remove_sources, at_once=10),
    "summaries": _delete("summaries", "id"),
    "summaries_of_others": _delete("summaries", "id"),
    "episodes": _delete("episodes", "id"),
    "episodes_of_others": _delete("episodes", "id"),
    "window_summaries": _delete("window_pasts", "id"),
    "titles": Section(_empty_titles),
    **{section: _empty_copies(section) for section in COPIES_OF_TITLES},
    "left_out": Section(_empty_left_out),
    "runs": Section(_remove_runs, at_once=5),
    "exchanges": Section(_remove_exchanges, at_once=0),
    "exchanges_of_others": Section(_remove_exchanges, at_once=0),
    "open_exchanges": Section(_end_exchanges, at_once=1),
    "calls": _delete("calls", "id"),
    "prompts": _SHOWN,
    "records": _SHOWN,
    "tool_runs": _SHOWN,
}
OWN: Mapping[str, Section] = {
    "descriptions": Section(_remove_descriptions, at_once=20),
    "media_without_description": _delete("description_failures", "unique_id", "made_by"),
    "description_positions": _delete("description_positions", "unique_id", "made_by", "place"),
    "media_without_file": _SHOWN,
    "texts_of_files": _SHOWN,
    "files_at_services": _SHOWN,
    "files": Section(_remove_files, at_once=50),
    "media_files": _delete("media_files", "unique_id"),
    "quotes": Section(_reduce_quotes),
    "quotes_in_versions": Section(_reduce_quotes_in_versions),
    "forwards": Section(_empty_forwards, at_once=25),
    "earlier_versions": _SHOWN,
    "hidden_sentences": _SHOWN,
    "messages": Section(_empty_messages, at_once=10),
    "fact_exclusions": _delete("fact_exclusions", "about", "digest"),
    "cap_notices": _delete("cap_notices", "day", "place", "author"),
    "usage": Section(_detach_usage),
    "reactions": _delete("reactions", "id"),
    "commands": _delete("commands", "id"),
    "places": _SHOWN,  # `remove_place_part` removes them
    "chats": _delete("chats", "name"),
    "blocks": _SHOWN,  # hidden until the end
    "names": _SHOWN,  # `remove_person` removes them
}


def remove_place_part(database: Database, place: int, at_once: int = 100) -> bool:
    """Remove the oldest messages or runs of a place, and when there are none, the place; return whether it is gone."""
    oldest = "SELECT id, number FROM messages WHERE place = :place ORDER BY number LIMIT :most"
    if found := database.all(oldest, place=place, most=at_once):
        _remove_messages(database, place, found)
        return False
    runs = database.all(
        "SELECT run_id FROM runs WHERE place = :place ORDER BY id LIMIT :most", place=place, most=at_once
    )
    if runs:
        some = [run for (run,) in runs]
        remove_runs(database, some)
        for table in ("proposals", "runs"):
            database.run(f"DELETE FROM {table} WHERE run_id IN (:some)", some=some)
        return False
    for statement in _EMPTY_PLACE:
        database.run(statement, place=place)
    return True


_EMPTY_PLACE = (  # what is left of a place without messages and runs; tables that are referred to come last
    "UPDATE usage SET place = NULL WHERE place = :place",
    *(
        f"DELETE FROM {table} WHERE place = :place"
        for table in (
            "outbox tasks fact_sources facts summaries episodes window_pasts reading_cursors reactions "
            "description_positions search_terms search_vectors search_messages search_stale search_progress "
            "search_places message_changes message_parts titles"
        ).split()
    ),
    "DELETE FROM places WHERE id = :place",
)


def _remove_messages(database: Database, place: int, found: Sequence[Sequence[Any]]) -> None:
    rows, last = [row for row, _ in found], found[-1][1]
    for table in ("search_terms", "search_vectors", "search_messages", "search_stale"):
        database.run(f"DELETE FROM {table} WHERE place = :place AND number <= :last", place=place, last=last)
    for table in ("turns", "media", "message_changes", "message_parts", "reactions"):
        database.run(f"DELETE FROM {table} WHERE message IN (:rows)", rows=rows)
    database.run("DELETE FROM messages WHERE id IN (:rows)", rows=rows)


def remove_place(database: Database, place: int) -> None:
    """Remove a place with all its rows."""
    while not remove_place_part(database, place, at_once=10_000):
        pass


# Whether a person is being forgotten already.
_IS_HIDDEN = "SELECT 1 FROM forgets WHERE platform = :platform AND author_id = :author_id AND state = 'removing'"


def hide_person(database: Database, plan: Plan, at: datetime) -> None:
    """Store that a person is being forgotten, and hide them as a blocked author is hidden.

    The newest message of each place is hidden as well: so a prompt that was built and not sent yet is built again.
    """
    person = {"platform": clean(plan.platform), "author_id": clean(plan.author_id)}
    if not database.one(_IS_HIDDEN, **person):
        begin = "INSERT INTO forgets (platform, author_id, at, state) VALUES (:platform, :author_id, :at, 'removing')"
        database.insert(begin, **person, at=utc(at).isoformat())
    drop_caches(database)
    if plan.author is None:
        return
    block = (
        "INSERT INTO blocked_authors (author, at) VALUES (:author, :at) ON CONFLICT (author) DO UPDATE SET until = NULL"
    )
    database.run(block, author=plan.author, at=utc(at).isoformat())
    newest = """SELECT max(m.id) FROM messages m JOIN names n ON n.id = m.name
        WHERE n.author = :author GROUP BY m.place"""
    hide_messages(database, [row for (row,) in database.all(newest, author=plan.author)], at)


def hide_messages(database: Database, rows: Sequence[Any], at: datetime) -> None:
    """Hide messages: what was read of them and is not stored yet is refused."""
    update = "UPDATE messages SET hidden = 1 WHERE id IN (:rows) AND hidden = 0 RETURNING id"
    hidden = sorted(row for (row,) in database.all(update, rows=rows))
    for row in hidden:
        insert_change(database, row, "removed", at, None)
    search_index.unindex(database, hidden)


def withdraw_runs(database: Database, plan: Plan) -> None:
    """Remove what the open runs of a plan showed: they cannot go on."""
    rows = _ids(plan.rows.get("runs", ()))
    select = "SELECT run_id FROM runs WHERE status = 'open' AND id IN (:rows)"
    remove_runs(database, [run for (run,) in database.all(select, rows=rows)])


def remove_person(database: Database, author: int) -> bool:
    """Remove the names and the row of a person; return False where something written meanwhile names them."""
    if database.one(_NAMED, author=author):
        return False
    for statement in _REMOVE_PERSON:
        database.run(statement, author=author)
    return True


# Something that names a person.
_NAMED = """SELECT 1 FROM messages m JOIN names n ON n.id = m.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM reactions r JOIN names n ON n.id = r.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM commands c JOIN names n ON n.id = c.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM facts WHERE about = :author UNION ALL SELECT 1 FROM summaries WHERE about = :author
    UNION ALL SELECT 1 FROM messages WHERE reply_author = :author
    UNION ALL SELECT 1 FROM messages WHERE forward_author = :author
    UNION ALL SELECT 1 FROM usage WHERE author = :author LIMIT 1"""
_REMOVE_PERSON = (
    "DELETE FROM names WHERE author = :author",
    "DELETE FROM blocked_authors WHERE author = :author",
    "DELETE FROM fact_exclusions WHERE about = :author",
    "DELETE FROM cap_notices WHERE author = :author",
    "DELETE FROM authors WHERE id = :author",
)
