"""The standard streams as we are given them: a shell can close them, and who reads them can leave."""

import os
import sys

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


def abandon_streams() -> None:
    """Let what has not been written yet go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
