"""Which task may run, and what becomes of it and of those that wait for it. Pure.

A task waits for its time, fixed when it is planned, and for the tasks in its `after`. A failure takes with it all that
waits for it; one that was cancelled is stepped over, and so is one of which nobody knows whether it happened. An id in
`after` that is not among the tasks is that of one long done.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from palaver.errors import InvalidValue
from palaver.messages import Place
from palaver.tasks.policy import REPEATABLE, RETRY, Policy, Retry, sends
from palaver.tasks.task import Block, Status, Task, Think, Wait, args_of, kind_of, later
from palaver.timezones import utc

MOST_BEGINNINGS = 20  # of a task that may run twice: one that ends its process each time is given up
CUT_OFF = "the program stopped while it ran; nobody knows whether it happened"

_LEGAL: Mapping[Status, frozenset[Status]] = {
    "pending": frozenset({"running", "cancelled"}),
    "running": frozenset({"done", "failed", "pending"}),
    "done": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
_WAITING = ("pending", "cancelled")  # what stands before those still matters


def plan(blocks: Iterable[Block], *, place: Place, now: datetime, ids: Iterator[str], run: str) -> tuple[Task, ...]:
    """A task for each block, one after the other; a wait puts off all that follow, counted from *now*."""
    due_at = utc(now)
    tasks: dict[str, Task] = {}
    last: tuple[str, ...] = ()
    for block in blocks:
        if isinstance(block, Think):
            continue
        if isinstance(block, Wait):
            due_at = later(due_at, _wait(block))
            continue
        made = _new_id(ids, tasks)
        tasks[made] = Task(
            id=made, kind=kind_of(block), place=place, due_at=due_at, after=last, args=args_of(block), run=run
        )
        last = (made,)
    return tuple(tasks.values())


def free(tasks: Iterable[Task]) -> list[Task]:
    """Those that wait for nothing but their time."""
    known = {task.id: task for task in settle(tasks)}
    return [
        task
        for task in known.values()
        if task.status == "pending" and all(first not in known or _is_over(known[first]) for first in task.after)
    ]


def ready(tasks: Iterable[Task], now: datetime) -> tuple[Task, ...]:
    """Those that may begin, in the order they were due."""
    moment = utc(now)
    return tuple(sorted((task for task in free(tasks) if task.due_at <= moment), key=_order))


def next_due(tasks: Iterable[Task]) -> datetime | None:
    """When the next one may begin, if nothing else happens; it may be past."""
    return min((task.due_at for task in free(tasks)), default=None)


def begin(task: Task) -> Task:
    return _moved(task, "running", attempts=task.attempts + 1, why="")


def finish(task: Task) -> Task:
    return _moved(task, "done")


def fail(
    task: Task,
    *,
    now: datetime,
    why: str,
    permanent: bool = False,
    pause: timedelta = timedelta(0),
    retry: Retry = RETRY,
) -> Task:
    """*task*, to be tried again after a pause, of at least *pause*; or failed for good."""
    if permanent or task.attempts >= retry.limit:
        return _moved(task, "failed", why=why)
    due_at = later(max(utc(now), task.due_at), max(pause, retry.pause(task.attempts)))
    return _moved(task, "pending", due_at=due_at, why=why)


def cancel(task: Task, *, why: str) -> Task:
    return _moved(task, "cancelled", why=why)


def recover(
    tasks: Iterable[Task],
    *,
    repeatable: Collection[str] = REPEATABLE,
) -> tuple[Task, ...]:
    """The tasks after a crash: what was running begins again if its kind may run twice, and else is in doubt."""
    return tuple(_cut_off(task, repeatable) if task.status == "running" else task for task in tasks)


def supersede(tasks: Iterable[Task], place: Place, *, policy: Policy = sends) -> tuple[Task, ...]:
    """The tasks after a new message came in *place*: what was never begun, and what the policy names, is called off."""
    return settle(
        cancel(task, why="a new message came") if _is_unbegun(task, place) and policy(task) else task for task in tasks
    )


def settle(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """The tasks with all that follows from how they stand, so that each waits only for what will come.

    What waits for a failed one is cancelled, and what waits for itself; what waits for a cancelled one waits for what
    that one waited for.
    """
    known = {task.id: task for task in tasks}
    behind: dict[str, tuple[str, ...]] = {}  # what a cancelled one waited for and is not over
    order = _in_order(known)
    for name in order:
        if known[name].status in _WAITING:
            firsts = _firsts(known[name], behind)
            known[name] = _consequent(known[name], firsts, known)
        if known[name].status == "cancelled":
            behind[name] = tuple(first for first in firsts if first in known and not _is_over(known[first]))
    for name in known.keys() - set(order):
        if known[name].status == "pending":
            known[name] = cancel(known[name], why="it waits for itself, or for one that does")
    return tuple(known.values())


def _firsts(task: Task, behind: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What *task* waits for: in the place of cancelled ones, what stands behind them."""
    if not any(first in behind for first in task.after):
        return task.after
    return tuple(dict.fromkeys(name for first in task.after for name in behind.get(first, (first,))))


def _consequent(task: Task, firsts: tuple[str, ...], known: Mapping[str, Task]) -> Task:
    if task.status != "pending":
        return task
    lost = next((known[first] for first in firsts if first in known and _is_lost(known[first])), None)
    if lost is not None:
        return cancel(task, why=f"task {lost.id} before it failed: {lost.why}")
    return task if firsts == task.after else replace(task, after=firsts)


def _in_order(known: Mapping[str, Task]) -> list[str]:
    """The ids, each behind those it waits for; without the ones that never come to an end of that."""
    followers: dict[str, list[str]] = defaultdict(list)
    waiting: dict[str, int] = {}
    for name, task in known.items():
        firsts = {first for first in task.after if first in known} if task.status in _WAITING else set()
        waiting[name] = len(firsts)
        for first in firsts:
            followers[first].append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for follower in followers[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    return order


def _is_over(task: Task) -> bool:
    """Whether what waits for it may go on."""
    return task.status == "done" or (task.status == "failed" and task.doubtful)


def _is_lost(task: Task) -> bool:
    """Whether what waits for it waits in vain."""
    return task.status == "failed" and not task.doubtful


def _is_unbegun(task: Task, place: Place) -> bool:
    return task.status == "pending" and task.attempts == 0 and task.place.key == place.key


def _cut_off(task: Task, repeatable: Collection[str]) -> Task:
    if task.kind in repeatable and task.attempts < MOST_BEGINNINGS:
        return _moved(task, "pending")
    return _moved(task, "failed", why=CUT_OFF, doubtful=True)


def _moved(task: Task, status: Status, **changes: Any) -> Task:
    """*task* in another status, if it can go there from its own."""
    if status not in _LEGAL[task.status]:
        raise InvalidValue(f"task {task.id} is {task.status} and cannot become {status}")
    return replace(task, status=status, **changes)


def _new_id(ids: Iterator[str], taken: Collection[str]) -> str:
    made = next(ids, None)
    if made is None or made in taken:
        raise InvalidValue("every task needs an id of its own")
    return made


def _wait(block: Wait) -> timedelta:
    try:
        return timedelta(seconds=max(block.seconds, 0))
    except OverflowError:
        return timedelta.max


def _order(task: Task) -> tuple[datetime, str]:
    return task.due_at, task.id
