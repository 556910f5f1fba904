"""The tests of SQLite and its files, which are left out where stores are in PostgreSQL."""

import postgres

collect_ignore_glob = ["test_*"] if postgres.IS_CHOSEN else []
