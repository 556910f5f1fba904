"""Platform runner: runs all platforms until the program stops; restarts one that fails, with backoff."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from palaver.backoff import backoff
from palaver.engine.background import Sleep, error_text, foreign_code, is_cancelled
from palaver.errors import CallerMustAct, OperatorMustAct
from palaver.platform import Inbox, Platform

log = logging.getLogger(__name__)

FIRST_RESTART, LONGEST_RESTART = 1.0, 60.0  # seconds until a platform that failed is restarted
GRACE = 3.0  # seconds that a cancelled platform may take to end


@asynccontextmanager
async def stop_signals() -> AsyncIterator[asyncio.Event]:
    """Yield an event that SIGTERM and Ctrl-C set. Outside the main thread nothing sets it."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    handled: list[signal.Signals] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError, NotImplementedError, RuntimeError):
            loop.add_signal_handler(name, stopped.set)
            handled.append(name)
    try:
        yield stopped
    finally:
        for name in handled:
            loop.remove_signal_handler(name)


async def run_platforms(
    platforms: Mapping[Platform, Inbox],
    *,
    until: asyncio.Event,
    sleep: Sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run platforms until *until* is set or all have ended.

    Raise the error of a platform that only an operator or the caller can fix, as a refused token.
    """
    running = [asyncio.create_task(_run(platform, inbox, sleep, clock)) for platform, inbox in platforms.items()]
    stopping = asyncio.create_task(until.wait())
    tasks: list[asyncio.Task[Any]] = [stopping, *running]
    try:
        while not stopping.done() and not all(task.done() for task in running):
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                if task.done():
                    task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=GRACE)


async def _run(platform: Platform, inbox: Inbox, sleep: Sleep, clock: Callable[[], float]) -> None:
    """Run a platform; restart it with backoff, which begins anew once it has run for `LONGEST_RESTART`."""
    failures = 0
    while True:
        began = clock()
        try:
            with foreign_code(platform.name):
                await platform.run(inbox)
            return
        except (OperatorMustAct, CallerMustAct):
            raise
        except (Exception, asyncio.CancelledError) as error:  # foreign code: it must not end the other platforms
            if is_cancelled():
                raise asyncio.CancelledError from error
            if clock() - began > LONGEST_RESTART:
                failures = 0
            failures += 1
            pause = backoff(failures, first=FIRST_RESTART, longest=LONGEST_RESTART)
            log.error("%s failed and is restarted in %g s: %s", platform.name, pause, error_text(error))
        await sleep(pause)
