"""The threads that own the connections: one writes, and commits together what came together; one reads."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from palaver.errors import InvalidValue, PalaverError, StoreBroken, StoreTrouble
from palaver.store.sqlite import connection
from palaver.store.sqlite.connection import Database

T = TypeVar("T")
Work = Callable[[Database], T]

TOGETHER = 512  # units in one commit at most


class Unit(NamedTuple):
    """Work that is done wholly or not at all, and who waits for it. It changes nothing but the store."""

    work: Work[Any]
    done: "asyncio.Future[Any]"
    alone: bool  # outside of any transaction


class Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class Owner(ABC):
    """A thread with a connection: work goes in by a queue, its outcome comes back to the loop that asked."""

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self._queue: SimpleQueue[Unit | None] = SimpleQueue()
        self._closed = False
        self.troubled: list[Callable[[PalaverError], None]] = []  # are told of trouble with the store, in this thread
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], *, alone: bool = False) -> T:
        """What *work* gives, once it is done; it is done also when the caller is cancelled meanwhile."""
        if self._closed:
            raise InvalidValue("the store is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(Unit(work, done, alone))
        return await done

    async def close(self) -> None:
        """Do what was asked for before, and end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        while self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    @abstractmethod
    def outcomes(self, units: list[Unit]) -> list[Outcome]:
        """What became of each of the units."""

    def _run(self) -> None:
        for units in self._batches():
            outcomes = self.outcomes(units)
            self._tell_trouble(outcomes)
            _deliver(units, outcomes)
        self.database.close()

    def _tell_trouble(self, outcomes: list[Outcome]) -> None:
        errors = {id(one.error): one.error for one in outcomes if isinstance(one.error, StoreTrouble | StoreBroken)}
        for error in errors.values():
            for listener in tuple(self.troubled):
                listener(error)

    def _batches(self) -> Iterator[list[Unit]]:
        """What has come by the time the one before was done."""
        units: list[Unit] = []
        while True:
            try:
                unit = self._queue.get(block=not units)
            except Empty:
                yield units
                units = []
                continue
            if units and (unit is None or unit.alone or len(units) == TOGETHER):
                yield units
                units = []
            if unit is None:
                return
            if unit.alone:
                yield [unit]
            else:
                units.append(unit)


class Reader(Owner):
    """Reads; the units that came together see one state of the store, with all that was committed before they came."""

    def outcomes(self, units: list[Unit]) -> list[Outcome]:
        if units[0].alone:
            return [_tried(units[0].work, self.database)]
        found = [self._read(unit) for unit in units]
        _roll_back(self.database)
        return found

    def _read(self, unit: Unit) -> Outcome:
        """What the unit gave; after one that failed the next begins a transaction of its own."""
        if not self.database.in_transaction:
            begun = _tried(_begin, self.database)
            if begun.error:
                return begun
        outcome = _tried(unit.work, self.database)
        if outcome.error:
            _roll_back(self.database)
        return outcome


