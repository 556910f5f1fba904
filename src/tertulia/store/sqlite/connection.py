"""Connections to SQLite: pragmas, translated errors, integrity checks, copies."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

from tertulia.errors import InvalidValue, StoreBroken, StoreBusy, StoreFull, StoreRefused, StoreTooNew, TertuliaError
from tertulia.files import create_atomically
from tertulia.messages import Place
from tertulia.store.database import DECODE_ERRORS, Connection, Failure, Fault, Row, RowCache, one_line, translate
from tertulia.store.encoding import dumps

DatabaseError = sqlite3.Error


class SqliteDatabase(sqlite3.Connection, Connection):
    """A connection to a file, or to a store in memory."""

    errors = (sqlite3.Error,)

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.cache = RowCache(most=0)
        self.events: list[Any] = []

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        return self.execute(*_bound(statement, values)).fetchall()

    def one(self, statement: str, /, **values: Any) -> Row | None:
        row: Row | None = self.execute(*_bound(statement, values)).fetchone()
        return row

    def each(self, statement: str, /, **values: Any) -> Iterator[Row]:
        return self.execute(*_bound(statement, values))

    def run(self, statement: str, /, **values: Any) -> int:
        return self.execute(*_bound(statement, values)).rowcount

    def send(self, statement: str, /, **values: Any) -> None:
        self.execute(*_bound(statement, values))

    def flush(self) -> None:
        """Do nothing: what was sent has run."""

    def many(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        if rows:
            form = _form(statement)
            self.executemany(form.text, map(form.bind, rows))

    def insert(self, statement: str, /, **values: Any) -> int:
        return cast("int", self.execute(*_bound(statement, values)).lastrowid)  # `RETURNING` takes twice as long

    def insert_all(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        form = _form(statement)
        count = self.executemany(form.text, map(form.bind, rows)).rowcount
        ((last,),) = self.execute("SELECT last_insert_rowid()")
        return list(range(last - count + 1, last + 1))  # in one transaction nobody else inserts between them

    def insert_new(self, statement: str, /, **values: Any) -> int | None:
        cursor = self.execute(*_bound(statement, values))
        return cursor.lastrowid if cursor.rowcount else None

    def begin(self, places: Sequence[Place] = ()) -> None:  # nobody else writes: no place needs a lock
        self.execute("BEGIN IMMEDIATE")  # a plain BEGIN takes the write lock only at the first write

    def begin_reading(self) -> None:
        self.execute("BEGIN")

    def fault(self, error: Exception) -> Fault | None:
        return _fault(error)

    def copy_to(self, path: Path, name: Path) -> None:
        try:
            with closing(sqlite3.connect(path)) as target:
                self.backup(target)
                target.execute("PRAGMA journal_mode = DELETE").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise _translate(error, f"{name} could not be written") from error

    def is_new(self) -> bool:
        """Return whether the file is empty; raise for a database of another program, or of this one's former name."""
        found = self.execute("PRAGMA application_id").fetchone()[0]
        if found == _PALAVER_ID:
            raise StoreRefused(
                "it was made when this program was unreleased and called Palaver, and cannot be read any more: "
                "move the file away to begin a new one"
            )
        tables = self.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if found != APPLICATION_ID and (found or tables):
            raise StoreBroken("it is a database of another program; name another file")
        return bool(found != APPLICATION_ID)

    def define(self, statement: str) -> None:
        if statement.startswith("CREATE TABLE migrations"):
            self.execute(f"PRAGMA application_id = {APPLICATION_ID}")  # in the header of the file
        self.execute(statement)

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.execute(f"PRAGMA table_info({table})")]

    def sequences(self) -> dict[str, int]:
        return dict(self.all("SELECT name, seq FROM sqlite_sequence"))

    def set_sequences(self, last: dict[str, int]) -> None:
        self.many("DELETE FROM sqlite_sequence WHERE name = :name", [{"name": name} for name in last])
        rows = [{"name": name, "seq": number} for name, number in last.items()]
        self.many("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)", rows)

    def checkpoint(self) -> bool:
        self.execute("PRAGMA busy_timeout = 0")
        try:
            return not self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self.execute(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT * 1000)}")

    def copy_log(self) -> None:
        self.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def vacuum(self) -> None:
        self.execute("PRAGMA temp_store = FILE")  # the copy may be larger than the memory
        self.execute("VACUUM")
        self.execute(f"PRAGMA {_TEMPORARY_IN_MEMORY}")
        if self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreBusy("somebody still reads what was removed; forget once more when that has ended")

    def faults(self) -> list[str]:
        """Run the integrity checks of SQLite; return the faults."""
        try:
            broken = [str(row[0]) for row in self.execute("PRAGMA integrity_check") if row[0] != "ok"]
            orphans = self.execute("PRAGMA foreign_key_check").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(self.translate(error))]
        return broken + [f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is not there" for row in orphans]

    def describe(self) -> str:
        """Name the store by the path of its file; without one if it is in memory or closed."""
        with suppress(sqlite3.Error):
            path = next(str(path) for _, name, path in self.execute("PRAGMA database_list") if name == "main")
            return f"the store {path}".strip()
        return "the store"


class _Form(NamedTuple):
    """A statement with `?1` for its first value: to find each value by its name took longer than the rest of many."""

    text: str
    single: str  # the same for lists of one value
    lists: tuple[str, ...]  # their names
    bind: Callable[[Mapping[str, Any]], tuple[Any, ...]]  # returns the values in order


@lru_cache(4096)
def _form(statement: str) -> _Form:
    names = tuple(dict.fromkeys(found["list"] or found["name"] for found in _VALUE.finditer(statement)))
    numbers = {name: number for number, name in enumerate(names, 1)}
    lists = tuple(dict.fromkeys(found["list"] for found in _VALUE.finditer(statement) if found["list"]))

    def numbered(found: re.Match[str], among: str) -> str:
        return among.format(numbers[found["list"]]) if found["list"] else f"?{numbers[found['name']]}"

    text = statement.replace("IS NOT DISTINCT FROM", "IS").replace("IS DISTINCT FROM", "IS NOT")
    many, single = (_VALUE.sub(partial(numbered, among=one), text) for one in (_AMONG, "IN (?{})"))
    if len(names) > 1:
        return _Form(many, single, lists, itemgetter(*names))
    return _Form(many, single, lists, lambda values: tuple([values[name] for name in names]))


def _bound(statement: str, values: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a statement as SQLite takes it, and its values in order."""
    text, single, lists, bind = _form(statement)
    if not lists:
        return text, bind(values)
    found = {name: list(values[name]) for name in lists}
    if all(len(some) == 1 for some in found.values()):  # to read JSON takes longer than to find one row
        return single, bind({**values, **{name: one for name, (one,) in found.items()}})
    return text, bind({**values, **{name: dumps(some) for name, some in found.items()}})


Database = SqliteDatabase
MEMORY = ":memory:"
APPLICATION_ID = 0x5452544C  # `TRTL` in the header of the file
_PALAVER_ID = 0x504C5652  # `PLVR`: the name of the program before its first release

_VALUE = re.compile(r"\bIN \(:(?P<list>\w+)\)|:(?P<name>\w+)")  # `IN (:rows)` has a list
_AMONG = "IN (SELECT value FROM json_each(?{}))"
_MIN_VERSION = (3, 35, 0)  # the first with RETURNING
_CHECKPOINT_PAGES = (
    4096  # pages in the log before they are copied into the file: a page that is written often is copied once
)
_TEMPORARY_IN_MEMORY = "temp_store = MEMORY"  # in a file, UPDATE … RETURNING takes ten times as long
_STATEMENT_CACHE = 256  # prepared statements
_BUSY_TIMEOUT = 5.0  # seconds to wait for another writer of the file
_DAMAGED = StoreBroken, "the file is damaged, or no store at all"
_BUSY = StoreBusy, "another program is writing to it"
_REFUSED = StoreRefused, "it may not be opened or written"
_FAULTS: dict[int, tuple[type[TertuliaError], str]] = {  # by the first byte of their code
    sqlite3.SQLITE_FULL: (StoreFull, "there is no room left on the disk"),
    sqlite3.SQLITE_IOERR: (StoreFull, "the disk does not take or give what it should; is it full?"),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: _REFUSED,
    sqlite3.SQLITE_CANTOPEN: _REFUSED,
    sqlite3.SQLITE_PERM: _REFUSED,
    sqlite3.SQLITE_AUTH: _REFUSED,
}
_SYNC_FAILURES = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}


def connect(path: str, *, durable: bool = True) -> Database:
    """Connect for writing; the file is not changed yet."""
    if sqlite3.sqlite_version_info < _MIN_VERSION:
        raise StoreRefused(f"the store needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}")
    safety = "FULL" if durable else "NORMAL"
    pragmas = (
        "foreign_keys = ON",
        "secure_delete = ON",
        f"synchronous = {safety}",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        "cache_size = -8192",  # kB: ids in no order touch pages everywhere
        _TEMPORARY_IN_MEMORY,
    )
    database = _connect(path, *pragmas)
    database.cache = RowCache()
    return database


def connect_beside(path: str) -> Database:
    """Connect to an existing file that another process may have open; wait for its writes."""
    pragmas = ("foreign_keys = ON", "secure_delete = ON", "synchronous = FULL")
    return _connect(f"{Path(path).as_uri()}?mode=rw", *pragmas, uri=True)


def connect_read_only_beside(path: str) -> Database:
    """Connect for reading only. In a folder without write permission, and without a WAL file, only the file is read."""
    database = _connect(f"{Path(path).as_uri()}?mode=rw", "query_only = ON", uri=True)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return database
    except sqlite3.Error as error:
        database.close()
        if _FAULTS.get(error.sqlite_errorcode & 0xFF) != _REFUSED or os.path.exists(f"{path}-wal"):
            raise
    return _connect(f"{Path(path).as_uri()}?mode=ro&immutable=1", "query_only = ON", uri=True)


def connect_foreign(path: Path) -> Database:
    """Connect to the file of another program, for reading only."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, factory=SqliteDatabase)


def enable_wal(database: Database) -> None:
    """Enable the write-ahead log: readers and the writer do not wait for each other."""
    database.execute("PRAGMA journal_mode = WAL").fetchone()


@contextmanager
def created(path: Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file; it becomes the file at *path*, completely or not at all."""
    try:
        with create_atomically(path) as temporary:
            yield temporary
    except FileExistsError as error:
        raise InvalidValue(f"{path} is there already; a backup replaces no file") from error
    except OSError as error:
        raise _translate(error, f"{path} could not be written") from error


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Translate errors of SQLite, the system and decoding into ours, in one line that begins with *what*."""
    try:
        yield
    except (StoreBroken, StoreBusy, StoreRefused, StoreTooNew) as error:
        raise type(error)(f"{what}: {error}") from error.__cause__
    except TertuliaError:
        raise
    except (sqlite3.Error, OSError, *DECODE_ERRORS) as error:
        raise _translate(error, what) from error


def _connect(path: str, *pragmas: str, uri: bool = False) -> Database:
    database = sqlite3.connect(
        path,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        uri=uri,
        factory=SqliteDatabase,
        cached_statements=_STATEMENT_CACHE,
    )
    try:
        for pragma in pragmas:
            database.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _translate(error: Exception, what: str) -> TertuliaError:
    if isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return StoreRefused(f"{what}: {error.strerror}")
    if isinstance(error, OSError):
        return StoreFull(f"{what}: {error.strerror or one_line(str(error))}")
    return translate(error, what, _fault(error))


def _fault(error: Exception) -> Fault | None:
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", 0)
    if known := _FAULTS.get(code & 0xFF):
        return Fault(Failure.DISK if code in _SYNC_FAILURES else Failure.TRANSACTION, *known)
    if isinstance(error, sqlite3.IntegrityError):
        return Fault(Failure.STATEMENT, InvalidValue, "it does not fit what is kept")
    if isinstance(error, sqlite3.OperationalError):
        return Fault(Failure.TRANSACTION, StoreBroken)
    return Fault(Failure.STATEMENT, InvalidValue)
