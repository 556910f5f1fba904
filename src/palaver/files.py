"""Atomic creation of new files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def temporary_path(path: Path) -> Path:
    """Return the path of the temporary file that is renamed to *path* once it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


@contextmanager
def create_atomically(path: Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file; on success it is synced to disk and renamed to *path*.

    An error leaves no file. An existing file is never replaced: that raises FileExistsError.
    """
    temporary = temporary_path(path)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # fails where another process made the file meanwhile
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
