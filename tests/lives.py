"""Processes that are killed: each is a life, forked from one process that has imported everything already."""

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tertulia.errors import TertuliaError

TESTS = Path(__file__).parent


class Lives:
    """The lives that a script forks, one after another."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        assert process.stdin
        assert process.stdout
        self._stdin, self._stdout = process.stdin, process.stdout
        self._log = log

    async def begin(self, life: Struct) -> int:
        """Begin a life; the id of its process."""
        self._stdin.write(json.encode(life) + b"\n")
        return int(await self._stdout.readline())

    async def end(self, child: int, *, timeout: float | None = None) -> int:
        """Wait for the end of a life, and kill it after *timeout* seconds; its exit code, negative for a signal."""
        ending = asyncio.ensure_future(self._stdout.readline())
        done, _ = await asyncio.wait([ending], timeout=timeout)
        if not done:
            os.kill(child, signal.SIGKILL)
        code = int(await ending)
        self._stdin.write(b"\n")  # its id may be given to another process now
        assert done, f"a life did not end in {timeout} seconds\n{self.log()}"
        return code

    async def kill(self, child: int) -> int:
        """Kill a life; its exit code."""
        os.kill(child, signal.SIGKILL)
        return await self.end(child)

    def log(self) -> str:
        """The end of what the lives have logged."""
        return self._log.read_text()[-4000:]


@asynccontextmanager
async def lives(script: Path, log: Path) -> AsyncIterator[Lives]:
    """Start the process of a script that calls `fork_lives`."""
    folders = [str(TESTS), str(TESTS.parent / "examples"), *sys.path]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(script),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "XDG_DATA_HOME": str(log.parent)},
        )
        try:
            yield Lives(process, log)
        finally:
            if process.stdin:
                process.stdin.close()
            await process.wait()


def fork_lives(live: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Live each life of a line on the standard input in a process forked from this one; say its id, then how it ended.

    Its id stays its own until an empty line comes, so that whoever kills it late kills nobody else.
    """
    with suppress(KeyboardInterrupt):
        for line in sys.stdin:
            child = os.fork()
            if not child:
                _born(live(line))
            print(child, flush=True)
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            assert ended is not None
            print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
            sys.stdin.readline()
            os.waitpid(child, 0)


def _born(life: Coroutine[Any, Any, None]) -> None:
    """The child's side of the fork."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        asyncio.run(life)
        os._exit(0)
    except TertuliaError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
    except BaseException:  # noqa: BLE001 (nothing of a child may go on in the process it was forked from)
        traceback.print_exc()
    os._exit(1)


def print_result(row: Mapping[str, Any], faults: Sequence[str]) -> int:
    """Print what came of many kills as a table, and each fault; return the status to exit with."""
    row = {**row, "faults": len(faults)}
    for cells in ([name.replace("_", " ") for name in row], ["---"] * len(row), row.values()):
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(*faults, sep="\n")
    return int(bool(faults))
