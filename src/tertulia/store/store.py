"""The store: a SQLite file or a PostgreSQL database, for one bot, with a member for each protocol of the engine."""

import asyncio
import os
from collections.abc import AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tertulia.engine.inspection import StoreState
from tertulia.errors import StoreBusy
from tertulia.memory import rules
from tertulia.memory.forget import Forgotten, Plan
from tertulia.prompt.ledger import Ledgers
from tertulia.store import encoding, maintenance
from tertulia.store.agents import SqlAgents
from tertulia.store.chats import SqlChats
from tertulia.store.cursors import SqlCursors
from tertulia.store.descriptions import SqlDescriptions
from tertulia.store.episodes import SqlEpisodes, SqlWindowPasts
from tertulia.store.events import SqlEvents
from tertulia.store.facts import SqlFacts, SqlProposals
from tertulia.store.forget import person
from tertulia.store.forget.person import SqlForgets
from tertulia.store.imports import SqlImports
from tertulia.store.index_reader import SqlIndexReader
from tertulia.store.inspection import SqlInspection
from tertulia.store.log import SqlLog
from tertulia.store.media_files import SqlMedia
from tertulia.store.media_folder import copy_folder, refuse_existing, remove_unfinished
from tertulia.store.messages import SqlInbox
from tertulia.store.model_caches import SqlModelCaches
from tertulia.store.opening import Opened, connect_reading, driver_of, open_beside, open_store
from tertulia.store.orders import SqlOrders
from tertulia.store.outbox import SqlOutbox
from tertulia.store.owner_settings import SqlOwnerSettings
from tertulia.store.places import SqlPlaceSettings
from tertulia.store.process_state import LocalOwnership, LocalRateLimits, LocalStopRequests
from tertulia.store.prompts import SqlPrompts
from tertulia.store.rooms import SqlRooms
from tertulia.store.runs import SqlRuns
from tertulia.store.search_index import SqlIndexWriter
from tertulia.store.sqlite import connection
from tertulia.store.tasks import SqlTasks
from tertulia.store.threads import Access, CheckedCalls, ConnectionThread, ReaderThread, WriterThread
from tertulia.store.updates import SqlUpdates
from tertulia.store.usage import SqlUsage
from tertulia.tasks import graph

_WAL_ATTEMPTS, _WAL_PAUSE = 100, 0.05  # to truncate the log while others read it; seconds between them


