"""`palaver tasks`."""

from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.files import DB, beside
from palaver.cli.streams import write_json
from palaver.cli.tables import from_now, json_of, local, one_line, place_words, say, short_ids, show, the_id
from palaver.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from palaver.tasks.values import Task

HEAD = ("id", "kind", "place", "due", "", "status", "attempts", "what", "why")
UNFINISHED = ("pending", "running")
WHY = "called off at the command line"


def tasks(
    db: DB = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what is done, failed or cancelled.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of tasks, or what was cancelled.")] = False,
    cancel: Annotated[
        str | None, typer.Option(metavar="ID", help="Call off a task that was not begun; the beginning of its id does.")
    ] = None,
) -> None:
    """Show the work that was promised for later, or call off a task. A bot may be running meanwhile."""
    import asyncio

    if cancel is not None:
        called_off, staying = asyncio.run(_cancel(db, cancel))
        return write_json(json_of({"cancelled": called_off})) if as_json else _tell(called_off, staying)
    known = asyncio.run(_listed(db))
    found = [task for task in known if everything or task.status in UNFINISHED]
    if as_json:
        write_json(json_of(found))
    elif found:
        _show(found, short_ids(task.id for task in known))
    else:
        say("there are no tasks" if everything else "no tasks are waiting")
    return None


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: palaver tasks --cancel 3f9a")(tasks)


async def _listed(db: "Path | None") -> "Sequence[Task]":
    async with beside(db) as store:
        return await store.tasks.listed()


async def _cancel(db: "Path | None", given: str) -> "tuple[list[Task], list[Task]]":
    """What was called off, the task itself first, and what stays of all that was to come after it."""
    async with beside(db) as store:
        before = {task.id: task for task in await store.tasks.listed()}
        name = the_id(given, before, "task")
        if before[name].status != "pending":
            raise InvalidValue(f"task {one_line(name)} is {before[name].status}; only what waits can be cancelled")
        cancelled = await store.tasks.cancel(name, why=WHY)
        if cancelled is None:
            raise InvalidValue(f"there is no task {one_line(name)} any more")
        behind = _behind(name, before)
        after = [task for task in await store.tasks.listed() if task.id in behind]
    lost = [task for task in after if task.status == "cancelled" and before[task.id].status == "pending"]
    return [cancelled, *lost], [task for task in after if task.status in UNFINISHED]


def _behind(name: str, known: "dict[str, Task]") -> set[str]:
    """The ids of all that waits for a task, also by way of others."""
    found: set[str] = set()
    reached = {name}
    while reached:
        reached = {task.id for task in known.values() if reached & set(task.after)} - found
        found |= reached
    return found - {name}


def _tell(cancelled: "list[Task]", staying: "list[Task]") -> None:
    first, *others = cancelled
    say(f"cancelled {_words(first)}")
    for task in others:
        say(f"cancelled with it {_words(task)}")
    for task in staying:
        say(f"goes on without it: {_words(task)}")


def _words(task: "Task") -> str:
    what = _what(task)
    return f"{one_line(task.id)}: {one_line(task.kind)} in {place_words(task.place)}{what and f', {what}'}"


def _show(found: "Sequence[Task]", names: dict[str, str]) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    rows = [
        (
            names[task.id],
            one_line(task.kind),
            place_words(task.place),
            local(task.due_at),
            from_now(task.due_at, now),
            f"{task.status}, in doubt" if task.doubtful else task.status,
            str(task.attempts),
            _what(task),
            one_line(task.why),
        )
        for task in found
    ]
    show(HEAD, rows, [task.status == "failed" for task in found])


def _what(task: "Task") -> str:
    """What it will say, or else what it was given."""
    from palaver.models.json import dumps

    said = task.args.get("text") or task.args.get("body")
    facts = task.args.get("facts")
    if isinstance(facts, list):
        said = "; ".join(map(str, facts))
    if not isinstance(said, str):
        said = dumps(task.args).decode() if task.args else ""
    return one_line(said)
