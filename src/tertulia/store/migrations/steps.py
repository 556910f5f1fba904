"""Numbered steps: each creates or changes tables."""

from collections.abc import Callable
from itertools import chain

from tertulia.store.database import Connection
from tertulia.store.migrations.memory_tables import FILES, MEMORY, SEARCH
from tertulia.store.migrations.tables import CHATS, CONVERSATIONS, RUNS

EDITION = 34  # of m001, which is changed in place until the first release; raise it with each change
Migration = Callable[[Connection], None]


def m001_tables(database: Connection) -> None:
    """Create all tables."""
    for statement in chain(CONVERSATIONS, RUNS, CHATS, MEMORY, SEARCH, FILES):
        database.define(statement)


MIGRATIONS: tuple[Migration, ...] = (m001_tables,)
