"""A folder with files by hash: each is written beside, synced and renamed, so that no half file has a name.

The file of the hash `abcdef…` is `ab/abcdef…`. No name from outside becomes a path: only 64 hexadecimal digits do. A
temporary file is in the folder of its file, under a name that no hash has.
"""

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256 as digest
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory, mkstemp
from threading import Lock

from palaver.errors import InvalidValue, PalaverError, StoreBusy, StoreFull, StoreRefused
from palaver.files import AlreadyLocked, FileLock

_HASH = re.compile(r"[0-9a-f]{64}")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_PREFIX = ".part-"  # of temporary files
_LOCK = ".lock"
_REFUSED = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP),
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileFolder:
    """Files by hash, for one process: `claim` locks the folder. All calls block; without a path it is temporary."""

    def __init__(self, path: Path | None = None, *, durable: bool = True) -> None:
        self._path = path
        self._durable = durable
        self._temporary: TemporaryDirectory[str] | None = None
        self._lock: FileLock | None = None
        self._claiming = Lock()

    @property
    def path(self) -> Path | None:
        """The folder; None for a temporary one without files."""
        return self._path

    @property
    def exists(self) -> bool:
        return self._path is not None and self._path.is_dir()

    def claim(self) -> Path:
        """Create and lock the folder; raise `StoreBusy` where another process has it."""
        with self._claiming, self._translated():
            if self._path is None:
                self._temporary = TemporaryDirectory(prefix="palaver-media-")
                self._path = Path(self._temporary.name)
            if self._lock and not self._path.is_dir():  # somebody removed it
                self._lock.release()
                self._lock = None
            if self._lock is None:
                if not self._path.is_dir():
                    self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._sync(self._path.parent)
                self._lock = _locked(self._path / _LOCK)
            return self._path

    def close(self) -> None:
        """Free the folder; a temporary one goes."""
        with self._claiming:
            if self._lock:
                self._lock.release()
                self._lock = None
            if self._temporary:
                self._temporary.cleanup()
                self._temporary, self._path = None, None

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
        with self._translated(), suppress(FileNotFoundError):
            return path.stat().st_size if path else None
        return None

    def locate(self, sha256: str) -> Path | None:
        """Return the path of a file, which need not exist; None where there is no folder."""
        if not is_hash(sha256):
            raise InvalidValue(f"{sha256[:80]!a} is no hash of a file: it has 64 digits of 0-9 and a-f")
        return self._path / sha256[:2] / sha256 if self._path else None

    def remove(self, sha256s: Collection[str]) -> None:
        """Remove files; one that is missing is no error."""
        folders = set()
        with self._translated():
            for path in filter(None, map(self.locate, sha256s)):
                with suppress(FileNotFoundError):
                    path.unlink()
                    folders.add(path.parent)
            for folder in folders:
                self._sync(folder)

    def names(self) -> set[str]:
        """Return the hashes of all files."""
        return {path.name for path in self._files() if is_hash(path.name) and path.name[:2] == path.parent.name}

    def sweep_temporary(self) -> int:
        """Remove the temporary files of a process that ended in the midst of writing; return their number."""
        found = [path for path in self._files() if path.name.startswith(_PREFIX)]
        with self._translated():
            for path in found:
                path.unlink(missing_ok=True)
        return len(found)

    def remove_empty(self) -> None:
        """Remove the folder; raise `OSError` if something is in it."""
        if self._path is not None:
            for folder in self._path.iterdir():
                folder.rmdir()
            self._path.rmdir()

    def copy_from(self, other: "FileFolder", sha256s: Collection[str]) -> set[str]:
        """Add files of another folder, by hard links where possible; return those that it does not have whole."""
        missing = set()
        for name in sha256s:
            source = other.locate(name)
            if source is None or other.read(name, clean=False) is None:
                missing.add(name)
                continue
            folder = self.claim()
            with self._translated():
                target = self._make_folder(folder, name)
                try:
                    os.link(source, target)
                    self._sync(target.parent)
                except FileExistsError:
                    continue
                except OSError:  # another disk, or one without links
                    with self._written(target) as temporary:
                        copyfile(source, temporary)
        return missing

    def _make_folder(self, folder: Path, name: str) -> Path:
        """Make the folder of a file; return the path of the file."""
        target = folder / name[:2] / name
        if not target.parent.is_dir():
            target.parent.mkdir(mode=0o700, exist_ok=True)
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
        with suppress(FileNotFoundError):
            return path.read_bytes() if path else None
        return None

    def _files(self) -> Iterator[Path]:
        """Yield what is in the folders of files."""
        if self._path is None or not self._path.is_dir():
            return
        with self._translated():
            for folder in self._path.iterdir():
                if _FOLDER.fullmatch(folder.name) and folder.is_dir():
                    yield from folder.iterdir()

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
        except PalaverError:
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
