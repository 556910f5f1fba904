"""Descriptions of media: one for all messages with the same media."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from palaver.store.encoding import ANY, clean, dumps
from palaver.store.search_index import reindex
from palaver.store.sqlite.connection import Database
from palaver.store.sqlite.writer import Repository

_MAX_IDS = 500  # ids in one query
_MAX_REINDEXED = 50  # messages with the same media whose index is updated


class SqlDescriptions(Repository):
    """Implements `engine.store_protocols.DescriptionStore`."""

    async def find(self, unique_ids: Sequence[str]) -> dict[str, str]:
        asked = list(dict.fromkeys(unique_ids))
        return await self._reader.run(lambda database: _read(database, asked)) if asked else {}

    async def describe(self, unique_id: str, words: str, *, by: str, at: datetime) -> None:
        row = (clean(unique_id), clean(words), dumps(words), clean(by), at.isoformat())
        await self._writer.run(lambda database: _upsert(database, row))


_UPSERT = """INSERT INTO descriptions (unique_id, text, body, made_by, at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (unique_id) DO UPDATE SET
    text = excluded.text, body = excluded.body, made_by = excluded.made_by, at = excluded.at"""


def _upsert(database: Database, row: tuple[str, ...]) -> None:
    """Store a description, and update the index of the newest messages with that media."""
    database.execute(_UPSERT, row)
    select = "SELECT message FROM media WHERE unique_id = ? ORDER BY message DESC LIMIT ?"
    for (message,) in database.execute(select, (row[0], _MAX_REINDEXED)).fetchall():
        reindex(database, message)


def _read(database: Database, unique_ids: Iterable[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    asked = {clean(unique_id): unique_id for unique_id in unique_ids}
    left = iter(asked)
    while some := list(islice(left, _MAX_IDS)):
        marks = ", ".join("?" * len(some))
        select = f"SELECT unique_id, body FROM descriptions WHERE unique_id IN ({marks})"
        known |= {asked[unique_id]: ANY.loads(body) for unique_id, body in database.execute(select, some)}
    return known
