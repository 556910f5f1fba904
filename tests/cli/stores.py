"""Stores for the commands that look after them: made, spoiled, held open by another process."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from people import NOON
from tertulia import Message, Store
from tertulia.engine.store_protocols import OutboxItem
from tertulia.media.values import Handle, StoredFile
from tertulia.tasks.task import Task

_HOLD = """
import asyncio, sys
from tertulia import Store

async def hold():
    async with Store.open(sys.argv[1]):
        print("open", flush=True)
        sys.stdin.read()

asyncio.run(hold())
"""


def a_store(
    path: Path, *, messages: Sequence[Message] = (), tasks: Sequence[Task] = (), replies: Sequence[OutboxItem] = ()
) -> Path:
    async def make() -> None:
        async with Store.open(path) as store:
            for message in messages:
                await store.inbox.receive(message, at=NOON)
            await store.tasks.add(tasks)
            for reply in replies:
                await store.outbox.put(reply)

    asyncio.run(make())
    return path


def with_file(path: Path, unique_id: str, data: bytes) -> None:
    """Add a file of media, which a service has too."""

    async def add() -> None:
        async with Store.open(path) as store:
            file = StoredFile(sha256="", size=0, mime="image/png")
            file = await store.media.add(unique_id, data, file, at=NOON)
            handle = Handle(sha256=file.sha256, account="gemini", name="files/a", uri="https://g/a", mime="image/png")
            await store.media.add_handle(handle, at=NOON)

    asyncio.run(add())


def tasks_in(path: Path) -> dict[str, Task]:
    async def look() -> Sequence[Task]:
        async with Store.open(path) as store:
            return await store.tasks.listed()

    return {task.id: task for task in asyncio.run(look())}


def replies_in(path: Path) -> dict[str, OutboxItem]:
    async def look() -> Sequence[OutboxItem]:
        async with Store.open(path) as store:
            return await store.outbox.listed()

    return {reply.id: reply for reply in asyncio.run(look())}


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process has the store open, as a bot has; its number."""
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield process.pid
        process.communicate()
