"""All that is particular to SQLite: connections and their pragmas, its errors as ours, integrity, copies."""

import os
import sqlite3
from collections.abc import Hashable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from palaver.errors import InvalidValue, PalaverError, StoreBroken, StoreBusy, StoreFull, StoreRefused, StoreTooNew
from palaver.files import create_atomically

Database = sqlite3.Connection
DatabaseError = sqlite3.Error
DECODE_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)  # what reading a damaged row raises


class CachingConnection(sqlite3.Connection):
    """The connection of a process that alone removes rows: it remembers the rows of what never changes."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.cache: dict[Hashable, Any] = {}
        self.events: list[Any] = []  # of the transaction under way, to be published once it is committed


MEMORY = ":memory:"
BEGIN = "BEGIN IMMEDIATE"  # an ordinary BEGIN would take the right to write only at the first write
SEQUENCE = "INTEGER PRIMARY KEY AUTOINCREMENT"  # numbers that are never given twice
BYTES = "BLOB"
BY_KEY = "WITHOUT ROWID"  # the rows lie in the order of their key, as other databases may or may not
APPLICATION_ID = 0x504C5652  # `PLVR` in the header of the file

_CACHE_SIZE = 16384  # rows at hand
_MIN_VERSION = (3, 35, 0)  # the first with RETURNING
_CHECKPOINT_PAGES = (
    4096  # pages in the log before they are copied into the file: a page that is written often is copied once
)
_STATEMENT_CACHE = 256  # that stay prepared
_MAX_ERROR_LENGTH = 500  # characters of what an error says
_BUSY_TIMEOUT = 5.0  # seconds for somebody's `sqlite3` on the same file to finish
_FULL = {sqlite3.SQLITE_FULL}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_IOERR = sqlite3.SQLITE_IOERR
_SYNC_FAILURES = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}


def connect(path: str, *, durable: bool = True) -> Database:
    """The connection that writes; nothing in the file is changed yet."""
    if sqlite3.sqlite_version_info < _MIN_VERSION:
        raise StoreRefused(f"the store needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}")
    safety = "FULL" if durable else "NORMAL"
    pragmas = (
        "foreign_keys = ON",
        "secure_delete = ON",
        f"synchronous = {safety}",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
    )
    return _connect(path, *pragmas, kind=CachingConnection)


def connect_read_only(path: str) -> Database:
    """A connection that only reads, and sees all that was committed before a read begins."""
    return _connect(path, "query_only = ON")


def connect_beside(path: str) -> Database:
    """A connection to a file that is there already and may be another process's; it waits for that one's writes."""
    pragmas = ("foreign_keys = ON", "secure_delete = ON", "synchronous = FULL")
    return _connect(f"{Path(path).as_uri()}?mode=rw", *pragmas, uri=True)


def connect_read_only_beside(path: str) -> Database:
    """One that only reads; where nothing may be made beside the file, and nothing is, the file alone is read."""
    database = _connect(f"{Path(path).as_uri()}?mode=rw", "query_only = ON", uri=True)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return database
    except sqlite3.Error as error:
        database.close()
        if (error.sqlite_errorcode & 0xFF) not in _REFUSED or os.path.exists(f"{path}-wal"):
            raise
    return _connect(f"{Path(path).as_uri()}?mode=ro&immutable=1", "query_only = ON", uri=True)


def enable_wal(database: Database) -> None:
    """Readers and the writer do not wait for each other from here on."""
    database.execute("PRAGMA journal_mode = WAL").fetchone()


def is_new(database: Database) -> bool:
    """Whether nothing was ever kept in the file; one of another program is refused."""
    found = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if found != APPLICATION_ID and (found or tables):
        raise StoreBroken("it is a database of another program")
    return bool(found != APPLICATION_ID)


def write_application_id(database: Database) -> None:
    """Write into the header whose file it is."""
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def faults(database: Database) -> list[str]:
    """What is wrong with the file itself."""
    try:
        broken = [str(row[0]) for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
        orphans = database.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(translate_error(error, database))]
    return broken + [f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is not there" for row in orphans]


def columns(database: Database, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def vacuum(database: Database) -> None:
    """Write the file anew, so that neither it nor its log holds anything that was removed."""
    database.execute("VACUUM")
    if database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise StoreBusy("somebody still reads what was removed; forget once more when that has ended")


def checkpoint(database: Database) -> None:
    """Bring what was committed into the file and empty its log, so far as nobody reads there."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def copy(database: Database, path: Path) -> None:
    """A copy at *path* of what is committed now; all of it or no file."""
    try:
        with create_atomically(path) as temporary, closing(sqlite3.connect(temporary)) as target:
            database.backup(target)
            target.execute("PRAGMA journal_mode = DELETE").fetchone()
    except FileExistsError as error:
        raise InvalidValue(f"{path} is there already; a backup replaces no file") from error
    except (OSError, sqlite3.Error) as error:
        raise _translate(error, f"{path} could not be written") from error


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """SQLite's errors, the system's and those of reading a row as ours, in one line about *what*."""
    try:
        yield
    except (StoreBroken, StoreBusy, StoreRefused, StoreTooNew) as error:
        raise type(error)(f"{what}: {error}") from error.__cause__
    except PalaverError:
        raise
    except (sqlite3.Error, OSError, *DECODE_ERRORS) as error:
        raise _translate(error, what) from error


