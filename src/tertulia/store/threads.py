"""The writer thread with group commit, and the reader thread: each owns one connection of any driver.

Group commit. A synced commit waits for the disk, so one commit for each write would limit the store to a few hundred
writes a second. The writer takes all jobs that were queued during the last commit, runs them in one transaction and
commits once. A caller gets its result only after that commit, so the change is on the disk by then.

One job must not fail because of another. If a job raises, or the database ends the transaction itself (the disk is
full), the transaction is rolled back and both halves of the jobs run again, each in a transaction of its own, until the
failed one is alone. If the same may succeed when it is run again (two transactions locked each other), all run again, a
few times. A job may therefore run more than once, so it must change nothing but the database. After a failed fsync
nobody knows what the disk holds: the writer then refuses all writes, as it does when another bot has taken the store
over.
"""

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from tertulia.errors import InvalidValue, StoreBroken, StoreTrouble, TertuliaError
from tertulia.memory.values import FactRules
from tertulia.messages import Place
from tertulia.store.database import DECODE_ERRORS, Connection, Failure, translate
from tertulia.tasks.task import PlanRules
from tertulia.type_checks import argument_fault

T = TypeVar("T")
P = ParamSpec("P")
Operation = Callable[[Any], T]

MAX_BATCH = 512  # jobs in one commit at most
MAX_ATTEMPTS = 5  # of a batch that may succeed when it is run again
_PAUSE = 0.02  # seconds before that
_Calls = tuple[Any, ...]  # the calls that we are in: those outside of the last, its function and its arguments; or ()
_CALLS: ContextVar[_Calls] = ContextVar("_CALLS", default=())


class Job(NamedTuple):
    """An operation that is applied completely or not at all, and the future of its caller."""

    operation: Operation[Any]
    future: "asyncio.Future[Any]"
    autocommit: bool = False  # runs outside of any transaction
    places: Sequence[Place] = ()  # whose rows it changes
    calls: _Calls = ()  # by which it came


class Outcome(NamedTuple):
    """The result of an operation, or its error."""

    value: Any = None
    error: BaseException | None = None


