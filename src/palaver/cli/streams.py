"""The standard streams of a command: opened, read, printed to."""

import os
import sys
from pathlib import Path
from typing import Any, TextIO

import typer

from palaver.errors import InvalidValue

INTERRUPTED = 130  # the exit status that shells expect after Ctrl-C


def open_streams() -> None:
    """Open what is closed of the standard streams on the null device; refuse to run without an output.

    A file that is opened later would otherwise get the number of a standard stream.
    """
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
    """Discard unwritten output, so that Python does not fail once more at exit when the reader of a pipe has gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(null, number)


def read_input(file: str) -> bytes:
    """Read a file; standard input where it is called `-`."""
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


def print_line(line: str, *, fg: str | None = None, bold: bool = False) -> None:
    """Print a line, in colour where the terminal has it; characters that its encoding lacks are escaped."""
    from palaver.platforms.terminal.output import wants_colour

    styled = typer.style(line, fg=fg, bold=bold) if (fg or bold) and wants_colour(sys.stdout) else line
    encoding = sys.stdout.encoding or "utf-8"
    print(styled.encode(encoding, "backslashreplace").decode(encoding))


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    write_json(to_json(value))


def write_json(written: bytes) -> None:
    """Write encoded JSON to standard output, indented on a terminal."""
    import msgspec

    sys.stdout.buffer.write((msgspec.json.format(written, indent=2) if sys.stdout.isatty() else written) + b"\n")


def to_json(value: Any) -> bytes:
    """Encode a value; nothing in it can steer the terminal."""
    import msgspec

    from palaver.jsonio import dumps
    from palaver.platforms.terminal.output import escape_controls

    return escape_controls(dumps(msgspec.to_builtins(value)).decode()).encode()


class ProgressBar:
    """A bar on a terminal; elsewhere a line for every tenth of the work."""

    def __init__(self, out: TextIO, *, width: int = 30) -> None:
        self._out = out
        self._width = width
        self._tenths = 0
        self.is_open = False  # the cursor stands behind a bar

    def show(self, share: float, text: str) -> None:
        """Show which share of the work is done."""
        if self._out.isatty():
            filled = round(self._width * share)
            print(f"\r[{'█' * filled}{'·' * (self._width - filled)}] {text}", end="", file=self._out, flush=True)
            self.is_open = True
        elif int(10 * share) > self._tenths:
            self._tenths = int(10 * share)
            print(f"{self._tenths * 10} %: {text}", file=self._out, flush=True)

    def show_bytes(self, done: int, total: int) -> None:
        """Show how many bytes of *total* are done; end the bar when all are."""
        self.show(done / total, f"{done >> 20} of {total >> 20} MB")
        if done == total:
            self.end()

    def note(self, line: str) -> None:
        """Print a line below the bar."""
        self.end()
        print(f"palaver: {line}", file=self._out, flush=True)

    def end(self) -> None:
        """End the line of the bar."""
        if self.is_open:
            print(file=self._out, flush=True)
        self.is_open = False
