"""Descriptions of media: one by each model for all places, with the position at which each place got to know them."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from tertulia.media.descriptions import Description, DescriptionFailure
from tertulia.messages import Message, Place
from tertulia.store import search_index
from tertulia.store.encoding import ANY, clean, dumps
from tertulia.store.identities import find_place
from tertulia.store.message_rows import FIND_MESSAGE, known_messages
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import ConnectionThread, Repository

_MAX_IDS = 500  # ids in one query
_MAX_REINDEXED = 50  # messages with the same media whose index is updated


class SqlDescriptions(Repository):
    """Implements `media.descriptions.DescriptionStore`."""

    def __init__(
        self, writer: ConnectionThread, reader: ConnectionThread, *, is_forgotten: Callable[[Database, str], bool]
    ) -> None:
        super().__init__(writer, reader)
        self._is_forgotten = is_forgotten  # media of somebody who was forgotten while they were described

    async def find(self, unique_ids: Collection[str], place: Place | None = None) -> dict[str, Description]:
        asked = list(dict.fromkeys(unique_ids))
        return await self._reader.run(lambda database: _find(database, asked, place)) if asked else {}

    async def makers(self, unique_ids: Collection[str]) -> dict[str, set[str]]:
        asked = list(dict.fromkeys(unique_ids))
        return await self._reader.run(lambda database: _makers(database, asked)) if asked else {}

    async def shown(self, place: Place) -> int:
        return await self._reader.run(lambda database: _shown(database, place))

    async def describe(
        self, unique_id: str, words: str, *, by: str, at: datetime, message: Message | None = None
    ) -> None:
        row = (clean(unique_id), clean(words), dumps(words), clean(by), at.isoformat())

        def store(database: Database) -> None:
            is_wanted = message is None or _is_there(database, message)
            if is_wanted and not self._is_forgotten(database, unique_id):
                _describe(database, row)

        await self._writer.run(store)

    async def failures(self, unique_ids: Collection[str], *, by: str) -> dict[str, DescriptionFailure]:
        asked = list(dict.fromkeys(unique_ids))
        return await self._reader.run(lambda database: _failures(database, asked, by)) if asked else {}

    async def fail(self, unique_id: str, failure: DescriptionFailure, *, by: str) -> None:
        upsert = """INSERT INTO description_failures (unique_id, made_by, failures, retry_at, why)
            VALUES (?, ?, ?, ?, ?) ON CONFLICT (unique_id, made_by) DO UPDATE SET
            failures = excluded.failures, retry_at = excluded.retry_at, why = excluded.why"""
        row = (clean(unique_id), clean(by), failure.failures, failure.retry_at.isoformat(), clean(failure.why))

        def store(database: Database) -> None:
            if not self._is_forgotten(database, unique_id):
                database.execute(upsert, row)

        await self._writer.run(store)


def _is_there(database: Database, message: Message) -> bool:
    """Return whether a message is stored and neither deleted nor hidden."""
    select = f"SELECT 1 FROM messages WHERE id = {FIND_MESSAGE} AND deleted = 0 AND hidden = 0"
    values = {"place": find_place(database, message.place), "message_id": clean(message.id)}
    return database.execute(select, values).fetchone() is not None


def _describe(database: Database, row: tuple[str, ...]) -> None:
    """Store a description, its positions, and update the index of the newest messages with that media."""
    unique_id, made_by = row[0], row[3]
    database.execute("DELETE FROM descriptions WHERE unique_id = ? AND made_by = ?", (unique_id, made_by))
    database.execute("INSERT INTO descriptions (unique_id, text, body, made_by, at) VALUES (?, ?, ?, ?, ?)", row)
    database.execute("DELETE FROM description_failures WHERE unique_id = ? AND made_by = ?", (unique_id, made_by))
    _set_positions(database, unique_id, made_by)
    select = "SELECT message FROM media WHERE unique_id = ? ORDER BY message DESC LIMIT ?"
    for (message,) in database.execute(select, (unique_id, _MAX_REINDEXED)).fetchall():
        search_index.reindex(database, message)


def _set_positions(database: Database, unique_id: str, made_by: str) -> None:
    """Store the position in each place where a run has shown these media; elsewhere the words hold from the start."""
    select = """SELECT m.place, min(m.number) FROM media a JOIN messages m ON m.id = a.message
        WHERE a.unique_id = ? GROUP BY m.place"""
    insert = "INSERT INTO description_positions (unique_id, made_by, place, position) VALUES (?, ?, ?, ?)"
    for place, first in database.execute(select, (unique_id,)).fetchall():
        if (position := known_messages(database, place)) > first:
            database.execute(insert, (unique_id, made_by, place, position))


def _find(database: Database, unique_ids: list[str], place: Place | None) -> dict[str, Description]:
    row = find_place(database, place) if place else None
    select = """SELECT d.unique_id, d.body, coalesce(p.position, 0) FROM descriptions d
        LEFT JOIN description_positions p ON p.unique_id = d.unique_id AND p.made_by = d.made_by AND p.place = ?
        WHERE d.unique_id IN ({}) ORDER BY d.rowid"""
    found: dict[str, Description] = {}
    for unique_id, body, position in _select(database, select, [row], unique_ids):
        before = found.get(unique_id) if position else None
        found[unique_id] = Description(words=ANY.loads(body), position=position, before=before)
    return found


def _makers(database: Database, unique_ids: list[str]) -> dict[str, set[str]]:
    select = "SELECT unique_id, made_by FROM descriptions WHERE unique_id IN ({})"
    found: dict[str, set[str]] = {}
    for unique_id, made_by in _select(database, select, [], unique_ids):
        found.setdefault(unique_id, set()).add(made_by)
    return found


def _shown(database: Database, place: Place) -> int:
    row = find_place(database, place)
    return known_messages(database, row) if row is not None else 0


def _failures(database: Database, unique_ids: list[str], by: str) -> dict[str, DescriptionFailure]:
    select = """SELECT unique_id, why, failures, retry_at FROM description_failures
        WHERE made_by = ? AND unique_id IN ({})"""
    return {
        unique_id: DescriptionFailure(why=why, failures=failures, retry_at=datetime.fromisoformat(retry_at))
        for unique_id, why, failures, retry_at in _select(database, select, [clean(by)], unique_ids)
    }


def _select(database: Database, select: str, values: list[Any], unique_ids: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of media in chunks, each with the id as it was asked for."""
    asked = {clean(unique_id): unique_id for unique_id in unique_ids}
    left = iter(asked)
    while some := list(islice(left, _MAX_IDS)):
        marks = ", ".join("?" * len(some))
        for unique_id, *columns in database.execute(select.format(marks), (*values, *some)).fetchall():
            yield asked[unique_id], *columns
