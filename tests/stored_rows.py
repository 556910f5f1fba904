"""Rows of a store by the names of tables and columns: what a test looks at, or damages, that no protocol tells.

`await on(store, change, "tasks", body="{")`, or `on_file(path, change, "tasks", body="{")` while no store has it open.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from tertulia.store import Store
from tertulia.store.database import Connection, Row
from tertulia.store.sqlite import connection

P = ParamSpec("P")
T = TypeVar("T")


async def on(store: Store, work: Callable[Concatenate[Connection, P], T], *args: P.args, **named: P.kwargs) -> T:
    """Do something with rows of an open store, in one transaction."""
    return await store.writer.run(lambda database: work(database, *args, **named))


def on_file(path: Path | str, work: Callable[Concatenate[Connection, P], T], *args: P.args, **named: P.kwargs) -> T:
    """Do something with rows of a file; references are not checked."""
    with closing(connection.connect(str(path))) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        return work(database, *args, **named)


def read(database: Connection, table: str, /, *columns: str, **where: Any) -> list[Row]:
    """Return columns of the rows with these values, in their order; all columns if none are named."""
    order = "id" if "id" in database.columns(table) else ", ".join(database.columns(table)[:2])
    return database.all(f"SELECT {', '.join(columns) or '*'} FROM {table}{_where(where)} ORDER BY {order}", **where)  # noqa: S608


def count(database: Connection, table: str, /, **where: Any) -> int:
    return len(read(database, table, **where))


def add(database: Connection, table: str, /, **columns: Any) -> None:
    names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    database.run(f"INSERT INTO {table} ({names}) VALUES ({values})", **columns)  # noqa: S608


def change(database: Connection, table: str, where: Mapping[str, Any] | None = None, /, **columns: Any) -> None:
    """Set columns of the rows with the values of *where*, or of all."""
    wanted = {f"old_{name}": value for name, value in (where or {}).items()}
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    database.run(f"UPDATE {table} SET {changes}{_where(where or {}, 'old_')}", **wanted, **columns)  # noqa: S608


def remove(database: Connection, table: str, /, **where: Any) -> None:
    """Remove the rows with these values, or all."""
    database.run(f"DELETE FROM {table}{_where(where)}", **where)  # noqa: S608


def _where(where: Mapping[str, Any], prefix: str = "") -> str:
    wanted = [
        f"{name} IN (:{prefix}{name})" if isinstance(value, list | tuple) else f"{name} = :{prefix}{name}"
        for name, value in where.items()
    ]
    return f" WHERE {' AND '.join(wanted)}" if wanted else ""
