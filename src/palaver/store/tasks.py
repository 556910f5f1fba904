"""Work for later, as it stands."""

from collections.abc import Iterable, Sequence

from palaver.messages import Place
from palaver.store.people import find_place, keep_place
from palaver.store.sqlite import Database
from palaver.store.values import TASK, an_id, clean, dumps
from palaver.store.writer import Owner
from palaver.tasks.graph import Task


class Tasks:
    """`conversation.journal.Tasks`, kept."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader

    async def unfinished(self) -> Sequence[Task]:
        return await self._reader.run(_unfinished)

    async def save(self, tasks: Sequence[Task]) -> None:
        rows = [(task, _columns(task)) for task in tasks]
        await self._writer.run(lambda database: _save(database, rows))

    async def listed(self, place: Place | None = None) -> Sequence[Task]:
        return await self._reader.run(lambda database: _listed(database, place))


Columns = tuple[str, str, str, str, str]

_INSERT = (
    "INSERT INTO tasks (place, task_id, kind, status, due_at, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task_id) DO "
)
_UPDATE = """UPDATE SET place = excluded.place, kind = excluded.kind, status = excluded.status,
    due_at = excluded.due_at, body = excluded.body"""


def add(database: Database, tasks: Iterable[Task]) -> None:
    """Keep new tasks; one that is there already has moved on, and stays as it is."""
    for task in tasks:
        database.execute(_INSERT + "NOTHING", (keep_place(database, task.place), *_columns(task)))


def _save(database: Database, rows: Iterable[tuple[Task, Columns]]) -> None:
    for task, columns in rows:
        database.execute(_INSERT + _UPDATE, (keep_place(database, task.place), *columns))


def _columns(task: Task) -> Columns:
    return an_id(task.id, "task"), clean(task.kind), task.status, task.due_at.isoformat(), dumps(task)


def _unfinished(database: Database) -> list[Task]:
    select = "SELECT body FROM tasks WHERE status IN ('pending', 'running') ORDER BY id"
    return [TASK.loads(body) for (body,) in database.execute(select)]


def _listed(database: Database, place: Place | None) -> list[Task]:
    if place is None:
        rows = database.execute("SELECT body FROM tasks ORDER BY due_at, id")
    else:
        select = "SELECT body FROM tasks WHERE place = ? ORDER BY due_at, id"
        rows = database.execute(select, (find_place(database, place),))
    return [TASK.loads(body) for (body,) in rows]
