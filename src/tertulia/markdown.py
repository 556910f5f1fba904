"""Code fences of Markdown, line by line, by the rules of CommonMark; texts in pieces that cut none. Pure."""

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


class CodeBlock(Struct, frozen=True, kw_only=True):
    """A fence in a text, from the start of the line that opens it."""

    start: int
    code_end: int  # where the line begins that closes it; as `end` where there is none
    end: int
    opening: str  # a line that opens such a fence, where its text goes on
    closing: str


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


def split_text(text: str, length: int) -> list[str]:
    """Split *text* into pieces of at most *length* characters, at paragraphs, lines or blanks; only what separates two
    is left out. A code fence is not cut: it goes whole into the next piece, or is closed and opened again.
    """
    pieces: list[str] = []
    while len(text) > length:
        piece, text = _cut_off(text, length)
        pieces.append(piece)
    return [piece for piece in (*pieces, text) if piece.strip()] or [text]


def _cut_off(text: str, length: int) -> tuple[str, str]:
    """Return the first piece of a text, and the rest."""
    end, separator = _end_of_piece(text, length, least=length // 3)
    block = code_block_at(text[: 2 * length], end)
    if block is None:
        return text[:end], text[end:].removeprefix(separator)
    before, room = text[: block.start].rstrip("\n"), length - len(block.closing) - 1
    code = block.start + len(block.opening) + 1
    if before.strip() and (block.end - block.start <= length or len(before) > length // 3 or code >= room):
        return before, text[block.start :]
    if code >= room:
        return text[:end], text[end:].removeprefix(separator)
    end, separator = _end_of_piece(text, room, least=max(code, room // 3))
    piece = f"{text[:end]}\n{block.closing}"
    if not text[end : block.code_end].strip():
        return piece, text[block.end :].lstrip("\n")
    return piece, f"{block.opening}\n{text[end:].removeprefix(separator)}"


def _end_of_piece(text: str, length: int, *, least: int) -> tuple[int, str]:
    """Return the end of a piece of *text*, after *least* if possible, and the separator behind it."""
    for separator in ("\n\n", "\n", " "):
        end = text.rfind(separator, least, length + len(separator))
        if end > 0:
            return end, separator
    return length, ""


def code_block_at(text: str, at: int) -> CodeBlock | None:
    """Return the fence that a cut at *at* would cut; None where there is none."""
    fence: Fence | None = None
    place = start = 0
    opener = ""
    for line in text.split("\n"):
        if fence is None:
            if place >= at:
                return None
            fence, start, opener = opening_fence(line), place, line
        elif (left := not _within(fence, line, ended=True)) or is_closing_fence(fence, line):
            end = place if left else place + len(line)
            if at < end:
                return _code_block(start, opener, code_end=place, end=end)
            fence, start, opener = opening_fence(line) if left else None, place, line
        place += len(line) + 1
    return _code_block(start, opener, code_end=len(text), end=len(text)) if fence else None


def _code_block(start: int, opener: str, *, code_end: int, end: int) -> CodeBlock:
    found = _OPENING.match(opener)
    assert found is not None  # noqa: S101 - the line has opened a fence
    before = re.sub(r"[^>\s]", " ", found["before"])  # no second item of a list
    opening = before + opener[found.start("run") :].rstrip()
    return CodeBlock(start=start, code_end=code_end, end=end, opening=opening, closing=before + found["run"])
