"""Lock of a database for one process: a lock file beside it, and a lock on its own descriptor.

The lock file says which process holds it, and works everywhere. It can be removed, and then stops nobody; so where the
system has locks of open file descriptions (Linux), one byte of the database itself is locked too, far from the bytes
that SQLite locks. Such a lock outlasts the lock file, is not lost when the process closes another descriptor of the
file, and stops a forked child like any other process.

Closing a descriptor drops the POSIX locks that SQLite has on the same file in this process. So ours are closed only
when no store of this process uses the file any more: `FileUse` counts them.
"""

import errno
import os
import struct
import sys
from threading import Lock as Guard

from tertulia.errors import StoreBusy
from tertulia.files import AlreadyLocked, FileLock, is_at

if sys.platform != "win32":
    import fcntl

_LOCK = "hhqqi4x"  # struct flock: kind, whence, start, length, process
_BYTE = 1 << 62  # of the database: beyond its end, and beyond what SQLite locks (0x40000000 to 0x400001ff)

_guard = Guard()
_users: dict[tuple[int, int], int] = {}  # how many stores of this process use a file, by its device and number
_spare: dict[tuple[int, int], list[int]] = {}  # descriptors that nobody needs, to be closed after SQLite's


class FileUse:
    """Counts a store of this process as a user of a file until `release`; create it before SQLite opens the file."""

    def __init__(self, found: os.stat_result) -> None:
        self._key = (found.st_dev, found.st_ino)
        with _guard:
            _users[self._key] = _users.get(self._key, 0) + 1

    def close_later(self, file: int) -> None:
        """Close a descriptor of the file once no store uses the file."""
        with _guard:
            _spare.setdefault(self._key, []).append(file)

    def release(self) -> None:
        with _guard:
            _users[self._key] -= 1
            if _users[self._key]:
                return
            del _users[self._key]
            for file in _spare.pop(self._key, ()):
                os.close(file)


class LockWatch:
    """Sees whether a process has locked an existing database, until `release`; create it before SQLite opens it."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._use = FileUse(os.fstat(self._file))

    @property
    def is_held(self) -> bool | None:
        """Whether it is locked now; None where the system does not say."""
        if sys.platform != "linux":
            return None
        asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0)
        try:
            kind, *_ = struct.unpack(_LOCK, fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, asked))
        except OSError:  # the file system has no such locks
            return None
        return bool(kind != fcntl.F_UNLCK)

    def release(self) -> None:
        """Watch no more, after SQLite has closed the database."""
        _release(self._use, self._file)


class Lock:
    """Lock on a database until `release` or the end of the process; the file is created if it does not exist."""

    def __init__(self, path: str) -> None:
        try:
            self._lock = FileLock(f"{path}.lock")
        except AlreadyLocked as error:
            raise StoreBusy(f"another process has it open ({error}); stop it first") from error
        try:
            self._use, self._database = _lock_database(path)
        except BaseException:
            self._lock.release()
            raise

    def release(self) -> None:
        """Free the lock, after SQLite has closed the database."""
        _lock_byte(self._database, free=True)  # a forked child may have the descriptor too
        _release(self._use, self._database)
        self._lock.release()


def _lock_database(path: str) -> tuple[FileUse, int]:
    """Open and lock the database; a missing file is created, readable by its owner only."""
    while True:
        file = _open(path)
        use = FileUse(os.fstat(file))
        try:
            _lock_byte(file)
        except OSError as error:
            _release(use, file)
            raise StoreBusy("another process has it open, though its lock file is gone") from error
        if is_at(path, file):
            return use, file
        _release(use, file)


def _release(use: FileUse, file: int) -> None:
    use.close_later(file)
    use.release()


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return create_file(path)


def create_file(path: str) -> int:
    """Open a file, created readable by its owner only; its folder is synced."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.name == "posix":  # elsewhere folders cannot be synced
            _sync(os.path.dirname(path))
    except BaseException:
        os.close(file)
        raise
    return file


def _sync(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _lock_byte(file: int, *, free: bool = False) -> None:
    """Lock or free the byte of the database; raise OSError if another process holds it."""
    if sys.platform != "linux":
        return
    kind = fcntl.F_UNLCK if free else fcntl.F_WRLCK
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_LOCK, kind, os.SEEK_SET, _BYTE, 1, 0))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise  # else the file system has no such locks
