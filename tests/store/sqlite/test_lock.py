"""One process at a time, also if the lock file is gone; nobody's locks are lost."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from people import NOON, a_message
from store.builders import names_in
from tertulia import errors
from tertulia.store import Store
from tertulia.store.sqlite import lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks open file descriptions")

OPEN = """
import asyncio, sys
from tertulia.errors import TertuliaError
from tertulia.store import Store

async def main():
    async with Store.open(sys.argv[1]):
        print("opened")

try:
    asyncio.run(main())
except TertuliaError as error:
    print(error)
"""

FORK = """
import asyncio, os, sys
from tertulia.errors import TertuliaError
from tertulia.store import Store

async def child_opens():
    try:
        async with Store.open(sys.argv[1]):
            return "opened"
    except TertuliaError as error:
        return str(error)

store = asyncio.run(Store.open(sys.argv[1])._opened())
os.remove(sys.argv[1] + ".lock")
ended, ends = os.pipe()
child = os.fork()
if not child:
    os.close(ends)
    print(asyncio.run(child_opens()), flush=True)
    os.read(ended, 1)  # outlives the store of its parent
    os._exit(0)
print("forked", flush=True)
sys.stdin.readline()
asyncio.run(store.close())
print("closed", flush=True)
sys.stdin.readline()
os.close(ends)
os.waitpid(child, 0)
"""

LOCKED = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # what a reader of SQLite shares
    print("free")
except OSError:
    print("locked")
"""


def run(script: str, path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    ).stdout.strip()


async def told(script: str, path: Path) -> str:
    return await asyncio.to_thread(run, script, path)


async def test_a_second_process_is_kept_out_though_the_lock_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with Store.open(path):
        (tmp_path / "s.db.lock").unlink()

        said = await told(OPEN, path)

    assert said == f"the store {path}: another process has it open, though its lock file is gone"
    assert await told(OPEN, path) == "opened"
    assert names_in(tmp_path) == ["s.db"]


async def test_a_database_put_in_the_place_of_one_in_use_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with Store.open(tmp_path / "other.db"):
        pass
    async with Store.open(path):
        (tmp_path / "other.db").replace(path)

        assert "another process has it open (process" in await told(OPEN, path)


async def test_of_databases_that_change_places_while_one_is_opened_that_at_the_path_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "s.db", tmp_path / "other.db"
    for one in (path, other):
        async with Store.open(one):
            pass
    lock_byte = lock._lock_byte  # noqa: SLF001 (the moment between two system calls)

    def lock_late(file: int, **options: Any) -> None:
        if other.exists():
            other.replace(path)
        lock_byte(file, **options)

    monkeypatch.setattr(lock, "_lock_byte", lock_late)
    async with Store.open(path):
        (tmp_path / "s.db.lock").unlink()

        assert "another process has it open, though its lock file is gone" in await told(OPEN, path)


async def test_who_is_kept_out_in_the_same_process_takes_no_lock_of_sqlite_with_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with Store.open(path) as store:
        await store.inbox.receive(a_message(), at=NOON)
        (tmp_path / "s.db.lock").unlink()

        with pytest.raises(errors.StoreBusy, match="its lock file is gone"):
            await Store.open(path)

        assert await told(LOCKED, path) == "locked"
    assert await told(LOCKED, path) == "free"


async def test_a_store_beside_keeps_its_locks_when_the_other_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = await Store.open(path)
    await store.inbox.receive(a_message(), at=NOON)
    async with Store.open(path, beside=True) as beside:
        assert await beside.log.count(a_message().place) == 1

        await store.close()

        assert await told(LOCKED, path) == "locked"
        assert await beside.log.count(a_message().place) == 1
        async with Store.open(path) as again:
            assert await again.log.count(a_message().place) == 1


async def test_a_lock_file_of_another_is_left_where_it_is(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db"):
        (tmp_path / "s.db.lock").unlink()
        (tmp_path / "s.db.lock").write_text("another's")

    assert (tmp_path / "s.db.lock").read_text() == "another's"


async def test_a_forked_child_is_another_process_and_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORK, path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None

    first = {(await process.stdout.readline()).decode().strip() for _ in range(2)}
    assert first == {"forked", f"the store {path}: another process has it open, though its lock file is gone"}

    process.stdin.write(b"\n")
    assert await process.stdout.readline() == b"closed\n"
    assert await told(OPEN, path) == "opened"  # though the child still has the descriptors
    process.stdin.write(b"\n")
    await process.wait()
    assert os.listdir(tmp_path) == ["s.db"]


async def test_who_looks_on_sees_whether_a_bot_has_the_store(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    async with Store.open(path) as bot:
        own = await bot.state()
        async with Store.open(path, beside=True) as beside:
            running = await beside.state()
            await bot.close()
            ended = await beside.state()
            async with Store.open(path):
                again = await beside.state()

    assert [one.is_held for one in (own, running, ended, again)] == [True, True, False, True]
    assert {one.name for one in (own, running, ended, again)} == {str(path)}
    assert own.size == running.size
    assert ended.size is not None
    assert ended.size >= path.stat().st_size > 0
