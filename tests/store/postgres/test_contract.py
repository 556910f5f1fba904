"""The store in PostgreSQL passes the contract of stores."""

from collections.abc import Callable
from pathlib import Path

import postgres
from sizes import size
from tertulia.store import Store
from tertulia.testing.store_contract import StoreContract
from tertulia.testing.store_world import Opened


class TestPostgres(StoreContract):
    examples = size(5, full=400)

    def stores(self, folder: Path) -> Callable[[], Opened]:
        url = postgres.empty_database()
        return lambda: Store.open(url, media_folder=folder / "media")
