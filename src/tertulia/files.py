"""Files that are written whole or not at all, files that are read, and lock files."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # for the other end of a pipe


def temporary_path(path: Path) -> Path:
    """Return the path of the temporary file that is renamed to *path* once it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def unfinished_parts(path: Path) -> list[Path]:
    """Return the temporary files for *path* of processes that were killed: no living one holds their locks."""
    name = re.compile(rf"\.{re.escape(path.name)}\.\d+\.part")
    found = [one for one in path.parent.iterdir() if name.fullmatch(one.name)] if path.parent.is_dir() else []
    return [one for one in found if _is_free(one)]


def remove_part(part: Path) -> None:
    """Remove a temporary file, and before it what SQLite left beside it."""
    for suffix in ("-journal", "-wal", "-shm", ""):
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def replace_atomically(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, in place of the one at *path*; a link stays, and its target is
    replaced.
    """
    path = path.resolve()
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(number, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def read_regular(path: Path, *, max_size: int) -> bytes:
    """Return the content of a file. Raise ValueError for what may have no end: a pipe, a device, a file without a size.

    It is asked again once it is open, since it may be another one by then; before, since opening some devices does
    something.
    """
    _refuse_special(path.stat(), max_size)
    with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
        found = os.fstat(file.fileno())
        _refuse_special(found, max_size)
        return file.read(found.st_size)


def _refuse_special(found: os.stat_result, max_size: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no file")
    if not found.st_size:
        raise ValueError("it is empty")
    if found.st_size > max_size:
        raise ValueError(f"it has {found.st_size:,} bytes, more than services take")


@contextmanager
def create_atomically(path: Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file; on success it is synced to disk and renamed to *path*.

    An error leaves no file, and what a killed process left is removed. An existing file is never replaced: that raises
    FileExistsError.
    """
    for part in unfinished_parts(path):
        remove_part(part)
    temporary = temporary_path(path)
    file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with _held(file):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # fails where another process made it meanwhile
            temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


class AlreadyLocked(OSError):
    """Another process holds a lock file; the text says which."""


class FileLock:
    """A lock file that this process holds until `release` or its end. Raise `AlreadyLocked` if another one holds it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _lock_file(path)
        with suppress(OSError):  # a full disk: who is refused then does not learn by whom
            os.ftruncate(self._file, 0)
            os.write(self._file, f"process {os.getpid()}".encode())

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still there; if not, another process may hold another one."""
        return is_at(self._path, self._file)

    def release(self) -> None:
        """Remove the file and free the lock."""
        with suppress(OSError):
            if self.is_in_place:
                os.unlink(self._path)  # while it is held: who opened it before then sees that it is gone
        os.close(self._file)


def is_at(path: str, file: int) -> bool:
    """Return whether an open file is still the one at *path*."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _lock_file(path: str) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        try:
            _lock(file)
        except OSError as error:
            holder = os.read(file, 32).decode("utf-8", "replace")
            os.close(file)
            raise AlreadyLocked(holder or "another process") from error
        if is_at(path, file):
            return file
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 1 << 20, os.SEEK_SET)  # beyond the name of the holder, which others may read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)

    @contextmanager
    def _held(file: int) -> Iterator[None]:
        os.close(file)  # an open file cannot be renamed
        yield

    def _is_free(_: Path) -> bool:
        return False
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def _held(file: int) -> Iterator[None]:
        try:
            with suppress(OSError):  # a disk without locks
                _lock(file)
            yield
        finally:
            os.close(file)

    def _is_free(path: Path) -> bool:
        """Return whether no process holds a file; where that cannot be known, one does."""
        try:
            file = os.open(path, os.O_RDONLY | _NO_LINK)
        except OSError:
            return False
        try:
            _lock(file)
        except OSError:
            return False
        finally:
            os.close(file)
        return True
