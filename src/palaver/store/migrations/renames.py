"""Names of tables, columns and indexes before and after `m030_plain_names`.

SQLite renames a table or a column in place: rows, foreign keys and the conditions of partial indexes go along. It has
no statement to rename an index, so an index is dropped and created under its new name.
"""

from typing import NamedTuple

from palaver.store.sqlite.connection import Database


class Renames(NamedTuple):
    """Old and new names; columns are given with the new name of their table."""

    tables: dict[str, str]
    columns: tuple[tuple[str, str, str], ...]
    indexes: dict[str, tuple[str, str]]  # by the old name: the new name, and what is indexed under new names


SEARCH = Renames(
    tables={
        "search_said": "search_messages",
        "search_words": "search_terms",
        "search_embedded": "search_progress",
    },
    columns=(
        ("search_places", "words", "indexed_to"),
        ("search_progress", "done", "embedded_to"),
    ),
    indexes={
        "search_words_by_message": ("search_terms_by_message", "search_terms (place, number)"),
        "search_said_by_name": ("search_messages_by_name", "search_messages (name)"),
    },
)

ALL = Renames(
    tables={
        **SEARCH.tables,
        "events": "message_changes",
        "learned": "reading_cursors",
        "forgotten": "fact_exclusions",
        "blocked": "blocked_authors",
    },
    columns=(
        *SEARCH.columns,
        ("messages", "again", "stale"),
        ("descriptions", "words", "text"),
        ("runs", "taken", "message_ids"),
        ("runs", "resumed", "resumes"),
        ("records", "named", "record_run_id"),
        ("layers", "shared", "prefix_length"),
        ("layers", "rest", "suffix"),
        ("facts", "held_from", "valid_from"),
        ("facts", "held_until", "valid_until"),
        ("fact_exclusions", "what", "digest"),
        ("fact_exclusions", "last", "last_message"),
    ),
    indexes={
        **SEARCH.indexes,
        "events_by_message": ("message_changes_by_message", "message_changes (message)"),
        "events_seen": ("message_changes_seen", "message_changes (place, number) WHERE seen = 1"),
        "messages_again": ("messages_stale", "messages (place, number) WHERE stale = 1"),
    },
)


def apply(database: Database, renames: Renames) -> None:
    """Give everything its new name."""
    for old, new in renames.tables.items():
        database.execute(f"ALTER TABLE {old} RENAME TO {new}")
    for table, old, new in renames.columns:
        database.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for old, (new, content) in renames.indexes.items():
        database.execute(f"DROP INDEX {old}")
        database.execute(f"CREATE INDEX {new} ON {content}")


def revert(database: Database, renames: Renames) -> None:
    """Give everything its old name again."""
    select = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?"
    for table, old, new in renames.columns:
        database.execute(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}")
    for old, new in renames.tables.items():
        database.execute(f"ALTER TABLE {new} RENAME TO {old}")
    for old, (new, _) in renames.indexes.items():
        (statement,) = database.execute(select, (new,)).fetchone()
        database.execute(f"DROP INDEX {new}")
        database.execute(statement.replace(new, old, 1))
