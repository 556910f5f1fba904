"""Structs as rows of a table: one definition reads and writes them."""

from typing import Any, TypeVar

from msgspec import Struct

from tertulia.store.database import Database, Row, send_row, upsert_row
from tertulia.store.encoding import Columns

S = TypeVar("S", bound=Struct)


class Rows(Columns[S]):
    """The rows of a table, named with its alias: `Rows(Run, "runs r", "id=run_id target")`."""

    def __init__(self, kind: type[S], table: str, fields: str, /, **others: str | Columns[Any]) -> None:
        self.table, _, alias = table.partition(" ")
        super().__init__(kind, fields, alias, **others)
        self._select, self._from = f"SELECT {self}", f" FROM {table} "

    def all(self, database: Database, which: str = "", /, **values: Any) -> list[S]:
        """Return the structs that joins and clauses select."""
        return [self.decode(row) for row in database.all(f"{self._select}{self._from}{which}", **values)]

    def one(self, database: Database, which: str, /, **values: Any) -> S | None:
        """Return the first of them, or None."""
        row = database.one(f"{self._select}{self._from}{which}", **values)
        return None if row is None else self.decode(row)

    def beside(self, database: Database, more: str, which: str, /, **values: Any) -> list[tuple[S, Row]]:
        """Return them, each with the values of *more* columns."""
        rows = database.all(f"{self._select}, {more}{self._from}{which}", **values)
        return [(self.decode(row), row[self.count :]) for row in rows]

    def insert(self, database: Database, value: S, /, **more: Any) -> None:
        """Insert a struct, with values of other columns."""
        send_row(database, self.table, **self.encode(value), **more)

    def upsert(self, database: Database, key: str, value: S, /, **more: Any) -> None:
        """Insert a struct, in place of one that has its key."""
        upsert_row(database, self.table, key, **self.encode(value), **more)

    def by(self, database: Database, key: str, which: str, /, **values: Any) -> dict[Any, list[S]]:
        """Return lists of them, by a column."""
        found: dict[Any, list[S]] = {}
        for one, (name,) in self.beside(database, key, which, **values):
            found.setdefault(name, []).append(one)
        return found
