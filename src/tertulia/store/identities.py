"""Places with their titles, authors with their names: one row each, and one row for each version."""

from collections.abc import Hashable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tertulia.errors import StoreBroken
from tertulia.messages import Author, Place
from tertulia.store.database import Database, insert_row
from tertulia.store.encoding import PLACE, clean, dumps, format_time, validate_id

IMPORTS = "tertulia-import"  # the platform of rows of `places` that hold messages while they are imported

# the row of a place by its key, also by one from before it moved
_BY_KEY = """coalesce((SELECT id FROM places WHERE place_key = :key),
    (SELECT place FROM place_aliases WHERE place_key = :key))"""


def place_key(place: Place) -> str:
    """Return the key of a place: platform, id and thread, without its title."""
    return dumps([place.platform, place.id] if place.thread is None else [place.platform, place.id, place.thread])


def find_place(database: Database, place: Place) -> int | None:
    what = ("place", place.platform, place.id, place.thread)
    row: int | None = database.cache.get(what)
    return row or _cached_id(database, what, "SELECT id FROM places WHERE id = " + _BY_KEY, key=place_key(place))


def read_place(database: Database, place: Place, columns: str) -> Any:
    """Return columns of the row of a place, also for an id from before it moved; None where there is none."""
    return database.one(f"SELECT {columns} FROM places WHERE id = {_BY_KEY}", key=place_key(place))


def read_counts(database: Database, place: Place, columns: str) -> Any:
    """Return the same of columns that are numbers: they are counted with, also where no error is the store's."""
    found = read_place(database, place, columns)
    if found and not all(isinstance(number, int) for number in found):
        raise StoreBroken(f"it holds something that cannot be read: {found!r} as {columns} of a place")
    return found


def upsert_place(database: Database, place: Place) -> int:
    found = find_place(database, place)
    if found is not None:
        return found
    validate_id(place.id, "place")
    return insert_row(
        database,
        "places",
        place_key=place_key(place),
        platform=clean(place.platform),
        service=clean(place.author_namespace),
        place_id=place.id,
        thread=None if place.thread is None else clean(place.thread),
    )


def select_places(database: Database, select: str, **values: Any) -> list[Place]:
    """Return the places whose titles a statement selects."""
    return [PLACE.loads(body) for body in database.column(select, **values)]


def audience_start(database: Database, place: Place) -> int:
    """Return the number of the first message since the place changed between direct chat and group."""
    return (read_counts(database, place, _audience_start_column(place)) or (0,))[0]


def conversation_start(database: Database, place: Place) -> int:
    """Return the number of the first message since `clear`, or since the place became direct or a group."""
    return (read_counts(database, place, conversation_start_column(place)) or (0,))[0]


def conversation_start_column(place: Place) -> str:
    """`conversation_start` as an SQL expression on the table `places`."""
    start = _audience_start_column(place)
    return f"CASE WHEN beginning > {start} THEN beginning ELSE {start} END"


def _audience_start_column(place: Place) -> str:
    return "open_until" if place.kind == "direct" else "direct_until"


def upsert_title(database: Database, place: Place, place_row: int) -> int:
    """Return the row of the place with its current title."""
    what = ("title", place)
    cached: int | None = database.cache.get(what)
    if cached is not None:
        return cached
    body = dumps(current_place(database, place))
    found = _cached_id(database, what, "SELECT id FROM titles WHERE body = :body", body=body)
    if found is not None:
        return found
    title, direct = clean(place.title), int(place.kind == "direct")
    return insert_row(database, "titles", place=place_row, title=title, direct=direct, body=body)


def current_place(database: Database, place: Place) -> Place:
    """Return the place under the id that it has now."""
    if read_place(database, place, "place_key")[0] == place_key(place):
        return place
    platform, place_id, thread, service = read_place(database, place, "platform, place_id, thread, service")
    return replace(place, platform=platform, id=place_id, thread=thread, service="" if service == platform else service)


def find_author(database: Database, platform: str, author_id: str) -> int | None:
    what = ("author", platform, author_id)
    select = "SELECT id FROM authors WHERE platform = :platform AND author_id = :author_id"
    row: int | None = database.cache.get(what)
    return row or _cached_id(database, what, select, platform=platform, author_id=author_id)


def upsert_author(database: Database, platform: str, author_id: str) -> int:
    platform, author_id = clean(platform), validate_id(author_id, "author")
    found = find_author(database, platform, author_id)
    if found is not None:
        return found
    return insert_row(database, "authors", platform=platform, author_id=author_id)


def upsert_name(database: Database, platform: str, author: Author, at: datetime | None) -> int:
    """Return the row of the author with their current name. A client in another language is no other name."""
    if author.language:
        _set_language(database, platform, author)
        author = replace(author, language="")
    what = ("name", platform, author)
    cached: int | None = database.cache.get(what)
    if cached is not None:
        return cached
    row, body = upsert_author(database, platform, author.id), dumps(author)
    select = "SELECT id FROM names WHERE author = :author AND body = :body"
    found = _cached_id(database, what, select, author=row, body=body)
    if found is not None:
        return found
    return insert_row(
        database,
        "names",
        author=row,
        name=clean(author.name),
        username=None if author.username is None else clean(author.username),
        seen_at=format_time(at),
        body=body,
    )


def _set_language(database: Database, platform: str, author: Author) -> None:
    row, language = upsert_author(database, platform, author.id), clean(author.language)
    if database.cache.get(("language", row)) != language:
        database.run("UPDATE authors SET language = :language WHERE id = :row", language=language, row=row)
        database.cache.put(("language", row), language)


def _cached_id(database: Database, what: Hashable, select: str, **values: Any) -> int | None:
    """Select the id of a row and cache it."""
    row: int | None = database.value(select, **values)
    if row is not None:
        database.cache.put(what, row)
    return row
