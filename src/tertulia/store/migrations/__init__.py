"""Runs the migrations that a store has not had yet, each in a transaction of its own."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tertulia.errors import StoreRefused, StoreTooNew
from tertulia.store.database import Connection
from tertulia.store.migrations.steps import EDITION, MIGRATIONS, Migration

MOVE_MARK = "store_move"  # the table of a target of `tertulia db move` that is not complete


def version(database: Connection) -> int:
    """Return the number of the last step that was run; 0 for a new store."""
    if database.is_new():
        return 0
    newest = database.one("SELECT max(number) FROM migrations")
    return newest[0] or 0 if newest else 0


def refuse_newer(database: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the version of the file; raise if this program does not know it, or knows another edition of it."""
    found = version(database)
    first = database.one("SELECT edition FROM migrations WHERE number = 1") if found else None
    if first and first[0] != EDITION:
        raise StoreRefused(
            f"an unreleased version of this program has made it (tables of edition {first[0]}, this one has {EDITION}),"
            " and there is no way from one to the other: move the file away to begin a new one"
        )
    if found > len(migrations):
        raise StoreTooNew(
            f"a newer program has written it: its tables have version {found}, this program knows {len(migrations)}"
        )
    return found


def refuse_older(database: Connection) -> None:
    """Raise `StoreRefused` if the file needs migrations, for callers that must not run them."""
    found = refuse_newer(database)
    if found < len(MIGRATIONS):
        raise StoreRefused(
            f"an older program has written it: its tables have version {found}, this program needs {len(MIGRATIONS)}; "
            "start tertulia chat or the bot once to bring it up to date"
        )


def refuse_incomplete(database: Connection) -> None:
    """Raise `StoreRefused` for the target of a move that has not ended."""
    if database.columns(MOVE_MARK):
        raise StoreRefused("a move to it has not ended; run the same `tertulia db move` again")


def migrate(database: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Run the steps that were not run yet, of a store that no other process has."""
    done = refuse_newer(database, migrations)
    for number, step in enumerate(migrations[done:], done + 1):
        database.begin()
        try:
            _run(database, number, step)
            database.commit()
        except BaseException:
            database.undo()
            raise


def _run(database: Connection, number: int, step: Migration) -> None:
    if number == 1:
        database.define(
            "CREATE TABLE migrations "
            "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL, edition INTEGER NOT NULL DEFAULT 1)"
        )
    step(database)
    database.run(
        "INSERT INTO migrations (number, name, at, edition) VALUES (:number, :name, :at, :edition)",
        number=number,
        name=step.__name__,
        at=datetime.now(UTC).isoformat(),
        edition=EDITION if number == 1 else 1,
    )
