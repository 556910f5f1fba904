"""Explicit caches of prompts that a service has: stored before they are made, until the service has them no longer."""

from collections.abc import Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any

from tertulia.models.gemini.cache_values import StoredCache
from tertulia.store.database import Database
from tertulia.store.encoding import FINGERPRINT, STRINGS, clean, dumps, validate
from tertulia.store.threads import ConnectionThread, Repository, reading, writing

_COLUMNS = "label, owner, account, model, fingerprint, expires_at, name, replaces, unwanted"


class SqlModelCaches(Repository):
    """Implements `models.gemini.cache_values.CacheStore`. The owner is the id of the store: a copy has another one."""

    def __init__(self, writer: ConnectionThread, reader: ConnectionThread, *, durable: bool = True) -> None:
        super().__init__(writer, reader)
        self.is_durable = durable
        self._own = token_hex(16)  # of a store in memory, which has no id

    async def owner(self) -> str:
        return await self._reader.run(self._read_owner)

    @reading
    def find(self, database: Database, account: str) -> Sequence[StoredCache]:
        owner = self._read_owner(database)
        select = f"SELECT {_COLUMNS} FROM model_caches WHERE account = :account AND owner = :owner ORDER BY id"
        return [_decode(row) for row in database.all(select, account=account, owner=owner)]

    @writing
    def add(self, database: Database, cache: StoredCache) -> None:
        owner = self._read_owner(database)
        database.run(
            f"""INSERT INTO model_caches ({_COLUMNS}) VALUES
                (:label, :owner, :account, :model, :fingerprint, :expires_at, :name, :replaces, :unwanted)""",
            label=cache.label,
            owner=owner,
            account=cache.account,
            model=clean(cache.model),
            fingerprint=dumps(cache.fingerprint),
            expires_at=cache.expires_at.isoformat(),
            name=cache.name or None,
            replaces=dumps(cache.replaces),
            unwanted=int(cache.unwanted),
        )

    async def set_name(self, label: str, name: str) -> None:
        update = "UPDATE model_caches SET name = :name WHERE label = :label"
        await self._writer.run(lambda database: database.run(update, name=clean(name), label=label))

    async def drop(self, labels: Sequence[str]) -> None:
        update = "UPDATE model_caches SET unwanted = 1 WHERE label IN (:labels)"
        await self._writer.run(lambda database: database.run(update, labels=labels))

    async def remove(self, labels: Sequence[str]) -> None:
        delete = "DELETE FROM model_caches WHERE label IN (:labels)"
        await self._writer.run(lambda database: database.run(delete, labels=labels))

    def _read_owner(self, database: Database) -> str:
        row = database.one("SELECT owner FROM media_folder")
        return str(row[0]) if row else self._own


def drop_caches(database: Database) -> None:
    """Store that nothing wants any cache: what they hold may have been forgotten."""
    database.run("UPDATE model_caches SET unwanted = 1")


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
