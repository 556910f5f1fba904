"""Code fences of Markdown, line by line, by the rules of CommonMark. Pure."""

import re

from msgspec import Struct

_DEEPEST = 60  # columns; a fence further in is none
_PREFIX = 128  # characters; a line whose containers are not plain by then has left them

_OPENING = re.compile(
    r"(?P<before>(?:[ \t]*+(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]))*+[ \t]*+)(?P<run>`{3,}+(?=[^`]*+$)|~{3,}+)"
)
_CLOSING = re.compile(r"(?P<before>[ \t]*+)(?P<run>`{3,}+|~{3,}+)[ \t]*+$")
_QUOTE = re.compile(r"[ \t]*+> ?")


class Fence(Struct, frozen=True, kw_only=True):
    run: str
    quotes: int = 0  # how many block quotes it stands in
    least: int = 0  # the indentation of its lines within them: with less, they have left the list item
    most: int = 3  # the indentation up to which it can be closed


class Fences:
    """The fence that is open after the lines so far, if any."""

    def __init__(self, *, without: str = "") -> None:
        self._open: Fence | None = None
        self._without = without  # a word that will be taken out of the lines

    def add_line(self, line: str) -> None:
        """Add a whole line."""
        line = line.rstrip("\r\n")
        if self._without:
            line = line.replace(self._without, "")
        if "```" not in line and "~~~" not in line:
            return
        if self._open is None:
            self._open = opening_fence(line)
        elif is_closing_fence(self._open, line):
            self._open = None

    def covers(self, text: str, at: int, *, ended: bool) -> bool | None:
        """Return whether the line that begins at *at* is code; None while more text could decide it (not *ended*)."""
        if self._open is None:
            return False
        start, newline, _ = text[at : at + _PREFIX].partition("\n")
        covered = _within(self._open, start, ended=ended or bool(newline) or len(start) == _PREFIX)
        if covered is False:
            self._open = None
        return covered


def opening_fence(line: str) -> Fence | None:
    """Return the fence that *line*, given without its end, opens."""
    found = _OPENING.match(line)
    if found is None or _width(found["before"]) > _DEEPEST:
        return None
    quotes = found["before"].count(">")
    inner = found["before"].rpartition(">")[2]
    inner = inner.removeprefix(" ") if quotes else inner
    indent = _width(inner)
    if inner.strip():
        return Fence(run=found["run"], quotes=quotes, least=indent, most=indent + 3)
    if indent > 3:
        return Fence(run=found["run"], quotes=quotes, least=indent - 3, most=indent + 3)
    return Fence(run=found["run"], quotes=quotes)


def is_closing_fence(fence: Fence, line: str) -> bool:
    """Return whether *line*, given without its end, closes *fence*."""
    inner = _inside_quotes(line, fence.quotes)
    found = _CLOSING.match(inner) if inner is not None else None
    return found is not None and found["run"].startswith(fence.run) and _width(found["before"]) <= fence.most


def _within(fence: Fence, start: str, *, ended: bool) -> bool | None:
    inner = _inside_quotes(start, fence.quotes)
    if inner is None:
        return None if not ended and not start.strip("> \t") else False
    words = inner.lstrip(" \t")
    if _width(inner[: len(inner) - len(words)]) >= fence.least:
        return True
    if words.strip():
        return False
    return True if ended else None


def _inside_quotes(line: str, quotes: int) -> str | None:
    """Return the rest of *line* after so many quote marks, or None if it has fewer."""
    for _ in range(quotes):
        mark = _QUOTE.match(line)
        if mark is None:
            return None
        line = line[mark.end() :]
    return line


def _width(blank: str) -> int:
    return len(blank.expandtabs(4))


def unfence(text: str) -> str:
    """Return the JSON alone where a model put it into a code fence."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped.strip("`").removeprefix("json").strip()
    return stripped
