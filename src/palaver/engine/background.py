"""Work that goes on in the background: begun by anybody, awaited or ended together; and waiting for the store."""

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
    """Retry *write* with backoff until it succeeds. A damaged file stays damaged: `StoreBroken` is not retried."""
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
    """Wait until *event* is set, at most so many seconds. They are counted by *sleep*, so that a test can pass them."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def is_cancelled() -> bool:
    """Whether the task that runs is to end; a CancelledError can also be somebody else's."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


@contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Code that is not ours runs here: what would end the program with it becomes an ordinary error.

    A model's client, a platform or a handler may raise any BaseException: a panic of a library in another language, or
    SystemExit. Ctrl-C and being cancelled are nobody's failure.
    """
    try:
        yield
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise RuntimeError(f"{what} raised {type(error).__name__}: {error}") from error


def error_text(error: BaseException) -> str:
    """Return an error for the log: one line for a `PalaverError`, else its traceback. Keys are redacted."""
    if isinstance(error, PalaverError):
        return redact_keys(f"{type(error).__name__}: {error}")
    return redact_keys("".join(traceback.format_exception(error)).strip())


class BackgroundTasks:
    """What is under way; a failure is logged, and ends nothing else."""

    def __init__(self) -> None:
        self.broken: StoreBroken | None = None  # what was met of a damaged file; whoever waits is told
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def done(self) -> None:
        """Wait until nothing is under way. Raise `StoreBroken` if the store's file turned out to be damaged."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.broken is not None:
            raise self.broken

    async def stop(self, *, grace: float = 0.0) -> None:
        """Cancel what is still under way after so many seconds; what does not end then either is left behind."""
        if self._tasks and grace:
            await asyncio.wait(self._tasks, timeout=grace)
        for _ in range(CANCEL_ATTEMPTS):
            if not self._tasks:
                return
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=1.0)  # a cancel can be lost on its way
        if self._tasks:
            log.error("%d pieces of work do not end though they were cancelled", len(self._tasks))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreBroken):
            self.broken = error
        if isinstance(error, PalaverError):
            log.error("%s: %s", type(error).__name__, error)
        elif error is not None:
            log.error("%s", error_text(error))


class Slot:
    """One slot of a semaphore, for a run: `async with Slot(free) as slot:`."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._held = False

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give()

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Give the slot back, and take one again afterwards; a run that is cancelled meanwhile needs none."""
        self._give()
        try:
            yield
        except Exception:
            await self._take()
            raise
        await self._take()

    async def _take(self) -> None:
        await self._free.acquire()
        self._held = True

    def _give(self) -> None:
        if self._held:
            self._held = False
            self._free.release()
