"""`palaver db`: looking after the store."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from palaver.cli.files import DB, beside, kept_at, refuse_existing
from palaver.cli.streams import write_json
from palaver.cli.tables import counted, json_of, one_line, say
from palaver.errors import InvalidValue, StoreBroken, StoreBusy
from palaver.files import create_atomically, temporary_path

if TYPE_CHECKING:
    import asyncio

    from palaver.store import Forgotten, Store

databases = typer.Typer(
    help="Look after the store: check, back up, export, forget.",
    epilog="Example: palaver db check",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]

PATIENCE = 0.5  # seconds until a copy is long enough for a bar


@databases.command("check", epilog="Example: palaver db check --db bot.db")
def check(db: DB = None, as_json: Json = False) -> None:
    """Look whether all is well with the store. Exit 1 when something is not."""
    import asyncio

    path = kept_at(db)
    try:
        faults, counts = asyncio.run(_checked(path))
    except StoreBroken as error:
        faults, counts = [str(error)], {}
    if as_json:
        write_json(json_of({"faults": faults, **counts}))
    elif faults:
        for fault in faults:
            say(one_line(fault, None), fg="red")
    else:
        say(f"all is well: {', '.join(counted(count, what) for what, count in counts.items())}", fg="green")
    raise typer.Exit(1 if faults else 0)


@databases.command("backup", epilog="Example: palaver db backup bot-monday.db")
def backup(
    file: Annotated[Path, typer.Argument(help="The copy to make; a file that is there is not replaced.")],
    db: DB = None,
) -> None:
    """Copy the store as it is now to a new file, while a bot uses it."""
    import asyncio

    path = kept_at(db)
    refuse_existing(file)
    asyncio.run(_backed_up(path, file, size=path.stat().st_size))
    say(f"{one_line(str(file), None)} is a copy of {one_line(str(path), None)}")


@databases.command("export", epilog="Example: palaver db export --out everything.jsonl")
def export(
    db: DB = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new file to write to. Default: standard output.")
    ] = None,
) -> None:
    """Write everything that is kept as JSON, a row a line, as it is at this moment.

    The index of what was said is left out: `palaver index` makes it from the messages.
    """
    import asyncio

    path = kept_at(db)
    if out is None:
        asyncio.run(_exported(path, sys.stdout.buffer))
        return
    refuse_existing(out)
    with _new_file(out) as file:
        asyncio.run(_exported(path, file))


@databases.command("forget", epilog="Example: palaver db forget 123456789 --platform telegram")
def forget(
    author: Annotated[str, typer.Argument(help="The person's id on the platform.")],
    platform: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which platform. Default: the only one that knows the id.")
    ] = None,
    db: DB = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a person everywhere, past prompts included, for good. The bot must not be running.

    Episodes they had a part in go too; the bot tells them anew without them when it starts.
    """
    import asyncio

    path = kept_at(db)
    where, names = asyncio.run(_known(path, author, platform))
    if not yes:
        _confirm(f"Forget {one_line(names)} ({one_line(author)} on {one_line(where)}) for good?")
    report = asyncio.run(_forgotten(path, author, where))
    counts = {name: getattr(report, name) for name in report.__struct_fields__}
    if as_json:
        write_json(json_of(counts))
    else:
        say(f"removed: {_summary(counts)}")


def add_to(app: typer.Typer) -> None:
    app.add_typer(databases, name="db")


async def _checked(path: Path) -> tuple[list[str], dict[str, int]]:
    """What is wrong, and how much is kept."""
    async with beside(path) as store:
        if faults := await store.check():
            return faults, {}
        return [], await store.count_rows()


async def _exported(path: Path, out: IO[bytes]) -> None:
    async with beside(path) as store, aclosing(_rows(store)) as rows:
        async for row in rows:
            out.write(json_of(row) + b"\n")
    out.flush()


