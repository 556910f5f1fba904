"""Stores in PostgreSQL, as they are opened."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from secrets import token_hex

from platformdirs import user_data_path
from psycopg import Error

from tertulia.errors import StoreBroken, StoreBusy, StoreRefused, StoreTooNew
from tertulia.store.migrations import migrate
from tertulia.store.postgres.connection import PostgresDatabase, translate_without_password
from tertulia.store.postgres.holder import Holder, is_held
from tertulia.store_url import masked


class ServerStore:
    """Implements `store.opening.Driver`."""

    in_memory = False

    def __init__(self, url: str) -> None:
        self.name = masked(url)
        host, _, database = self.name.removeprefix("postgresql://").replace(":", "-").partition("/")
        self.files = str(user_data_path("tertulia") / host / database)
        self._url = url
        self._token = token_hex(16)  # of this bot

    @contextmanager
    def translating(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            raise translate_without_password(error, self._url) from None
        except (StoreBroken, StoreBusy, StoreRefused, StoreTooNew) as error:
            raise type(error)(f"the store {self.name}: {error}") from error.__cause__

    def hold(self, undo: ExitStack, *, new: bool) -> None:
        undo.callback(Holder(self._url, self._token, new=new).release)

    def use(self, undo: ExitStack) -> None:
        """Do nothing: the server knows its sessions."""

    def connect(self, *, durable: bool) -> PostgresDatabase:
        return PostgresDatabase(self._url, caching=True, token=self._token)

    def migrate(self, database: PostgresDatabase) -> None:
        migrate(database)

    def connect_reading(self) -> PostgresDatabase:
        return PostgresDatabase(self._url)

    def connect_beside(self) -> PostgresDatabase:
        return PostgresDatabase(self._url)

    def is_held(self, database: PostgresDatabase) -> bool | None:
        return is_held(database)

    def size(self, database: PostgresDatabase) -> int | None:
        ((size,),) = database.all("SELECT pg_database_size(current_database())")
        return int(size)
