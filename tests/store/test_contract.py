"""The store of SQLite passes the contract of stores, in a file and in memory."""

from collections.abc import Callable
from pathlib import Path

from sizes import size
from tertulia.store import Store
from tertulia.testing.store_contract import StoreContract
from tertulia.testing.store_world import Opened


class TestSqlite(StoreContract):
    examples = size(20, full=400)

    def stores(self, folder: Path) -> Callable[[], Opened]:
        return lambda: Store.open(folder / "store.db")