def with_path(error: StoreBroken, database: Database) -> StoreBroken:
    """A value that cannot be read, with the file that *database* is."""
    found = StoreBroken(f"{_describe(database)}: {error}")
    found.__cause__ = error.__cause__
    return found


def translate_error(error: Exception, database: Database) -> PalaverError:
    """An error of SQLite, or of reading a row, as ours; with the file that *database* is."""
    return _translate(error, _describe(database))


def breaks_transaction(error: sqlite3.Error) -> bool:
    """Whether the whole transaction is in doubt, and not only what one statement did."""
    return not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError)


def is_sync_failure(error: sqlite3.Error) -> bool:
    """Whether the disk failed to make something durable: what it says after that is worth nothing."""
    return getattr(error, "sqlite_errorcode", 0) in _SYNC_FAILURES


def insert_row(database: Database, statement: str, values: Any) -> int:
    """Insert a row; its id. `RETURNING` takes twice as long."""
    return cast("int", database.execute(statement, values).lastrowid)


def insert_new_row(database: Database, statement: str, values: Any) -> int | None:
    """Insert a row `ON CONFLICT DO NOTHING`; its id, or None where it is there already."""
    cursor = database.execute(statement, values)
    return cursor.lastrowid if cursor.rowcount else None


def continue_sequence(database: Database, table: str, before: str) -> None:
    """Let the ids of a new table go on behind those that were ever given in the table *before* it."""
    select = "SELECT seq FROM sqlite_sequence WHERE name = ?"
    row = database.execute(select, (before,)).fetchone()
    database.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    database.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, row[0] if row else 0))


def cache_get(database: Database, what: Hashable) -> Any:
    """What this connection remembers of *what*; None where it remembers nothing."""
    return database.cache.get(what) if isinstance(database, CachingConnection) else None


def cache_put(database: Database, what: Hashable, row: Any) -> None:
    if isinstance(database, CachingConnection):
        if len(database.cache) >= _CACHE_SIZE:
            database.cache.clear()
        database.cache[what] = row


def clear_cache(database: Database) -> None:
    """Remember nothing: what was learned may have been taken back, or removed."""
    if isinstance(database, CachingConnection):
        database.cache.clear()


def _connect(path: str, *pragmas: str, uri: bool = False, kind: type[Database] = sqlite3.Connection) -> Database:
    database = sqlite3.connect(
        path,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        uri=uri,
        factory=kind,
        cached_statements=_STATEMENT_CACHE,
    )
    try:
        for pragma in pragmas:
            database.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _describe(database: Database) -> str:
    """The store by the path of its file, which is not opened for that; without one where it is in memory, or closed."""
    with suppress(sqlite3.Error):
        path = next(str(path) for _, name, path in database.execute("PRAGMA database_list") if name == "main")
        return f"the store {path}".strip()
    return "the store"


def _translate(error: Exception, what: str) -> PalaverError:
    code = getattr(error, "sqlite_errorcode", None)
    kind, said = (code or 0) & 0xFF, _one_line(str(error))
    if isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return StoreRefused(f"{what}: {error.strerror}")
    if isinstance(error, OSError):
        return StoreFull(f"{what}: {error.strerror or said}")
    if kind in _FULL:
        return StoreFull(f"{what}: there is no room left on the disk ({said})")
    if kind == _IOERR:
        return StoreFull(f"{what}: the disk does not take or give what it should; is it full? ({said})")
    if kind in _DAMAGED:
        return StoreBroken(f"{what}: the file is damaged, or no store at all ({said})")
    if kind in _BUSY:
        return StoreBusy(f"{what}: another program is writing to it ({said})")
    if kind in _REFUSED:
        return StoreRefused(f"{what}: it may not be opened or written ({said})")
    return _translate_other(error, f"{what}: ", said)


def _translate_other(error: Exception, what: str, said: str) -> PalaverError:
    if isinstance(error, sqlite3.IntegrityError):
        return InvalidValue(f"{what}it does not fit what is kept ({said})")
    if isinstance(error, sqlite3.OperationalError):
        return StoreBroken(f"{what}{said}")
    if isinstance(error, sqlite3.Error):
        return InvalidValue(f"{what}{said}")
    return StoreBroken(f"{what}it holds something that cannot be read ({type(error).__name__}: {said})")


def _one_line(said: str) -> str:
    """What an error says, which may quote whatever the file holds."""
    shown = "".join(character if character.isprintable() else " " for character in said[:_MAX_ERROR_LENGTH])
    return " ".join(shown.split())
