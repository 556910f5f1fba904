"""The graph of tasks: when a task is due, which may run, and how it and its dependents change. Pure.

A task waits for its time, fixed when it is planned, and for the tasks in its `after`. Only these statuses follow each
other: pending to running or cancelled; running to done, failed, or pending again for a retry. A task that comes again
is pending once more where another would be done, or have failed for good, and due at its next time after now: so what
was missed while no process ran is made up for once.

What happens to a task decides about those after it. They may begin when it is done. They are cancelled when it fails.
If it is cancelled, they wait for what it waited for. They may begin when its outcome is unknown: cancelling a plan
because of a step that probably ran would be worse. An unknown id in `after` counts as done: old tasks are removed.
`settle` applies these rules to a whole plan, in topological order, so that each task is looked at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.messages import Place
from tertulia.tasks.task import (
    REPEATABLE,
    RETRY,
    Policy,
    Retry,
    Status,
    Task,
    TaskBlock,
    Think,
    Wait,
    args_of,
    cancels_sends,
    kind_of,
    later,
)
from tertulia.timezones import utc

MOST_BEGINNINGS = 20  # of a repeatable task: one that ends its process each time is given up
CUT_OFF = "the program stopped while it ran; nobody knows whether it happened"

_TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    "pending": frozenset({"running", "cancelled"}),
    "running": frozenset({"done", "failed", "pending"}),
    "done": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
_DEPENDENT = ("pending", "cancelled")  # statuses in which dependencies still matter


def plan(blocks: Iterable[TaskBlock], *, place: Place, now: datetime, ids: Iterator[str], run: str) -> tuple[Task, ...]:
    """Return a task for each block, one after the other. A wait delays all that follow, counted from *now*."""
    due_at = utc(now)
    tasks: dict[str, Task] = {}
    last: tuple[str, ...] = ()
    for block in blocks:
        if isinstance(block, Think):
            continue
        if isinstance(block, Wait):
            due_at = later(due_at, _duration(block))
            continue
        new_id = next(ids, None)
        if new_id is None or new_id in tasks:
            raise InvalidValue("every task needs an id of its own")
        tasks[new_id] = Task(
            id=new_id, kind=kind_of(block), place=place, due_at=due_at, after=last, args=args_of(block), run=run
        )
        last = (new_id,)
    return tuple(tasks.values())


def without_open_dependencies(tasks: Iterable[Task]) -> list[Task]:
    """Return the pending tasks that depend on nothing any more, and wait only for their time."""
    known = {task.id: task for task in settle(tasks)}
    return [
        task
        for task in known.values()
        if task.status == "pending" and all(first not in known or _is_over(known[first]) for first in task.after)
    ]


def begin(task: Task) -> Task:
    return _change(task, "running", attempts=task.attempts + 1, why="")


def finish(task: Task, *, now: datetime) -> Task:
    """Return *task* done, or pending until it comes again."""
    return _until_next_time(task, now) or _change(task, "done")


def fail(
    task: Task,
    *,
    now: datetime,
    why: str,
    permanent: bool = False,
    pause: timedelta = timedelta(0),
    retry: Retry = RETRY,
) -> Task:
    """Return *task* pending, due after *pause* or the pause of *retry*, the longer; failed if no attempt is left.

    One that comes again is then pending until its next time, unless the failure is *permanent*.
    """
    if permanent or task.attempts >= retry.limit:
        next_time = None if permanent else _until_next_time(task, now, why=why)
        return next_time or _change(task, "failed", why=why)
    due_at = later(max(utc(now), task.due_at), max(pause, retry.pause(task.attempts)))
    return _change(task, "pending", due_at=due_at, why=why)


def _until_next_time(task: Task, now: datetime, *, why: str = "") -> Task | None:
    """Return *task* pending until it comes again; None if it does not."""
    due_at = task.again.next_after(max(utc(now), task.due_at)) if task.again else None
    return _change(task, "pending", due_at=due_at, attempts=0, why=why) if due_at else None


def cancel(task: Task, *, why: str) -> Task:
    return _change(task, "cancelled", why=why)


def recover(tasks: Iterable[Task], *, repeatable: Collection[str] = REPEATABLE) -> tuple[Task, ...]:
    """Return the tasks after a crash. Those that ran are pending again if repeatable, else failed and doubtful."""

    def after_crash(task: Task) -> Task:
        if task.status != "running":
            return task
        if task.kind in repeatable and task.attempts < MOST_BEGINNINGS:
            return _change(task, "pending")
        return _change(task, "failed", why=CUT_OFF, doubtful=True)

    return tuple(map(after_crash, tasks))


def supersede(tasks: Iterable[Task], place: Place, *, policy: Policy = cancels_sends) -> tuple[Task, ...]:
    """Return the tasks after a new message in *place*: those that never began and that *policy* names are cancelled."""

    def is_superseded(task: Task) -> bool:
        never_began = task.status == "pending" and task.attempts == 0
        return never_began and task.place.key == place.key and policy(task)

    return settle(cancel(task, why="a new message came") if is_superseded(task) else task for task in tasks)


def settle(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks so that each pending one depends only on tasks that will end.

    A task after a failed one is cancelled, and so is one that depends on itself. A task after a cancelled one depends
    on what that one depended on.
    """
    known = {task.id: task for task in tasks}
    open_dependencies: dict[str, tuple[str, ...]] = {}  # of each cancelled task
    order = _topological_order(known)
    for name in order:
        task = known[name]
        if task.status not in _DEPENDENT:
            continue
        after = task.after
        if any(first in open_dependencies for first in after):
            after = tuple(dict.fromkeys(one for first in after for one in open_dependencies.get(first, (first,))))
        if task.status == "pending":
            known[name] = _with_dependencies(task, after, known)
        if known[name].status == "cancelled":
            open_dependencies[name] = tuple(one for one in after if one in known and not _is_over(known[one]))
    for name in known.keys() - set(order):
        if known[name].status == "pending":
            known[name] = cancel(known[name], why="it waits for itself, or for one that does")
    return tuple(known.values())


def _with_dependencies(task: Task, after: tuple[str, ...], known: Mapping[str, Task]) -> Task:
    """Return a pending task that depends on *after*; cancelled where one of these has failed."""
    for first in after:
        if first in known and known[first].status == "failed" and not known[first].doubtful:
            return cancel(task, why=f"task {first} before it failed: {known[first].why}")
    return task if after == task.after else replace(task, after=after)


def _topological_order(known: Mapping[str, Task]) -> list[str]:
    """Return the ids, each after those it depends on (Kahn's algorithm); tasks in or behind a cycle are left out."""
    followers: dict[str, list[str]] = defaultdict(list)
    waiting: dict[str, int] = {}
    for name, task in known.items():
        dependencies = {first for first in task.after if first in known} if task.status in _DEPENDENT else set()
        waiting[name] = len(dependencies)
        for first in dependencies:
            followers[first].append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for follower in followers[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    return order


def _is_over(task: Task) -> bool:
    """Return whether the tasks after it may begin."""
    return task.status == "done" or (task.status == "failed" and task.doubtful)


def _change(task: Task, status: Status, **changes: Any) -> Task:
    """Return *task* in another status; raise `InvalidValue` where it cannot get there from its own."""
    if status not in _TRANSITIONS[task.status]:
        raise InvalidValue(f"task {task.id} is {task.status} and cannot become {status}")
    return replace(task, status=status, **changes)


def _duration(block: Wait) -> timedelta:
    try:
        return timedelta(seconds=max(block.seconds, 0))
    except OverflowError:
        return timedelta.max
