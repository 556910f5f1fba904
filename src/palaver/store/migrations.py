"""How the tables came to be: numbered steps, each run once, inside a transaction of its own."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from palaver.errors import StoreTooNew
from palaver.store import sqlite
from palaver.store.sqlite import Database
from palaver.store.tables import FIRST

Migration = Callable[[Database], None]


def m001_conversations(database: Database) -> None:
    """Messages, runs, prompts, replies, tasks and descriptions."""
    for statement in FIRST:
        database.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (m001_conversations,)


def version(database: Database) -> int:
    """The number of the last step that was run; 0 for a new file."""
    if sqlite.is_new(database):
        return 0
    found: int = database.execute("SELECT max(number) FROM migrations").fetchone()[0] or 0
    return found


def refuse_newer(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version, unless this program does not know it."""
    found = version(database)
    if found > len(migrations):
        raise StoreTooNew(
            f"a newer program has written it: its tables have version {found}, this program knows {len(migrations)}"
        )
    return found


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Run the steps that were not run yet."""
    done = refuse_newer(database, migrations)
    for number, step in enumerate(migrations[done:], done + 1):
        database.execute(sqlite.BEGIN)
        try:
            _run(database, number, step)
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise


def _run(database: Database, number: int, step: Migration) -> None:
    if number == 1:
        sqlite.sign(database)
        database.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL)")
    step(database)
    row = (number, step.__name__, datetime.now(UTC).isoformat())
    database.execute("INSERT INTO migrations (number, name, at) VALUES (?, ?, ?)", row)
