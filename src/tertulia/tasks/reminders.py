"""Reminders: tasks that send a text to their place when it is due, made by a model's tool or a person. Pure."""

from collections.abc import Iterable
from datetime import datetime

from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place
from tertulia.tasks.recurrence import Recurrence
from tertulia.tasks.task import Send, Task, args_of, kind_of

PREFIX = "reminder-"  # of the ids of the tasks
MAX_REMINDER_TEXT = 4000  # characters of a text
MOST = 200  # open reminders of one place


def refuse_too_many(tasks: Iterable[Task]) -> None:
    """Raise `InvalidValue` if the tasks of a place have so many open reminders that there can be no more."""
    open_ones = sum(task.status == "pending" and task.id.startswith(PREFIX) for task in tasks)
    if open_ones >= MOST:
        raise InvalidValue(f"{open_ones} reminders are still to come here, and there can be no more than {MOST}")


def reminder_task(
    task_id: str,
    place: Place,
    text: str,
    *,
    when: tuple[datetime, Recurrence | None],
    asked: Message | None,
    made_by: str | None = None,
    agent: str = "",
) -> Task:
    """Return a task that replies in a group to the message that *asked* for it, and is forgotten with its author.

    It belongs to no plan, so the next message does not cancel it.
    """
    block = Send(text=text, reply_to=asked.id if asked and place.kind != "direct" else None)
    author = {"author": {"id": asked.author.id, "name": asked.author.name}} if asked else {}
    due_at, again = when
    args = {**args_of(block), **author}
    return Task(
        id=task_id,
        kind=kind_of(block),
        place=place,
        due_at=due_at,
        args=args,
        made_by=made_by,
        agent=agent,
        again=again,
    )


def asked_by(task: Task) -> str | None:
    """Return the id of the person who asked for a reminder."""
    author = task.args.get("author")
    return author.get("id") if isinstance(author, dict) else None
