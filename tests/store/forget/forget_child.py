"""Forgets a person again and again, killed at a later commit each time: `forget_child.py FOLDER PLATFORM AUTHOR`.

Each life has a copy of the store `FOLDER/0/s.db`; its folder is named after the commit at which it is killed. The last
one ends by itself. A killed life may be followed by one that opens the store and is killed too.
"""

import asyncio
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from tertulia.store import Store
from tertulia.store.sqlite import connection

AT = datetime(2025, 1, 15, 12, tzinfo=UTC)


def kill_at(commit: int) -> None:
    """Kill this process when it is about to commit for the *commit*th time."""
    connect, left = connection.connect, [commit]

    def count(sql: str) -> None:
        left[0] -= sql.startswith(("COMMIT", "VACUUM"))
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(path: str, *, durable: bool = True) -> connection.Database:
        database = connect(path, durable=durable)
        database.set_trace_callback(count)
        return database

    connection.connect = watched


async def forget(path: Path, platform: str, author_id: str) -> None:
    async with Store.open(path) as store:
        await store.forget(platform=platform, author_id=author_id, at=AT)


def live(path: Path, commit: int, platform: str, author_id: str) -> int:
    """Forget in a process of its own; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    kill_at(commit)
    asyncio.run(forget(path, platform, author_id))
    os._exit(0)


folder, platform, author_id = sys.argv[1:]
commit, code = 0, -9
while code == -9:
    commit += 1
    copy = Path(folder) / str(commit)
    shutil.copytree(Path(folder) / "0", copy)
    code = live(copy / "s.db", commit, platform, author_id)
    if code == -9 and commit % 3 == 0:
        live(copy / "s.db", commit // 3, platform, author_id)
    print(commit, code, flush=True)
sys.exit(code)
