"""Where the files of media are: beside the store, or in a folder that was named once and is remembered in the store."""

import os
from contextlib import suppress
from pathlib import Path

from palaver.errors import InvalidValue
from palaver.media.file_folder import FileFolder, is_hash
from palaver.store.sqlite.connection import Database

SUFFIX = "-media"


def default_folder(store: str | os.PathLike[str]) -> Path:
    """Return the folder beside a store."""
    return Path(f"{os.fspath(store)}{SUFFIX}")


def find_folder(database: Database, store: str) -> FileFolder:
    """Return the folder of a store, for reading."""
    return FileFolder(_known(database, store))


def open_folder(database: Database, store: str, named: str | None, *, durable: bool) -> FileFolder:
    """Open the folder of a store for its only process: what an earlier one left unfinished is removed.

    Where another folder is *named* than before, the files move. A folder that does not exist is not created.
    """
    known = _known(database, store)
    folder = FileFolder(Path(os.path.realpath(named)) if named else known, durable=durable)
    try:
        if folder.path != known:
            _move(database, FileFolder(known, durable=durable), folder)
            _remember(database, folder, default_folder(store))
        if folder.exists:
            folder.claim()
            folder.sweep_temporary()
            folder.remove(folder.names() - _rows(database))
    except BaseException:
        folder.close()
        raise
    return folder


def copy_folder(database: Database, source: FileFolder, target: Path) -> None:
    """Copy the files that the rows of a copied store name; the rows of files that are missing go."""
    folder = FileFolder(target)
    try:
        rows = _rows(database)
        missing = rows - (whole := set(filter(is_hash, rows))) | folder.copy_from(source, whole)
    finally:
        folder.close()
    database.executemany("DELETE FROM files WHERE sha256 = ?", [(sha256,) for sha256 in missing])
    database.execute("DELETE FROM media_folder")


def refuse_existing(target: Path) -> None:
    """Refuse a folder for a copy that has something in it."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidValue(f"{target} is there already; a backup replaces no file")


def _known(database: Database, store: str) -> Path:
    row = database.execute("SELECT path FROM media_folder").fetchone()
    return Path(row[0]) if row else default_folder(store)


def _remember(database: Database, folder: FileFolder, default: Path) -> None:
    database.execute("DELETE FROM media_folder")
    if folder.path != default:
        database.execute("INSERT INTO media_folder (id, path) VALUES (1, ?)", (str(folder.path),))


def _move(database: Database, old: FileFolder, new: FileFolder) -> None:
    """Move the files to another folder. A process that ends meanwhile leaves each file in one of the two."""
    if not old.exists:
        return
    old.claim()
    try:
        names = old.names()
        new.copy_from(old, names & _rows(database))
        old.remove(names)
    finally:
        old.close()
    with suppress(OSError):  # something else is in it
        old.remove_empty()


def _rows(database: Database) -> set[str]:
    return {sha256 for (sha256,) in database.execute("SELECT sha256 FROM files")}
