"""The sections of a plan of forgetting: where their rows are, how they are found, removed and shown.

Each section is removed in short transactions, in an order in which it can be resumed. Rows that others refer to are
emptied: the number and id of a message stay, so that a platform which delivers it again adds nothing. What was derived
from the person goes first. Their messages, names and direct chats are `OWN` and go last: until then the plan, computed
again, finds everything that is left.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.values import LeftOut
from tertulia.engine.rooms import PLATFORM
from tertulia.memory.forget import Key, Plan
from tertulia.memory.values import FactRules
from tertulia.messages import Author, Message, Quote, Reply
from tertulia.run.chat_values import place_of_chat
from tertulia.store import chats, decisions, events, file_garbage, prompts, search_index, tasks
from tertulia.store.database import Database, insert_into, insert_row
from tertulia.store.encoding import PLACE, REPLY, clean, dumps
from tertulia.store.forget import retraction
from tertulia.store.identities import find_place, upsert_name
from tertulia.store.json_columns import rewrite
from tertulia.store.message_rows import insert_changes
from tertulia.store.model_caches import drop_caches
from tertulia.tasks import graph
from tertulia.tasks.task import PlanRules, Task
from tertulia.timezones import utc

REASON = "somebody it came from was forgotten"
NOBODY = Author(id="", name="")  # the author of emptied messages
_CONTENT = "message_id sent_at received_at edited_at deleted hidden album parts reply forwarded_from"


class Work(Struct, frozen=True):
    """What is being removed, and when."""

    plan: Plan
    at: datetime
    rules: FactRules


# Removes rows, given by their keys; a key of one column is the value of that.
Remove = Callable[[Database, Sequence[Any], Work], object]


class Section(Struct, frozen=True):
    """Rows of a plan: where they are, what is shown of them, how they are removed."""

    table: str = ""
    shown: str = ""  # columns of the export
    remove: Remove | None = None  # None: the rows are deleted
    at_once: int = 200  # rows removed in one transaction; 0: those with the same first column
    key: str = "id"
    by: str = ""  # the condition that finds them; its list is what the planner found of that name

    @property
    def find(self) -> str:
        return f"SELECT {', '.join(self.key.split())} FROM {self.table} WHERE {self.by} ORDER BY 1"

    def apply(self, database: Database, keys: Sequence[Key], work: Work) -> None:
        """Remove some rows."""
        columns = self.key.split()
        if self.remove:
            self.remove(database, keys if len(columns) > 1 else [row for (row,) in keys], work)
            return
        statement = f"DELETE FROM {self.table} WHERE {' AND '.join(f'{one} = :{one}' for one in columns)}"
        database.many(statement, [dict(zip(columns, key, strict=True)) for key in keys])


def _run(*statements: str) -> Remove:
    """Remove by statements over the ids of rows, the person and their direct chats."""

    def remove(database: Database, rows: Sequence[Any], work: Work) -> None:
        for statement in statements:
            database.run(statement, rows=rows, author=work.plan.author, direct=work.plan.direct)

    return remove


def _rewrite(table: str, column: str, change: Callable[[Any], Any]) -> Remove:
    """Remove what a value no longer has when it is changed."""
    return lambda database, rows, work: rewrite(database, table, column, change, "id IN (:rows)", rows=rows)


def _remove_descriptions(database: Database, rows: Sequence[Any], work: Work) -> None:
    Section("descriptions", key="unique_id made_by").apply(database, rows, work)
    select = """SELECT a.message FROM media a JOIN messages m ON m.id = a.message
        WHERE a.unique_id IN (:media) AND m.deleted = 0"""
    media = [unique_id for unique_id, _ in rows]
    search_index.unindex(database, [message for (message,) in database.all(select, media=media)])


def _remove_facts(database: Database, rows: Sequence[Any], work: Work) -> None:
    retraction.remove(database, rows, work.rules, work.plan.author)


def _remove_sources(database: Database, rows: Sequence[Any], work: Work) -> None:
    select = """SELECT DISTINCT m.id FROM fact_sources s
        JOIN messages m ON m.place = s.place AND m.message_id = s.message_id WHERE s.id IN (:rows)"""
    messages = [row for (row,) in database.all(select, rows=rows)]
    retraction.remove_sources(database, messages, work.rules)


# The next message of a room would bring the title back.
_EMPTY_ROOM_TITLES = """UPDATE rooms SET title = '' WHERE room_id IN (
    SELECT p.place_id FROM titles t JOIN places p ON p.id = t.place WHERE t.id IN (:rows) AND p.platform = :web)"""


def _empty_titles(database: Database, rows: Sequence[Any], work: Work) -> None:
    """Remove titles from the rows that others refer to; the next message of the place brings the current one."""
    titles = database.all("SELECT id, body FROM titles WHERE id IN (:rows)", rows=rows)
    bare = [msgspec.to_builtins(replace(PLACE.loads(body), title="")) | {"removed_title": row} for row, body in titles]
    empty = [{"row": one["removed_title"], "body": dumps(one)} for one in bare]  # the row makes each another one
    database.many("UPDATE titles SET title = '', body = :body WHERE id = :row", empty)
    database.run(_EMPTY_ROOM_TITLES, rows=rows, web=PLATFORM)


def _without_title(value: Any) -> Any:
    return replace(value, place=replace(value.place, title=""))


def _cancel_tasks(database: Database, rows: Sequence[Any], work: Work) -> None:
    cancel_tasks(database, "id IN (:rows) AND place NOT IN (:direct)", graph, rows=rows, direct=work.plan.direct)


def cancel_tasks(database: Database, which: str, rules: PlanRules, why: str = REASON, **values: Any) -> None:
    """Empty the tasks of a WHERE clause; those that have not ended are cancelled."""
    found = tasks.select_tasks(database, f"WHERE {which}", **values)
    tasks.change(database, {task.id: _cancelled(task, why) for task in found}, rules)


def _cancelled(task: Task, why: str) -> Task:
    status = "cancelled" if task.status in ("pending", "running") else task.status
    return replace(task, args={}, status=status, why=why)


def empty_replies(database: Database, rows: Sequence[int], why: str = REASON) -> None:
    """Empty replies and the errors of sending them; those that are not sent are dropped.

    One that is just being sent may still arrive.
    """
    found = database.all("SELECT id, place, reply FROM outbox WHERE id IN (:rows)", rows=rows)
    empty = [(row, Reply(place=REPLY.loads(reply).place, text="")) for row, _, reply in found]
    database.many(_EMPTY_REPLY, [{"row": row, "reply": dumps(reply), "why": why} for row, reply in empty])
    database.run(_EMPTY_ATTEMPTS, rows=rows)
    events.add_place_changes(database, {place for _, place, _ in found})


_EMPTY_REPLY = """UPDATE outbox SET text = '', reply = :reply, turns = '[]', why = :why,
    status = CASE WHEN status = 'sent' THEN 'sent' ELSE 'dropped' END WHERE id = :row"""
_EMPTY_ATTEMPTS = """UPDATE delivery_attempts SET why = ''
    WHERE outgoing_id IN (SELECT outgoing_id FROM outbox WHERE id IN (:rows))"""


def _remove_turns(database: Database, rows: Sequence[Any], work: Work) -> None:
    insert_changes(database, rows, "removed", None)
    database.run("DELETE FROM turns WHERE message IN (:messages)", messages=rows)


def _remove_exchanges(database: Database, rows: Sequence[Any], work: Work) -> None:
    """Remove exchanges of one chat, and what its runs showed that began since the plan was made."""
    name = rows[0][0]
    chats.remove_exchanges(database, name, [(start, stop) for _, start, stop in rows])
    _remove_runs_of_chat(database, name)


def _end_exchanges(database: Database, rows: Sequence[Any], work: Work) -> None:
    for name in rows:
        _remove_runs_of_chat(database, name)
        chats.end_exchange(database, name, work.at)


def _remove_runs_of_chat(database: Database, name: str) -> None:
    remove_runs(database, "place = :place AND forgotten = 0", place=find_place(database, place_of_chat(name)))


def _without_facts(left: Sequence[LeftOut]) -> list[LeftOut]:
    """Return reports of what was left out of a prompt without the ids of facts; their number stays."""
    return [replace(one, ids=(), text="") if one.source == "background" else one for one in left]


def remove_runs(database: Database, which: str, **values: Any) -> None:
    """Remove what the runs of a WHERE clause showed and got; that there were such runs stays."""
    runs = [run for (run,) in database.all(f"SELECT run_id FROM runs WHERE {which}", **values)]
    for table in ("records", "tool_runs"):
        database.run(f"DELETE FROM {table} WHERE run_id IN (:runs)", runs=runs)
    prompts.remove_prompts(database, runs, None)
    update = "UPDATE runs SET why = '', forgotten = 1 WHERE run_id IN (:runs) RETURNING place"
    events.add_place_changes(database, {place for (place,) in database.all(update, runs=runs)})


def _empty_forwards(database: Database, rows: Sequence[Any], work: Work) -> None:
    retraction.retract(database, rows, work.rules)
    empty_messages(database, rows, work.at)


def _empty_answers(database: Database, rows: Sequence[Any], work: Work) -> None:
    others = _outside(database, rows, work.plan)
    empty_messages(database, others, work.at)
    database.run(_REMOVE_QUOTES, rows=others)


def _outside(database: Database, rows: Sequence[int], plan: Plan) -> list[int]:
    """Return the messages that are not in a direct chat of the person, which goes as a whole."""
    select = "SELECT id FROM messages WHERE id IN (:rows) AND place NOT IN (:direct) ORDER BY id"
    return [row for (row,) in database.all(select, rows=rows, direct=plan.direct)]


def empty_messages(database: Database, rows: Sequence[int], at: datetime) -> None:
    """Empty messages but for their quotes; their numbers and ids stay."""
    insert_changes(database, rows, "removed", at)
    for statement in _EMPTY_MESSAGES:
        database.run(statement, rows=rows)
    decisions.end_waiting(database, rows, "forgotten", at)
    search_index.unindex(database, rows)


_EMPTY_MESSAGES = (
    "UPDATE message_changes SET before = NULL WHERE message IN (:rows)",
    "UPDATE message_parts SET content = '[]' WHERE message IN (:rows)",
    *(f"DELETE FROM {table} WHERE message IN (:rows)" for table in ("turns", "media", "hidden_sentences", "recalled")),
    """UPDATE messages SET text = '', media = NULL, parts = '[]', edited_at = NULL, deleted = 1, hidden = 0,
        album = NULL, forwarded_from = NULL, forward_author = NULL WHERE id IN (:rows)""",
)
_REMOVE_QUOTES = "UPDATE messages SET reply_to = NULL, reply_author = NULL, reply = NULL WHERE id IN (:rows)"


def _reduce_quotes(database: Database, rows: Sequence[Any], work: Work) -> None:
    database.run("UPDATE messages SET reply_author = NULL WHERE id IN (:rows)", rows=rows)
    retraction.strip_quotes(database, rows, work.at, _bare)


def _bare(quote: Quote) -> Quote:
    return Quote(message_id=quote.message_id)


def _with_bare_quote(message: Message) -> Message:
    return replace(message, reply_to=message.reply_to and _bare(message.reply_to))


def _empty_own(database: Database, rows: Sequence[Any], work: Work) -> None:
    others = _outside(database, rows, work.plan)
    nobody = upsert_name(database, work.plan.platform, NOBODY, None) if others else 0
    database.run("UPDATE messages SET name = :nobody, sent_at = NULL WHERE id IN (:rows)", nobody=nobody, rows=others)
    _empty_answers(database, others, work)


_SHOWN = _run()  # they go with others, and are in the plan because they are shown
_detach_usage = _run("UPDATE usage SET author = NULL WHERE id IN (:rows) AND author = :author")
_reduce_quotes_in_versions = _rewrite("message_changes", "before", _with_bare_quote)
_OF_PERSON = "author = :author OR place IN (:direct)"
_BY_NAME = "name IN (SELECT id FROM names WHERE author = :author)"
# A person who is blocked by somebody, and not because they are being forgotten.
_BLOCKED = """author = :author AND NOT EXISTS (
    SELECT 1 FROM forgets f JOIN authors a ON a.platform = f.platform AND a.author_id = f.author_id
    WHERE a.id = blocked_authors.author AND f.at = blocked_authors.at)"""
_UPDATES = "raw IS NOT NULL AND id IN (SELECT update_row FROM update_places WHERE place IN (:near))"
_EVENTS = """place IN (:direct) OR (place IN (:near) AND body LIKE '{"kind":"facts learned"%')"""
_SUMMARIES = "about = :author OR place IN (:direct)"
_CHANGED = "place IN (:near) OR about IN (SELECT about FROM facts WHERE id IN (:changed_facts))"
_EPISODES = "place IN (:direct) OR id IN (SELECT episode FROM episode_people WHERE author = :author)"
# Episodes with one of some messages, and summaries of what precedes a window after one of them.
_SPANNING = """id IN (SELECT e.id FROM messages m JOIN episodes e ON e.place = m.place AND e.start <= m.number
    AND e.stop > m.number WHERE m.id IN (:touched))"""
_FOLLOWING = """place IN (:direct) OR id IN (SELECT w.id FROM messages m JOIN window_pasts w ON w.place = m.place
    AND w.start > m.number WHERE m.id IN (:touched))"""
_SENTENCES = f"message IN (SELECT id FROM messages WHERE {_BY_NAME})"
_FACT = "place fact_id key text scope confidence learned_at valid_from valid_until superseded_by imported_from"
_EPISODE = "place episode_id began_at ended_at"
_CALL = "place purpose run_id model answered_by begun_at ended_at status why input output money"
_REPLY = "place outgoing_id kind status made_at sent_at reply"
_RUN = "place run_id began_at ended_at status model prompts_removed_at"
_FILE = "sha256 mime size width height seconds pages at used_at"
_HANDLE = "sha256 account name uri at expires_at"
_USAGE = "day place model calls input cached output thought money"
_MADE = "unique_id made_by"
COPIES_OF_TITLES = {
    "titles_in_tasks": ("tasks", "body"),
    "titles_in_replies": ("outbox", "reply"),
    "titles_in_versions": ("message_changes", "before"),
}

# The sections in the order in which they are removed; an export shows the last ones first.
DERIVED = {
    "updates": Section("updates", remove=_run("UPDATE updates SET raw = NULL WHERE id IN (:rows)"), by=_UPDATES),
    "events": Section("place_events", by=_EVENTS),
    "tasks": Section("tasks", "place status", _cancel_tasks, 50),
    "answers": Section("messages", f"place {_CONTENT}", _empty_answers, 10),
    "turns": Section(remove=_remove_turns),
    "replies": Section("outbox", _REPLY, lambda database, rows, work: empty_replies(database, rows)),
    "turns_of_replies": Section(
        "outbox",
        remove=_run("UPDATE outbox SET turns = '[]' WHERE id IN (:rows)"),
        by="run_id IN (:runs) AND turns <> '[]'",
    ),
    "facts_about_others": Section("facts", "place fact_id learned_at", _remove_facts, 10),
    "facts": Section("facts", _FACT, _remove_facts, 10),
    "proposals": Section("proposals", "run_id until", _SHOWN, by="fact IN (:facts)"),
    "sources": Section(remove=_remove_sources, at_once=10),
    "summaries_of_others": Section("summaries", "place made_at", by=f"({_CHANGED}) AND NOT ({_SUMMARIES})"),
    "summaries": Section("summaries", "place text made_at", by=_SUMMARIES),
    "episodes_of_others": Section("episodes", _EPISODE, by=f"{_SPANNING} AND NOT ({_EPISODES})"),
    "episodes": Section("episodes", f"{_EPISODE} topic summary tags", by=_EPISODES),
    "window_summaries": Section("window_pasts", "place", by=_FOLLOWING),
    "titles": Section("titles", "place title", _empty_titles),
    **{name: Section(remove=_rewrite(*column, _without_title)) for name, column in COPIES_OF_TITLES.items()},
    "left_out": Section(remove=_rewrite("prompts", "left_out", _without_facts)),
    "runs": Section(
        "runs",
        _RUN,
        lambda database, rows, work: remove_runs(database, "id IN (:rows)", rows=rows),
        5,
        by="run_id IN (:runs) AND forgotten = 0",
    ),
    **dict.fromkeys(
        ("exchanges", "exchanges_of_others"), Section(key="chat start stop", remove=_remove_exchanges, at_once=0)
    ),
    "open_exchanges": Section(remove=_end_exchanges, at_once=1),
    "calls": Section("calls", _CALL, by=f"run_id IN (:runs) OR {_OF_PERSON}"),
    **{one: Section(one, remove=_SHOWN, by="run_id IN (:runs)") for one in ("prompts", "records", "tool_runs")},
}
OWN = {
    "descriptions": Section(
        "descriptions", f"{_MADE} text at", _remove_descriptions, 20, key=_MADE, by="unique_id IN (:media)"
    ),
    "media_without_description": Section(
        "description_failures", f"{_MADE} why failures", key=_MADE, by="unique_id IN (:media)"
    ),
    "description_positions": Section("description_positions", key=f"{_MADE} place"),
    "media_without_file": Section(
        "media_files",
        "unique_id failure failures at",
        _SHOWN,
        key="unique_id",
        by="unique_id IN (:media) AND sha256 IS NULL",
    ),
    "texts_of_files": Section(
        "file_forms", "form text", _SHOWN, key="source form", by="source IN (:files) AND text <> ''"
    ),
    "files_at_services": Section(
        "handles", _HANDLE, _SHOWN, key="account name", by="sha256 IN (:files) AND unwanted = 0"
    ),
    "files": Section(
        "files",
        _FILE,
        lambda database, rows, work: file_garbage.remove_files(database, rows),
        50,
        key="sha256",
        by="sha256 IN (:files)",
    ),
    "media_files": Section("media_files", key="unique_id", by="unique_id IN (:media)"),
    "quotes_in_versions": Section("message_changes", "place before", _reduce_quotes_in_versions),
    "quotes": Section("messages", "place message_id reply", _reduce_quotes),
    "forwards": Section("messages", "place message_id forwarded_from parts", _empty_forwards, 25),
    "earlier_versions": Section(
        "message_changes", "place kind at before", _SHOWN, by="before IS NOT NULL AND message IN (:messages)"
    ),
    "hidden_sentences": Section("hidden_sentences", "text", _SHOWN, key="message", by=_SENTENCES),
    "messages": Section("messages", f"place {_CONTENT}", _empty_own, 10, by=_BY_NAME),
    "fact_exclusions": Section("fact_exclusions", "digest", key="about digest", by="about = :author"),
    "cap_notices": Section("cap_notices", "place day", key="day place author", by="author = :author"),
    "usage": Section("usage", _USAGE, _detach_usage, by=_OF_PERSON),
    "reactions": Section("reactions", "place message_id emojis at", by=_BY_NAME),
    "rooms": Section("room_guests", "name joined_at", by="author = :author"),
    "agents": Section(
        "agents",
        "name text at removed_at",
        _run("UPDATE agents SET author = NULL WHERE id IN (:rows)"),
        by="author = :author",
    ),
    "commands": Section("commands", "place command argument message", by=_BY_NAME),
    "places": Section("places", remove=_SHOWN, by="id IN (:direct)"),  # `remove_place_part` removes them
    "chats": Section("chats", "name exchange", key="name"),
    "blocks": Section("blocked_authors", remove=_SHOWN, key="author", by=_BLOCKED),  # hidden until the end
    "names": Section("names", "name username seen_at", _SHOWN, by="author = :author"),  # `remove_person` removes them
}
SECTIONS = DERIVED | OWN


def remove_place_part(database: Database, place: int, since: int, at_once: int = 50) -> bool:
    """Remove some messages, runs or other rows of a place, or the place; return whether it is gone.

    Of its events only those after the one with the row *since* are removed with it.
    """
    for table in ("messages", "runs", *_IN_PLACE):
        select = f"SELECT id FROM {table} WHERE place = :place LIMIT :most"
        if rows := [row for (row,) in database.all(select, place=place, most=at_once)]:
            if table == "messages":
                _remove_from_index(database, place, rows)
            elif table == "runs":
                remove_runs(database, "id IN (:some)", some=rows)
            database.run(f"DELETE FROM {table} WHERE id IN (:rows)", rows=rows)
            return False
    database.run("DELETE FROM place_events WHERE place = :place AND id > :since", place=place, since=since)
    for statement in _EMPTY_PLACE:
        database.run(statement, place=place)
    database.cache.clear()
    return True


_IN_PLACE = ("outbox", "tasks", "fact_sources", "facts", "summaries", "episodes")  # what refers to others comes first
_INDEX = ("search_terms", "search_vectors", "search_messages", "search_stale")
_EMPTY_PLACE = (  # what is left of a place that has none of these any more
    "UPDATE usage SET place = NULL WHERE place = :place",
    *(
        f"DELETE FROM {table} WHERE place = :place"
        for table in ("reading_cursors", "description_positions", *_INDEX, "search_progress", "search_places", "titles")
    ),
    "DELETE FROM places WHERE id = :place",
)


def _remove_from_index(database: Database, place: int, rows: Sequence[int]) -> None:
    numbers = [number for (number,) in database.all("SELECT number FROM messages WHERE id IN (:rows)", rows=rows)]
    for table in _INDEX:
        database.run(f"DELETE FROM {table} WHERE place = :place AND number IN (:numbers)", place=place, numbers=numbers)


def remove_place(database: Database, place: int) -> None:
    """Remove a place with all its rows."""
    while not remove_place_part(database, place, 0, at_once=10_000):
        pass


# Whether a person is being forgotten already.
_IS_HIDDEN = "SELECT 1 FROM forgets WHERE platform = :platform AND author_id = :author_id AND state = 'removing'"


def newest_messages(database: Database, author: int, since: int = 0) -> list[int]:
    """Return the newest message of a person in each place, of those with a row after *since*."""
    select = """SELECT max(m.id) FROM messages m JOIN names n ON n.id = m.name
        WHERE n.author = :author AND m.id > :since GROUP BY m.place"""
    return [row for (row,) in database.all(select, author=author, since=since)]


def hide_person(database: Database, plan: Plan, at: datetime, newest: Sequence[int]) -> None:
    """Store that a person is being forgotten, and hide them as a blocked author is hidden.

    The *newest* message of each place is hidden as well, or one that came since: so a prompt that was built and not
    sent yet is built again.
    """
    person = {"platform": clean(plan.platform), "author_id": clean(plan.author_id)}
    if not database.one(_IS_HIDDEN, **person):
        insert_row(database, "forgets", **person, at=utc(at).isoformat(), state="removing")
    drop_caches(database)
    if plan.author is None:
        return
    block = f"{insert_into('blocked_authors', 'author', 'at')} ON CONFLICT (author) DO UPDATE SET until = NULL"
    database.run(block, author=plan.author, at=utc(at).isoformat())
    later = newest_messages(database, plan.author, max(newest, default=0))
    retraction.hide_messages(database, [*newest, *later], at)


def remove_person(database: Database, author: int) -> bool:
    """Remove the row of a person, with their names; return False where something written meanwhile names them."""
    if database.one(_NAMED, author=author):
        return False
    database.run("DELETE FROM authors WHERE id = :author", author=author)
    return True


# Something that names a person.
_NAMED = """SELECT 1 FROM messages m JOIN names n ON n.id = m.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM reactions r JOIN names n ON n.id = r.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM commands c JOIN names n ON n.id = c.name WHERE n.author = :author
    UNION ALL SELECT 1 FROM facts WHERE about = :author UNION ALL SELECT 1 FROM summaries WHERE about = :author
    UNION ALL SELECT 1 FROM messages WHERE reply_author = :author
    UNION ALL SELECT 1 FROM messages WHERE forward_author = :author
    UNION ALL SELECT 1 FROM usage WHERE author = :author LIMIT 1"""
