"""Bot process: runs a bot until SIGTERM or Ctrl-C, and ends the process also where its platforms do not let it.

Everything that matters is in the store, which survives the end of the process at any moment. So a platform or a tool
that blocks the event loop, ignores its cancellation or leaves a thread behind costs a few seconds, and nothing else.
"""

import asyncio
import ctypes
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Self

from tertulia.code_location import location, user_frame
from tertulia.errors import StoreAway, TertuliaError
from tertulia.logs import log_failure
from tertulia.platform import Platform

log = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds between two looks at the event loop
MAX_BLOCKED = 5.0  # seconds after which a blocked event loop is logged
MAX_STOPPING = 9.0  # seconds between a signal and the end; Docker kills after 10
MAX_ENDING = 2.0  # seconds that tasks and threads may take when all else is closed
NEEDS_OPERATOR, UNEXPECTED = 2, 1  # exit statuses
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def run_process(bot: Awaitable[None], watchdog: "Watchdog | None" = None) -> int:
    """Run a bot to its end; return the status with which the process should exit."""
    share_heaps()
    watchdog = watchdog or Watchdog()
    with watchdog, suppress(KeyboardInterrupt):
        asyncio.run(_run(bot, watchdog))
    return watchdog.status


def share_heaps() -> None:
    """Let all threads share two heaps. By default glibc gives each thread its own, which keeps all it ever needed."""
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(AttributeError):  # another libc
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


async def _run(bot: Awaitable[None], watchdog: "Watchdog") -> None:
    watchdog.watch(asyncio.get_running_loop())
    status = 0
    try:
        await bot
    except TertuliaError as error:
        status = UNEXPECTED if isinstance(error, StoreAway) else NEEDS_OPERATOR
        log_failure(error)
    except Exception as error:  # noqa: BLE001 (a bug of ours: it is one line of the log, too)
        status = UNEXPECTED
        log_failure(error)
    finally:
        watchdog.end(status)


class Watchdog:
    """A thread that logs who blocks the event loop, and ends the process if that does not stop in time."""

    def __init__(
        self,
        *,
        interval: float = INTERVAL,
        max_blocked: float = MAX_BLOCKED,
        max_stopping: float = MAX_STOPPING,
        max_ending: float = MAX_ENDING,
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self.status = 0
        self._interval = interval
        self._max_blocked = max_blocked
        self._max_stopping = max_stopping
        self._max_ending = max_ending
        self._exit_process = exit_process
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main = threading.get_ident()
        self._asked_at: float | None = None  # when the loop was asked for a sign of life that it has not given
        self._is_reported = False  # that the loop is blocked
        self._deadline: float | None = None
        self._is_closed = False
        self._is_ending = False  # the bot is closed; only tasks and threads may be left
        self._before = set(threading.enumerate())
        self._thread = threading.Thread(target=self._run, name="tertulia watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._fd_before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the threads that the bot started, for as long as it may take to end."""
        self.end(self.status)
        for thread in self._threads():
            thread.join()
        self._is_closed = True
        self._wake()
        self._thread.join()
        signal.set_wakeup_fd(self._fd_before)
        self._reading.close()
        self._writing.close()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the event loop of the bot."""
        self._loop = loop

    def end(self, status: int) -> None:
        """Give the tasks and threads that are left a short time: the bot is closed, and its status is known."""
        self.status, self._is_ending = status, True
        self._end_within(self._max_ending)
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            self._writing.send(b"\0")

    def _run(self) -> None:
        while not self._is_closed:
            left = self._interval if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select([self._reading], [], [], min(left, self._interval))
            if ready and {signal.SIGTERM, signal.SIGINT} & set(self._reading.recv(1024)):  # the numbers of signals
                self._end_within(self._max_stopping)
            if not self._is_closed:
                self._look(time.monotonic())

    def _end_within(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = min(deadline, self._deadline or deadline)

    def _look(self, now: float) -> None:
        """Act on a deadline that has passed, or on a loop that gives no sign of life; or ask it for one."""
        blocked = 0.0 if self._asked_at is None else now - self._asked_at
        if self._deadline is not None and now >= self._deadline:
            if found := self._obstacles(is_blocked=blocked >= self._interval):
                log.error("the process ends without waiting for %s", ", ".join(found))
            self._exit_process(self.status)
            self._deadline = None
        elif blocked > self._max_blocked and not self._is_reported:
            self._is_reported = True
            log.error("the event loop is blocked for %g s by %s", round(blocked), self._blocker())
        elif self._asked_at is None and self._loop is not None:
            self._asked_at = now
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_sign_of_life)

    def _on_sign_of_life(self) -> None:
        self._asked_at, self._is_reported = None, False

    def _obstacles(self, *, is_blocked: bool) -> list[str]:
        """Return what keeps the process alive, as text; tasks that are left of a closed bot are logged already."""
        if self._is_ending:
            frames = _frames()
            busy = filter(None, (user_frame(frames.get(thread.ident or 0)) for thread in self._threads()))
            return [describe(frame) for frame in busy]
        if is_blocked or self._loop is None:
            return [self._blocker()]
        return [task.get_name() for task in asyncio.all_tasks(self._loop)]

    def _blocker(self) -> str:
        frame = _frames()[self._main]
        return describe(user_frame(frame) or frame)

    def _threads(self) -> list[threading.Thread]:
        """Return the threads that the bot started and that keep the process alive."""
        found = set(threading.enumerate()) - self._before - {self._thread}
        return [thread for thread in found if not thread.daemon]


def _frames() -> dict[int, FrameType]:
    """Return the frame that each thread runs, by the id of the thread."""
    return sys._current_frames()  # noqa: SLF001 (documented, in spite of its name)


def describe(frame: FrameType) -> str:
    """Return what code runs where: `platform wall (Wall.run, wall.py:37)`."""
    where = f"{frame.f_code.co_qualname}, {location(frame)}"
    for one, _ in traceback.walk_stack(frame):
        if isinstance(platform := one.f_locals.get("self"), Platform):
            return f"platform {platform.name} ({where})"
    return where