class ConnectionThread(ABC):
    """A thread with a connection: it takes jobs from a queue and sets the results of their futures."""

    def __init__(self, database: Connection, name: str) -> None:
        self.database = database
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._closed = False
        self.error_listeners: list[Callable[[TertuliaError], None]] = []  # are called in this thread
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, operation: Operation[T], *, places: Sequence[Place] = (), autocommit: bool = False) -> T:
        """Run *operation* and return its result; it also runs to its end when the caller is cancelled.

        One that writes names the *places* whose rows it changes: a database with several writers locks them first.
        """
        if self._closed:
            raise InvalidValue("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(Job(operation, future, autocommit, places, _CALLS.get()))
        return await future

    async def close(self) -> None:
        """Finish the queued jobs and end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        while self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    @abstractmethod
    def run_batch(self, jobs: list[Job]) -> list[Outcome]:
        """Run jobs and return the outcome of each."""

    def _run(self) -> None:
        for jobs in self._batches():
            outcomes = self.run_batch(jobs)
            self._report_errors(outcomes)
            _deliver_outcomes(jobs, outcomes)
        self.database.close()

    def _report_errors(self, outcomes: list[Outcome]) -> None:
        errors = {id(one.error): one.error for one in outcomes if isinstance(one.error, StoreTrouble | StoreBroken)}
        for error in errors.values():
            for listener in tuple(self.error_listeners):
                listener(error)

    def _batches(self) -> Iterator[list[Job]]:
        """Yield the jobs that were queued while the batch before was run."""
        jobs: list[Job] = []
        while True:
            try:
                job = self._queue.get(block=not jobs)
            except Empty:
                yield jobs
                jobs = []
                continue
            if jobs and (job is None or job.autocommit or len(jobs) == MAX_BATCH):
                yield jobs
                jobs = []
            if job is None:
                return
            if job.autocommit:
                yield [job]
            else:
                jobs.append(job)


class ReaderThread(ConnectionThread):
    """Reads. The jobs of a batch see one state of the store, with all commits from before they were queued."""

    def run_batch(self, jobs: list[Job]) -> list[Outcome]:
        if jobs[0].autocommit:
            return [_run_operation(jobs[0], self.database)]
        found = [self._read(job) for job in jobs]
        self.database.undo()
        return found

    def _read(self, job: Job) -> Outcome:
        """Run a job in the transaction of the batch; after a failed one a new transaction begins."""
        if not self.database.in_transaction:
            start = _attempt(lambda database: database.begin_reading(), self.database)
            if start.error:
                return start
        outcome = _run_operation(job, self.database)
        if outcome.error:
            self.database.undo()
        return outcome


class WriterThread(ConnectionThread):
    """Writes a batch of jobs with one commit, and delivers their outcomes after it."""

    failed: TertuliaError | None = None  # why all writes are refused

    def __init__(self, database: Connection, name: str) -> None:
        self.before_commit: Callable[[Connection], None] = lambda database: None  # writes what the jobs left to the end
        self.commit_listeners: list[Callable[[list[Any]], None]] = []  # get the events of each commit, in this thread
        super().__init__(database, name)

    def run_batch(self, jobs: list[Job]) -> list[Outcome]:
        if self.failed:
            return [Outcome(error=self.failed) for _ in jobs]
        if jobs[0].autocommit:
            return [_run_operation(jobs[0], self.database)]
        failed: TertuliaError | None = None
        for attempt in range(MAX_ATTEMPTS):
            try:
                return self._commit_batch(jobs)
            except _RunAgain as again:
                failed = again.error
                time.sleep(_PAUSE * 2**attempt)  # who waited for our locks takes them first
        return [Outcome(error=failed) for _ in jobs]

    def _commit_batch(self, jobs: list[Job]) -> list[Outcome]:
        """Run jobs in one transaction; if one of several fails, run each half in a transaction of its own."""
        places = _places(jobs)
        start = _attempt(lambda database: database.begin(places), self.database)
        if start.error:
            return [start] * len(jobs)
        found: list[Outcome] = []
        try:
            for job in jobs:
                found.append(self._run_job(job))
                if found[-1].error:
                    self.database.undo()
                    break
            else:
                self.before_commit(self.database)
                self.database.commit()
                self._publish()
                return found
        except self.database.errors as error:
            self.database.undo()
            match self.database.failure(error):
                case Failure.DISK:
                    return self._fail_for_good("the disk failed while writing", error, jobs)
                case Failure.ANSWER:
                    return self._fail_for_good("a commit was not answered", error, jobs)
                case Failure.TAKEN:
                    return self._fail_for_good("another bot has taken the store over", error, jobs)
                case Failure.AGAIN:
                    raise _RunAgain(self.database.translate(error)) from error
            found = [_without_fault(jobs[0], Outcome(error=self.database.translate(error)))]
        middle = len(jobs) // 2
        return [*self.run_batch(jobs[:middle]), *self.run_batch(jobs[middle:])] if middle else found

    def _run_job(self, job: Job) -> Outcome:
        outcome = _run_operation(job, self.database)
        if outcome.error is None:
            return outcome
        cause = outcome.error.__cause__
        if isinstance(cause, self.database.errors) and (
            self.database.failure(cause) is not Failure.STATEMENT or not self.database.in_transaction
        ):
            raise cause
        return outcome

    def _publish(self) -> None:
        """Call the commit listeners with the events of this commit, before any outcome is delivered."""
        events = self.database.events
        if events:
            made = list(events)
            events.clear()
            for listener in tuple(self.commit_listeners):
                listener(made)

    def _fail_for_good(self, what: str, error: Exception, jobs: list[Job]) -> list[Outcome]:
        """Refuse all writes until the next start: what is stored is unknown, or another bot writes."""
        self.failed = StoreBroken(f"{what}; nothing is written until the next start ({error})")
        self.failed.__cause__ = error
        return [Outcome(error=self.failed) for _ in jobs]


class _RunAgain(Exception):
    """A transaction was rolled back and may succeed when it is run again; *error* is for the caller if it does not."""

    def __init__(self, error: TertuliaError) -> None:
        super().__init__()
        self.error = error


class CheckedCalls:
    """Base of classes whose public methods raise `InvalidValue` where they fail because of a wrong argument.

    The arguments are looked at once a call has failed: a damaged row and a wrong argument raise the same errors.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if inspect.iscoroutinefunction(method) and not name.startswith("_"):
                setattr(cls, name, _checked(method))


class Access(NamedTuple):
    """What the members of a store work with: its threads, and what is decided above it."""

    writer: ConnectionThread
    reader: ConnectionThread
    facts: FactRules
    plans: PlanRules
    clear_caches: Callable[[], Awaitable[None]]  # of all members: rows that they may have read are others now


class Repository(CheckedCalls):
    """Base of the store's members: reads and writes through the two threads."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._writer, self._reader = access.writer, access.reader


R = TypeVar("R", bound=Repository)
_Work = Callable[Concatenate[R, Any, P], T]  # a method with a database
_Method = Callable[Concatenate[R, P], Coroutine[Any, Any, T]]


def reading(work: _Work[R, P, T]) -> _Method[R, P, T]:
    """Make a method of what is done on the reader with its database: `await room.listed(…)`."""

    async def call(self: R, /, *args: P.args, **named: P.kwargs) -> T:
        return await self._reader.run(lambda database: work(self, database, *args, **named))

    return _without_database(call, work)


def writing(work: _Work[R, P, T]) -> _Method[R, P, T]:
    """Make a method of what is done on the writer with its database; the places that its arguments name are locked."""

    async def call(self: R, /, *args: P.args, **named: P.kwargs) -> T:
        places = _places_in((*args, *named.values()))
        return await self._writer.run(lambda database: work(self, database, *args, **named), places=places)

    return _without_database(call, work)


def _places_in(values: Iterable[Any]) -> list[Place]:
    """Return the places among some values, and those of messages, facts and the like."""
    found: list[Place] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += _places_in(value)
        elif isinstance(place := getattr(value, "place", value), Place):
            found.append(place)
    return found


def _without_database(call: _Method[R, P, T], work: _Work[R, P, T]) -> _Method[R, P, T]:
    """Name a method as its work is named, with the arguments of its callers."""
    signature = inspect.signature(work)
    parameters = [one for name, one in signature.parameters.items() if name != "database"]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wraps(work)(call)


def _checked(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(*args: P.args, **named: P.kwargs) -> T:
        token = _CALLS.set((_CALLS.get(), method, args, named))
        try:
            return await method(*args, **named)
        except InvalidValue:
            raise
        except (StoreBroken, *DECODE_ERRORS) as error:
            if fault := argument_fault(method, args, named):
                raise InvalidValue(fault) from error
            if isinstance(error, TertuliaError):
                raise
            raise translate(error, "the store", None) from error  # rows that were read before are decoded here
        finally:
            try:  # noqa: SIM105 (each call goes through here, and `suppress` takes longer than all the rest)
                _CALLS.reset(token)
            except ValueError:  # a call that nobody awaits any more is closed in another context
                pass

    return call


def _places(jobs: list[Job]) -> list[Place]:
    return [place for job in jobs for place in job.places]


def _run_operation(job: Job, database: Connection) -> Outcome:
    return _without_fault(job, _attempt(job.operation, database))


def _without_fault(job: Job, outcome: Outcome) -> Outcome:
    """Return the outcome of a job; where its arguments are to blame, not the store, with an error that says so."""
    if isinstance(outcome.error, StoreBroken) and (fault := _fault_of(job.calls)):
        mistake = InvalidValue(fault)
        mistake.__cause__ = outcome.error.__cause__
        return Outcome(error=mistake)
    return outcome


def _fault_of(calls: _Calls) -> str | None:
    """Return what is wrong with the arguments of one of some calls, the outer ones first."""
    return (_fault_of(calls[0]) or argument_fault(*calls[1:])) if calls else None


def _attempt(operation: Operation[Any], database: Connection) -> Outcome:
    errors: tuple[type[Exception], ...] = (*database.errors, *DECODE_ERRORS)
    try:
        return Outcome(operation(database))
    except StoreBroken as error:
        named = StoreBroken(f"{database.describe()}: {error}")
        named.__cause__ = error.__cause__
        return Outcome(error=named)
    except (TertuliaError, UnicodeEncodeError) as error:  # the value cannot be stored; the file is fine
        return Outcome(error=error)
    except errors as error:
        translated = database.translate(error)
        translated.__cause__ = error
        return Outcome(error=translated)
    except BaseException as error:  # noqa: BLE001 (raised again where the result is awaited)
        return Outcome(error=error)


def _deliver_outcomes(jobs: list[Job], outcomes: list[Outcome]) -> None:
    """Set the results of all futures, with one call for each event loop."""
    waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Outcome]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        waiting.setdefault(job.future.get_loop(), []).append((job.future, outcome))
    for loop, pairs in waiting.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_set_results, pairs)


def _set_results(pairs: "list[tuple[asyncio.Future[Any], Outcome]]") -> None:
    for future, outcome in pairs:
        if future.done():
            continue
        if outcome.error is None:
            future.set_result(outcome.value)
        else:
            future.set_exception(outcome.error)
