"""Rows for people: one line each, aligned whatever the script, and nothing in them steers the terminal."""

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from palaver.errors import InvalidValue
from palaver.ids import abbreviate_ids, match_ids

if TYPE_CHECKING:
    from palaver.messages import Place

NARROWEST = 16  # what a column keeps where the terminal is narrow: a date and a time
LONGEST = 60  # what a cell shows of somebody's text
_GAP = "  "
_SPANS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def aligned(rows: Sequence[Sequence[str]], *, room: int | None) -> list[str]:
    """The rows as lines; a column that only has a heading is left out, and the widest give way until all fit."""
    filled = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(width, column)) for column in filled]
    while room and sum(widths) + len(_GAP) * (len(widths) - 1) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return [
        _GAP.join(_filled(cell, wide) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in zip(*filled, strict=True)
    ]


def width(text: str) -> int:
    """How many columns of a terminal *text* takes."""
    return sum(map(_columns, text))


def cut(text: str, room: int) -> str:
    """*text* in as many columns as there are."""
    if width(text) <= room:
        return text
    kept, taken = "", 1
    for character in text:
        taken += _columns(character)
        if taken > room:
            break
        kept += character
    return f"{kept}…"


def one_line(text: str, longest: int | None = LONGEST) -> str:
    """What somebody wrote, on one line and harmless."""
    from palaver.platforms.terminal.showing import visible

    line = visible(" ".join(text.split()))
    return line if longest is None else cut(line, longest)


def place_words(place: "Place") -> str:
    """`Friends (telegram)`"""
    within = f"/{place.thread}" if place.thread else ""
    return one_line(f"{place.title or place.id}{within} ({place.platform})")


def local(moment: datetime) -> str:
    """When that is on the clock of this machine."""
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # at either end of the calendar
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def from_now(moment: datetime, now: datetime) -> str:
    """`in 5 min`, `2 h ago`, `now`"""
    seconds = (moment - now).total_seconds()
    amount = next((f"{round(abs(seconds) / length)} {name}" for name, length in _SPANS if abs(seconds) >= length), "")
    if not amount:
        return "now"
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def counted(count: int, plural: str) -> str:
    """`1 reply`, `2 replies`"""
    if count != 1:
        return f"{count} {plural}"
    return f"1 {plural[:-3]}y" if plural.endswith("ies") else f"1 {plural.removesuffix('s')}"


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The beginning of each id, as long as it takes to tell it from the others."""
    return {name: one_line(short, None) for name, short in abbreviate_ids(ids).items()}


def the_id(given: str, ids: Iterable[str], what: str) -> str:
    """The id that is meant: that one, or the only one that begins so."""
    found = match_ids(given, ids)
    if not found:
        raise InvalidValue(f"there is no {what} {one_line(given)}")
    if len(found) > 1:
        these = ", ".join(one_line(name, None) for name in found[:5])
        raise InvalidValue(f"{len(found)} ids begin with {one_line(given)}: {these}{', …' * (len(found) > 5)}")
    return found[0]


def show(head: Sequence[str], rows: Sequence[Sequence[str]], alarming: Sequence[bool]) -> None:
    """Print a table; the rows that want a decision in red, where there is colour."""
    import shutil

    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    first, *others = aligned([head, *rows], room=room)
    say(first, bold=True)
    for line, is_alarming in zip(others, alarming, strict=True):
        say(line, fg="red" if is_alarming else None)


def say(line: str, *, fg: str | None = None, bold: bool = False) -> None:
    """Print a line, in colour where the terminal has it; characters it has no code for are written out."""
    from palaver.platforms.terminal.showing import wants_colour

    styled = typer.style(line, fg=fg, bold=bold) if (fg or bold) and wants_colour(sys.stdout) else line
    encoding = sys.stdout.encoding or "utf-8"
    print(styled.encode(encoding, "backslashreplace").decode(encoding))


def json_of(value: Any) -> bytes:
    """Our values as JSON for machines, which may show it in a terminal."""
    import msgspec

    from palaver.models.json import dumps
    from palaver.platforms.terminal.showing import visible

    return visible(dumps(msgspec.to_builtins(value)).decode()).encode()


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _filled(cell: str, wide: int) -> str:
    shown = cut(cell, wide)
    return shown + " " * (wide - width(shown))
