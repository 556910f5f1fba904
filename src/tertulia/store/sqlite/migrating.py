"""The tables of a file: a new one is a copy of an empty one, which is made once in a process."""

from datetime import UTC, datetime
from functools import cache

from tertulia.store.migrations import migrate
from tertulia.store.sqlite.connection import MEMORY, SqliteDatabase, connect


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
