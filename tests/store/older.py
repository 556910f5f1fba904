"""Files as an older program has left them."""

import sqlite3
from contextlib import closing
from typing import Any

from tertulia.store.migrations import migrate, table_changes
from tertulia.store.migrations.steps import MIGRATIONS, Migration, m030_plain_names


def revert(database: Any, step: Migration) -> None:
    """Revert *step* and all later ones: names, and the tables, columns and indexes that they have made."""
    done = MIGRATIONS.index(step)
    if done <= MIGRATIONS.index(m030_plain_names):
        table_changes.revert_all(database, table_changes.ALL_RENAMES)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as older:
        migrate(older, MIGRATIONS[:done])
        before = {kind: _names(older, kind) for kind in ("index", "table")}
        for kind in ("index", "table"):
            for name in _names(database, kind) - before[kind]:
                database.execute(f"DROP {kind} {name}")
        for table in before["table"]:
            for column in _columns(older, table) - _columns(database, table):
                database.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT '[]'")
            for column in _columns(database, table) - _columns(older, table):
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    database.execute("DELETE FROM migrations WHERE number > ?", (done,))


def _names(database: Any, kind: str) -> set[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%'", (kind,))
    return {name for (name,) in rows.fetchall()}


def _columns(database: Any, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})").fetchall()}
