"""The tasks that may begin, in Python; the store finds them by SQL."""

from collections.abc import Iterable
from datetime import datetime

from tertulia.tasks.graph import without_open_dependencies
from tertulia.tasks.task import Task
from tertulia.timezones import utc


def ready(tasks: Iterable[Task], now: datetime) -> tuple[Task, ...]:
    """Return the tasks that may begin, in the order in which they are due."""
    moment = utc(now)
    due = (task for task in without_open_dependencies(tasks) if task.due_at <= moment)
    return tuple(sorted(due, key=lambda task: (task.due_at, task.id)))


def next_due(tasks: Iterable[Task]) -> datetime | None:
    """Return when the next task may begin, if nothing else happens; it may be past."""
    return min((task.due_at for task in without_open_dependencies(tasks)), default=None)
