"""The standard streams as we are given them: a shell can close them, and who reads them can leave."""

import os
import sys
from pathlib import Path

from palaver.errors import InvalidValue


def open_streams() -> None:
    """Let what is closed lead nowhere, lest the next file be opened in its place; nothing works without an output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    closed = sys.stdout is None
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - it stays open to the end
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    if closed:
        raise InvalidValue("standard output is closed; to throw the output away write >/dev/null")


def read_input(file: str) -> bytes:
    """The bytes of a file; of standard input, where it is called `-`."""
    if file == "-" and sys.stdin is None:
        raise InvalidValue("standard input is closed; name a FILE")
    if file == "-":
        if sys.stdin.isatty():
            print("reading from the terminal; Ctrl-D ends it", file=sys.stderr)
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidValue(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error


def write_json(written: bytes) -> None:
    """Write JSON to standard output, indented where a person reads it."""
    import msgspec

    sys.stdout.buffer.write((msgspec.json.format(written, indent=2) if sys.stdout.isatty() else written) + b"\n")


def abandon_streams() -> None:
    """Let what has not been written yet go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
