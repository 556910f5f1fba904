"""Options that several commands share, and the stores, files and people that they name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tertulia.cli.output import one_line
from tertulia.errors import InvalidValue, StoreRefused
from tertulia.store_url import is_url

if TYPE_CHECKING:
    from tertulia.messages import Place
    from tertulia.store.store import Store, StoreOpener

T = TypeVar("T")

DB = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH",
        help="The store: a file, or a URL of PostgreSQL. Default: TERTULIA_DB, else that of the tertulia.toml here, "
        "else tertulia.db in your data folder.",
    ),
]
PlaceName = Annotated[
    str, typer.Argument(metavar="PLACE", help="Its title, id, or platform:id; of a thread platform:id/thread.")
]
Platform = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which platform. Default: the only one that knows the id.")
]


def log_level(environment: Mapping[str, str]) -> str:
    """Return the level that LOGLEVEL names; empty if it names none."""
    if level := environment.get("LOGLEVEL", "").strip().upper():
        import logging

        if level not in logging.getLevelNamesMapping():
            raise InvalidValue(f"LOGLEVEL is DEBUG, INFO, WARNING or ERROR, not {environment['LOGLEVEL']!r}")
    return level


def model_names() -> list[str]:
    """Return the names of the local models, for the completion of the shell."""
    from tertulia.models.local import list_models

    return [model.name for model in list_models()]


def default_db() -> str:
    """Return the store that is used without --db: TERTULIA_DB, that of a tertulia.toml, or one in the data folder."""
    given = os.environ.get("TERTULIA_STORE") or os.environ.get("TERTULIA_DB")
    if given:
        return given
    if Path("tertulia.toml").is_file() or os.environ.get("TERTULIA_CONFIG"):
        from tertulia.config import find_config, load_config

        if found := find_config():
            return load_config(found).store
    from platformdirs import user_data_path

    return str(user_data_path("tertulia") / "tertulia.db")


def existing_store(db: str | None, *, option: str = "--db") -> str:
    """Return the path of a store that exists, or its URL; refuse one that does not, where *option* names another."""
    path = db or default_db()
    if path == ":memory:":
        raise InvalidValue(f":memory: has no file to open; name one with {option}")
    if is_url(path):
        return path
    file = Path(path)
    try:
        found = file.stat()
    except FileNotFoundError as error:
        hint = f"`tertulia run` makes one, {option} names another"
        raise StoreRefused(f"the store {path}: it does not exist; {hint}") from error
    except OSError as error:
        raise StoreRefused(f"the store {path}: {error.strerror}") from error
    if not file.is_dir() and not file.is_file():
        raise StoreRefused(f"the store {path}: it is not a file")
    if not found.st_size:
        raise StoreRefused(f"the store {path}: it is empty; {option} names another")
    return path


def open_beside(db: str | None) -> "StoreOpener":
    """Open a store that a running bot may have open too."""
    from tertulia.store import Store

    return Store.open(existing_store(db), beside=True)


async def find_place(store: "Store", given: str) -> "Place":
    """Return the place that is meant by its title, its id, or both platform and id."""
    places = await store.place_settings.listed()
    found = [one for one in places if given in _place_names(one)]
    found = found or [one for one in places if one.title.casefold() == given.casefold()]
    if len(found) == 1:
        return found[0]
    named = ", ".join(one_line(_title_and_name(one)) for one in (found or places)[:10])
    if found:
        raise InvalidValue(f"{len(found)} places are called {one_line(given)}: {named}")
    there = f"there are: {named}" if named else "there are none"
    raise InvalidValue(f"nothing is stored of a place {one_line(given)}; {there}")


def _place_names(place: "Place") -> list[str]:
    """`telegram:-100123/7`, `telegram-9:-100123/7`, `telegram-9/-100123/7` as in the log, `-100123/7`"""
    name = f"{place.id}/{place.thread}" if place.thread else place.id
    return [f"{place.author_namespace}:{name}", f"{place.platform}:{name}", f"{place.platform}/{name}", name]


def _title_and_name(place: "Place") -> str:
    name = _place_names(place)[0]
    return f"{place.title} ({name})" if place.title else name


def refuse_existing(file: Path) -> None:
    """Refuse early to replace a file; the function that creates it checks again."""
    if os.path.lexists(file):
        raise InvalidValue(f"{file} exists already; it is not replaced")


def choose_platform(known: Mapping[str, T], author: str, platform: str | None, *, unknown: str) -> tuple[str, T]:
    """Return the item of the platform that is meant: the given one, else the only one; *unknown* says there is none."""
    wanted = {name: value for name, value in known.items() if platform in (None, name)}
    if not wanted:
        raise InvalidValue(unknown)
    if len(wanted) > 1:
        names = ", ".join(map(one_line, sorted(wanted)))
        raise InvalidValue(f"{one_line(author)} is somebody on each of {names}; say which with --platform")
    return wanted.popitem()
