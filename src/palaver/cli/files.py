"""Where the store lies that the commands look after, and how it is opened beside a running bot."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.errors import InvalidValue, StoreRefused

if TYPE_CHECKING:
    from palaver.store.store import Opening

DB = Annotated[
    Path | None,
    typer.Option("--db", metavar="PATH", help="The store. Default: PALAVER_DB, else palaver.db in your data folder."),
]


def default_db() -> Path:
    """Where the store lies unless somebody says otherwise: PALAVER_DB, or a place of the user's own."""
    given = os.environ.get("PALAVER_DB")
    if given:
        return Path(given)
    from platformdirs import user_data_path

    return user_data_path("palaver") / "palaver.db"


def kept_at(db: Path | None) -> Path:
    """The file of a store that is there already."""
    path = db or default_db()
    if str(path) == ":memory:":
        raise InvalidValue("what is kept in :memory: ends with its program; name a file with --db")
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise StoreRefused(f"the store {path}: there is none; --db names another") from error
    except OSError as error:
        raise StoreRefused(f"the store {path}: {error.strerror}") from error
    if not path.is_dir() and not path.is_file():
        raise StoreRefused(f"the store {path}: it is no file")
    if not found.st_size:
        raise StoreRefused(f"the store {path}: it is empty; --db names another")
    return path


def beside(db: Path | None) -> "Opening":
    """The store, which a bot may have open too."""
    from palaver.store import Store

    return Store.open(kept_at(db), beside=True)


def refuse_existing(file: Path) -> None:
    """Say early that a file would have to be replaced; who makes it makes sure once more."""
    if os.path.lexists(file):
        raise InvalidValue(f"{file} is there already; it is not replaced")
