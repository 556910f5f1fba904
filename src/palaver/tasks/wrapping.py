"""What a model puts around its task blocks: thoughts before them, and a fence around the whole. Pure."""

import re

from msgspec import Struct

from palaver.markdown import Fence, Fences, closes, opened

THOUGHTS = ("think", "thinking", "thought")

_LABELS = ("markdown", "md")
_BLANK = " \t\r"
_OPENING = re.compile(
    rf"(?:[ \t\r\n]*+<({'|'.join(THOUGHTS)})>.*?(?:</\1>|\Z))++(?:[ \t\r]*+\n)*+",
    re.DOTALL,
)


class Wrapped(Struct, frozen=True, kw_only=True):
    start: int  # of what stands inside
    end: int
    labelled: bool  # it is called Markdown; else it may be any code


def after_thoughts(text: str) -> int:
    """Where the text begins that the model did not merely think; one that never ends its thoughts has none."""
    found = _OPENING.match(text)
    return found.end() if found else 0


def wrapped(text: str, start: int) -> Wrapped | None:
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
    return Wrapped(start=begin, end=begin + length, labelled=_label(fence, lines[first]) != "")


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
