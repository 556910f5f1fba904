"""What the rooms of the store call: statements with named values, on one connection. A driver implements it.

Rules for statements, so that SQLite and PostgreSQL take the same text:

- Values are named: `:place`. `IN (:rows)` and `NOT IN (:rows)` take a list, also an empty one.
- A truth value in a column is 0 or 1 and is compared: `deleted = 0`. Where one is selected: `CASE WHEN … THEN 1 ELSE 0
  END`, with `min` or `max` over several rows.
- No JSON functions: what is searched for is a column or a table of its own.
- `IS NOT DISTINCT FROM` compares with a value that may be NULL. The larger of two numbers is a `CASE`.
- `DO UPDATE` names the table of the columns that it reads: `calls = usage.calls + excluded.calls`.
- An error ends the transaction. So ask first; never catch the error of a statement and go on.
- Rows that are structs are read and written by one `Rows` for each struct.
- A statement that is used once stands where it is used. Others are constants, with a sentence above each.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tertulia.errors import StoreBroken, TertuliaError
from tertulia.messages import Place

Row = tuple[Any, ...]

# Words of tables. They are SQLite's; the other drivers replace them, and INTEGER, REAL and TEXT.
SEQUENCE = "INTEGER PRIMARY KEY AUTOINCREMENT"  # ids that are never reused
KEY = "INTEGER PRIMARY KEY"
BYTES = "BLOB"
BY_KEY = "WITHOUT ROWID"  # rows are stored in the order of their key
DECODE_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)  # what reading a damaged row raises

MAX_ERROR_LENGTH = 500  # characters
_MAX_ROWS = 16384


@lru_cache(512)
def insert_into(table: str, *columns: str) -> str:
    """Return the statement that inserts a row; a value has the name of its column."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{column}' for column in columns)})"


@lru_cache(512)
def upsert_into(table: str, key: str, *columns: str) -> str:
    """Return the same, which replaces all other columns of a row that has its *key*: `"place, number"`."""
    others = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key.split(", "))
    return f"{insert_into(table, *columns)} ON CONFLICT ({key}) DO UPDATE SET {others}"


