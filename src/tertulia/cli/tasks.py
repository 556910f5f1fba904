"""`tertulia tasks`: the tasks that are planned, and cancelling them."""

from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, open_beside
from tertulia.cli.output import (
    local_time,
    one_line,
    place_label,
    print_json,
    print_line,
    print_table,
    relative_time,
    short_ids,
)
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tertulia.tasks.task import Task

HEAD = ("id", "kind", "place", "agent", "due", "", "status", "attempts", "what", "why")
UNFINISHED = ("pending", "running")
WHY = "cancelled at the command line"


def tasks(
    db: DB = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what is done, failed or cancelled.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of tasks, or what was cancelled.")] = False,
    cancel: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Cancel a task that has not begun; the beginning of its id is enough."),
    ] = None,
) -> None:
    """Show the tasks that are planned, or cancel one. A bot may be running meanwhile."""
    import asyncio

    if cancel is not None:
        cancelled, remaining = asyncio.run(_cancel(db, cancel))
        return print_json({"cancelled": cancelled}) if as_json else _print_cancelled(cancelled, remaining)
    known = asyncio.run(_read_tasks(db))
    found = [task for task in known if everything or task.status in UNFINISHED]
    if as_json:
        print_json(found)
    elif found:
        _print_tasks(found, _names(known))
    else:
        print_line("there are no tasks" if everything else "no tasks are waiting")
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia tasks --cancel 3f9a")(tasks)


async def _read_tasks(db: str | None) -> "Sequence[Task]":
    async with open_beside(db) as store:
        return await store.tasks.listed()


async def _cancel(db: str | None, given: str) -> "tuple[list[Task], list[Task]]":
    """Cancel a task; return the cancelled tasks, that one first, and the dependent tasks that were not cancelled."""
    from tertulia.tasks.task import tasks_named

    async with open_beside(db) as store:
        before = {task.id: task for task in await store.tasks.listed()}
        found = tasks_named(given, before.values())
        if not found:
            raise InvalidValue(f"there is no task {one_line(given)}")
        if len(found) > 1:
            raise InvalidValue(f"{len(found)} tasks have ids that begin with {one_line(given)}")
        [task] = found
        if task.status != "pending":
            raise InvalidValue(f"task {one_line(given)} is {task.status}; only what waits can be cancelled")
        cancelled = await store.tasks.cancel(task.id, why=WHY)
        if cancelled is None:
            raise InvalidValue(f"there is no task {one_line(given)} any more")
        dependents = _dependents(task.id, before)
        after = [task for task in await store.tasks.listed() if task.id in dependents]
    lost = [task for task in after if task.status == "cancelled" and before[task.id].status == "pending"]
    return [cancelled, *lost], [task for task in after if task.status in UNFINISHED]


def _dependents(name: str, known: "dict[str, Task]") -> set[str]:
    """Return the ids of all tasks that wait for a task, directly or by way of others."""
    found: set[str] = set()
    reached = {name}
    while reached:
        reached = {task.id for task in known.values() if reached & set(task.after)} - found
        found |= reached
    return found - {name}


def _names(tasks: "Iterable[Task]") -> dict[str, str]:
    """Map the ids of tasks to those that people see."""
    from tertulia.tasks.task import public_id

    public = {task.id: public_id(task) for task in tasks}
    short = short_ids(public.values())
    return {name: short[of] for name, of in public.items()}


def _print_cancelled(cancelled: "list[Task]", remaining: "list[Task]") -> None:
    first, *others = cancelled
    names = _names([*cancelled, *remaining])
    print_line(f"cancelled {_label(first, names)}")
    for task in others:
        print_line(f"cancelled with it {_label(task, names)}")
    for task in remaining:
        print_line(f"goes on without it: {_label(task, names)}")


def _label(task: "Task", names: dict[str, str]) -> str:
    what = _content(task)
    return f"{names[task.id]}: {one_line(task.kind)} in {place_label(task.place)}{what and f', {what}'}"


def _print_tasks(tasks: "Sequence[Task]", names: dict[str, str]) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    rows = [
        (
            names[task.id],
            one_line(task.kind),
            place_label(task.place),
            one_line(task.agent),
            local_time(task.due_at),
            relative_time(task.due_at, now),
            f"{task.status}, in doubt" if task.doubtful else task.status,
            str(task.attempts),
            _content(task),
            one_line(task.why),
        )
        for task in tasks
    ]
    print_table(HEAD, rows, red=[task.status == "failed" for task in tasks])


def _content(task: "Task") -> str:
    """Return the text that a task will send, or else its arguments."""
    from tertulia.jsonio import dumps

    said = task.args.get("text") or task.args.get("body")
    facts = task.args.get("facts")
    if isinstance(facts, list):
        said = "; ".join(map(str, facts))
    if not isinstance(said, str):
        said = dumps(task.args).decode() if task.args else ""
    return one_line(f"{said} ({task.again.words})" if task.again else said)
