"""Tasks: each change of a task is stored with all its consequences for the other tasks of its plan.

What the consequences are is said by the `PlanRules` that the store was given, on the tasks of a plan, read once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.events import TaskDone, TaskPlanned
from tertulia.messages import Place
from tertulia.store import events, outbox
from tertulia.store.database import Database
from tertulia.store.encoding import TASK, clean, dumps, parse_time, validate_id
from tertulia.store.identities import find_place, upsert_place
from tertulia.store.threads import Repository, reading, writing
from tertulia.tasks.task import REPEATABLE, PlanRules, Policy, Task, ends_with_its_place
from tertulia.timezones import utc

PLAN_PREFIX = "task: "  # prefix of the name of a plan without a run
OTHERS = f"{PLAN_PREFIX}%"  # such plans
MAX_BATCH = 256  # tasks that are taken at once
_END_STATUSES = ("done", "failed", "pending")  # statuses of a task that no longer runs


class StoredTask(NamedTuple):
    """A task with the columns that depend on its plan."""

    task: Task
    free: bool  # whether it waits for its time only


Change = Callable[[list[Task]], Iterable[Task]]  # all tasks of one run, or one without a run and what depends on it

_COLUMNS = "task_id, agent, place, run_id, kind, status, free, due_at, body"

# Stores the tasks of a plan; the agent, the place and the kind of a stored one stay.
_UPSERT = f"""INSERT INTO tasks ({_COLUMNS})
    VALUES (:task_id, :agent, :place, :run_id, :kind, :status, :free, :due_at, :body)
    ON CONFLICT (task_id) DO UPDATE SET run_id = excluded.run_id, status = excluded.status, free = excluded.free,
    due_at = excluded.due_at, body = excluded.body"""

# All tasks of plans, in the order in which they were stored.
_SELECT_PLANS = "SELECT run_id, task_id, body, free FROM tasks WHERE run_id IN (:plans) ORDER BY id"

# What waits in a place as part of a plan of a run.
_OF_RUNS = "FROM tasks WHERE place = :place AND status = 'pending' AND run_id IS NOT NULL AND run_id NOT LIKE :others"

# Whether something does; an expression.
HAS_PLANS = f"CASE WHEN EXISTS (SELECT 1 {_OF_RUNS}) THEN 1 ELSE 0 END"

IS_FREE = "status = 'pending' AND free = 1"
_ON_PLATFORMS = "place IN (SELECT id FROM places WHERE platform IN (:platforms))"


class SqlTasks(Repository):
    """Implements `engine.store_protocols.TaskStore`."""

    @writing
    def add(self, database: Database, tasks: Sequence[Task]) -> None:
        add(database, tasks, self._access.plans)

    @writing
    def take(self, database: Database, now: datetime, *, platforms: Collection[str] | None = None) -> Sequence[Task]:
        due = f"WHERE {IS_FREE} AND due_at <= :now{_on(platforms)} ORDER BY due_at, id LIMIT :most"
        values = {"now": utc(now).isoformat(), "most": MAX_BATCH, "platforms": list(platforms or ())}
        running = [self._access.plans.begin(task) for task in select_tasks(database, due, **values)]
        database.many(  # no other task depends on a start; another process may have cancelled one since
            "UPDATE tasks SET status = :status, free = 0, body = :body WHERE task_id = :task_id AND status = 'pending'",
            [{"status": task.status, "body": dumps(task), "task_id": task.id} for task in running],
        )
        select = "SELECT task_id FROM tasks WHERE task_id IN (:taken) AND status = 'running'"
        taken = database.column(select, taken=[task.id for task in running]) if running else ()
        return [task for task in running if task.id in taken]

    @writing
    def end(self, database: Database, task: Task, *, replies: Sequence[OutboxItem] = ()) -> None:
        """Store the end of an attempt; a task that has ended or was cancelled meanwhile stays as it is."""
        if task.status not in _END_STATUSES:
            raise InvalidValue(f"task {task.id} is {task.status}, which is no way to end")
        name, found = _find(database, task.id)
        if found is None:
            raise InvalidValue(f"there is no task {task.id!r}")
        comes_again = task.attempts == 0 and task.due_at > found.due_at
        if found.status != "running" or not (found.attempts == task.attempts or comes_again):
            return
        ended = replace(task, place=found.place, run=found.run, after=found.after)
        _change_plans(database, {name: partial(_replaced, {task.id: ended})}, self._access.plans)
        for reply in replies:
            outbox.add(database, outbox.as_row(reply))

    @reading
    def next_due(self, database: Database, *, platforms: Collection[str] | None = None) -> datetime | None:
        select = f"SELECT due_at FROM tasks WHERE {IS_FREE}{_on(platforms)} ORDER BY due_at LIMIT 1"
        return parse_time(database.value(select, platforms=list(platforms or ())))

    @writing
    def recover(
        self, database: Database, repeatable: Collection[str] = REPEATABLE, *, platforms: Collection[str] | None = None
    ) -> Sequence[Task]:
        def recovered(known: list[Task]) -> Iterable[Task]:
            return self._access.plans.recover(known, repeatable=repeatable)

        select = f"SELECT run_id, task_id FROM tasks WHERE status = 'running'{_on(platforms)} ORDER BY id"
        running = database.all(select, platforms=list(platforms or ()))
        now = _change_plans(database, {name: recovered for name, _ in running}, self._access.plans)
        return [now[task_id] for _, task_id in running]

    async def cancel(self, task_id: str, *, why: str) -> Task | None:
        _, found = await self._reader.run(lambda database: _find(database, task_id))
        if found is None:
            return None
        return await self._writer.run(
            lambda database: cancel(database, task_id, why, self._access.plans), places=[found.place]
        )

    async def cancel_superseded(self, place: Place, policy: Policy) -> None:
        if await self._reader.run(lambda database: _plans_of_runs(database, find_place(database, place))):
            await self._writer.run(
                lambda database: cancel_superseded(database, place, policy, self._access.plans), places=[place]
            )

    @reading
    def listed(self, database: Database, place: Place | None = None) -> Sequence[Task]:
        where = "" if place is None else "WHERE place = :place"
        return select_tasks(database, f"{where} ORDER BY due_at, id", place=place and find_place(database, place))


def select_tasks(database: Database, which: str, **values: Any) -> list[Task]:
    """Return the tasks that a clause selects."""
    return [TASK.loads(body) for body in database.column(f"SELECT body FROM tasks {which}", **values)]


def add(database: Database, tasks: Iterable[Task], rules: PlanRules) -> None:
    """Store new tasks; one that is stored already stays as it is."""
    given = {validate_id(task.id, "task"): task for task in reversed([*tasks])}  # the first with an id counts
    if not given:
        return
    asked = [*given, *(name for task in given.values() for name in task.after)]
    stored = database.all("SELECT task_id, run_id FROM tasks WHERE task_id IN (:asked)", asked=asked)
    plans = dict[str, str](stored)
    new: dict[str, list[Task]] = {}
    for task in (task for task in reversed(given.values()) if task.id not in dict(stored)):
        plans[task.id] = name = _plan_of(task, plans)
        new.setdefault(name, []).append(task)
    _change_plans(database, {name: partial(_with_new, added) for name, added in new.items()}, rules)


def _with_new(added: list[Task], known: list[Task]) -> list[Task]:
    return known + added


def _plan_of(task: Task, plans: Mapping[str, str]) -> str:
    """Return the name of the plan of a new task: its run, the plan of a task that it waits for, or one of its own."""
    if task.run is not None:
        return validate_id(task.run, "run")
    return next((plans[name] for name in task.after if name in plans), f"{PLAN_PREFIX}{task.id}")


def _change_plans(database: Database, changes: Mapping[str, Change], rules: PlanRules) -> dict[str, Task]:
    """Change plans, by their names, with all consequences for their tasks; unchanged tasks are not written."""
    plans: dict[str, dict[str, StoredTask]] = {name: {} for name in changes}
    for name, task_id, body, free in database.all(_SELECT_PLANS, plans=[*plans]) if plans else ():
        plans[name][task_id] = StoredTask(TASK.loads(body), free == 1)
    changed: list[dict[str, Any]] = []
    published: list[TaskPlanned | TaskDone] = []
    now: dict[str, Task] = {}
    for name, before in plans.items():
        settled = rules.settle(changes[name]([known.task for known in before.values()]))
        unbound = {task.id for task in rules.without_open_dependencies(settled)}
        for task in settled:
            known, now[task.id] = before.get(task.id), task
            if known != StoredTask(task, task.id in unbound):
                changed.append(_row(database, name, task, is_free=task.id in unbound))
            published += _events(known, task)
    database.many(_UPSERT, changed)
    events.add(database, *published)
    return now


def _events(before: StoredTask | None, task: Task) -> Iterator[TaskPlanned | TaskDone]:
    """Yield the event of a new or ended task."""
    run = task.run or task.made_by
    if before is None:
        yield TaskPlanned(place=task.place, task_id=task.id, run_id=run)
    elif before.task.status != task.status and task.status not in ("pending", "running"):
        yield TaskDone(place=task.place, task_id=task.id, status=task.status, run_id=run)


def _row(database: Database, name: str, task: Task, *, is_free: bool) -> dict[str, Any]:
    return {
        "task_id": validate_id(task.id, "task"),
        "agent": clean(task.agent),
        "place": upsert_place(database, task.place),
        "run_id": name,
        "kind": clean(task.kind),
        "status": task.status,
        "free": int(is_free),
        "due_at": task.due_at.isoformat(),
        "body": dumps(task),
    }


def change(database: Database, changed: Mapping[str, Task], rules: PlanRules) -> dict[str, Task]:
    """Update tasks, given by their ids; return all tasks of their plans."""
    names = database.column("SELECT DISTINCT run_id FROM tasks WHERE task_id IN (:tasks)", tasks=[*changed])
    return _change_plans(database, {name: partial(_replaced, changed) for name in names}, rules)


def _replaced(changed: Mapping[str, Task], known: list[Task]) -> list[Task]:
    return [changed.get(task.id, task) for task in known]


def cancel_superseded(database: Database, place: Place, policy: Policy, rules: PlanRules) -> None:
    """Cancel the tasks that a new message in *place* supersedes, by *policy*."""

    def superseded(known: list[Task]) -> Iterable[Task]:
        return rules.supersede(known, place, policy=policy)

    names = _plans_of_runs(database, upsert_place(database, place))
    _change_plans(database, dict.fromkeys(names, superseded), rules)


def _plans_of_runs(database: Database, place: int | None) -> list[str]:
    """Return the plans of runs of which something waits in a place."""
    select = f"SELECT DISTINCT run_id {_OF_RUNS}"
    return database.column(select, place=place, others=OTHERS)


def cancel_in_left_place(database: Database, place: int, why: str, rules: PlanRules) -> None:
    """Cancel what has not begun in a place, by its row, that was left."""
    waiting = select_tasks(database, "WHERE place = :place AND status = 'pending'", place=place)
    change(database, {task.id: rules.cancel(task, why=why) for task in waiting if ends_with_its_place(task)}, rules)


def _on(platforms: Collection[str] | None) -> str:
    """Return the condition for tasks of these platforms, to be added to a WHERE; None means all."""
    return "" if platforms is None else f" AND {_ON_PLATFORMS}"


def _find(database: Database, task_id: str) -> tuple[str, Task | None]:
    """Return the name of the plan of a task, and the task."""
    select = "SELECT run_id, body FROM tasks WHERE task_id = :task_id"
    row = database.one(select, task_id=validate_id(task_id, "task"))
    return (row[0], TASK.loads(row[1])) if row else ("", None)


def cancel(database: Database, task_id: str, why: str, rules: PlanRules) -> Task | None:
    """Cancel a task that has not begun; None where there is none."""
    name, found = _find(database, task_id)
    if found is None:
        return None
    cancelled = rules.cancel(found, why=why)
    return _change_plans(database, {name: partial(_replaced, {task_id: cancelled})}, rules)[task_id]