class Writer(Owner):
    """Writes: the units that came while a commit was under way are committed together, and each is told after that."""

    failed: PalaverError | None = None  # why nothing is written any more

    def __init__(self, database: Database, name: str) -> None:
        self.listeners: list[Callable[[list[Any]], None]] = []  # are given the events of each commit, in this thread
        super().__init__(database, name)

    def outcomes(self, units: list[Unit]) -> list[Outcome]:
        if self.failed:
            return [Outcome(error=self.failed) for _ in units]
        if units[0].alone:
            return [_tried(units[0].work, self.database)]
        return self._written(units)

    def _written(self, units: list[Unit]) -> list[Outcome]:
        """All in one transaction; where that fails, each in its own, so that one cannot spoil another."""
        begun = _tried(lambda database: database.execute(connection.BEGIN), self.database)
        if begun.error:
            return [begun] * len(units)
        try:
            found = self._together(units) or self._apart(units)
            self.database.execute("COMMIT")
            self._publish()
        except connection.Failure as error:
            _roll_back(self.database)
            if connection.is_unsynced(error):
                return self._given_up(error, units)
            if len(units) > 1:
                return [outcome for unit in units for outcome in self.outcomes([unit])]
            return [Outcome(error=connection.translated(error, self.database))]
        return found

    def _together(self, units: list[Unit]) -> list[Outcome]:
        """What the units gave, or nothing where one of them failed."""
        found: list[Outcome] = []
        for unit in units:
            outcome = self._done(unit)
            if outcome.error:
                return []
            found.append(outcome)
        return found

    def _apart(self, units: list[Unit]) -> list[Outcome]:
        """The same from the beginning, so that what one has half done can be taken back alone."""
        _roll_back(self.database)
        self.database.execute(connection.BEGIN)
        return [self._one(unit) for unit in units]

    def _one(self, unit: Unit) -> Outcome:
        self.database.execute("SAVEPOINT unit")
        before = len(events_of(self.database))
        outcome = self._done(unit)
        if outcome.error:
            del events_of(self.database)[before:]
            connection.unlearn(self.database)
            self.database.execute("ROLLBACK TO SAVEPOINT unit")
        self.database.execute("RELEASE SAVEPOINT unit")
        return outcome

    def _done(self, unit: Unit) -> Outcome:
        outcome = _tried(unit.work, self.database)
        if outcome.error is None:
            return outcome
        cause = outcome.error.__cause__
        if isinstance(cause, connection.Failure) and (connection.spoils_all(cause) or not self.database.in_transaction):
            raise cause
        return outcome

    def _publish(self) -> None:
        """Tell those who listen what was committed, before those who wait for it are told."""
        events = events_of(self.database)
        if events:
            made = list(events)
            events.clear()
            for listener in tuple(self.listeners):
                listener(made)

    def _given_up(self, error: connection.Failure, units: list[Unit]) -> list[Outcome]:
        """After a failed sync nobody can know what the disk holds: the store must be opened again to find out."""
        self.failed = StoreBroken(f"the disk failed while writing; nothing is written until the next start ({error})")
        self.failed.__cause__ = error
        return [Outcome(error=self.failed) for _ in units]


def _begin(database: Database) -> None:
    database.execute("BEGIN")


def _tried(work: Work[Any], database: Database) -> Outcome:
    try:
        return Outcome(work(database))
    except StoreBroken as error:
        return Outcome(error=connection.located(error, database))
    except (PalaverError, UnicodeEncodeError) as error:  # what is to be kept cannot be: nothing is wrong with the file
        return Outcome(error=error)
    except (connection.Failure, *connection.Unreadable) as error:
        ours = connection.translated(error, database)
        ours.__cause__ = error
        return Outcome(error=ours)
    except BaseException as error:  # noqa: BLE001 (raised again where the work is awaited)
        return Outcome(error=error)


def events_of(database: Database) -> list[Any]:
    """The events of the transaction under way."""
    return database.events if isinstance(database, connection.Knowing) else []


def _roll_back(database: Database) -> None:
    connection.unlearn(database)
    events_of(database).clear()
    if database.in_transaction:
        with suppress(connection.Failure):
            database.execute("ROLLBACK")


def _deliver(units: list[Unit], outcomes: list[Outcome]) -> None:
    """Tell everybody who waits, one call for each loop."""
    waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Outcome]]] = {}
    for unit, outcome in zip(units, outcomes, strict=True):
        waiting.setdefault(unit.done.get_loop(), []).append((unit.done, outcome))
    for loop, mine in waiting.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, mine)


def _settle(pairs: "list[tuple[asyncio.Future[Any], Outcome]]") -> None:
    for done, outcome in pairs:
        if done.done():
            continue
        if outcome.error is None:
            done.set_result(outcome.value)
        else:
            done.set_exception(outcome.error)
