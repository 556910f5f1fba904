"""What the rooms of the store call: statements with named values, on one connection. A driver implements it.

Rules for statements, so that SQLite and PostgreSQL take the same text:

- Values are named: `:place`. `IN (:rows)` and `NOT IN (:rows)` take a list, also an empty one.
- A truth value in a column is 0 or 1 and is compared: `deleted = 0`. Where one is selected: `CASE WHEN … THEN 1 ELSE 0
  END`, with `min` or `max` over several rows.
- No JSON functions: what is searched for is a column or a table of its own.
- `IS NOT DISTINCT FROM` compares with a value that may be NULL. The larger of two numbers is a `CASE`.
- `DO UPDATE` names the table of the columns that it reads: `calls = usage.calls + excluded.calls`.
- An error ends the transaction. So ask first; never catch the error of a statement and go on.
- A statement that is used once stands where it is used. Others are constants, with a sentence above each.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol

from tertulia.errors import TertuliaError
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

_MAX_ROWS = 16384


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

    def each(self, statement: str, /, **values: Any) -> Iterator[Row]:
        """Yield the rows that a statement selects, a few hundred in memory at a time."""
        ...

    def run(self, statement: str, /, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        ...

    def many(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each mapping of values, in one round trip."""
        ...

    def insert(self, statement: str, /, **values: Any) -> int:
        """Insert a row into a table whose key is `id`; return that id."""
        ...

    def insert_new(self, statement: str, /, **values: Any) -> int | None:
        """Insert a row `ON CONFLICT DO NOTHING`; return its id, or None if it exists."""
        ...


class Failure(Enum):
    """What an error of the database concerns."""

    STATEMENT = auto()  # one statement: the unit is rolled back alone
    TRANSACTION = auto()  # nothing of the transaction is kept
    AGAIN = auto()  # the same, and all of it may succeed when it is run again
    DISK = auto()  # a failed sync: later reports of the disk cannot be trusted
    ANSWER = auto()  # a commit was not answered, and nobody can be asked: it must not be done again
    TAKEN = auto()  # another process has the store now


class Connection(Database, Protocol):
    """What the threads and the migrations call besides. Only they begin and end transactions."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What statements and commits raise."""
        ...

    @property
    def in_transaction(self) -> bool: ...

    def begin(self, places: Sequence[Place] = ()) -> None:
        """Begin to write; where others may write too, lock the rows of the places first, in one order for all."""
        ...

    def begin_reading(self) -> None:
        """Begin a transaction whose reads all see one state."""
        ...

    def commit(self) -> None:
        """Make everything since `begin` durable."""
        ...

    def undo(self) -> None:
        """Roll back, if a transaction is open, and clear the cache and the events; it raises nothing."""
        ...

    def savepoint(self) -> int:
        """Set a savepoint; return what `end_savepoint` must be told."""
        ...

    def end_savepoint(self, before: int, *, undo: bool) -> None:
        """Release the savepoint; with *undo*, roll back to it first, and its events too."""
        ...

    def failure(self, error: Exception) -> Failure:
        """Return what an error concerns."""
        ...

    def translate(self, error: Exception) -> TertuliaError:
        """Translate an error of the database or of decoding into ours, which names the store."""
        ...

    def describe(self) -> str:
        """Name the store, for errors."""
        ...

    def is_new(self) -> bool:
        """Return whether there are no tables yet; raise for those of another program."""
        ...

    def begin_migration(self) -> None:
        """Begin to change tables, and wait until no other process does."""
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
        """Check the file and its references; return the faults."""
        ...

    def checkpoint(self) -> None:
        """Empty the log of writes, where it is ours, so that it does not hold what was removed."""
        ...

    def close(self) -> None: ...
