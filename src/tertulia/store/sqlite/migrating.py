"""The tables of a store, as an empty one has them, which is made once in a process; a new file is a copy of that."""

from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from tertulia.store.migrations import migrate
from tertulia.store.sqlite.connection import MEMORY, SqliteDatabase, connect

_OWN = ("migrations", "media_folder")  # each store has its own


def migrate_file(database: SqliteDatabase) -> None:
    """Run the migrations that a file has not had yet."""
    if database.is_new():
        empty_store().backup(database)
        database.run("UPDATE migrations SET at = :at", at=datetime.now(UTC).isoformat())
    migrate(database)


@cache
def empty_store() -> SqliteDatabase:
    """Return a store in memory without rows, for reading."""
    database = connect(MEMORY)
    migrate(database)
    return database


class Table(NamedTuple):
    """A table, its columns, and those of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def select(self, *, after: bool = False) -> str:
        """Return the select of all rows, or of those after `:k0`, `:k1`… in the order of the key."""
        key = ", ".join(self.key)
        rest = f" WHERE ({key}) > ({', '.join(f':k{number}' for number in range(len(self.key)))})" if after else ""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}{rest} ORDER BY {key}"


@cache
def tables() -> tuple[Table, ...]:
    """Return all tables but those that each store has of its own, in the order in which they are made."""
    database = empty_store()
    names = database.all(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    )
    found = []
    for name in (name for (name,) in names if name not in _OWN):
        columns = database.all(f"PRAGMA table_info({name})")
        key = tuple(column[1] for column in sorted(columns, key=lambda column: column[5]) if column[5])
        found.append(Table(name, tuple(column[1] for column in columns), key))
    return tuple(found)
