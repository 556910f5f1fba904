"""Platform runner: runs platforms side by side, each with its inbox, and restarts one that fails."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from tertulia.backoff import backoff
from tertulia.code_location import error_location
from tertulia.engine.background import Sleep, foreign_code, is_cancelled, log_text
from tertulia.engine.command_list import announced_commands
from tertulia.engine.shared import Shared
from tertulia.errors import OperatorMustAct, TertuliaError, reason_of
from tertulia.platform import Inbox, Platform, Trouble
from tertulia.redaction import redact_keys

log = logging.getLogger(__name__)

FIRST_RESTART, LONGEST_RESTART = 1.0, 60.0  # seconds until a platform that failed is restarted
GRACE = 3.0  # seconds that a cancelled platform may take to end


async def announce_commands(platform: Platform, shared: Shared) -> None:
    """Let a platform announce the commands; an error is logged, and changes nothing."""
    try:
        with foreign_code(platform.name):
            await platform.announce(
                announced_commands(shared.behavior, several=not shared.identity.cast.is_single),
                owners=shared.identity.owners_on(platform.name),
            )
    except Exception as error:  # noqa: BLE001 (a platform's own)
        log.warning("%s could not announce the commands: %s", platform.name, log_text(error))


_stopping: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}  # what all engines of this process wait for
_handlers: dict[signal.Signals, Any] = {}  # those that stood before the first of these engines


@asynccontextmanager
async def stop_signals() -> AsyncIterator[asyncio.Event]:
    """Yield an event that SIGTERM and Ctrl-C set, for all engines of the process at once.

    Nothing sets it where no engine runs in the main thread.
    """
    stopped = asyncio.Event()
    _stopping[stopped] = asyncio.get_running_loop()
    for name in {signal.SIGTERM, signal.SIGINT} - set(_handlers):
        with suppress(ValueError):
            _handlers[name] = signal.signal(name, _stop_all)
    try:
        yield stopped
    finally:
        del _stopping[stopped]
        while not _stopping and _handlers:
            name, handler = _handlers.popitem()
            with suppress(ValueError):
                signal.signal(name, handler or signal.SIG_DFL)


def _stop_all(*_: object) -> None:
    for stopped, loop in list(_stopping.items()):
        loop.call_soon_threadsafe(stopped.set)


async def runs_before(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run *work*, and cancel it when *event* is set; return whether it came to its end."""
    tasks = [working, _] = [asyncio.ensure_future(work), asyncio.ensure_future(event.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if working.cancelled() and event.is_set():
        return False
    working.result()
    return True


async def open_platform(platform: Platform) -> None:
    """Open a platform; an `open` that ignores its cancellation is left behind."""
    opening = asyncio.create_task(_open(platform), name=f"{platform.name}.open")
    try:
        await asyncio.shield(opening)
    finally:
        await _stop(opening)


async def close_platform(platform: Platform) -> None:
    """Close a platform; an error is only logged, and a `close` that takes too long is left behind."""
    closing = asyncio.create_task(_close(platform), name=f"{platform.name}.close")
    await asyncio.wait([closing], timeout=GRACE)
    await _stop(closing)


async def _close(platform: Platform) -> None:
    try:
        with foreign_code(platform.name):
            await platform.close()
    except Exception as error:  # noqa: BLE001 (a platform's own)
        log.error("%s.close failed: %s", platform.name, log_text(error))


async def _open(platform: Platform) -> None:
    with foreign_code(platform.name):
        await platform.open()


async def _stop(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks, and wait for them a while; log those that go on."""
    for task in tasks:
        task.cancel()
    _, running = await asyncio.wait(tasks, timeout=GRACE)
    for task in running:
        log.error("%s does not stop when it is cancelled: it must not catch CancelledError", task.get_name())


async def run_platforms(
    platforms: Mapping[Platform, Inbox],
    *,
    until: asyncio.Event,
    sleep: Sleep,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run platforms until *until* is set or all have ended.

    Raise the error of a platform that only an operator can fix, as a refused token.
    """
    running = [
        asyncio.create_task(_run(platform, inbox, sleep, now, clock), name=f"{platform.name}.run")
        for platform, inbox in platforms.items()
    ]
    stopping = asyncio.create_task(until.wait())
    tasks: list[asyncio.Task[Any]] = [stopping, *running]
    log.info("%s: receiving messages", ", ".join(platform.name for platform in platforms))
    try:
        while not stopping.done() and not all(task.done() for task in running):
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                if task.done():
                    task.result()
    finally:
        await _stop(*tasks)


def _why(error: BaseException) -> str:
    """Return one line with its place for what is known to fail, as a connection or a port; else the traceback."""
    if isinstance(error, TertuliaError | OSError):
        return redact_keys(f"{error_location(error)}: {type(error).__name__}: {error}")
    return log_text(error)


async def _run(
    platform: Platform, inbox: Inbox, sleep: Sleep, now: Callable[[], datetime], clock: Callable[[], float]
) -> None:
    """Run a platform; restart it with backoff, which begins anew once it has run for `LONGEST_RESTART`."""
    failures, since = 0, now()
    while True:
        began = clock()
        try:
            with foreign_code(platform.name):
                await platform.run(inbox)
            return
        except OperatorMustAct:
            raise
        except (Exception, asyncio.CancelledError) as error:  # foreign code: it must not end the other platforms
            if is_cancelled():
                raise asyncio.CancelledError from error
            if clock() - began > LONGEST_RESTART:
                failures = 0
            failures, at = failures + 1, now()
            since = since if failures > 1 else at
            pause = backoff(failures, first=FIRST_RESTART, longest=LONGEST_RESTART)
            log.error("%s failed and is restarted in %g s: %s", platform.name, pause, _why(error))
            platform.trouble = Trouble(since=since, why=reason_of(error), retry_at=at + timedelta(seconds=pause))
        await sleep(pause)
        platform.trouble = None