class Store(CheckedCalls):
    """All stored state: `async with Store.open(path) as store: await store.inbox.receive(message, at=now)`."""

    def __init__(
        self,
        writer: ConnectionThread,
        reader: ConnectionThread,
        opened: Opened,
        *,
        beside: bool = False,
    ) -> None:
        self.path = opened.driver.name
        self._driver = opened.driver
        self._held = opened.held
        self._beside = beside
        self.writer = writer  # runs functions on the connection that writes, for SQL that no member has
        self.reader = reader  # the same on the connection that reads
        access = Access(writer, reader, rules, graph, self._clear_caches)
        self.log = SqlLog(self.reader)
        self.inbox = SqlInbox(access)
        self.prompts = SqlPrompts(access, Ledgers())
        self.events = SqlEvents(access)
        self.updates = SqlUpdates(access)
        self.runs = SqlRuns(access, self.prompts)
        self.outbox = SqlOutbox(access)
        self.tasks = SqlTasks(access)
        self.agents = SqlAgents(access)
        self.place_settings = SqlPlaceSettings(access)
        self.owner_settings = SqlOwnerSettings(access)
        self.facts = facts = SqlFacts(access)
        self.orders = SqlOrders(access, facts)
        self.rooms = SqlRooms(access)
        self.proposals = SqlProposals(access)
        self.cursors = SqlCursors(access)
        self.episodes = SqlEpisodes(access)
        self.window_pasts = SqlWindowPasts(access)
        self.index_reader = SqlIndexReader(access)
        self.index_writer = SqlIndexWriter(access)
        self.media = SqlMedia(access, opened.folder, beside=beside)
        self.descriptions = SqlDescriptions(access, is_forgotten=self.media.is_forgotten)
        self.usage = SqlUsage(access)
        self.inspection = SqlInspection(access)
        self.model_caches = SqlModelCaches(access, durable=not opened.driver.in_memory)
        self.imports = SqlImports(access)
        self.chats = SqlChats(access, self.prompts)
        self._forgets = SqlForgets(access, self.media)
        self.ownership = LocalOwnership()
        self.rate_limits = LocalRateLimits()
        self.stop_requests = LocalStopRequests()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        media_folder: str | os.PathLike[str] | None = None,
        durable: bool = True,
        beside: bool = False,
    ) -> "StoreOpener":
        """Open a store, created if it does not exist. Without `durable`, a power loss may lose the last commits.

        Files of media are in *media_folder*, or where they were before: at first in `<path>-media`.
        `beside=True` opens a store that another process may have open: it is neither created nor migrated.
        """
        folder = None if media_folder is None else os.fspath(media_folder)
        return StoreOpener(os.fspath(path), media_folder=folder, durable=durable, beside=beside)

    async def check(self) -> list[str]:
        """Check the store and its files of media; return the faults."""
        return await self.reader.run(lambda database: maintenance.check(database, graph)) or await self.media.check()

    async def state(self) -> StoreState:
        """Return what the store is called, how large it is, and whether a bot has it."""
        driver = self._driver

        def read(database: Any) -> StoreState:
            return StoreState(name=self.path, size=driver.size(database), is_held=driver.is_held(database))

        return await self.reader.run(read)

    async def count_rows(self) -> dict[str, int]:
        """Count the places, messages, runs, replies, tasks and files; deleted messages are not counted."""
        return await self.reader.run(maintenance.count_rows)

    async def names_by_platform(self, author_id: str) -> dict[str, list[str]]:
        """Return the platforms that have an author of that id, each with the names of the author there."""
        return await self.reader.run(lambda database: maintenance.names_by_platform(database, author_id))

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store to a new file while it is in use, and its files of media to `<path>-media`."""
        copy = Path(path)
        with connection.translate_errors(f"{copy} could not be written"):
            remove_unfinished(copy)
            refuse_existing(copy)
        with connection.created(copy) as unfinished:
            async with self._apart() as reader:
                await reader.run(lambda database: database.copy_to(unfinished, copy), autocommit=True)
            await asyncio.to_thread(self._copy_files, unfinished, copy)

    def _copy_files(self, unfinished: Path, copy: Path) -> None:
        with connection.translate_errors(f"the copy {copy}"), closing(connection.connect(str(unfinished))) as database:
            copy_folder(database, copy, self.media.folder)

    async def export(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows of all tables but the index and the raw updates of services, all of one state of the store."""
        if self._driver.in_memory:
            for row in await self.reader.run(lambda database: list(maintenance.export_rows(database))):
                yield row
            return
        async with self._apart() as reader:
            pages = await reader.run(maintenance.Pages, autocommit=True)
            while page := await reader.run(lambda _: pages.next(), autocommit=True):
                for row in page:
                    yield row

    @asynccontextmanager
    async def _apart(self) -> AsyncIterator[ConnectionThread]:
        """Read with a connection that others do not wait for; a store in memory has only one."""
        if self._driver.in_memory:
            yield self.reader
            return
        reading = await asyncio.to_thread(connect_reading, self._driver)
        reader = ReaderThread(reading, "tertulia store, reading for long")
        try:
            yield reader
        finally:
            await reader.close()

    async def export_person(self, *, platform: str, author_id: str) -> dict[str, Any]:
        """Return everything that is known of a person: the rows that `forget` would remove."""
        return await self._forgets.export(platform, author_id)

    async def plan_forget(self, *, platform: str, author_id: str) -> Plan:
        """Return the rows that `forget` would remove."""
        return await self._forgets.plan(platform, author_id)

    async def forget(self, *, platform: str, author_id: str, at: datetime | None = None) -> Forgotten:
        """Remove a person from all rows, from the bytes of the file and from the folder of media.

        Return what was removed, and whether the person was known. What this process does not get done is done when the
        store is opened next.
        """
        if self._beside:
            raise StoreBusy(
                f"the store {self.path}: nobody is forgotten while another process may use it; stop that first"
            )
        report = await self._forgets.forget(platform, author_id, at or datetime.now(UTC))
        await self._empty_wal()
        return report

    async def resume_forgetting(self) -> None:
        """Forget the facts and people whose forgetting another process has begun."""
        await self.facts.resume_forgetting()
        if await self._forgets.resume():
            await self._empty_wal()

    async def _empty_wal(self) -> None:
        """Truncate the log of a file, which holds what was removed; wait for others to read it to their end."""
        await self.reader.run(lambda database: database.copy_log(), autocommit=True)  # beside the writer
        for _ in range(_WAL_ATTEMPTS):
            if await self.writer.run(lambda database: database.checkpoint(), autocommit=True):
                return
            await asyncio.sleep(_WAL_PAUSE)
        raise StoreBusy("somebody still reads what was removed; forget once more when that has ended")

    async def vacuum(self) -> None:
        """Rewrite the file, so that it is as small as its content, and no removed bytes are left in it."""
        await self.writer.run(lambda database: database.vacuum(), autocommit=True)
        await self.writer.run(person.end)

    async def _clear_caches(self) -> None:
        """Clear the caches of the members."""
        encoding.clear_shared()
        self.prompts.clear_cache()
        self.place_settings.clear_cache()
        await self.log.clear_cache()

    async def close(self) -> None:
        """Finish queued jobs and release the file."""
        if self.reader is not self.writer:
            await self.reader.close()
        await self.writer.close()
        await asyncio.to_thread(self.media.folder.close)
        self._held.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class StoreOpener:
    """Opens a store: with `await`, `async with`, or `with` in scripts that do not await."""

    def __init__(self, path: str, *, media_folder: str | None, durable: bool, beside: bool) -> None:
        self._path = path
        self._media_folder = media_folder
        self._durable = durable
        self._beside = beside
        self._store: Store | None = None

    def __await__(self) -> Generator[Any, None, Store]:
        return self._opened().__await__()

    async def __aenter__(self) -> Store:
        self._store = await self._opened()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        if self._store:
            await self._store.close()

    def __enter__(self) -> Store:
        self._store = self._open()
        return self._store

    def __exit__(self, *_: object) -> None:
        if self._store:
            with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
                thread.submit(asyncio.run, self._store.close()).result()

    async def _opened(self) -> Store:
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await (await opening).close()  # nobody else could
            raise

    def _open(self) -> Store:
        driver = driver_of(self._path)
        if self._beside:
            opened = open_beside(driver)
        else:
            opened = open_store(driver, media_folder=self._media_folder, durable=self._durable)
        writer = WriterThread(opened.writing, "tertulia store, writing")
        alone = opened.reading is opened.writing
        reader = writer if alone else ReaderThread(opened.reading, "tertulia store, reading")
        store = Store(writer, reader, opened, beside=self._beside)
        return store if alone or self._beside else _resume(store)


def _resume(store: Store) -> Store:
    """Finish what a process that was killed had begun to forget; return the store."""
    with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
        try:
            thread.submit(asyncio.run, store.resume_forgetting()).result()
        except BaseException:
            thread.submit(asyncio.run, store.close()).result()
            raise
    return store
