"""Tasks: each change of a task is stored with all its consequences for the other tasks of its plan."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.events import TaskDone, TaskPlanned
from tertulia.messages import Place
from tertulia.store import events, outbox
from tertulia.store.encoding import TASK, clean, dumps, validate_id
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository
from tertulia.tasks.graph import begin, cancel, recover, settle, supersede, without_open_dependencies
from tertulia.tasks.task import REPEATABLE, Policy, Task, ends_with_its_place
from tertulia.timezones import utc

PLAN_PREFIX = "task: "  # prefix of the name of a plan without a run
MAX_BATCH = 256  # tasks that are taken at once
_END_STATUSES = ("done", "failed", "pending")  # statuses of a task that no longer runs


class StoredTask(NamedTuple):
    """A task with the columns that depend on its plan."""

    task: Task
    free: bool  # whether it waits for its time only


Plan = Mapping[str, StoredTask]  # all tasks of one run, or one that belongs to none, by their ids


class SqlTasks(Repository):
    """Implements `engine.store_protocols.TaskStore`."""

    async def add(self, tasks: Sequence[Task]) -> None:
        new = list(tasks)
        await self._writer.run(lambda database: add(database, new))

    async def take(self, now: datetime, *, platforms: Collection[str] | None = None) -> Sequence[Task]:
        moment = utc(now).isoformat()
        return await self._writer.run(lambda database: _take(database, moment, _on_platforms(platforms)))

    async def end(self, task: Task, *, replies: Sequence[OutboxItem] = ()) -> None:
        if task.status not in _END_STATUSES:
            raise InvalidValue(f"task {task.id} is {task.status}, which is no way to end")
        sending = [outbox.as_row(reply) for reply in replies]
        await self._writer.run(lambda database: _end(database, task, sending))

    async def next_due(self, *, platforms: Collection[str] | None = None) -> datetime | None:
        return await self._reader.run(lambda database: _next_due(database, _on_platforms(platforms)))

    async def recover(
        self, repeatable: Collection[str] = REPEATABLE, *, platforms: Collection[str] | None = None
    ) -> Sequence[Task]:
        return await self._writer.run(lambda database: _recover(database, repeatable, _on_platforms(platforms)))

    async def cancel(self, task_id: str, *, why: str) -> Task | None:
        return await self._writer.run(lambda database: _cancel(database, task_id, why))

    async def cancel_superseded(self, place: Place, policy: Policy) -> None:
        pending = f"SELECT 1 {_OF_RUNS} LIMIT 1"
        if await self._reader.run(
            lambda database: database.execute(pending, (find_place(database, place),)).fetchone()
        ):
            await self._writer.run(
                lambda database: cancel_superseded(database, place, upsert_place(database, place), policy)
            )

    async def listed(self, place: Place | None = None) -> Sequence[Task]:
        return await self._reader.run(lambda database: _list(database, place))


Condition = tuple[str, tuple[str, ...]]  # SQL to add to a WHERE, and its values


def _on_platforms(platforms: Collection[str] | None) -> Condition:
    """Return the condition for tasks of these platforms; None means all."""
    if platforms is None:
        return "", ()
    marks = ", ".join("?" * len(platforms))
    return f" AND place IN (SELECT id FROM places WHERE platform IN ({marks}))", tuple(platforms)


_COLUMNS = "task_id, place, run_id, kind, status, free, due_at, body"
_UPSERT = f"""INSERT INTO tasks ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET
    run_id = excluded.run_id, status = excluded.status, free = excluded.free, due_at = excluded.due_at,
    body = excluded.body"""
_OF_RUNS = (
    f"FROM tasks WHERE place = ? AND status = 'pending' AND run_id IS NOT NULL AND run_id NOT LIKE '{PLAN_PREFIX}%'"
)
_FREE = "FROM tasks WHERE status = 'pending' AND free = 1"


def add(database: Database, tasks: Iterable[Task]) -> None:
    """Store new tasks; one that is stored already stays as it is."""
    new: dict[str, Task] = {}
    select = "SELECT 1 FROM tasks WHERE task_id = ?"
    for task in tasks:
        if task.id not in new and database.execute(select, (validate_id(task.id, "task"),)).fetchone() is None:
            new[task.id] = task
    for name, plan in group_by_plan(database, new.values()).items():
        stored = read_plan(database, name)
        upsert_plan(database, name, stored, [*(known.task for known in stored.values()), *plan])


def group_by_plan(database: Database, tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Group tasks by plan: the tasks of a run, or a task without a run and all that depend on it."""
    names: dict[str, str] = {}
    found: dict[str, list[Task]] = {}
    for task in tasks:
        names[task.id] = name = plan_name(database, task, names)
        found.setdefault(name, []).append(task)
    return found


