"""A folder with files by hash: each is written beside, synced and renamed, so that no half file has a name.

The file of the hash `abcdef…` is `ab/abcdef…`. No name from outside becomes a path: only 64 hexadecimal digits do. A
temporary file is in the folder of its file, under a name that no hash has. No link is followed below the folder, and
only regular files are read.

The file `.store` says which store the folder belongs to, so that no other removes what it does not know.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256 as digest
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from threading import Lock
from typing import NamedTuple

from tertulia.characters import one_line
from tertulia.errors import InvalidValue, StoreBusy, StoreFull, StoreRefused, TertuliaError
from tertulia.files import AlreadyLocked, FileLock

_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{32}")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_PREFIX = ".part-"  # of temporary files
_LOCK = ".lock"
_OWNER = ".store"
_REFUSED = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP),
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Owner(NamedTuple):
    """The store that a folder belongs to. One that was copied by hand has the id of the other."""

    id: str  # 32 hexadecimal digits
    store: str  # the path of its file
    beside: Path | None = None  # the folder that its name gives it; not written down

    @classmethod
    def read(cls, text: bytes) -> "Owner | None":
        """Return the owner that a folder names; None if the text is damaged."""
        name, _, store = text.decode("utf-8", "surrogateescape").partition("\n")
        return cls(name, store) if _ID.fullmatch(name) and store else None

    @property
    def text(self) -> bytes:
        return f"{self.id}\n{self.store}".encode("utf-8", "surrogateescape")

    def is_heir(self, other: "Owner", folder: Path) -> bool:
        """Return whether a folder of the *other* one is ours: that is this store, before it was moved or copied.

        The copy of a store has the folder beside it, but not one that the original may still use.
        """
        if other.id != self.id:
            return False
        is_moved = not os.path.exists(other.store) or os.path.samefile(other.store, self.store)
        return is_moved or folder == self.beside


class FileFolder:
    """Files by hash, for one process: `claim` locks the folder. All calls block; without a path it is temporary."""

    def __init__(self, path: Path | None = None, *, owner: Owner | None = None, durable: bool = True) -> None:
        self._path = path
        self._owner = owner
        self._durable = durable
        self._temporary: TemporaryDirectory[str] | None = None
        self._lock: FileLock | None = None
        self._is_closed = False
        self._changing = Lock()  # of threads that make folders, or close this one

    @property
    def path(self) -> Path | None:
        """The folder; None for a temporary one without files."""
        return self._path

    @property
    def exists(self) -> bool:
        return self._path is not None and self._path.is_dir()

    def claim(self) -> Path:
        """Create and lock the folder; raise `StoreBusy` where another process has it, `StoreRefused` another store."""
        return self._hold()

    def _hold(self, *, owning: bool = True) -> Path:
        with self._changing, self._translated():
            if self._is_closed:
                raise StoreRefused(f"the folder of media {self._path}: it was closed")
            if self._path is None:
                self._temporary = TemporaryDirectory(prefix="tertulia-media-")
                self._path = Path(self._temporary.name)
            if self._lock and not self._lock.is_in_place:  # somebody removed the folder
                self._free()
            if self._lock is None:
                if not self._path.is_dir():
                    self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._sync(self._path.parent)
                self._lock = _locked(self._path / _LOCK)
                try:
                    if owning:
                        self._own(self._path)
                except BaseException:
                    self._free()
                    raise
            return self._path

    def close(self) -> None:
        """Free the folder; a temporary one goes. Nothing is written after this."""
        with self._changing:
            self._is_closed = True
            self._free()
            if self._temporary:
                self._temporary.cleanup()
                self._temporary, self._path = None, None

    def _free(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None

    @property
    def owner(self) -> Owner | None:
        """The store that the folder names; None if it names none."""
        with self._translated():
            text = _read(self._path / _OWNER) if self._path else None
            return Owner.read(text) if text else None

    @property
    def is_ours(self) -> bool:
        """Whether the folder names this store, or none."""
        named = self.owner
        return not (named and self._owner and self._path) or self._owner.is_heir(named, self._path)

    def require_ours(self) -> None:
        """Raise `StoreRefused` if the folder names another store, also one that was at the path of this before."""
        named = self.owner
        if self._owner is None or named is None or self.is_ours:
            return
        where, store = f"the folder of media {self._path}", one_line(named.store)
        if named.store == self._owner.store:
            raise StoreRefused(
                f"{where}: it has files of an earlier {store}; to begin anew remove the folder too,"
                " or put there the folder of the backup that is now the store"
            )
        raise StoreRefused(
            f"{where}: it belongs to the store {store}; name another folder with media.folder,"
            f" or remove {_OWNER} in it if that store is gone or has another folder"
        )

    def _own(self, folder: Path) -> None:
        """Let the folder name its owner; raise `StoreRefused` if it is another."""
        if self._owner is None:
            return
        self.require_ours()
        named = self.owner
        if named is None or named.text != self._owner.text:
            with self._written(folder / _OWNER) as temporary:
                temporary.write_bytes(self._owner.text)

    def write(self, data: bytes) -> str:
        """Write a file and return its hash; one that is there and whole is not written again."""
        name = digest(data).hexdigest()
        folder = self.claim()
        with self._translated():
            if self._content(name) == data:
                return name
            with self._written(self._make_folder(folder, name)) as temporary:
                temporary.write_bytes(data)
        return name

    def read(self, sha256: str, *, clean: bool = True) -> bytes | None:
        """Return the bytes of a file; None if it is missing or damaged. With *clean*, a damaged one is removed."""
        with self._translated():
            data = self._content(sha256)
            if data is None or digest(data).hexdigest() == sha256:
                return data
            if clean:
                self.remove([sha256])
            return None

    def size(self, sha256: str) -> int | None:
        """Return the size of a file; None if it is missing."""
        path = self.locate(sha256)
        with self._translated():
            return _regular_size(path) if path and _is_folder(path.parent) else None

    def locate(self, sha256: str) -> Path | None:
        """Return the path of a file, which need not exist; None where there is no folder."""
        if not is_hash(sha256):
            raise InvalidValue(f"{sha256[:80]!a} is no hash of a file: it has 64 digits of 0-9 and a-f")
        return self._path / sha256[:2] / sha256 if self._path else None

    def remove(self, sha256s: Collection[str]) -> None:
        """Remove files; one that is missing is no error."""
        if not self.exists:
            return
        self.claim()  # another store may have made it anew
        folders = set()
        with self._translated():
            for path in filter(None, map(self.locate, sha256s)):
                if _is_folder(path.parent) and os.path.lexists(path):
                    path.unlink(missing_ok=True)
                    folders.add(path.parent)
            for folder in folders:
                self._sync(folder)

    def names(self) -> set[str]:
        """Return the hashes of all files."""
        return {path.name for path in self._files() if is_hash(path.name) and path.name[:2] == path.parent.name}

    def sweep_temporary(self) -> int:
        """Remove the temporary files of a process that ended in the midst of writing; return their number."""
        with self._translated():
            beside = self._path.glob(f"{_PREFIX}*") if self._path else ()
            found = [path for path in (*self._files(), *beside) if path.name.startswith(_PREFIX)]
            for path in found:
                path.unlink(missing_ok=True)
        return len(found)

    def discard(self) -> None:
        """Remove all files and close the folder, also on a full disk; it goes itself if nothing else is in it."""
        folder = self._hold(owning=False)
        self.sweep_temporary()
        self.remove(self.names())
        with self._translated():
            (folder / _OWNER).unlink(missing_ok=True)
        self.close()
        for empty in (*(inner for inner in folder.iterdir() if _FOLDER.fullmatch(inner.name)), folder):
            with suppress(OSError):  # something else is in it
                empty.rmdir()

    def copy_from(self, other: "FileFolder", sha256s: Collection[str]) -> set[str]:
        """Add files of another folder, by hard links where possible; return those that it does not have whole."""
        missing = set()
        for name in sha256s:
            source, data = other.locate(name), other.read(name, clean=False)
            if source is None or data is None:
                missing.add(name)
                continue
            folder = self.claim()
            with self._translated():
                if self._content(name) == data:
                    continue
                target = self._make_folder(folder, name)
                try:
                    os.link(source, target)
                    self._sync(target.parent)
                except OSError:  # another disk, one without links, or a damaged file is there
                    with self._written(target) as temporary:
                        temporary.write_bytes(data)
        return missing

    def _make_folder(self, folder: Path, name: str) -> Path:
        """Make the folder of a file; return the path of the file."""
        target = folder / name[:2] / name
        with self._changing:
            if not _is_folder(target.parent):
                if os.path.lexists(target.parent):
                    raise StoreRefused(f"the folder of media {folder}: {name[:2]} in it is no folder; remove it")
                target.parent.mkdir(mode=0o700)
                self._sync(folder)
        return target

    @contextmanager
    def _written(self, target: Path) -> Iterator[Path]:
        """Yield the path of an empty temporary file; on success it is synced and renamed, an error leaves no file."""
        number, name = mkstemp(dir=target.parent, prefix=_PREFIX)  # readable by its owner only
        try:
            yield Path(name)
            if self._durable:
                os.fsync(number)
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        finally:
            os.close(number)
        self._sync(target.parent)

    def _content(self, sha256: str) -> bytes | None:
        path = self.locate(sha256)
        return _read(path) if path and _is_folder(path.parent) else None

    def _files(self) -> Iterator[Path]:
        """Yield what is in the folders of files and no folder itself."""
        if self._path is None or not self._path.is_dir():
            return
        with self._translated():
            for folder in self._path.iterdir():
                if _FOLDER.fullmatch(folder.name) and _is_folder(folder):
                    with os.scandir(folder) as found:
                        yield from (Path(one.path) for one in found if not one.is_dir(follow_symlinks=False))

    def _sync(self, folder: Path) -> None:
        if self._durable and os.name == "posix":  # elsewhere folders cannot be synced
            number = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of the system into ours, in one line."""
        try:
            yield
        except TertuliaError:
            raise
        except OSError as error:
            where, said = f"the folder of media {self._path}", error.strerror or str(error)
            if error.errno in _FULL:
                raise StoreFull(f"{where}: there is no room left on the disk ({said})") from error
            if error.errno in _REFUSED:
                raise StoreRefused(f"{where}: it may not be read or written ({said})") from error
            raise StoreFull(f"{where}: the disk does not take or give what it should ({said})") from error


def is_hash(text: str) -> bool:
    """Return whether a text is the name of a file: 64 hexadecimal digits."""
    return _HASH.fullmatch(text) is not None


def _locked(path: Path) -> FileLock:
    try:
        return FileLock(str(path))
    except AlreadyLocked as error:
        raise StoreBusy(f"the folder of media {path.parent}: another process has it open ({error})") from error


def _is_folder(path: Path) -> bool:
    """Return whether a folder is there, and no link to one."""
    with suppress(FileNotFoundError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def _regular_size(path: Path) -> int | None:
    """Return the size of a file; None if there is none: a link is not followed, and a pipe not read."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        return found.st_size if stat.S_ISREG(found.st_mode) else None
    return None


def _read(path: Path) -> bytes | None:
    with suppress(FileNotFoundError):
        return path.read_bytes() if _regular_size(path) is not None else None
    return None
