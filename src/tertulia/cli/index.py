"""`tertulia index`: the index for search, brought up to date at once."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, existing_store, open_beside
from tertulia.cli.output import INTERRUPTED, ProgressBar, count_of, print_json, print_line
from tertulia.errors import ModelUnavailable, Overloaded, RateLimited, StoreBusy

if TYPE_CHECKING:
    from tertulia.engine.memory.indexer import Indexer
    from tertulia.memory.embeddings import Embedder
    from tertulia.memory.retrieval.features import Floats
    from tertulia.memory.values import IndexProgress
    from tertulia.messages import Place
    from tertulia.store import Store

PROGRESS_INTERVAL = 0.2  # seconds between two updates of the bar
BACKOFF = (5.0, 10.0, 20.0, 40.0, 80.0)  # seconds to wait for a busy service that does not say for how long
LONGEST_WAIT = 600.0  # seconds; a service that asks for more is not waited for


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
    """Index the messages that are not indexed yet, or all for another embedder.

    This works while a bot runs; the bot does the same in the background. The old index is
    used until the new one is complete.
    """
    import asyncio

    from tertulia.memory.embeddings import check_embedder

    path = existing_store(db)
    wanted = None if embedder is None else check_embedder(embedder)
    try:
        done, name = asyncio.run(_index(path, wanted))
    except KeyboardInterrupt:
        print("tertulia: interrupted; the same command does the rest", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        facts = {"messages": done.messages, "indexed": done.indexed, "embedded": done.embedded}
        print_json({**facts, "embedder": name})
        return
    how = f"by words and by meaning ({name})" if name else "by words"
    print_line(f"{count_of(done.indexed, 'messages')} can be found {how}")


def add_to(app: typer.Typer) -> None:
    app.command("index", epilog="Example: tertulia index --embedder minilm")(index)


async def _index(path: str, wanted: str | None) -> "tuple[IndexProgress, str | None]":
    """Index a store; return how much is indexed in the end, and the embedder's name."""
    from tertulia.memory.embeddings import NO_EMBEDDER, RemoteEmbedder, find_embedder

    async with _open(path) as store, AsyncExitStack() as opened:
        chosen = await store.index_writer.embedder() if wanted is None else wanted
        embedder = None if chosen == NO_EMBEDDER else find_embedder(chosen)
        if isinstance(embedder, RemoteEmbedder):
            opened.push_async_callback(embedder.aclose)
        name = embedder.id if embedder else None
        if embedder and await store.index_writer.unread(name):
            with suppress(Overloaded, RateLimited):  # it will work later
                await embedder.embed(["one that can be used"])  # fails before anything is changed
        if wanted is not None:
            await store.index_writer.choose(wanted)
        await store.index_writer.rebuild_broken()
        await _index_with_progress(store, chosen, embedder)
        return await store.index_writer.progress(name), name


async def _index_with_progress(store: "Store", chosen: str, embedder: "Embedder | None") -> None:
    import asyncio

    from tertulia.engine.memory.indexer import Indexer

    bar = ProgressBar(sys.stderr, width=20)
    name = embedder.id if embedder else None
    retrying = RetryingEmbedder(embedder, bar.note) if embedder else None
    indexer = Indexer(store.index_writer, embedders=lambda one: retrying if one == chosen else None)
    work = asyncio.ensure_future(_index_places(indexer, await store.index_writer.unread(name)))
    try:
        while not (await asyncio.wait({work}, timeout=PROGRESS_INTERVAL))[0]:
            _show(bar, await store.index_writer.progress(name), name)
        await work
    finally:
        bar.end()
        work.cancel()
        await asyncio.wait({work})


async def _index_places(indexer: "Indexer", places: "Sequence[Place]") -> None:
    """Index all places by words, then all by meaning."""
    for index_place in (indexer.index_words, indexer.embed_messages):
        for place in places:
            await index_place(place)


class RetryingEmbedder:
    """An embedder that retries with backoff while its service is unavailable, and notes each wait."""

    def __init__(self, embedder: "Embedder", note: Callable[[str], None]) -> None:
        self.id = embedder.id
        self._embedder = embedder
        self._note = note

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        import asyncio

        for pause in BACKOFF:
            try:
                return await self._embedder.embed(texts, asking=asking)
            except ModelUnavailable as error:
                wait = pause if error.retry_after is None else error.retry_after
                if wait > LONGEST_WAIT:
                    raise
                self._note(f"{error}; retrying in {wait:g} s")
                await asyncio.sleep(wait)
        return await self._embedder.embed(texts, asking=asking)


def _show(bar: ProgressBar, now: "IndexProgress", embedder: str | None) -> None:
    total = now.messages * (2 if embedder else 1)
    if total:
        by_meaning = f", {now.embedded} by meaning" if embedder else ""
        text = f"{now.indexed} of {now.messages} messages by words{by_meaning}"
        bar.show(min(1.0, (now.indexed + now.embedded) / total), text)


@asynccontextmanager
async def _open(path: str) -> "AsyncIterator[Store]":
    """Open a store alone, which also migrates an old one; beside a bot that has it open."""
    from tertulia.store import Store

    try:
        store = await Store.open(path)
    except StoreBusy:
        store = await open_beside(path)
    async with store:
        yield store
