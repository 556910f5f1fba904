"""Integrity checks, counts and the export of all rows."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from tertulia.errors import StoreBroken
from tertulia.run.chat_values import SERVICE
from tertulia.store import agents, decisions, fact_rows
from tertulia.store.database import DECODE_ERRORS, Connection, Database, Row
from tertulia.store.encoding import ANY, LAYER, TASK, clean
from tertulia.store.identities import IMPORTS
from tertulia.store.json_columns import JSON_COLUMNS
from tertulia.store.message_rows import MESSAGES
from tertulia.store.prompts import layer_contents, layer_digest
from tertulia.store.search_index import find_inconsistent
from tertulia.store.sqlite.migrating import Table, tables
from tertulia.store.tasks import PLAN_PREFIX
from tertulia.tasks.task import PlanRules, Task

NOT_EXPORTED = (  # the index, which can be rebuilt, and the raw updates of services
    "forgets search_places search_messages search_terms search_vectors search_stale search_progress "
    "search_embedder updates update_places new_numbers"
).split()

_SECRET = {  # who knows a delimiter can write what looks like our own markup
    "places": ("delimiter",),
    "rooms": ("key_digest",),
    "room_guests": ("cookie_digest",),
}
_TITLED = ("messages", "runs", "facts", "episodes")  # tables with a title
_PAGE = 200
_Names = list[tuple[str, str | None]]  # platform and name

COUNTED = ("places", "messages", "runs", "replies", "tasks", "files")


def check(database: Connection, rules: PlanRules) -> list[str]:
    """Check the file, the numbers of messages, tasks, the index and every value; return the faults."""
    return (
        database.faults()
        or [*_orphans(database)]
        or [
            *_miscounted(database),
            *_unreadable_messages(database),
            *fact_rows.find_faults(database),
            *_unreadable_values(database),
            *_unreadable_layers(database),
            *decisions.find_faults(database),
            *agents.find_faults(database),
            *_misplaced_tasks(database, rules),
            *_misindexed(database),
        ]
    )


def count_rows(database: Database) -> dict[str, int]:
    """Count the places, messages, runs, replies, tasks and files; deleted messages are not counted."""
    (row,) = database.all("""SELECT (SELECT count(*) FROM places), (SELECT count(*) FROM messages WHERE deleted = 0),
        (SELECT count(*) FROM runs), (SELECT count(*) FROM outbox), (SELECT count(*) FROM tasks),
        (SELECT count(*) FROM files)""")
    return dict(zip(COUNTED, row, strict=True))


def names_by_platform(database: Database, author_id: str) -> dict[str, list[str]]:
    """Return the platforms that have an author of that id, each with the names of the author there, oldest first.

    The person of a chat with a name has that name as id, and no name.
    """
    select = """SELECT a.platform, n.name FROM authors a LEFT JOIN names n ON n.author = a.id
        WHERE a.author_id = :author_id ORDER BY a.platform, n.id"""
    if not author_id or clean(author_id) != author_id:  # no stored id is like that
        return {}
    is_chat = database.one("SELECT 1 FROM chats WHERE name = :name", name=author_id) is not None
    found: dict[str, list[str]] = {SERVICE: []} if is_chat else {}
    for platform, name in msgspec.convert(database.all(select, author_id=author_id), _Names):
        names = found.setdefault(platform, [])
        if name is not None and name not in names:
            names.append(name)
    return found


def export_rows(database: Connection) -> Iterator[dict[str, Any]]:
    """Yield every row of every table but `NOT_EXPORTED`; JSON decoded, layers whole."""
    for table in _exported():
        yield from _export_table(database, table)


def _exported() -> list[Table]:
    return [table for table in tables() if table.name not in NOT_EXPORTED]


def _export_table(database: Connection, table: Table) -> Iterator[dict[str, Any]]:
    name = table.name
    if name == "layers":
        for row, known, layer, content in _layers(database):
            yield {"table": name, "id": row, "hash": known, "name": layer, "layer": json.loads(content)}
        return
    for values in database.each(table.select()):
        yield {"table": name, **_decode_row(name, dict(zip(table.columns, values, strict=True)))}


def _layers(database: Database) -> Iterator[Row]:
    """Yield the id, hash and name of each layer, and its content."""
    for page in _pages(database.each("SELECT id, hash, name FROM layers ORDER BY id")):
        contents = layer_contents(database, [row[0] for row in page])
        yield from ((*row, contents[row[0]]) for row in page)


def _pages(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while page := list(islice(rows, _PAGE)):
        yield page


class Pages:
    """The rows of one state, page by page; the transaction ends with the connection."""

    def __init__(self, database: Connection) -> None:
        database.begin_reading()
        self._rows = export_rows(database)

    def next(self) -> list[dict[str, Any]]:
        return list(islice(self._rows, _PAGE))


def _decode_row(table: str, row: dict[str, Any]) -> dict[str, Any]:
    for name in _SECRET.get(table, ()):
        del row[name]
    read = {name: json.loads(row[name]) for name in JSON_COLUMNS.get(table, ()) if row[name] is not None}
    return {**row, **read}


def _orphans(database: Database) -> Iterator[str]:
    """Yield the rows whose place or title is not there, of tables that have no reference to them."""
    for table, column, parent in (
        *((table, "title", "titles") for table in _TITLED),
        ("place_events", "place", "places"),
    ):
        select = f"SELECT o.id FROM {table} o WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = o.{column})"
        for (row,) in database.all(select):
            yield f"row {row} of {table} refers to a row of {parent} that is not there"


def _miscounted(database: Database) -> Iterator[str]:
    select = """SELECT p.id, p.messages, count(m.id), max(m.number) FROM places p
        LEFT JOIN messages m ON m.place = p.id WHERE p.platform <> :imports GROUP BY p.id, p.messages"""
    for place, expected, found, last in database.all(select, imports=IMPORTS):
        if found != expected or (found and last != found - 1):
            yield f"place {place} should have {expected} messages numbered from 0, and has {found} up to number {last}"


def _unreadable_messages(database: Database) -> Iterator[str]:
    for row, *columns in database.each(f"SELECT m.id, {MESSAGES} FROM messages m ORDER BY m.id"):
        try:
            MESSAGES.decode(columns)
        except (StoreBroken, *DECODE_ERRORS) as error:
            yield f"message {row}: {error}"


def _unreadable_values(database: Database) -> Iterator[str]:
    """Read all columns that are exported, and decode those with JSON; those of messages are decoded with them."""
    for table in _exported():
        decoded = JSON_COLUMNS.get(table.name, {}) if table.name != "messages" else {"media": ANY.loads}
        checked = [(number, column, decoded.get(column)) for number, column in enumerate(table.columns)]
        for values in database.each(table.select()):
            for number, column, loads in checked:
                try:
                    values[number] is None or (loads and loads(values[number]))
                except (StoreBroken, *DECODE_ERRORS) as error:
                    yield f"{column} of row {values[0]} of {table.name}: {error}"


def _unreadable_layers(database: Database) -> Iterator[str]:
    for row, known, _, content in _layers(database):
        if layer_digest(content) != known:
            yield f"layer {row} is no longer what it was"
            continue
        try:
            LAYER.loads(content.decode())
        except StoreBroken as error:
            yield f"layer {row}: {error}"


def _misplaced_tasks(database: Database, rules: PlanRules) -> Iterator[str]:
    """Tasks whose columns do not match their values."""
    columns: dict[str, tuple[Any, ...]] = {}
    plans: dict[str, list[Task]] = {}
    for body, *found in database.all("SELECT body, run_id, status, due_at, free, agent FROM tasks ORDER BY id"):
        with suppress(StoreBroken):  # reported already
            task = TASK.loads(body)
            own = found[0] if found[0] and found[0].startswith(PLAN_PREFIX) else f"{PLAN_PREFIX}{task.id}"
            plans.setdefault(task.run or own, []).append(task)
            columns[task.id] = tuple(found)
    unbound = {task.id for plan in plans.values() for task in rules.without_open_dependencies(plan)}
    for name, task in ((name, task) for name, plan in plans.items() for task in plan):
        expected = (name, task.status, task.due_at.isoformat(), int(task.id in unbound), clean(task.agent))
        if columns[task.id] != expected:
            yield f"task {task.id} is kept as if it were another: {columns[task.id]} instead of {expected}"


def _misindexed(database: Database) -> Iterator[str]:
    for place, count in find_inconsistent(database).items():
        yield f"the index of place {place} has {count} rows too few or too many: `tertulia index` makes it anew"
