"""`tertulia db move`: a whole store, its rows and its files of media, to an empty one."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from tertulia.errors import InvalidValue, StoreRefused
from tertulia.store import transfer
from tertulia.store.database import Connection
from tertulia.store.media_folder import copy_folder, discard_copied, find_folder
from tertulia.store.migrations import refuse_older
from tertulia.store.sqlite import connection
from tertulia.store.sqlite.lock import Lock
from tertulia.store.sqlite.migrating import migrate_file
from tertulia.store.transfer import Progress
from tertulia.store_url import is_url, masked


class _Side(NamedTuple):
    database: Connection
    files: str  # the path beside which its files of media are, if no folder was named


def move_store(source: str, target: str, progress: Progress = lambda done, total: None) -> int:
    """Copy a store to an empty one, and compare all rows; return their number. No bot may have either open.

    The source is not changed. A move that was killed goes on when it is run again.
    """
    named = masked(source) if is_url(source) else os.path.realpath(source)
    if named == (masked(target) if is_url(target) else os.path.realpath(target)):
        raise InvalidValue(f"{masked(source)} is both the source and the target")
    with _opened(source, new=False) as old, _opened(target, new=True) as new:
        try:
            with _naming(old.database):
                transfer.refuse_incomplete(old.database)
            with _naming(new.database):
                transfer.begin_move(new.database, named)
            old.database.begin_reading()
            transfer.copy_rows(old.database, new.database, progress)
            new.database.begin_reading()
            transfer.check_rows(old.database, new.database)
            moved = transfer.count(new.database)
            new.database.undo()
            with closing(find_folder(old.database, old.files)) as folder:
                discard_copied(new.database, new.files)
                if folder.exists:
                    copy_folder(new.database, Path(new.files), folder)
            transfer.end_move(new.database)
            return moved
        except (*old.database.errors, *new.database.errors) as error:
            side = new if isinstance(error, new.database.errors) else old
            raise side.database.translate(error) from error
        finally:
            old.database.undo()
            new.database.undo()


@contextmanager
def _naming(database: Connection) -> Iterator[None]:
    """Name the store in an error."""
    try:
        yield
    except StoreRefused as error:
        raise StoreRefused(f"{database.describe()}: {error}") from error


@contextmanager
def _opened(store: str, *, new: bool) -> Iterator[_Side]:
    """Open a store that nobody else may use meanwhile; a new one is made."""
    if is_url(store):
        from tertulia.store.postgres.opening import open_alone

        with open_alone(store, new=new) as (database, files):
            yield _Side(database, files)
        return
    path = os.path.realpath(store)
    if not new and not os.path.isfile(path):
        raise StoreRefused(f"the store {path}: it does not exist")
    with connection.translate_errors(f"the store {path}"):
        lock = Lock(path)
    try:
        with closing(connection.connect(path)) as file:
            with connection.translate_errors(f"the store {path}"):
                if new:
                    connection.enable_wal(file)
                    migrate_file(file)
                else:
                    refuse_older(file)
            yield _Side(file, path)
    finally:
        lock.release()
