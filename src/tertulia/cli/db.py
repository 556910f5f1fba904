"""`tertulia db`: maintenance of the store."""

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from tertulia.cli.options import DB, Platform, choose_platform, existing_store, open_beside, refuse_existing
from tertulia.cli.output import ProgressBar, count_of, one_line, print_json, print_line, to_json
from tertulia.errors import InvalidValue, StoreBroken
from tertulia.files import create_atomically, temporary_path
from tertulia.store_url import is_url, masked

if TYPE_CHECKING:
    import asyncio

    from tertulia.memory.forget import Forgotten, Plan
    from tertulia.store import Store
    from tertulia.store.transfer import Progress

databases = typer.Typer(
    help="Maintain the store: check, back up, move, export, prune, forget.",
    epilog="Example: tertulia db check",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]

PROGRESS_INTERVAL = 0.5  # seconds between two updates of the bar; a shorter copy has none


@databases.command("check", epilog="Example: tertulia db check --db bot.db")
def check(db: DB = None, as_json: Json = False) -> None:
    """Check the store for damage. Exit 1 when there is any."""
    import asyncio

    path = existing_store(db)
    try:
        faults, counts = asyncio.run(_check(path))
    except StoreBroken as error:
        faults, counts = [str(error)], {}
    if as_json:
        print_json({"faults": faults, **counts})
    elif faults:
        for fault in faults:
            print_line(one_line(fault, None), fg="red")
    else:
        print_line(f"all is well: {', '.join(count_of(count, what) for what, count in counts.items())}", fg="green")
    raise typer.Exit(1 if faults else 0)


@databases.command("backup", epilog="Example: tertulia db backup bot-monday.db")
def backup(
    file: Annotated[Path, typer.Argument(help="The copy to make; an existing file is not replaced.")],
    db: DB = None,
) -> None:
    """Copy the store as it is now to a new file, while a bot uses it, and its files of media to FILE-media.

    Where both folders are on one disk, the files take no more room: they are hard links.
    """
    import asyncio

    path = existing_store(db)
    refuse_existing(file)
    files = asyncio.run(_backup(path, file, size=_file_size(path)))
    beside = f", with {count_of(files, 'files')} of media beside it" if files else ""
    print_line(f"{one_line(str(file), None)} is a copy of {one_line(masked(path), None)}{beside}")


@databases.command("move", epilog="Example: tertulia db move tertulia.db postgresql://bot@db.example/tertulia")
def move(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy: a file, or a URL of PostgreSQL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty database, or a file that does not exist yet.")],
) -> None:
    """Copy a whole store to another one, with its ids and its files of media, and compare every row.

    No bot may use either. A move that was stopped goes on when it is run again. FROM stays as it is. A password is best
    left out of the URLs: libpq takes it from ~/.pgpass or PGPASSWORD.
    """
    bar = ProgressBar(sys.stderr)
    moved = _move(source, target, lambda done, total: bar.show(done / total, f"{done:,} of {total:,} rows"))
    bar.end()
    print_line(
        f"{one_line(masked(target), None)} has all {count_of(moved, 'rows')} of {one_line(masked(source), None)}"
    )


@databases.command("export", epilog="Example: tertulia db export --person 123456789 --out alice.json")
def export(
    person: Annotated[
        str | None, typer.Option(metavar="ID", help="Only what is known of this person, as one JSON object.")
    ] = None,
    platform: Platform = None,
    db: DB = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new file to write to. Default: standard output.")
    ] = None,
) -> None:
    """Write all rows of the store as JSON, one a line, as they are at this moment. A bot may be running meanwhile.

    Left out are the search index, which `tertulia index` builds from the messages, and the raw updates of services.
    With --person: everything that `tertulia db forget` would remove, and under `left_out` what is not in it and why.
    """
    path = existing_store(db)
    if person is None and platform is not None:
        raise InvalidValue("--platform goes with --person")
    if out is None:
        _write_export(path, sys.stdout.buffer, person, platform)
        return
    refuse_existing(out)
    try:
        with create_atomically(out) as temporary, temporary.open("wb") as file:
            _write_export(path, file, person, platform)
    except FileExistsError as error:
        raise InvalidValue(f"{out} exists already; it is not replaced") from error
    except OSError as error:
        raise InvalidValue(f"{out} could not be written: {error.strerror or error}") from error


