"""`palaver index`: making what was said findable, all of it, now."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from palaver.cli.files import DB, beside, kept_at
from palaver.cli.streams import write_json
from palaver.cli.tables import counted, json_of, say
from palaver.errors import StoreBusy

if TYPE_CHECKING:
    from palaver.conversation.memory.indexing import Indexer
    from palaver.memory.index import Progress
    from palaver.store import Store

PACE = 0.2  # seconds between two looks at how far it is
INTERRUPTED = 130  # as shells have it


def index(
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Search by meaning with minilm or gemini:MODEL from now on, or with none. Default: as it is.",
        ),
    ] = None,
    db: DB = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Index what was said and is not indexed yet, or all of it for another embedder. A bot may be running meanwhile.

    A bot does the same by itself, in the background; what is old serves until what is new is done.
    """
    import asyncio

    from palaver.memory.embedding import chosen

    path = kept_at(db)
    wanted = None if embedder is None else chosen(embedder)
    try:
        done, name = asyncio.run(_indexed(path, wanted))
    except KeyboardInterrupt:
        start = "\n" if sys.stderr.isatty() else ""  # below the bar
        print(f"{start}palaver: interrupted; the same command does the rest", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        facts = {"messages": done.messages, "indexed": done.indexed, "embedded": done.embedded}
        write_json(json_of({**facts, "embedder": name}))
        return
    how = f"by words and by meaning ({name})" if name else "by words"
    say(f"{counted(done.indexed, 'messages')} can be found {how}")


def add_to(app: typer.Typer) -> None:
    app.command("index", epilog="Example: palaver index --embedder minilm")(index)


async def _indexed(path: Path, wanted: str | None) -> "tuple[Progress, str | None]":
    """How much can be found in the end, and the embedder by which."""
    from palaver.conversation.memory.indexing import Indexer
    from palaver.memory.embedding import NONE, known

    async with _opened(path) as store:
        chosen = await store.indexing.embedder() if wanted is None else wanted
        embedder = None if chosen == NONE else known(chosen)
        name = embedder.id if embedder else None
        if embedder and await store.indexing.unread(name):
            await embedder.embed(["one that can be used"])  # else it is better to know before anything is changed
        if wanted is not None:
            await store.indexing.choose(wanted)
        indexer = Indexer(store.indexing, embedders=known)
        try:
            await indexer.start()
            await _watched(store, indexer, name)
        finally:
            await indexer.close()
        return await store.indexing.progress(name), name


async def _watched(store: "Store", indexer: "Indexer", embedder: str | None) -> None:
    """Show how far it is until it is done."""
    import asyncio

    bar = Bar(sys.stderr)
    ending = asyncio.ensure_future(indexer.done())
    while not (await asyncio.wait({ending}, timeout=PACE))[0]:
        bar.show(await store.indexing.progress(embedder), embedder)
    bar.end()


class Bar:
    """How much is done: a bar for people, a line every tenth of the way elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._tenths = 0
        self._shown = False

    def show(self, now: "Progress", embedder: str | None) -> None:
        total = now.messages * (2 if embedder else 1)
        if not total:
            return
        share = min(1.0, (now.indexed + now.embedded) / total)
        words = f"{now.indexed} of {now.messages} messages by words"
        words += f", {now.embedded} by meaning" if embedder else ""
        if self._out.isatty():
            filled = round(30 * share)
            print(f"\r[{'█' * filled}{'·' * (30 - filled)}] {words}", end="", file=self._out, flush=True)
            self._shown = True
        elif int(10 * share) > self._tenths:
            self._tenths = int(10 * share)
            print(f"{self._tenths * 10} %: {words}", file=self._out, flush=True)

    def end(self) -> None:
        if self._shown:
            print(file=self._out)  # below the bar


@asynccontextmanager
async def _opened(path: Path) -> "AsyncIterator[Store]":
    """The store for ourselves, which also brings an old one up to date; beside a bot that has it open."""
    from palaver.store import Store

    try:
        store = await Store.open(path)
    except StoreBusy:
        store = await beside(path)
    async with store:
        yield store
