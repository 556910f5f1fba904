"""Explicit caches of prompts that a service has: stored before they are made, until the service has them no longer."""

from collections.abc import Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any

from tertulia.models.gemini.cache_values import StoredCache
from tertulia.store.encoding import FINGERPRINT, STRINGS, clean, dumps, validate
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import ConnectionThread, Repository

_COLUMNS = "label, owner, account, model, fingerprint, expires_at, name, replaces, unwanted"
_THESE = "label IN (SELECT value FROM json_each(?))"


class SqlModelCaches(Repository):
    """Implements `models.gemini.cache_values.CacheStore`. The owner is the id of the store: a copy has another one."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread, *, durable: bool = True) -> None:
        super().__init__(writer, reader)
        self.is_durable = durable
        self._own = token_hex(16)  # of a store in memory, which has no id

    async def owner(self) -> str:
        return await self._reader.run(self._read_owner)

    async def find(self, account: str) -> Sequence[StoredCache]:
        select = f"SELECT {_COLUMNS} FROM model_caches WHERE account = ? AND owner = ? ORDER BY id"
        return await self._reader.run(
            lambda database: [
                _decode(row) for row in database.execute(select, (account, self._read_owner(database))).fetchall()
            ]
        )

    async def add(self, cache: StoredCache) -> None:
        def insert(database: Database) -> None:
            row = (
                cache.label,
                self._read_owner(database),
                cache.account,
                clean(cache.model),
                dumps(cache.fingerprint),
                cache.expires_at.isoformat(),
                cache.name or None,
                dumps(cache.replaces),
                cache.unwanted,
            )
            database.execute(f"INSERT INTO model_caches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

        await self._writer.run(insert)

    async def set_name(self, label: str, name: str) -> None:
        await self._change("UPDATE model_caches SET name = ? WHERE label = ?", clean(name), label)

    async def drop(self, labels: Sequence[str]) -> None:
        await self._change(f"UPDATE model_caches SET unwanted = 1 WHERE {_THESE}", dumps(labels))

    async def remove(self, labels: Sequence[str]) -> None:
        await self._change(f"DELETE FROM model_caches WHERE {_THESE}", dumps(labels))

    async def _change(self, statement: str, *values: str) -> None:
        await self._writer.run(lambda database: database.execute(statement, values) and None)

    def _read_owner(self, database: Database) -> str:
        row = database.execute("SELECT owner FROM media_folder").fetchone()
        return str(row[0]) if row else self._own


def drop_caches(database: Database) -> None:
    """Store that nothing wants any cache: what they hold may have been forgotten."""
    database.execute("UPDATE model_caches SET unwanted = 1")


def _decode(row: Sequence[Any]) -> StoredCache:
    label, _, account, model, fingerprint, expires_at, name, replaces, unwanted = row
    return validate(
        StoredCache(
            label=label,
            account=account,
            model=model,
            fingerprint=FINGERPRINT.loads(fingerprint),
            expires_at=datetime.fromisoformat(expires_at),
            name=name or "",
            replaces=STRINGS.loads(replaces),
            unwanted=bool(unwanted),
        )
    )
