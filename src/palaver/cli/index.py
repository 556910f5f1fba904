"""`palaver index`: making what was said findable, all of it, now."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from palaver.cli.files import DB, beside, kept_at
from palaver.cli.streams import write_json
from palaver.cli.tables import counted, json_of, say
from palaver.errors import ModelUnavailable, Overloaded, RateLimited, StoreBusy

if TYPE_CHECKING:
    from palaver.conversation.memory.indexing import Indexer
    from palaver.memory.embedding import Embedder
    from palaver.memory.retrieval.index import Progress
    from palaver.memory.retrieval.matrix import Floats
    from palaver.messages import Place
    from palaver.store import Store

PACE = 0.2  # seconds between two looks at how far it is
PAUSES = (5.0, 10.0, 20.0, 40.0, 80.0)  # seconds that a busy service is given, unless it says for how long
LONGEST = 600.0  # … and how long we wait for it at most
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
        print("palaver: interrupted; the same command does the rest", file=sys.stderr)
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
    from palaver.memory.embedding import NONE, known

    async with _opened(path) as store:
        chosen = await store.indexing.embedder() if wanted is None else wanted
        embedder = None if chosen == NONE else known(chosen)
        name = embedder.id if embedder else None
        if embedder and await store.indexing.unread(name):
            with suppress(Overloaded, RateLimited):  # it can be used, later
                await embedder.embed(["one that can be used"])  # else it is better to know before anything is changed
        if wanted is not None:
            await store.indexing.choose(wanted)
        await store.indexing.mend()
        await _watched(store, chosen, embedder)
        return await store.indexing.progress(name), name


async def _watched(store: "Store", chosen: str, embedder: "Embedder | None") -> None:
    """Index everything, and show how far it is."""
    import asyncio

    from palaver.conversation.memory.indexing import Indexer

    bar = Bar(sys.stderr)
    name = embedder.id if embedder else None
    patient = Patient(embedder, bar.tell) if embedder else None
    indexer = Indexer(store.indexing, embedders=lambda one: patient if one == chosen else None)
    work = asyncio.ensure_future(_all(indexer, await store.indexing.unread(name)))
    try:
        while not (await asyncio.wait({work}, timeout=PACE))[0]:
            bar.show(await store.indexing.progress(name), name)
        await work
    finally:
        bar.end()
        work.cancel()
        await asyncio.wait({work})


async def _all(indexer: "Indexer", places: "Sequence[Place]") -> None:
    """Every place by its words, and then by its meaning."""
    for indexed in (indexer.words, indexer.vectors):
        for place in places:
            await indexed(place)


class Patient:
    """An embedder that waits for its service and says so, a few times; whoever waits for the command can end it."""

    def __init__(self, embedder: "Embedder", tell: Callable[[str], None]) -> None:
        self.id = embedder.id
        self._embedder = embedder
        self._tell = tell

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        import asyncio

        for pause in PAUSES:
            try:
                return await self._embedder.embed(texts, asking=asking)
            except ModelUnavailable as error:
                wait = pause if error.retry_after is None else error.retry_after
                if wait > LONGEST:
                    raise
                self._tell(f"{error}; it goes on in {wait:g} s")
                await asyncio.sleep(wait)
        return await self._embedder.embed(texts, asking=asking)


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
            filled = round(20 * share)
            print(f"\r[{'█' * filled}{'·' * (20 - filled)}] {words}", end="", file=self._out, flush=True)
            self._shown = True
        elif int(10 * share) > self._tenths:
            self._tenths = int(10 * share)
            print(f"{self._tenths * 10} %: {words}", file=self._out, flush=True)

    def tell(self, line: str) -> None:
        """A line of its own, below what is shown of the bar."""
        self.end()
        print(f"palaver: {line}", file=self._out, flush=True)

    def end(self) -> None:
        if self._shown:
            print(file=self._out)  # below the bar
        self._shown = False


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
