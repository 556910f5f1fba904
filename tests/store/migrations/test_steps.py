"""Files of another edition of the tables are refused, so the edition is another one whenever the tables are."""

from hashlib import sha256
from itertools import chain

from tertulia.store.migrations.memory_tables import FILES, MEMORY, SEARCH
from tertulia.store.migrations.steps import EDITION
from tertulia.store.migrations.tables import CHATS, CONVERSATIONS, RUNS

TABLES = {15: "e5e85b2d8f9e913d"}  # the digest of the statements of each edition


def test_tables_that_change_have_another_edition() -> None:
    statements = "\n".join(chain(CONVERSATIONS, RUNS, CHATS, MEMORY, SEARCH, FILES))

    assert {EDITION: sha256(statements.encode()).hexdigest()[:16]} == TABLES
