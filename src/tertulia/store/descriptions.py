"""Descriptions of media: one by each model for all places, with the position at which each place got to know them."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tertulia.media.descriptions import Description, DescriptionFailure
from tertulia.messages import Message, Place
from tertulia.store import search_index
from tertulia.store.database import Database, Row, insert_row
from tertulia.store.encoding import ANY, clean, dumps
from tertulia.store.identities import find_place
from tertulia.store.message_rows import FIND_MESSAGE, known_messages
from tertulia.store.rows import Rows
from tertulia.store.threads import Access, Repository, reading, writing
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

_FAILURES = Rows(DescriptionFailure, "description_failures", "why failures retry_at")


class SqlDescriptions(Repository):
    """Implements `media.descriptions.DescriptionStore`."""

    def __init__(self, access: Access, *, is_forgotten: Callable[[Database, str], bool]) -> None:
        super().__init__(access)
        self._is_forgotten = is_forgotten  # media of somebody who was forgotten while they were described

    @reading
    def find(
        self, database: Database, unique_ids: Collection[str], place: Place | None = None
    ) -> dict[str, Description]:
        row = find_place(database, place) if place else None
        found: dict[str, Description] = {}
        for unique_id, body, position in _rows_of(database, _SELECT, unique_ids, place=row):
            before = found.get(unique_id) if position else None
            found[unique_id] = Description(words=ANY.loads(body), position=position, before=before)
        return found

    @reading
    def makers(self, database: Database, unique_ids: Collection[str]) -> dict[str, set[str]]:
        select = "SELECT unique_id, made_by FROM descriptions WHERE unique_id IN (:asked)"
        found: dict[str, set[str]] = {}
        for unique_id, made_by in _rows_of(database, select, unique_ids):
            found.setdefault(unique_id, set()).add(made_by)
        return found

    @reading
    def shown(self, database: Database, place: Place) -> int:
        row = find_place(database, place)
        return known_messages(database, row) if row is not None else 0

    @writing
    def describe(
        self,
        database: Database,
        unique_id: str,
        words: str,
        *,
        by: str,
        at: datetime,
        message: Message | None = None,
    ) -> None:
        """Store a description, its positions, and update the index of the newest messages with that media."""
        if self._is_forgotten(database, unique_id) or (message and not _is_there(database, message)):
            return
        of_maker = {"unique_id": clean(unique_id), "made_by": clean(by)}
        for table in ("descriptions", "description_failures"):
            database.run(f"DELETE FROM {table} WHERE unique_id = :unique_id AND made_by = :made_by", **of_maker)
        described = {"text": clean(words), "body": dumps(words), "at": at.isoformat()}
        insert_row(database, "descriptions", **of_maker, **described)
        database.run(_SET_POSITIONS, **of_maker)
        select = "SELECT message FROM media WHERE unique_id = :unique_id ORDER BY message DESC LIMIT :most"
        newest = database.column(select, unique_id=of_maker["unique_id"], most=_MAX_REINDEXED)
        search_index.index_again(database, newest)

    @reading
    def failures(self, database: Database, unique_ids: Collection[str], *, by: str) -> dict[str, DescriptionFailure]:
        select = f"""SELECT unique_id, {_FAILURES} FROM description_failures
            WHERE made_by = :made_by AND unique_id IN (:asked)"""
        rows = _rows_of(database, select, unique_ids, made_by=clean(by))
        return {unique_id: _FAILURES.decode(row) for unique_id, *row in rows}

    @writing
    def fail(self, database: Database, unique_id: str, failure: DescriptionFailure, *, by: str) -> None:
        if not self._is_forgotten(database, unique_id):
            key = {"unique_id": clean(unique_id), "made_by": clean(by)}
            _FAILURES.upsert(database, ", ".join(key), replace(failure, retry_at=utc(failure.retry_at)), **key)


def _is_there(database: Database, message: Message) -> bool:
    """Return whether a message is stored and neither deleted nor hidden."""
    select = f"SELECT 1 FROM messages WHERE id = {FIND_MESSAGE} AND deleted = 0 AND hidden = 0"
    place = find_place(database, message.place)
    return database.one(select, place=place, message_id=clean(message.id)) is not None


def _rows_of(database: Database, select: str, unique_ids: Collection[str], **values: Any) -> Iterator[Row]:
    """Yield the rows of media, each with the id as it was asked for."""
    asked = {clean(unique_id): unique_id for unique_id in unique_ids}
    for unique_id, *columns in database.all(select, asked=[*asked], **values) if asked else ():
        yield asked[unique_id], *columns
