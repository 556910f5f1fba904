"""SQLite files of other programs, opened for reading only."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from tertulia.errors import InvalidValue
from tertulia.store.sqlite import connection


class ForeignDatabase(AbstractContextManager["ForeignDatabase"]):
    """Tables of a file that is not a store: `with ForeignDatabase(path) as found: found.rows("messages")`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = connection.connect_foreign(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none if there is no such table."""
        return [str(row[1]) for row in self._execute(f"PRAGMA table_info({table})")]

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(next(self._execute(f"SELECT count(*) FROM {table}"))[0]) if self.columns(table) else 0

    def rows(self, table: str, *, without: str = "") -> Iterator[tuple[float, Mapping[str, Any]]]:
        """Yield the rows of a table in the order in which they were added, each with the share that was read."""
        names = [name for name in self.columns(table) if name != without]
        columns = ", ".join(f'"{name}"' for name in names)
        last = next(self._execute(f"SELECT coalesce(max(rowid), 1) FROM {table}"))[0]
        for number, *values in self._execute(f"SELECT rowid, {columns} FROM {table} ORDER BY rowid"):
            yield number / last, dict(zip(names, values, strict=True))

    def _execute(self, statement: str) -> Iterator[Any]:
        try:
            yield from self._database.execute(statement)
        except connection.DatabaseError as error:
            raise InvalidValue(f"{self._path} cannot be read as a database: {error}") from error
