"""One process at a time on a file: a lock beside it that dies with its process."""

import os
import sys
from contextlib import suppress

from palaver.errors import StoreBusy


class Lock:
    """Held from its making until `release`, or until the process ends in any way."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        self._file = _locked(self._path)
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()}".encode())

    def release(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)  # while it is held: who opened it before then sees that it is gone
        os.close(self._file)


def _locked(path: str) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(file)
        except OSError as error:
            holder = os.read(file, 32).decode("utf-8", "replace")
            os.close(file)
            raise StoreBusy(f"another process has it open{f' ({holder})' if holder else ''}") from error
        if _is_at(path, file):
            return file
        os.close(file)


def _is_at(path: str, file: int) -> bool:
    """Whether what was locked still lies where others look for it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 1 << 20, os.SEEK_SET)  # beyond the name of the holder, which others may read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
