"""Files of another edition of the tables are refused, so the edition is another one whenever the tables are."""

import re
from hashlib import sha256
from itertools import chain

from tertulia.store.migrations.memory_tables import FILES, MEMORY, SEARCH
from tertulia.store.migrations.steps import EDITION
from tertulia.store.migrations.tables import CHATS, CONVERSATIONS, RUNS

TABLES = {34: "6d6554a2547ff190"}  # the digest of the statements of each edition


def test_tables_that_change_have_another_edition() -> None:
    statements = "\n".join(chain(CONVERSATIONS, RUNS, CHATS, MEMORY, SEARCH, FILES))

    assert {EDITION: sha256(statements.encode()).hexdigest()[:16]} == TABLES


def test_a_table_refers_to_earlier_ones_and_to_itself() -> None:
    known: set[str] = set()
    for statement in chain(CONVERSATIONS, RUNS, CHATS, MEMORY, SEARCH, FILES):
        known |= set(re.findall(r"CREATE TABLE (\w+)", statement))
        assert set(re.findall(r"REFERENCES (\w+)", statement)) <= known, statement
