"""Opens a store of any database: for its only bot, beside that one, or alone to be moved."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

from tertulia.errors import InvalidValue, StoreRefused
from tertulia.media.file_folder import FileFolder
from tertulia.store.database import Connection
from tertulia.store.forget import person
from tertulia.store.media_folder import find_folder, open_folder
from tertulia.store.migrations import refuse_incomplete, refuse_older
from tertulia.store_url import is_url


class Driver(Protocol):
    """A store that may be opened, as its database does it."""

    name: str  # as errors call it
    files: str  # the path beside which its files of media are, if no folder was named
    in_memory: bool  # there is one connection, and no folder

    def translating(self) -> AbstractContextManager[None]:
        """Translate errors of the database into ours, which name the store."""
        ...

    def hold(self, undo: ExitStack, *, new: bool) -> None:
        """Keep other bots away until *undo* is closed; a *new* store is made if there is none."""
        ...

    def use(self, undo: ExitStack) -> None:
        """Say until *undo* is closed that the store is in use, beside a bot; raise `StoreRefused` if there is none."""
        ...

    def connect(self, *, durable: bool) -> Connection:
        """Connect to write, for the one that holds the store."""
        ...

    def migrate(self, database: Any) -> None:
        """Run the migrations that the store has not had yet."""
        ...

    def connect_reading(self) -> Connection: ...

    def connect_beside(self) -> Connection:
        """Connect to write where a bot may write too."""
        ...

    def is_held(self, database: Any) -> bool | None:
        """Return whether a bot has the store now; None where nobody can know."""
        ...

    def size(self, database: Any) -> int | None:
        """Return the bytes of the store without its files of media; None where it has no file."""
        ...


class Opened(NamedTuple):
    """A store that is open: its connections and media, and what keeps others away until it is closed."""

    driver: Driver
    writing: Connection
    reading: Connection
    folder: FileFolder
    held: ExitStack


def driver_of(store: str) -> Driver:
    """Return the driver of a store, by its path or URL; that of PostgreSQL needs packages which are an extra."""
    if not is_url(store):
        from tertulia.store.sqlite.opening import FileStore

        return FileStore(store)
    try:
        from tertulia.store.postgres.opening import ServerStore
    except ImportError as error:
        raise InvalidValue(
            "a store in PostgreSQL needs packages that are not installed: pip install 'tertulia[postgres]'"
        ) from error
    return ServerStore(store)


def open_store(driver: Driver, *, media_folder: str | None, durable: bool) -> Opened:
    """Open a store for its only bot; one that is not there is made."""
    with driver.translating(), ExitStack() as undo:
        writing = _hold(driver, undo, durable=durable)
        refuse_incomplete(writing)
        if person.is_to_be_rewritten(writing):
            writing.vacuum()
            person.end(writing)
        if driver.in_memory:
            return Opened(driver, writing, writing, FileFolder(durable=False), undo.pop_all())
        reading = driver.connect_reading()
        undo.callback(reading.close)
        folder = open_folder(writing, driver.files, media_folder, durable=durable)
        return Opened(driver, writing, reading, folder, undo.pop_all())


def open_beside(driver: Driver) -> Opened:
    """Open a store that a bot may have open; it is neither made nor migrated."""
    with ExitStack() as undo:
        driver.use(undo)
        reading = connect_reading(driver)
        undo.callback(reading.close)
        with driver.translating():
            folder = find_folder(reading, driver.files)
            return Opened(driver, driver.connect_beside(), reading, folder, undo.pop_all())


@contextmanager
def open_alone(driver: Driver, *, new: bool) -> Iterator[Connection]:
    """Open a store that no bot has, to move it; a *new* one is made, and may be incomplete."""
    with ExitStack() as undo:
        with driver.translating():
            database = _hold(driver, undo, new=new)
        yield database


def connect_reading(driver: Driver) -> Connection:
    """Connect to an existing store for reading."""
    with driver.translating(), ExitStack() as undo:
        reading = driver.connect_reading()
        undo.callback(reading.close)
        if reading.is_new():
            raise StoreRefused("there is no store yet; `tertulia run` makes one")
        refuse_older(reading)
        refuse_incomplete(reading)
        undo.pop_all()
        return reading


def _hold(driver: Driver, undo: ExitStack, *, new: bool = True, durable: bool = True) -> Connection:
    """Connect to a store that others are kept away from; a *new* one is made or migrated."""
    driver.hold(undo, new=new)
    database = driver.connect(durable=durable)
    undo.callback(database.close)
    if new:
        driver.migrate(database)
    else:
        refuse_older(database)
    return database
