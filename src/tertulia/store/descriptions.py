"""Descriptions of media: one by each model for all places, with the position at which each place got to know them."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any

from tertulia.media.descriptions import Description, DescriptionFailure
from tertulia.messages import Message, Place
from tertulia.store import search_index
from tertulia.store.database import Database, Row
from tertulia.store.encoding import ANY, clean, dumps
from tertulia.store.identities import find_place
from tertulia.store.message_rows import FIND_MESSAGE, known_messages
from tertulia.store.threads import ConnectionThread, Repository, reading
from tertulia.timezones import utc

_MAX_REINDEXED = 50  # messages with the same media whose index is updated

# Stores the position in each place where a run has shown these media; elsewhere the words hold from the start.
_SET_POSITIONS = """INSERT INTO description_positions (unique_id, made_by, place, position)
    SELECT :unique_id, :made_by, shown.place, shown.known FROM (
        SELECT m.place AS place, min(m.number) AS first, (
            SELECT r.horizon FROM runs r WHERE r.place = m.place AND r.horizon > 0 ORDER BY r.id DESC LIMIT 1
        ) AS known FROM media a JOIN messages m ON m.id = a.message WHERE a.unique_id = :unique_id GROUP BY m.place
    ) shown WHERE shown.known > shown.first"""

# The descriptions of media, and since when a place has each; the newest last.
_SELECT = """SELECT d.unique_id, d.body, coalesce(p.position, 0) FROM descriptions d
    LEFT JOIN description_positions p ON p.unique_id = d.unique_id AND p.made_by = d.made_by AND p.place = :place
    WHERE d.unique_id IN (:asked) ORDER BY d.id"""

# Stores why a model could not describe media, in place of an earlier failure.
_FAIL = """INSERT INTO description_failures (unique_id, made_by, failures, retry_at, why)
    VALUES (:unique_id, :made_by, :failures, :retry_at, :why) ON CONFLICT (unique_id, made_by) DO UPDATE SET
    failures = excluded.failures, retry_at = excluded.retry_at, why = excluded.why"""


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

    @reading
    def shown(self, database: Database, place: Place) -> int:
        row = find_place(database, place)
        return known_messages(database, row) if row is not None else 0

    async def describe(
        self, unique_id: str, words: str, *, by: str, at: datetime, message: Message | None = None
    ) -> None:
        def store(database: Database) -> None:
            is_wanted = message is None or _is_there(database, message)
            if is_wanted and not self._is_forgotten(database, unique_id):
                _describe(database, clean(unique_id), words, clean(by), at)

        await self._writer.run(store)

    async def failures(self, unique_ids: Collection[str], *, by: str) -> dict[str, DescriptionFailure]:
        asked = list(dict.fromkeys(unique_ids))
        return await self._reader.run(lambda database: _failures(database, asked, by)) if asked else {}

    async def fail(self, unique_id: str, failure: DescriptionFailure, *, by: str) -> None:
        def store(database: Database) -> None:
            if not self._is_forgotten(database, unique_id):
                database.run(
                    _FAIL,
                    unique_id=clean(unique_id),
                    made_by=clean(by),
                    failures=failure.failures,
                    retry_at=utc(failure.retry_at).isoformat(),
                    why=clean(failure.why),
                )

        await self._writer.run(store)


def _is_there(database: Database, message: Message) -> bool:
    """Return whether a message is stored and neither deleted nor hidden."""
    select = f"SELECT 1 FROM messages WHERE id = {FIND_MESSAGE} AND deleted = 0 AND hidden = 0"
    place = find_place(database, message.place)
    return database.one(select, place=place, message_id=clean(message.id)) is not None


def _describe(database: Database, unique_id: str, words: str, made_by: str, at: datetime) -> None:
    """Store a description, its positions, and update the index of the newest messages with that media."""
    of_maker = {"unique_id": unique_id, "made_by": made_by}
    for table in ("descriptions", "description_failures"):
        database.run(f"DELETE FROM {table} WHERE unique_id = :unique_id AND made_by = :made_by", **of_maker)
    database.run(
        """INSERT INTO descriptions (unique_id, text, body, made_by, at)
            VALUES (:unique_id, :text, :body, :made_by, :at)""",
        text=clean(words),
        body=dumps(words),
        at=at.isoformat(),
        **of_maker,
    )
    database.run(_SET_POSITIONS, **of_maker)
    select = "SELECT message FROM media WHERE unique_id = :unique_id ORDER BY message DESC LIMIT :most"
    rows = database.all(select, unique_id=unique_id, most=_MAX_REINDEXED)
    search_index.index_again(database, [message for (message,) in rows])


def _find(database: Database, unique_ids: list[str], place: Place | None) -> dict[str, Description]:
    row = find_place(database, place) if place else None
    found: dict[str, Description] = {}
    for unique_id, body, position in _rows_of(database, _SELECT, unique_ids, place=row):
        before = found.get(unique_id) if position else None
        found[unique_id] = Description(words=ANY.loads(body), position=position, before=before)
    return found


def _makers(database: Database, unique_ids: list[str]) -> dict[str, set[str]]:
    select = "SELECT unique_id, made_by FROM descriptions WHERE unique_id IN (:asked)"
    found: dict[str, set[str]] = {}
    for unique_id, made_by in _rows_of(database, select, unique_ids):
        found.setdefault(unique_id, set()).add(made_by)
    return found


def _failures(database: Database, unique_ids: list[str], by: str) -> dict[str, DescriptionFailure]:
    select = """SELECT unique_id, why, failures, retry_at FROM description_failures
        WHERE made_by = :made_by AND unique_id IN (:asked)"""
    return {
        unique_id: DescriptionFailure(why=why, failures=failures, retry_at=datetime.fromisoformat(retry_at))
        for unique_id, why, failures, retry_at in _rows_of(database, select, unique_ids, made_by=clean(by))
    }


def _rows_of(database: Database, select: str, unique_ids: list[str], **values: Any) -> Iterator[Row]:
    """Yield the rows of media, each with the id as it was asked for."""
    asked = {clean(unique_id): unique_id for unique_id in unique_ids}
    for unique_id, *columns in database.all(select, asked=[*asked], **values):
        yield asked[unique_id], *columns
