"""Stores in files, as they are opened."""

import os
from contextlib import AbstractContextManager, ExitStack

from tertulia.errors import StoreRefused
from tertulia.store.migrations import refuse_newer
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.connection import MEMORY, SqliteDatabase, translate_errors
from tertulia.store.sqlite.lock import Lock, LockWatch
from tertulia.store.sqlite.migrating import migrate_file


class FileStore:
    """Implements `store.opening.Driver`."""

    def __init__(self, path: str) -> None:
        self.in_memory = path == MEMORY
        self.name = self.files = path if self.in_memory else os.path.realpath(path)
        self._given = path
        self._watch: LockWatch | None = None

    def translating(self) -> AbstractContextManager[None]:
        return translate_errors(f"the store {self._given}")

    def hold(self, undo: ExitStack, *, new: bool) -> None:
        if os.path.isdir(self.name):
            raise StoreRefused("it is a folder")
        if not new and not os.path.isfile(self.name):
            raise StoreRefused("it does not exist")
        if not self.in_memory:
            undo.callback(Lock(self.name).release)

    def use(self, undo: ExitStack) -> None:
        path = self._given
        if self.in_memory or not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
            raise StoreRefused(f"there is no store at {path}")
        with self.translating():
            if os.path.isdir(path):
                raise StoreRefused("it is a folder")
            self._watch = LockWatch(self.name)
            undo.callback(self._watch.release)

    def connect(self, *, durable: bool) -> SqliteDatabase:
        return connection.connect(self.name, durable=durable)

    def migrate(self, database: SqliteDatabase) -> None:
        refuse_newer(database)
        connection.enable_wal(database)
        migrate_file(database)

    def connect_reading(self) -> SqliteDatabase:
        return connection.connect_read_only_beside(self.name)

    def connect_beside(self) -> SqliteDatabase:
        try:
            return connection.connect_beside(self.name)
        except connection.DatabaseError:
            return connection.connect_read_only_beside(self.name)  # a write then raises

    def is_held(self, database: SqliteDatabase) -> bool | None:
        return self._watch.is_held if self._watch else True

    def size(self, database: SqliteDatabase) -> int | None:
        if self.in_memory:
            return None
        files = (f"{self.name}{suffix}" for suffix in ("", "-wal"))
        return sum(os.path.getsize(file) for file in files if os.path.exists(file))
