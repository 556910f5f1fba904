"""A bot that is killed with -9 loses nothing that it was told is stored, and its successor starts within 10 seconds."""

import os
import subprocess
import sys
import time
from pathlib import Path

from people import DIRECT
from sizes import size
from tertulia.store import Store

CHILD = """
import asyncio, sys
from people import DIRECT, NOON, a_message
from tertulia.store import Store

async def write():
    async with Store.open(sys.argv[1], media_folder=sys.argv[2]) as store:
        first = await store.log.count(DIRECT)
        for number in range(first, first + 100_000):
            await store.inbox.receive(a_message(id=f"m{number}", place=DIRECT), at=NOON)
            print(number, flush=True)

asyncio.run(write())
"""


def start(*command: str) -> "subprocess.Popen[str]":
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


async def test_what_was_stored_is_there_for_the_next(url: str, tmp_path: Path) -> None:
    media = tmp_path / "media"
    for _ in range(size(1, full=20)):
        command = [sys.executable, "-c", CHILD, url, str(media)]
        with start(*command) as child:
            assert child.stdout
            told = [int(child.stdout.readline()) for _ in range(40)]
            child.kill()
            told += [int(line) for line in child.stdout]

        killed = time.monotonic()
        async with Store.open(url, media_folder=media) as store:
            assert time.monotonic() - killed < 10
            stored = await store.log.count(DIRECT)
            assert stored in (told[-1] + 1, told[-1] + 2)  # one may be stored whose answer nobody got
            assert await store.check() == []
