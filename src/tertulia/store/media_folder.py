"""Where the files of media are: beside the store, or in a folder that was named once and is remembered in the store.

A folder belongs to one store: the store has an id, and the folder names it. While files are moved to another folder the
store remembers both, so that whatever a kill leaves in the one that is not used goes when the store is opened next.
"""

import logging
import os
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex

from tertulia.errors import InvalidValue, StoreRefused, StoreTrouble, TertuliaError
from tertulia.files import remove_part, unfinished_parts
from tertulia.media.file_folder import FileFolder, Owner, is_hash
from tertulia.store.database import Connection
from tertulia.store.sqlite.connection import connect_read_only_beside, translate_errors

log = logging.getLogger(__name__)

SUFFIX = "-media"
NO_ID = "0" * 32  # of a store that is not there yet


def default_folder(store: str | os.PathLike[str]) -> Path:
    """Return the folder beside a store."""
    return Path(f"{os.fspath(store)}{SUFFIX}")


def find_folder(database: Connection, store: str) -> FileFolder:
    """Return the folder of a store, for reading."""
    return FileFolder(_known(database, store)[0])


def open_folder(database: Connection, store: str, named: str | None, *, durable: bool) -> FileFolder:
    """Open the folder of a store for its only process: what an earlier one left unfinished is removed.

    Where another folder is *named* than before, the files move. A folder that does not exist is not created.
    """
    owner = _owner(database, store) or _new_owner(database, store)
    known, other = _known(database, store)
    folder = FileFolder(_real(named) if named else known, owner=owner, durable=durable)
    try:
        if other and other != folder.path:
            _discard(database, FileFolder(other, owner=owner, durable=durable))
        if folder.path != known:
            _move(database, FileFolder(known, owner=owner, durable=durable), folder, _real(default_folder(store)))
        if folder.exists:
            folder.claim()
            folder.sweep_temporary()
            folder.remove(folder.names() - _rows(database))
    except BaseException:
        folder.close()
        raise
    return folder


def check_folder(store: str | os.PathLike[str], named: str | os.PathLike[str]) -> None:
    """Raise `StoreRefused` if a store, which need not be there yet, would be refused its folder; nothing is changed."""
    path = os.path.realpath(store)
    owner, known, rows = Owner(NO_ID, path), _real(default_folder(path)), set[str]()
    if os.path.exists(path):
        with translate_errors(f"the store {path}"), closing(connect_read_only_beside(path)) as database:
            owner, known, rows = _owner(database, path) or owner, _known(database, path)[0], _rows(database)
    folder = FileFolder(_real(named), owner=owner)
    if folder.path != known:
        _refuse_unknown(folder, rows)
    folder.require_ours()


def copy_folder(database: Connection, store: Path, source: FileFolder) -> None:
    """Give a copied store an id and a folder of its own, with the files that its rows name; other rows go."""
    folder = FileFolder(default_folder(store), owner=_new_owner(database, os.path.realpath(store)))
    try:
        rows = _rows(database)
        missing = rows - (whole := set(filter(is_hash, rows))) | folder.copy_from(source, whole)
        database.run("DELETE FROM files WHERE sha256 IN (:missing)", missing=missing)
    except BaseException:
        with suppress(TertuliaError):
            folder.discard()
        raise
    finally:
        folder.close()


def discard_copied(database: Connection, store: str) -> None:
    """Remove the folder that an unfinished `copy_folder` made."""
    folder = FileFolder(default_folder(store), owner=_owner(database, store))
    try:
        if folder.exists and folder.is_ours:
            folder.discard()
    finally:
        folder.close()


def refuse_existing(copy: Path) -> None:
    """Refuse a path for a copy if a file or a folder with something in it is there."""
    folder = default_folder(copy)
    if os.path.lexists(copy):
        raise InvalidValue(f"{copy} is there already; a backup replaces no file")
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidValue(f"{folder} is there already; a backup replaces no file")


def remove_unfinished(copy: Path) -> None:
    """Remove what a backup to a path left that was killed: its folder, then the unfinished copy."""
    if os.path.lexists(copy):
        return
    for part in unfinished_parts(copy):
        folder = FileFolder(default_folder(copy))
        owner = folder.owner
        if folder.exists and (owner is None or owner.store == os.path.realpath(copy)):
            folder.discard()
        remove_part(part)


def _owner(database: Connection, store: str) -> Owner | None:
    """Return what a folder of this store names; None if the store has no id yet."""
    row = database.one("SELECT owner FROM media_folder")
    return Owner(row[0], store, _real(default_folder(store))) if row else None


def _new_owner(database: Connection, store: str) -> Owner:
    """Give the store an id, and the folder beside it."""
    name = token_hex(16)
    database.run(
        """INSERT INTO media_folder (id, owner) VALUES (1, :name)
        ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, path = NULL, other = NULL""",
        name=name,
    )
    return Owner(name, store, _real(default_folder(store)))


def _known(database: Connection, store: str) -> tuple[Path, Path | None]:
    """Return the folder of the store, and another one that may have files too."""
    path, other = database.one("SELECT path, other FROM media_folder") or (None, None)
    return _real(path or default_folder(store)), Path(other) if other else None


def _move(database: Connection, old: FileFolder, new: FileFolder, default: Path) -> None:
    """Move the files to another folder. Both are remembered until nothing is left in the old one."""
    rows = _rows(database)
    _refuse_unknown(new, rows)
    database.run("UPDATE media_folder SET other = :path", path=str(new.path))
    if new.exists:
        new.claim()
    moving = old.names() & rows
    missing = new.copy_from(old, moving)
    path = None if new.path == default else str(new.path)
    database.run("UPDATE media_folder SET path = :path, other = :old", path=path, old=str(old.path))
    if moved := moving - missing:
        log.info("files of media: %d moved from %s to %s", len(moved), old.path, new.path)
    _discard(database, old)


def _refuse_unknown(folder: FileFolder, rows: set[str]) -> None:
    if folder.owner is None and folder.names() - rows:
        raise StoreRefused(
            f"the folder of media {folder.path}: it has files of another store; name another folder with media.folder,"
            " or remove them"
        )


def _discard(database: Connection, folder: FileFolder) -> None:
    """Remove a folder that is no longer used; one of another store stays. What fails is tried at the next start."""
    try:
        if folder.exists and folder.is_ours:
            folder.discard()
    except StoreTrouble as trouble:
        log.warning("files of media that are no longer used could not be removed: %s", trouble)
        return
    finally:
        folder.close()
    database.run("UPDATE media_folder SET other = NULL")


def _real(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path))


def _rows(database: Connection) -> set[str]:
    return set(database.column("SELECT sha256 FROM files"))
