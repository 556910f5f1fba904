"""Explicit caches of prompts that a service has: stored before they are made, until the service has them no longer."""

from collections.abc import Sequence
from secrets import token_hex

from tertulia.models.gemini.cache_values import StoredCache
from tertulia.store.database import Database, insert_row
from tertulia.store.encoding import clean
from tertulia.store.rows import Rows
from tertulia.store.threads import Access, Repository, reading, writing

_CACHES = Rows(StoredCache, "model_caches", "label account model fingerprint expires_at name replaces unwanted")


class SqlModelCaches(Repository):
    """Implements `models.gemini.cache_values.CacheStore`. The owner is the id of the store: a copy has another one."""

    def __init__(self, access: Access, *, durable: bool = True) -> None:
        super().__init__(access)
        self.is_durable = durable
        self._own = token_hex(16)  # of a store in memory, which has no id

    @reading
    def owner(self, database: Database) -> str:
        return self._read_owner(database)

    @reading
    def find(self, database: Database, account: str) -> Sequence[StoredCache]:
        which = "WHERE account = :account AND owner = :owner ORDER BY id"
        return _CACHES.all(database, which, account=account, owner=self._read_owner(database))

    @writing
    def add(self, database: Database, cache: StoredCache) -> None:
        row = _CACHES.encode(cache) | {"name": cache.name or None, "owner": self._read_owner(database)}
        insert_row(database, "model_caches", **row)

    @writing
    def set_name(self, database: Database, label: str, name: str) -> None:
        database.run("UPDATE model_caches SET name = :name WHERE label = :label", name=clean(name), label=label)

    @writing
    def drop(self, database: Database, labels: Sequence[str]) -> None:
        database.run("UPDATE model_caches SET unwanted = 1 WHERE label IN (:labels)", labels=labels)

    @writing
    def remove(self, database: Database, labels: Sequence[str]) -> None:
        database.run("DELETE FROM model_caches WHERE label IN (:labels)", labels=labels)

    def _read_owner(self, database: Database) -> str:
        return str(database.value("SELECT owner FROM media_folder") or self._own)


def drop_caches(database: Database) -> None:
    """Store that nothing wants any cache: what they hold may have been forgotten."""
    database.run("UPDATE model_caches SET unwanted = 1")
