"""What a model puts around its task blocks: thoughts before them, and a fence around the whole. Pure."""

import re
from collections.abc import Collection

from msgspec import Struct

from palaver.markdown import Fence, Fences, closes, opened
from palaver.tasks import heading

THOUGHTS = ("think", "thinking", "thought")
MOST_BLANKS = 16  # within a tag, before its end
MOST_UNSURE = 4096  # characters that wait for a thought to end that seemed to hold another

_LABELS = ("markdown", "md")
_BLANK = " \t\r"
_TAG = re.compile(rf"[ \t\r\n\ufeff]*+<({'|'.join(THOUGHTS)})[ \t]{{0,{MOST_BLANKS}}}>", re.ASCII | re.IGNORECASE)
_BLANK_LINES = re.compile(r"(?:[ \t\r\ufeff]*+\n)*+")


class ThoughtSkipper:
    """Says how far a text goes with the thought it is in, which may hold others of its name.

    One that names its own tag may seem to hold another. So where no end comes for long, the one before was the last.
    """

    def __init__(self, name: str) -> None:
        self._tags = re.compile(rf"<(/?){name}[ \t]{{0,{MOST_BLANKS}}}>", re.ASCII | re.IGNORECASE)
        self._longest = len(name) + MOST_BLANKS + 3
        self._depth = 1
        self._closed = False  # one that it holds, or seems to hold, was
        self._seen = 0  # characters after what is dropped

    def drop(self, text: str, at: int, *, ended: bool) -> tuple[int, bool]:
        """Up to where *text* can be dropped, and whether the thought ends there."""
        seen = at + self._seen
        for tag in self._tags.finditer(text, seen):
            if self._closed and tag.end() - at > MOST_UNSURE:
                return at, True
            seen = tag.end()
            self._depth += -1 if tag[1] else 1
            if tag[1]:
                at, self._closed = seen, True
            if not self._depth:
                return at, True
        return self._wait(at, max(seen, len(text) - self._longest), is_last=ended or len(text) - at >= MOST_UNSURE)

    def _wait(self, at: int, seen: int, *, is_last: bool) -> tuple[int, bool]:
        if not self._closed:
            return seen, False
        self._seen = seen - at
        return at, is_last


class OuterFence(Struct, frozen=True, kw_only=True):
    start: int  # of what stands inside
    end: int
    labelled: bool  # it is called Markdown; else it may be any code


def skip_thoughts(text: str) -> int:
    """Where the text begins that the model did not merely think; one that never ends its thoughts has none."""
    end = 0
    while tag := _TAG.match(text, end):
        end, over = ThoughtSkipper(tag[1].lower()).drop(text, tag.end(), ended=True)
        if not over:
            return len(text)
    blank = _BLANK_LINES.match(text, end) if end else None
    return blank.end() if blank else 0


def outer_fence(text: str, start: int) -> OuterFence | None:
    """The fence that holds all from *start* on, in which others may be open and closed again."""
    lines = text[start:].split("\n")
    spoken = [number for number, line in enumerate(lines) if line.strip(_BLANK)]
    if len(spoken) < 2:
        return None
    first, last = spoken[0], spoken[-1]
    fence = _plain_fence(lines[first])
    if fence is None or not _is_whole(fence, lines[first + 1 : last + 1]):
        return None
    begin = start + sum(map(len, lines[: first + 1])) + first + 1
    length = sum(map(len, lines[first + 1 : last])) + last - first - 1
    return OuterFence(start=begin, end=begin + length, labelled=_label(fence, lines[first]) != "")


def may_be_outer_fence(text: str, kinds: Collection[str]) -> bool | None:
    """Whether a text that begins so may be a fence around blocks of *kinds*; None while that is open."""
    lines = text.split("\n")
    spoken = [number for number, line in enumerate(lines) if line.strip(_BLANK)]
    if not spoken or (len(lines) == spoken[0] + 1 and lines[-1].lstrip(_BLANK)[0] in "`~"):
        return None
    fence = _plain_fence(lines[spoken[0]])
    if fence is None:
        return False
    if _label(fence, lines[spoken[0]]):
        return True
    if len(spoken) < 2 or len(lines) == spoken[1] + 1:
        return None
    first = lines[spoken[1]]
    return heading.heading_at(f"{first}\n", 0, kinds) is not None or _TAG.match(first) is not None


def _plain_fence(line: str) -> Fence | None:
    fence = opened(line.rstrip("\r"))
    plain = fence is not None and fence == Fence(run=fence.run) and _label(fence, line) in ("", *_LABELS)
    return fence if plain else None


def _label(fence: Fence, line: str) -> str:
    return line.strip().removeprefix(fence.run).strip().lower()


def _is_whole(fence: Fence, lines: list[str]) -> bool:
    """Whether the last of *lines* is the first that closes the fence."""
    inner = Fences()
    for number, line in enumerate(lines, start=1):
        if not inner.covers(line, 0, ended=True) and closes(fence, line.rstrip("\r")):
            return number == len(lines)
        inner.line(line)
    return False