@databases.command("forget", epilog="Example: tertulia db forget 123456789 --platform telegram")
def forget(
    author: Annotated[str, typer.Argument(help="The person's id on the platform.")],
    platform: Platform = None,
    db: DB = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed. A bot may be running.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove a person everywhere, past prompts included, for good. The bot must not be running.

    Episodes in which they took part are removed too; the bot writes them again, without the person, when it starts.
    With --dry-run --json: the keys of all rows, too. `tertulia db export --person` prints the same rows as they are.
    """
    import asyncio

    path = existing_store(db)
    if dry_run:
        plan = asyncio.run(_plan_forget(path, author, platform))
        if as_json:
            print_json({**_counts(plan.report()), "rows": plan.rows})
        else:
            print_line(f"would be removed: {_removal_summary(_counts(plan.report()))}")
        return
    where, names = asyncio.run(_names_of(path, author, platform))
    if not yes:
        _confirm(f"Forget {one_line(names)} ({one_line(author)} on {one_line(where)}) for good?")
    report, elsewhere = asyncio.run(_forget(path, author, where))
    counts = _counts(report)
    if as_json:
        print_json({**counts, "files_at_services": elsewhere})
    else:
        print_line(f"removed: {_removal_summary(counts)}")
        if elsewhere:
            print_line(f"{count_of(elsewhere, 'files')} at services: the bot deletes them there when it runs next")


@databases.command("prune", epilog="Example: tertulia db prune --prompts 7")
def prune(
    prompts: Annotated[
        int | None,
        typer.Option(min=0, max=36_500, metavar="DAYS", help="Keep prompts so long. Default: by the config."),
    ] = None,
    updates: Annotated[
        int | None, typer.Option(min=0, max=36_500, metavar="DAYS", help="Keep raw updates so long. Default: the same.")
    ] = None,
    db: DB = None,
    as_json: Json = False,
) -> None:
    """Remove old prompts and raw updates, and make the file smaller. The bot must not be running.

    Without a config, prompts are kept for 30 days after their run and raw updates for 7.
    A running bot does the same by itself once a day, and uses the room in the file again.
    """
    import asyncio

    path = existing_store(db)
    before = _file_size(path)
    removed = asyncio.run(_prune(path, prompts, updates))
    counts = {"prompts": removed, "bytes": max(0, before - _file_size(path))}
    if as_json:
        print_json(counts)
    else:
        smaller = f"; the file is {counts['bytes'] >> 10} KB smaller" if before else ""
        print_line(f"removed: {count_of(counts['prompts'], 'prompts')}{smaller}")


def add_to(app: typer.Typer) -> None:
    app.add_typer(databases, name="db")


async def _check(path: str) -> tuple[list[str], dict[str, int]]:
    """Return the faults of a store, or the number of its rows where it has none."""
    async with open_beside(path) as store:
        if faults := await store.check():
            return faults, {}
        return [], await store.count_rows()


def _write_export(path: str, out: IO[bytes], person: str | None, platform: str | None) -> None:
    import asyncio

    asyncio.run(_export(path, out) if person is None else _export_person(path, out, person, platform))
    out.flush()


async def _export(path: str, out: IO[bytes]) -> None:
    async with open_beside(path) as store:
        exported = cast("AsyncGenerator[dict[str, Any]]", store.export())
        async with aclosing(exported) as rows:  # closes the connection at once where nobody reads on
            async for row in rows:
                out.write(to_json(row) + b"\n")


async def _export_person(path: str, out: IO[bytes], person: str, platform: str | None) -> None:
    import msgspec

    async with open_beside(path) as store:
        where, names = await _find_author(store, person, platform)
        if sys.stderr.isatty():
            note = f"tertulia: searching for {one_line(names)} in all that is stored …"
            print(note, file=sys.stderr, flush=True)
        known = await store.export_person(platform=where, author_id=person)
    out.write(msgspec.json.format(to_json(known), indent=2) + b"\n")


def _move(source: str, target: str, progress: "Progress") -> int:
    from tertulia.store.transfer import move_store

    return move_store(source, target, progress)


async def _backup(path: str, file: Path, *, size: int) -> int:
    """Copy a store; return how many files of media it has."""
    import asyncio

    async with open_beside(path) as store:
        copying = asyncio.ensure_future(store.backup(file))
        if size and sys.stderr.isatty():
            await watch_copy(copying, file, total=size)
        await copying
        return (await store.count_rows())["files"]


async def watch_copy(
    copying: "asyncio.Future[None]", file: Path, *, total: int, interval: float = PROGRESS_INTERVAL
) -> None:
    """Show the progress of a copy until it is done."""
    import asyncio

    bar = ProgressBar(sys.stderr)
    while not (await asyncio.wait({copying}, timeout=interval))[0]:
        bar.show_bytes(min(_size_so_far(file), total - 1), total)
    if bar.is_open and copying.exception() is None:
        bar.show_bytes(total, total)
    bar.end()


def _file_size(store: str) -> int:
    """Return the size of a store; 0 of one in PostgreSQL."""
    return 0 if is_url(store) else Path(store).stat().st_size


def _size_so_far(file: Path) -> int:
    try:
        return temporary_path(file).stat().st_size
    except FileNotFoundError:
        return 0


async def _find_author(store: "Store", author: str, platform: str | None) -> tuple[str, str]:
    """Return the platform that knows the id of an author, and the author's names there."""
    known = await store.names_by_platform(author)
    where = f"on {one_line(platform)} " if platform is not None else ""
    found, names = choose_platform(known, author, platform, unknown=f"nobody {where}has the id {one_line(author)}")
    return found, ", ".join(names) or "somebody"


async def _names_of(path: str, author: str, platform: str | None) -> tuple[str, str]:
    from tertulia.store import Store

    async with Store.open(path) as store:
        return await _find_author(store, author, platform)


async def _plan_forget(path: str, author: str, platform: str | None) -> "Plan":
    async with open_beside(path) as store:
        where, _ = await _find_author(store, author, platform)
        return await store.plan_forget(platform=where, author_id=author)


async def _forget(path: str, author: str, platform: str) -> "tuple[Forgotten, int]":
    """Return what was removed, and how many files are to be deleted at services."""
    import asyncio

    from tertulia.platforms.terminal.saved_files import remove_saved
    from tertulia.platforms.terminal.setup import PLACE
    from tertulia.store import Store

    async with Store.open(path) as store:
        report = await store.forget(platform=platform, author_id=author)
        await store.vacuum()
        elsewhere = len(await store.media.unwanted_handles())
        if platform == PLACE.platform:  # which is one person's
            await asyncio.to_thread(remove_saved, store.path)
        return report, elsewhere


async def _prune(path: str, prompts: int | None, updates: int | None) -> int:
    """Remove what is too old by the config or the given numbers of days; return the number of prompts."""
    from datetime import UTC, datetime, timedelta

    from msgspec.structs import replace

    from tertulia.config import Config, find_config, load_config
    from tertulia.engine.retention import Retention
    from tertulia.store import Store

    config = find_config()
    given = load_config(config).config if config else Config()
    days = {"keep_prompts": prompts, "keep_updates": updates}
    kept = {name: timedelta(days=number) for name, number in days.items() if number is not None}
    async with Store.open(path) as store:
        stored = (store.prompts, store.updates, store.media)
        retention = Retention(
            *stored, replace(given.behavior, **kept), options=given.media, now=lambda: datetime.now(UTC), pause=0
        )
        removed = await retention.remove_old()
        await store.vacuum()
    return removed


def _confirm(question: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidValue("standard input is not a terminal, so nobody can confirm; --yes forgets without asking")
    if not typer.confirm(question, err=True):
        print("tertulia: nothing was removed", file=sys.stderr)
        raise typer.Exit(1)


_REMOVED = {  # a count of `Forgotten`: its noun in the plural, and what follows the noun
    "places": ("direct chats", "with everything there"),
    "messages": ("messages", ""),
    "quotes": ("quotes", "of them"),
    "forwards": ("forwards", "of them"),
    "names": ("names", ""),
    "titles": ("titles", "of groups"),
    "descriptions": ("descriptions", "of media"),
    "files": ("files", "of media"),
    "facts": ("facts", ""),
    "summaries": ("summaries", ""),
    "episodes": ("episodes", ""),
    "answers": ("answers", "of the agent"),
    "replies": ("replies", "in the outbox"),
    "tasks": ("tasks", ""),
    "blocks": ("blocks", ""),
    "exchanges": ("exchanges", "in chats with a name"),
    "prompts": ("prompts", "that may have shown them"),
    "records": ("records", "of what came back"),
    "tool_runs": ("tool runs", ""),
}


def _counts(report: "Forgotten") -> dict[str, int]:
    return {name: getattr(report, name) for name in report.__struct_fields__ if name != "known"}


def _removal_summary(counts: dict[str, int]) -> str:
    removed = [
        f"{count_of(counts[name], what)} {more}".rstrip() for name, (what, more) in _REMOVED.items() if counts[name]
    ]
    return ", ".join(removed) or "nothing; nothing of theirs was stored"
