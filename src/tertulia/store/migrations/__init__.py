"""Runs the migrations that a file has not had yet, each in a transaction of its own."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

from tertulia.errors import StoreRefused, StoreTooNew
from tertulia.store.migrations.steps import EDITION, MIGRATIONS, Migration
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import Database


def version(database: Database) -> int:
    """Return the number of the last step that was run; 0 for a new file."""
    if connection.is_new(database):
        return 0
    found: int = database.execute("SELECT max(number) FROM migrations").fetchone()[0] or 0
    return found


def refuse_newer(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the version of the file; raise if this program does not know it, or knows another edition of it."""
    found = version(database)
    _refuse_other_edition(database, found)
    if found > len(migrations):
        raise StoreTooNew(
            f"a newer program has written it: its tables have version {found}, this program knows {len(migrations)}"
        )
    return found


def _refuse_other_edition(database: Database, found: int) -> None:
    edition = database.execute("SELECT edition FROM migrations WHERE number = 1").fetchone()[0] if found else EDITION
    if edition != EDITION:
        raise StoreRefused(
            f"an unreleased version of this program has made it (tables of edition {edition}, this one has {EDITION}), "
            "and there is no way from one to the other: move the file away to begin a new one"
        )


def refuse_older(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise `StoreRefused` if the file needs migrations, for callers that must not run them."""
    found = refuse_newer(database, migrations)
    if found < len(migrations):
        raise StoreRefused(
            f"an older program has written it: its tables have version {found}, this program needs {len(migrations)}; "
            "start tertulia chat or the bot once to bring it up to date"
        )


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Run the steps that were not run yet. A new store is a copy of an empty one, which is made once in a process."""
    done = refuse_newer(database, migrations)
    if done or migrations is not MIGRATIONS:
        _run_all(database, migrations, done)
        return
    _empty_store().backup(database)
    database.execute("UPDATE migrations SET at = ?", (datetime.now(UTC).isoformat(),))


@cache
def _empty_store() -> Database:
    database = connection.connect(connection.MEMORY)
    _run_all(database, MIGRATIONS, 0)
    return database


def _run_all(database: Database, migrations: Sequence[Migration], done: int) -> None:
    for number, step in enumerate(migrations[done:], done + 1):
        database.begin()
        try:
            _run(database, number, step)
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise


def _run(database: Database, number: int, step: Migration) -> None:
    if number == 1:
        connection.write_application_id(database)
        database.execute(
            "CREATE TABLE migrations "
            "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL, edition INTEGER NOT NULL DEFAULT 1)"
        )
    step(database)
    row = (number, step.__name__, datetime.now(UTC).isoformat(), EDITION if number == 1 else 1)
    database.execute("INSERT INTO migrations (number, name, at, edition) VALUES (?, ?, ?, ?)", row)
