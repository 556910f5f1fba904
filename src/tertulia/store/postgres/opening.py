"""Opens a store in PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from platformdirs import user_data_path
from psycopg import Error

from tertulia.errors import StoreRefused
from tertulia.media.file_folder import FileFolder
from tertulia.store.media_folder import find_folder, open_folder
from tertulia.store.migrations import migrate, refuse_older
from tertulia.store.postgres.connection import PostgresDatabase, translate_without_password
from tertulia.store.postgres.holder import Holder, application_name
from tertulia.store.transfer import refuse_incomplete
from tertulia.store_url import masked


class Opened(NamedTuple):
    """A store as errors call it, its connections and media, and its place among the bots; none where others write."""

    name: str
    writing: PostgresDatabase
    reading: PostgresDatabase
    folder: FileFolder
    holder: Holder | None


def open_store(url: str, *, media_folder: str | None, durable: bool) -> Opened:
    """Open a store for its only bot; tables that it lacks are made."""
    try:
        with ExitStack() as undo:
            token = token_hex(16)
            application = application_name(token)
            writing = PostgresDatabase(url, caching=True, application=application)
            undo.callback(writing.close)
            migrate(writing)
            refuse_incomplete(writing)
            holder = Holder(url, token)
            undo.callback(holder.release)
            writing.token = token
            reading = PostgresDatabase(url, application=application)
            undo.callback(reading.close)
            folder = open_folder(writing, str(files_beside(url)), media_folder, durable=durable)
            undo.pop_all()
    except Error as error:
        raise translate_without_password(error, url) from None
    return Opened(masked(url), writing, reading, folder, holder)


def open_beside(url: str) -> Opened:
    """Open a store that a bot may have open."""
    try:
        with ExitStack() as undo:
            reading = connect_reading(url)
            undo.callback(reading.close)
            writing = PostgresDatabase(url)
            undo.callback(writing.close)
            folder = find_folder(reading, str(files_beside(url)))
            undo.pop_all()
    except Error as error:
        raise translate_without_password(error, url) from None
    return Opened(masked(url), writing, reading, folder, None)


@contextmanager
def open_alone(url: str, *, new: bool) -> Iterator[tuple[PostgresDatabase, str]]:
    """Open a store that no bot has, and the path beside which its files of media are; a new one is made."""
    try:
        with closing(PostgresDatabase(url) if new else connect_reading(url)) as database:
            if new:
                migrate(database)
            holder = Holder(url, token_hex(16))
            try:
                yield database, str(files_beside(url))
            finally:
                holder.release()
    except Error as error:
        raise translate_without_password(error, url) from None


def connect_reading(url: str) -> PostgresDatabase:
    """Connect to an existing store for reading."""
    reading = PostgresDatabase(url)
    try:
        if reading.is_new():
            raise StoreRefused(f"the store {masked(url)}: there is no store yet")
        refuse_older(reading)
        refuse_incomplete(reading)
    except BaseException:
        reading.close()
        raise
    return reading


def files_beside(url: str) -> Path:
    """Return the path beside which files of a store are kept on this machine where no folder was named."""
    host, _, database = masked(url).removeprefix("postgresql://").replace(":", "-").partition("/")
    return user_data_path("tertulia") / host / database.replace("/", "-")