class RowCache:
    """Caches ids and values of immutable rows. It is right only while no other process removes such rows.

    A connection that only reads caches nothing: it is not told what the writer removes.
    """

    def __init__(self, most: int = _MAX_ROWS) -> None:
        self._most = most
        self._rows: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Return the cached value of a key; None if there is none."""
        return self._rows.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        if len(self._rows) >= self._most:
            self._rows.clear()
        if self._most:
            self._rows[key] = value

    def clear(self) -> None:
        """Clear the cache: cached rows may have been rolled back or removed."""
        self._rows.clear()


class Database(Protocol):
    """One connection, used by one thread at a time."""

    cache: RowCache
    events: list[Any]  # of the current transaction, published after its commit

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        """Return all rows that a statement selects or returns."""
        ...

    def one(self, statement: str, /, **values: Any) -> Row | None:
        """Return the first row, or None if there is none."""
        ...

    def value(self, statement: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or None if there is none."""
        row = self.one(statement, **values)
        return row[0] if row else None

    def column(self, statement: str, /, **values: Any) -> list[Any]:
        """Return the first column of all rows."""
        return [row[0] for row in self.all(statement, **values)]

    def each(self, statement: str, /, **values: Any) -> Iterator[Row]:
        """Yield the rows that a statement selects, a few hundred in memory at a time."""
        ...

    def run(self, statement: str, /, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        ...

    def send(self, statement: str, /, **values: Any) -> None:
        """Run a statement whose answer nobody needs, at once or with the next one; its error comes then.

        A commit waits for all of them.
        """
        ...

    def many(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Send a statement once for each mapping of values."""
        ...

    def insert(self, statement: str, /, **values: Any) -> int:
        """Insert a row into a table whose key is `id`; return that id."""
        ...

    def insert_all(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        """Insert rows as `insert` does, in one round trip; return their ids."""
        ...

    def insert_new(self, statement: str, /, **values: Any) -> int | None:
        """Insert a row `ON CONFLICT DO NOTHING`; return its id, or None if it exists."""
        ...


def insert_row(database: Database, table: str, /, **values: Any) -> int:
    """Insert a row into a table whose key is `id`; return that id."""
    return database.insert(insert_into(table, *values), **values)


def send_row(database: Database, table: str, /, **values: Any) -> None:
    """Insert a row whose id nobody needs."""
    database.send(insert_into(table, *values), **values)


def upsert_row(database: Database, table: str, key: str, /, **values: Any) -> None:
    """Insert a row, in place of one that has its key."""
    database.send(upsert_into(table, key, *values), **values)


class Failure(Enum):
    """What an error of the database concerns."""

    STATEMENT = auto()  # one statement: the unit is rolled back alone
    TRANSACTION = auto()  # nothing of the transaction is kept
    AGAIN = auto()  # the same, and all of it may succeed when it is run again
    DISK = auto()  # a failed sync: later reports of the disk cannot be trusted
    ANSWER = auto()  # a commit was not answered, and nobody can be asked: it must not be done again
    TAKEN = auto()  # another process has the store now


class Fault(NamedTuple):
    """What an error of a database is: what it concerns, our error for it, and the words of that."""

    failure: Failure
    error: type[TertuliaError]
    words: str = ""


def translate(error: Exception, what: str, fault: Fault | None, message: str | None = None) -> TertuliaError:
    """Translate an error of the database, or of decoding, into ours, on one line that begins with *what*."""
    said = one_line(message or str(error))
    if fault is None:
        return StoreBroken(f"{what}: it holds something that cannot be read ({type(error).__name__}: {said})")
    return fault.error(f"{what}: {fault.words} ({said})" if fault.words else f"{what}: {said}")


def one_line(text: str) -> str:
    """Return the text of an error on one line; it may quote anything that the store contains."""
    shown = "".join(character if character.isprintable() else " " for character in text[:MAX_ERROR_LENGTH])
    return " ".join(shown.split())


class Connection(Database, Protocol):
    """What the threads and the migrations call besides. Only they begin and end transactions."""

    errors: tuple[type[Exception], ...]  # what statements and commits raise

    @property
    def in_transaction(self) -> bool: ...

    def begin(self, places: Sequence[Place] = ()) -> None:
        """Begin to write; where others may write too, lock the rows of the places first, in one order for all."""
        ...

    def begin_reading(self) -> None:
        """Begin a transaction whose reads all see one state."""
        ...

    @abstractmethod
    def commit(self) -> None:
        """Make everything since `begin` durable."""
        ...

    @abstractmethod
    def rollback(self) -> None:
        """Roll back, if a transaction is open."""
        ...

    def undo(self) -> None:
        """Roll back, and clear the cache and the events; it raises nothing."""
        self.cache.clear()
        self.events.clear()
        with suppress(*self.errors):
            self.rollback()

    def flush(self) -> None:
        """Wait until all that was sent has run; raise its error."""
        ...

    def fault(self, error: Exception) -> Fault | None:
        """Return what an error of the database is."""
        ...

    def failure(self, error: Exception) -> Failure:
        """Return what an error of the database concerns."""
        fault = self.fault(error)
        return fault.failure if fault else Failure.STATEMENT

    def translate(self, error: Exception) -> TertuliaError:
        """Translate an error of the database or of decoding into ours, which names the store."""
        return translate(error, self.describe(), self.fault(error))

    def describe(self) -> str:
        """Name the store, for errors."""
        ...

    def is_new(self) -> bool:
        """Return whether there are no tables yet; raise for those of another program."""
        ...

    def define(self, statement: str) -> None:
        """Run a statement that creates or changes a table, in the words above."""
        ...

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table."""
        ...

    def sequences(self) -> dict[str, int]:
        """Return the last id of each table whose ids are a sequence; it may be removed by now."""
        ...

    def set_sequences(self, last: dict[str, int]) -> None:
        """Go on after these ids."""
        ...

    def faults(self) -> list[str]:
        """Check the file and its references, where that is ours to do; return the faults."""
        return []

    def checkpoint(self) -> bool:
        """Empty the log of writes, where it is ours, so that it does not hold what was removed.

        Return False while somebody reads what it holds.
        """
        return True

    def copy_log(self) -> None:
        """Copy the log of writes into the file, where it is ours, as far as that waits for nobody.

        A writer copies it too, within a commit, when it has grown; then there is little left to be copied.
        """
        return

    def vacuum(self) -> None:
        """Rewrite the file, where it is ours, so that neither it nor its log contains removed bytes."""
        self.checkpoint()

    def copy_to(self, path: Path, name: Path) -> None:
        """Copy the committed state into an empty file of SQLite; *name* is what errors call it."""
        ...

    @abstractmethod
    def close(self) -> None: ...