def plan_name(database: Database, task: Task, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the name of the plan of a task; *names* has those of tasks about to be stored."""
    if task.run is not None:
        return validate_id(task.run, "run")
    select = "SELECT run_id FROM tasks WHERE task_id = ?"
    for known in (task.id, *task.after):
        row = database.execute(select, (known,)).fetchone()
        if known in names or row:
            return names.get(known) or row[0]
    return f"{PLAN_PREFIX}{task.id}"


def upsert_plan(database: Database, name: str, before: Plan, tasks: Iterable[Task]) -> dict[str, Task]:
    """Store a plan with all consequences of the statuses of its tasks; unchanged tasks are not written."""
    now = settle(tasks)
    unbound = {task.id for task in without_open_dependencies(now)}
    rows = [
        _row(database, name, task, is_free=task.id in unbound)
        for task in now
        if before.get(task.id) != StoredTask(task, task.id in unbound)
    ]
    database.executemany(_UPSERT, rows)
    for task in now:
        _publish(database, before.get(task.id), task)
    return {task.id: task for task in now}


def _publish(database: Database, before: StoredTask | None, task: Task) -> None:
    """Add the event of a new or ended task."""
    run = task.run or task.made_by
    if before is None:
        events.add(database, TaskPlanned(place=task.place, task_id=task.id, run_id=run))
    elif before.task.status != task.status and task.status not in ("pending", "running"):
        events.add(database, TaskDone(place=task.place, task_id=task.id, status=task.status, run_id=run))


def find(database: Database, task_id: str) -> StoredTask | None:
    select = "SELECT body, free FROM tasks WHERE task_id = ?"
    row = database.execute(select, (validate_id(task_id, "task"),)).fetchone()
    return None if row is None else StoredTask(TASK.loads(row[0]), bool(row[1]))


def read_plan(database: Database, name: str) -> dict[str, StoredTask]:
    """Read the tasks of a plan."""
    select = "SELECT task_id, body, free FROM tasks WHERE run_id = ? ORDER BY id"
    rows = database.execute(select, (name,)).fetchall()
    return {task_id: StoredTask(TASK.loads(body), bool(is_free)) for task_id, body, is_free in rows}


def change(database: Database, changed: Mapping[str, Task]) -> None:
    """Update tasks, given by their ids."""
    for name in group_by_plan(database, changed.values()):
        stored = read_plan(database, name)
        upsert_plan(database, name, stored, (changed.get(one, known.task) for one, known in stored.items()))


def cancel_superseded(database: Database, place: Place, row: int, policy: Policy) -> None:
    """Cancel the tasks that a new message in *place* supersedes, by *policy*."""
    waiting = [TASK.loads(body) for (body,) in database.execute(f"SELECT body {_OF_RUNS} ORDER BY id", (row,))]
    for name in group_by_plan(database, waiting):
        stored = read_plan(database, name)
        upsert_plan(database, name, stored, supersede((known.task for known in stored.values()), place, policy=policy))


def cancel_in_left_place(database: Database, place: int, why: str) -> None:
    """Cancel what has not begun in a place, by its row, that was left."""
    select = "SELECT body FROM tasks WHERE place = :place AND status = 'pending'"
    waiting = [TASK.loads(body) for (body,) in database.all(select, place=place)]
    change(database, {task.id: cancel(task, why=why) for task in waiting if ends_with_its_place(task)})


def _row(database: Database, name: str, task: Task, *, is_free: bool) -> tuple[str | int, ...]:
    due_at, place = task.due_at.isoformat(), upsert_place(database, task.place)
    return validate_id(task.id, "task"), place, name, clean(task.kind), task.status, int(is_free), due_at, dumps(task)


def _take(database: Database, moment: str, condition: Condition) -> list[Task]:
    more, values = condition
    select = f"SELECT body {_FREE} AND due_at <= ?{more} ORDER BY due_at, id LIMIT ?"
    due = [TASK.loads(body) for (body,) in database.execute(select, (moment, *values, MAX_BATCH))]
    running = [begin(task) for task in due]
    update = "UPDATE tasks SET status = ?, free = 0, body = ? WHERE task_id = ?"  # no other task depends on a start
    database.executemany(update, [(task.status, dumps(task), task.id) for task in running])
    return running


def _end(database: Database, task: Task, replies: Iterable[outbox.OutboxRow]) -> None:
    """Store the end of an attempt; a task that has ended or was cancelled meanwhile stays as it is."""
    found = find(database, task.id)
    if found is None:
        raise InvalidValue(f"there is no task {task.id!r}")
    comes_again = task.attempts == 0 and task.due_at > found.task.due_at
    if found.task.status != "running" or not (found.task.attempts == task.attempts or comes_again):
        return
    ended = replace(task, place=found.task.place, run=found.task.run, after=found.task.after)
    name = plan_name(database, ended)
    stored = read_plan(database, name)
    upsert_plan(
        database, name, stored, (ended if known.task.id == task.id else known.task for known in stored.values())
    )
    for reply in replies:
        outbox.add(database, reply)


def _next_due(database: Database, condition: Condition) -> datetime | None:
    more, values = condition
    row = database.execute(f"SELECT due_at {_FREE}{more} ORDER BY due_at LIMIT 1", values).fetchone()
    return None if row is None else datetime.fromisoformat(row[0])


def _recover(database: Database, repeatable: Collection[str], condition: Condition) -> list[Task]:
    more, values = condition
    select = f"SELECT body FROM tasks WHERE status = 'running'{more} ORDER BY id"
    running = [TASK.loads(body) for (body,) in database.execute(select, values)]
    now: dict[str, Task] = {}
    for name in group_by_plan(database, running):
        stored = read_plan(database, name)
        now |= upsert_plan(
            database, name, stored, recover((known.task for known in stored.values()), repeatable=repeatable)
        )
    return [now[task.id] for task in running]


def _cancel(database: Database, task_id: str, why: str) -> Task | None:
    found = find(database, task_id)
    if found is None:
        return None
    gone = cancel(found.task, why=why)
    name = plan_name(database, gone)
    stored = read_plan(database, name)
    now = upsert_plan(
        database, name, stored, (gone if known.task.id == task_id else known.task for known in stored.values())
    )
    return now[task_id]


def _list(database: Database, place: Place | None) -> list[Task]:
    if place is None:
        rows = database.execute("SELECT body FROM tasks ORDER BY due_at, id")
    else:
        select = "SELECT body FROM tasks WHERE place = ? ORDER BY due_at, id"
        rows = database.execute(select, (find_place(database, place),))
    return [TASK.loads(body) for (body,) in rows]
