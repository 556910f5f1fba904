"""A bot process ends when it is asked to, whatever the code of its platforms does."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tertulia import Engine, Inbox, InvalidValue, Store, StoreAway, StoreBusy
from tertulia.bot_process import Watchdog, run_process
from tertulia.models import Scripted
from tertulia.testing import RecordedPlatform

HERE = Path(__file__).relative_to(Path.cwd())


class Process:
    """A bot process whose watchdog does not wait, and which does not exit: it lets go what holds it."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.exits: list[int] = []
        self._watchdog = Watchdog(interval=0.001, max_stopping=0.05, max_ending=0.05, exit_process=self._exit)

    def run(self, work: Callable[[], Awaitable[None]]) -> int:
        return run_process(work(), self._watchdog)

    def _exit(self, status: int) -> None:
        self.exits.append(status)
        self.released.set()


@pytest.fixture
def process() -> Process:
    return Process()


async def run_engine(platform: RecordedPlatform) -> None:
    async with Store.open(":memory:") as store:
        await Engine(store, Scripted(), [platform]).run()


def test_a_platform_that_blocks_the_event_loop_does_not_hold_the_process(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    class Blocking(RecordedPlatform):
        async def run(self, inbox: Inbox) -> None:
            signal.raise_signal(signal.SIGTERM)
            process.released.wait()

    status = process.run(lambda: run_engine(Blocking()))

    where = f"{Blocking.run.__qualname__}, {HERE}:{Blocking.run.__code__.co_firstlineno + 2}"
    assert (status, process.exits) == (0, [0])
    assert caplog.messages[-1] == f"the process ends without waiting for platform recorded ({where})"


def test_who_blocks_the_event_loop_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def bot() -> None:
        while not caplog.records:
            threading.Event().wait(0.001)

    run_process(bot(), Watchdog(interval=0.001, max_blocked=0.002))

    assert [message.partition(":")[0] for message in caplog.messages] == [
        f"the event loop is blocked for 0 s by {bot.__qualname__}, {HERE}"
    ]


def test_a_task_that_ignores_its_cancellation_does_not_hold_the_process(process: Process) -> None:
    async def ignore() -> None:
        while not process.released.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)  # type: ignore[union-attr]

    async def bot() -> None:
        asyncio.get_running_loop().ignoring = asyncio.create_task(ignore())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    assert (process.run(bot), process.exits) == (0, [0])


def test_a_thread_that_goes_on_is_named_and_does_not_hold_the_process(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    async def bot() -> None:
        threading.Thread(target=lambda: process.released.wait()).start()
        raise InvalidValue("the bot cannot run")

    assert (process.run(bot), process.exits) == (2, [2])
    assert [record.levelname for record in caplog.records] == ["CRITICAL", "ERROR"]
    assert "the process ends without waiting for test_a_thread_that_goes_on" in caplog.records[1].getMessage()


def test_a_signal_ends_a_bot_whose_platform_does_not_open(process: Process) -> None:
    class Opening(RecordedPlatform):
        async def open(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()

    assert (process.run(lambda: run_engine(Opening())), process.exits) == (0, [])


def test_a_bot_that_ends_by_itself_is_not_hurried(process: Process, caplog: pytest.LogCaptureFixture) -> None:
    async def bot() -> None:
        pass

    assert (process.run(bot), process.exits, caplog.records) == (0, [], [])


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidValue("no"), 2),
        (StoreBusy("another bot has it"), 2),
        (StoreAway("the database does not answer"), 1),
        (OSError("no"), 1),
        (ZeroDivisionError(), 1),
    ],
)
def test_an_error_is_a_line_of_the_log(
    process: Process, caplog: pytest.LogCaptureFixture, error: Exception, status: int
) -> None:
    async def bot() -> None:
        raise error

    assert process.run(bot) == status
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [
        ("CRITICAL", isinstance(error, ZeroDivisionError))
    ]


COUNT_HEAPS = """
import ctypes, sys, threading
from tertulia.bot_process import share_heaps
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
share_heaps()
barrier = threading.Barrier(8)
def allocate():
    barrier.wait()
    held = [bytearray(10_000) for _ in range(100)]
    barrier.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has a heap for each thread")
def test_threads_share_two_heaps(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}

    subprocess.run([sys.executable, "-c", COUNT_HEAPS, tmp_path / "heaps"], check=True, env=environment)

    assert (tmp_path / "heaps").read_text().count("<heap nr=") <= 2
