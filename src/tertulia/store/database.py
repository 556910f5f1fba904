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

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol

Row = tuple[Any, ...]

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
