"""Background tasks, queues of places, retries of writes to the store, slots for runs, the guard around foreign code."""

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, Self, TypeVar

from msgspec import Struct

from tertulia.backoff import backoff
from tertulia.errors import ModelUnavailable, StoreBroken, StoreTrouble, TertuliaError
from tertulia.messages import Place, PlaceKey
from tertulia.redaction import redact_keys

log = logging.getLogger(__name__)

FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0  # seconds between attempts to write to the store
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds between attempts to read a place
CANCEL_ATTEMPTS = 15  # one second apart

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class EngineClock(Protocol):
    """The time of an engine: `tertulia.testing.Clock` is one that tests advance."""

    @property
    def now(self) -> Callable[[], datetime]: ...

    @property
    def sleep(self) -> Sleep: ...


class RealClock(Struct, frozen=True, kw_only=True):
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Sleep = asyncio.sleep


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


def log_text(error: BaseException) -> str:
    """Return an error as text for the log: one line for a `TertuliaError`, else the traceback. Keys are redacted."""
    if isinstance(error, TertuliaError):
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
        if isinstance(error, TertuliaError):
            log.error("%s: %s", type(error).__name__, error)
        elif error is not None:
            log.error("%s", log_text(error))


class Slot:
    """One slot of a semaphore, held by a run: `async with Slot(free) as slot:`."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self.waited = False  # whether none was free
        self._free = free
        self._held = False

    async def __aenter__(self) -> Self:
        self.waited = self._free.locked()
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


class PlaceQueue:
    """Runs *work* for each place that is woken. A place that is in the queue already is not added again.

    A `TertuliaError` is retried with backoff, after the places that wait. Any other error, and a damaged store, is
    logged; the place is read again when it is next woken.
    """

    def __init__(self, work: Callable[[Place], Awaitable[object]], name: str, *, sleep: Sleep) -> None:
        self._work = work
        self._name = name  # of the work, for the log
        self._sleep = sleep
        self._background = BackgroundTasks()
        self._waiting: OrderedDict[PlaceKey, Place] = OrderedDict()
        self._is_running = False

    def wake(self, place: Place) -> None:
        """Add a place to the queue; return at once."""
        self._waiting[place.key] = place
        if not self._is_running:
            self._is_running = True
            self._background.start(self._run())

    @property
    def busy(self) -> bool:
        return self._background.busy

    async def done(self) -> None:
        """Wait until the queue is empty."""
        await self._background.done()

    async def close(self) -> None:
        """Stop. What is left is found by the next `start`."""
        await self._background.stop()
        self._waiting.clear()
        self._is_running = False

    async def _run(self) -> None:
        failures = 0
        try:
            while self._waiting:
                key, place = self._waiting.popitem(last=False)
                try:
                    with foreign_code(self._name):
                        await self._work(place)
                    failures = 0
                except StoreBroken as error:
                    self._background.broken = error
                    log.error("%s in %s: %s", self._name, place.id, error)
                except TertuliaError as error:
                    self._waiting.setdefault(key, place)
                    failures += 1
                    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
                    usual = backoff(failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
                    pause = min(max(asked or 0.0, usual), LONGEST_PAUSE)
                    log.warning("%s in %s is retried in %g s: %s", self._name, place.id, pause, error)
                    await self._sleep(pause)
                except Exception as error:  # noqa: BLE001 (a model's, or a bug of ours: the other places go on)
                    log.error("%s in %s: %s", self._name, place.id, log_text(error))
        finally:
            self._is_running = False
