"""The standard streams of a command: opened, read, printed to; tables, and the texts in their cells.

Each cell is one line; its control characters are escaped.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from tertulia.errors import InvalidValue
from tertulia.ids import abbreviate_ids, match_ids

if TYPE_CHECKING:
    from tertulia.messages import Place


INTERRUPTED = 130  # the exit status that shells expect after Ctrl-C
NARROWEST = 16  # columns that a cell keeps on a narrow terminal: a date and a time
MAX_CELL_WIDTH = 60  # columns of somebody's text in a cell
_GAP = "  "
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


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
    from tertulia.platforms.terminal.output import wants_colour

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

    from tertulia.jsonio import dumps
    from tertulia.platforms.terminal.output import escape_controls

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
        self.show(done / total, f"{done // 1_000_000} of {total // 1_000_000} MB")
        if done == total:
            self.end()

    def note(self, line: str) -> None:
        """Print a line below the bar."""
        self.end()
        print(f"tertulia: {line}", file=self._out, flush=True)

    def end(self) -> None:
        """End the line of the bar."""
        if self.is_open:
            print(file=self._out, flush=True)
        self.is_open = False


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, red: Sequence[bool] = ()) -> None:
    """Print a table that fits the terminal; rows that need a decision are red."""
    import shutil

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    first, *others = align([head, *rows], width=width)
    print_line(first, bold=True)
    for number, line in enumerate(others):
        print_line(line, fg="red" if number < len(red) and red[number] else None)


def align(rows: Sequence[Sequence[str]], *, width: int | None) -> list[str]:
    """Lay rows out as lines. A column with only a heading is left out; the widest columns shrink until a line fits."""
    from rich.cells import cell_len, set_cell_size

    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(cell_len, column)) for column in columns]
    while width and sum(widths) + len(_GAP) * (len(widths) - 1) > width and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return [
        _GAP.join(set_cell_size(truncate(cell, room), room) for cell, room in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def truncate(text: str, width: int) -> str:
    """Shorten a text to as many columns of a terminal, with an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…"


def one_line(text: str, longest: int | None = MAX_CELL_WIDTH) -> str:
    """Return a text on one line, shortened, with the characters escaped that would steer the terminal."""
    from tertulia.platforms.terminal.output import escape_controls

    line = escape_controls(" ".join(text.split()))
    return line if longest is None else truncate(line, longest)


def place_label(place: "Place") -> str:
    """Return the title of a place and its platform: `Friends (telegram)`."""
    thread = f"/{place.thread}" if place.thread else ""
    return one_line(f"{place.title or place.id}{thread} ({place.platform})")


def author_label(name: str, author_id: str) -> str:
    """`Alice (123456789)`"""
    return one_line(f"{name} ({author_id})" if name else author_id)


def local_time(moment: datetime) -> str:
    """Return a moment by the clock of this machine."""
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # at either end of the calendar
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def relative_time(moment: datetime, now: datetime) -> str:
    """`in 5 min`, `2 h ago`, `now`"""
    seconds = (moment - now).total_seconds()
    amount = next((f"{round(abs(seconds) / length)} {name}" for name, length in _UNITS if abs(seconds) >= length), "")
    if not amount:
        return "now"
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def count_of(count: int, plural: str) -> str:
    """`1 reply`, `2 replies`"""
    if count != 1:
        return f"{count} {plural}"
    return f"1 {plural[:-3]}y" if plural.endswith("ies") else f"1 {plural.removesuffix('s')}"


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Abbreviate ids for a table."""
    return {name: one_line(short, None) for name, short in abbreviate_ids(ids).items()}


def resolve_id(given: str, ids: Iterable[str], what: str) -> str:
    """Return the one id that *given* means, whole or abbreviated; *what* names it in a refusal."""
    found = match_ids(given, ids)
    if not found:
        raise InvalidValue(f"there is no {what} {one_line(given)}")
    if len(found) > 1:
        these = ", ".join(one_line(name, None) for name in found[:5])
        raise InvalidValue(f"{len(found)} ids begin with {one_line(given)}: {these}{', …' * (len(found) > 5)}")
    return found[0]
