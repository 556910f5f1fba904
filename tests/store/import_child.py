"""Imports that kill their own process: `import_child.py EXPORT DB POINT…`, a fork for each point, then one to its end.

A point is a number of entries that are read first, or the start of an SQL statement that is about to be executed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from tertulia.formats.imported import ImportedMessage
from tertulia.formats.json_stream import JsonStream
from tertulia.formats.telegram_export import TelegramExport
from tertulia.store import Store

BATCH = 40


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def entries(export: Path, last: int) -> Iterator[ImportedMessage]:
    """Yield the messages of an export; after *last* of them the process ends."""
    found = TelegramExport(bot_id="4242").read(JsonStream([export.read_bytes()]))
    for number, item in enumerate(found):
        if number == last:
            die()
        if isinstance(item, ImportedMessage):
            yield item


async def run(export: Path, db: Path, point: str) -> None:
    items = entries(export, int(point) if point.isdecimal() else sys.maxsize)
    async with Store.open(db) as store:
        if not point.isdecimal():
            await store.writer.run(lambda database: database.set_trace_callback(_killer(point)), autocommit=True)
        places = {}
        writing: asyncio.Task[object] | None = None
        while batch := list(islice(items, BATCH)):
            places.update(dict.fromkeys(item.message.place for item in batch))
            if writing:
                await writing
            writing = asyncio.create_task(store.imports.add(batch))
            await asyncio.sleep(0)
        if writing:
            await writing
        for place in places:
            await store.imports.finish(place, learn=False)


def _killer(statement: str) -> Callable[[str], None]:
    return lambda sql: die() if statement and sql.startswith(statement) else None


def main(export: Path, db: Path, *points: str) -> None:
    for point in points:
        child = os.fork()
        if not child:
            asyncio.run(run(export, db, point))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    asyncio.run(run(export, db, ""))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
