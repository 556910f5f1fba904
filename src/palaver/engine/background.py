"""Background tasks, retries of writes to the store, slots for runs, and the guard around foreign code."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar

from palaver.backoff import backoff
from palaver.errors import PalaverError, StoreBroken, StoreTrouble
from palaver.redaction import redact_keys

log = logging.getLogger(__name__)

FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0  # seconds between attempts to write to the store
CANCEL_ATTEMPTS = 15  # one second apart

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def retry_forever(write: Callable[[], Awaitable[T]], *, sleep: Sleep = asyncio.sleep) -> T:
    """Retry *write* with backoff until it succeeds. Only `StoreTrouble` is retried, and not `StoreBroken`."""
    failures = 0
    while True:
        try:
            return await write()
        except StoreBroken:
            raise
        except StoreTrouble as trouble:
            failures += 1
            pause = backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
            log.error("%s; retried in %g s", trouble, pause)
        await sleep(pause)


async def wait_for_event(event: asyncio.Event, seconds: float, *, sleep: Sleep = asyncio.sleep) -> None:
    """Wait until *event* is set, at most so many seconds, which *sleep* measures."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def is_cancelled() -> bool:
    """Return whether the current task was cancelled. A `CancelledError` can also come from the code that it called."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


@contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Raise `RuntimeError` where foreign code (*what*) raises a `BaseException` that would end the program.

    Such are `SystemExit` and the panics of libraries in other languages. Ctrl-C and `CancelledError` pass.
    """
    try:
        yield
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise RuntimeError(f"{what} raised {type(error).__name__}: {error}") from error


def error_text(error: BaseException) -> str:
    """Return an error as text for the log: one line for a `PalaverError`, else the traceback. Keys are redacted."""
    if isinstance(error, PalaverError):
        return redact_keys(f"{type(error).__name__}: {error}")
    return redact_keys("".join(traceback.format_exception(error)).strip())


class BackgroundTasks:
    """A set of asyncio tasks. The failure of one is logged, and ends no other."""

    def __init__(self) -> None:
        self.broken: StoreBroken | None = None  # raised by `done`
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._log_failure)
        return task

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def done(self) -> None:
        """Wait until no task is left. Raise `StoreBroken` where one of them failed with it."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.broken is not None:
            raise self.broken

    async def stop(self, *, grace: float = 0.0) -> None:
        """Cancel the tasks that are left after *grace* seconds; abandon those that ignore every cancellation."""
        if self._tasks and grace:
            await asyncio.wait(self._tasks, timeout=grace)
        for _ in range(CANCEL_ATTEMPTS):
            if not self._tasks:
                return
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=1.0)  # a task may swallow one cancellation
        if self._tasks:
            log.error("%d background tasks did not end after %d cancellations", len(self._tasks), CANCEL_ATTEMPTS)

    def _log_failure(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreBroken):
            self.broken = error
        if isinstance(error, PalaverError):
            log.error("%s: %s", type(error).__name__, error)
        elif error is not None:
            log.error("%s", error_text(error))


class Slot:
    """One slot of a semaphore, held by a run: `async with Slot(free) as slot:`."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._held = False

    async def __aenter__(self) -> Self:
        await self._acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()

    @asynccontextmanager
    async def release(self) -> AsyncIterator[None]:
        """Release the slot while the block runs, then acquire one again; a cancelled run needs none."""
        self._release()
        try:
            yield
        except Exception:
            await self._acquire()
            raise
        await self._acquire()

    async def _acquire(self) -> None:
        await self._free.acquire()
        self._held = True

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._free.release()
