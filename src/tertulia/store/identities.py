"""Places with their titles, authors with their names: one row each, and one row for each version."""

from collections.abc import Hashable
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from tertulia.messages import Author, Place
from tertulia.store.encoding import AUTHOR, PLACE, clean, dumps, format_time, validate_id
from tertulia.store.sqlite.connection import Database, cache_get, cache_put

IMPORTS = "tertulia-import"  # the platform of rows of `places` that hold messages while they are imported

_CACHE_SIZE = 4096  # versions of places, and as many of authors


def place_key(place: Place) -> str:
    """Return the key of a place: platform, id and thread, without its title."""
    return dumps([place.platform, place.id] if place.thread is None else [place.platform, place.id, place.thread])


def find_place(database: Database, place: Place) -> int | None:
    what = ("place", place.platform, place.id, place.thread)
    row: int | None = cache_get(database, what)
    if row is not None:
        return row
    key = place_key(place)
    return _select_id(database, what, "SELECT id FROM places WHERE place_key = ?", key) or _select_id(
        database, what, "SELECT place FROM place_aliases WHERE place_key = ?", key
    )


def read_place(database: Database, place: Place, columns: str) -> Any:
    """Return columns of the row of a place, also for an id from before it moved; None where there is none."""
    key = (place_key(place),)
    row = database.execute(f"SELECT {columns} FROM places WHERE place_key = ?", key).fetchone()
    if row is not None:
        return row
    moved = f"SELECT {columns} FROM places WHERE id = (SELECT place FROM place_aliases WHERE place_key = ?)"
    return database.execute(moved, key).fetchone()


def upsert_place(database: Database, place: Place) -> int:
    found = find_place(database, place)
    if found is not None:
        return found
    validate_id(place.id, "place")
    row = (
        place_key(place),
        clean(place.platform),
        clean(place.author_namespace),
        place.id,
        None if place.thread is None else clean(place.thread),
    )
    insert = "INSERT INTO places (place_key, platform, service, place_id, thread) VALUES (?, ?, ?, ?, ?) RETURNING id"
    return _insert_row(database, insert, *row)


def audience_start(database: Database, place: Place) -> int:
    """Return the number of the first message since the place changed between direct chat and group."""
    row = read_place(database, place, _audience_start_column(place))
    return row[0] if row else 0


def conversation_start(database: Database, place: Place) -> int:
    """Return the number of the first message since `clear`, or since the place became direct or a group."""
    row = read_place(database, place, conversation_start_column(place))
    return row[0] if row else 0


def conversation_start_column(place: Place) -> str:
    """`conversation_start` as an SQL expression on the table `places`."""
    return f"max(beginning, {_audience_start_column(place)})"


def _audience_start_column(place: Place) -> str:
    return "open_until" if place.kind == "direct" else "direct_until"


def upsert_title(database: Database, place: Place, place_row: int) -> int:
    """Return the row of the place with its current title."""
    what = ("title", place)
    cached: int | None = cache_get(database, what)
    if cached is not None:
        return cached
    body = dumps(current_place(database, place))
    found = _select_id(database, what, "SELECT id FROM titles WHERE body = ?", body)
    if found is not None:
        return found
    insert = "INSERT INTO titles (place, title, body) VALUES (?, ?, ?) RETURNING id"
    return _insert_row(database, insert, place_row, clean(place.title), body)


def current_place(database: Database, place: Place) -> Place:
    """Return the place under the id that it has now."""
    if read_place(database, place, "place_key")[0] == place_key(place):
        return place
    platform, place_id, thread, service = read_place(database, place, "platform, place_id, thread, service")
    return replace(place, platform=platform, id=place_id, thread=thread, service="" if service == platform else service)


def find_author(database: Database, platform: str, author_id: str) -> int | None:
    what = ("author", platform, author_id)
    select = "SELECT id FROM authors WHERE platform = ? AND author_id = ?"
    return cache_get(database, what) or _select_id(database, what, select, platform, author_id)


def upsert_author(database: Database, platform: str, author_id: str) -> int:
    platform, author_id = clean(platform), validate_id(author_id, "author")
    found = find_author(database, platform, author_id)
    if found is not None:
        return found
    insert = "INSERT INTO authors (platform, author_id) VALUES (?, ?) RETURNING id"
    return _insert_row(database, insert, platform, author_id)


def upsert_name(database: Database, platform: str, author: Author, at: datetime | None) -> int:
    """Return the row of the author with their current name. A client in another language is no other name."""
    if author.language:
        _set_language(database, platform, author)
        author = replace(author, language="")
    what = ("name", platform, author)
    cached: int | None = cache_get(database, what)
    if cached is not None:
        return cached
    row = upsert_author(database, platform, author.id)
    body = dumps(author)
    found = _select_id(database, what, "SELECT id FROM names WHERE author = ? AND body = ?", row, body)
    if found is not None:
        return found
    insert = "INSERT INTO names (author, name, username, seen_at, body) VALUES (?, ?, ?, ?, ?) RETURNING id"
    username = None if author.username is None else clean(author.username)
    return _insert_row(database, insert, row, clean(author.name), username, format_time(at), body)


def _set_language(database: Database, platform: str, author: Author) -> None:
    row, language = upsert_author(database, platform, author.id), clean(author.language)
    if cache_get(database, ("language", row)) != language:
        database.execute("UPDATE authors SET language = ? WHERE id = ?", (language, row))
        cache_put(database, ("language", row), language)


def language_of(database: Database, platform: str, author_id: str) -> str | None:
    """Return the language of an author's client, empty if it is unknown; None if the author is."""
    select = "SELECT language FROM authors WHERE platform = ? AND author_id = ?"
    row = database.execute(select, (clean(platform), author_id)).fetchone()
    return row[0] if row else None


class IdentityCache:
    """Cache of authors and places by the rows of their versions, which never change: each value is one object."""

    def __init__(self) -> None:
        self._authors: dict[int, Author] = {}
        self._places: dict[int, Place] = {}

    def author(self, database: Database, name: int) -> Author:
        return self._authors.get(name) or self._read(database, name, self._authors, "names", AUTHOR)

    def place(self, database: Database, title: int) -> Place:
        return self._places.get(title) or self._read(database, title, self._places, "titles", PLACE)

    def clear(self) -> None:
        self._authors.clear()
        self._places.clear()

    def _read(self, database: Database, row: int, mine: dict[int, Any], table: str, kind: Any) -> Any:
        if len(mine) >= _CACHE_SIZE:
            mine.clear()
        value = cache_get(database, (table, row))
        if value is None:
            body = database.execute(f"SELECT body FROM {table} WHERE id = ?", (row,)).fetchone()[0]
            value = kind.loads(body)
            cache_put(database, (table, row), value)
        mine[row] = value
        return value


def _select_id(database: Database, what: Hashable, select: str, *values: Any) -> int | None:
    """Select the id of a row and cache it."""
    row = database.execute(select, values).fetchone()
    if row is None:
        return None
    cache_put(database, what, row[0])
    return cast("int", row[0])


def _insert_row(database: Database, insert: str, *values: Any) -> int:
    return cast("int", database.execute(insert, values).fetchone()[0])