async def _rows(store: "Store") -> AsyncGenerator[dict[str, Any]]:
    """All that is kept; who stops early lets the file go at once."""
    async with aclosing(cast("AsyncGenerator[dict[str, Any]]", store.export())) as rows:
        async for row in rows:
            yield row


async def _backed_up(path: Path, file: Path, *, size: int) -> None:
    import asyncio

    async with beside(path) as store:
        copying = asyncio.ensure_future(store.backup(file))
        if sys.stderr.isatty():
            await _watch(copying, file, size)
        await copying


async def _watch(copying: "asyncio.Future[None]", file: Path, total: int) -> None:
    """Show how far a copy is, if it takes long."""
    import asyncio

    from palaver.cli.model import Progress

    progress = Progress(sys.stderr)
    shown = False
    while not (await asyncio.wait({copying}, timeout=PATIENCE))[0]:
        shown = True
        progress(min(_size_so_far(file), total - 1), total)
    if shown and copying.exception() is None:
        progress(total, total)
    elif shown:
        print(file=sys.stderr)  # below the bar


def _size_so_far(file: Path) -> int:
    try:
        return temporary_path(file).stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is there when it is whole, and not at all otherwise."""
    try:
        with create_atomically(path) as temporary, temporary.open("wb") as file:
            yield file
    except FileExistsError as error:
        raise InvalidValue(f"{path} is there already; it is not replaced") from error
    except OSError as error:
        raise InvalidValue(f"{path} could not be written: {error.strerror or error}") from error


async def _known(path: Path, author: str, platform: str | None) -> tuple[str, str]:
    """The platform where somebody has that id, and the names they go by there."""
    async with _alone(path) as store:
        known = await store.names_by_platform(author)
    wanted = {name: names for name, names in known.items() if platform in (None, name)}
    if not wanted:
        where = f"on {one_line(platform)} " if platform is not None else ""
        raise InvalidValue(f"nobody {where}has the id {one_line(author)}")
    if len(wanted) > 1:
        these = ", ".join(map(one_line, sorted(wanted)))
        raise InvalidValue(f"{one_line(author)} is somebody on each of {these}; say which with --platform")
    where, names = wanted.popitem()
    return where, ", ".join(names) or "somebody"


async def _forgotten(path: Path, author: str, platform: str) -> "Forgotten":
    async with _alone(path) as store:
        return await store.forget(author, platform)


@asynccontextmanager
async def _alone(path: Path) -> "AsyncIterator[Store]":
    """The store for ourselves."""
    from palaver.store import Store

    try:
        store = await Store.open(path)
    except StoreBusy as error:
        raise StoreBusy(f"{error}; stop the bot first") from error
    async with store:
        yield store


def _confirm(question: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidValue("nobody is there to confirm it; --yes forgets without asking")
    if not typer.confirm(question, err=True):
        print("palaver: nothing was removed", file=sys.stderr)
        raise typer.Exit(1)


_REMOVED = {  # what is counted, in the plural, and more about it
    "places": ("direct chats", "with everything there"),
    "messages": ("messages", ""),
    "quotes": ("quotes", "of them"),
    "names": ("names", ""),
    "titles": ("titles", "of groups"),
    "descriptions": ("descriptions", "of media"),
    "facts": ("facts", ""),
    "summaries": ("summaries", ""),
    "episodes": ("episodes", ""),
    "answers": ("answers", "of the agent"),
    "replies": ("replies", "in the outbox"),
    "tasks": ("tasks", ""),
    "blocks": ("blocks", ""),
    "exchanges": ("exchanges", "in chats with a name"),
    "prompts": ("prompts", "that showed their words"),
    "records": ("records", "of what came back"),
    "tool_runs": ("tool runs", ""),
}


def _summary(counts: dict[str, int]) -> str:
    """What was removed, in one line."""
    found = {name: f"{counted(counts[name], what)} {more}".rstrip() for name, (what, more) in _REMOVED.items()}
    removed = [words for name, words in found.items() if counts[name]]
    return ", ".join(removed) or "nothing; nothing of theirs was kept"
