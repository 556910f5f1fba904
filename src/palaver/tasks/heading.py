"""The line that begins a task block: one grammar for whoever runs blocks and whoever keeps them from people. Pure.

A heading is `# «kind»`, then perhaps the number of a message, then perhaps text. Models miss this form a little, so
up to three blanks, a byte order mark, several blanks and no-break spaces are understood; four blanks make it code.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from msgspec import Struct

OPEN, CLOSE = "# «", "»"
LONGEST = 64  # characters of a kind, and of an id
MOST_BLANKS = 8  # between the parts of a heading

_BLANK = r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_LEAD = r"\ufeff{0,2}+[ \u00a0]{0,3}+\ufeff{0,2}+"
_KIND = rf"[^«»\r\n]{{0,{LONGEST}}}+"
_ENDED = rf"(?={_BLANK}|[:\[]|\r?\n|\Z)"
_LINE = re.compile(
    rf"{_LEAD}#{_BLANK}{{1,{MOST_BLANKS}}}+«(?P<kind>{_KIND})»{_ENDED}:?+{_BLANK}*+"
    rf"(?:(?P<id>[0-9]{{1,{LONGEST}}}+)(?={_BLANK}|\r?\n|\Z){_BLANK}*+)?+"
)
_BEGUN = re.compile(rf"{_LEAD}(?:#{_BLANK}{{0,{MOST_BLANKS}}}+(?:(?<!#)«{_KIND}»?+)?+)?+")
_MOST_WRONG = 2  # letters in which a misspelt kind differs from the one it stands for


class Heading(Struct, frozen=True, kw_only=True):
    start: int
    end: int  # where its body begins, which may be on the same line
    kind: str  # as it is written
    id: str | None


def heading_at(text: str, start: int, kinds: Collection[str]) -> Heading | None:
    """The heading on the line that begins there, if it names one of *kinds* or misspells one; any other is text."""
    found = _LINE.match(text, start)
    if found is None:
        return None
    kind = found["kind"].strip()
    if kind_named(kind, kinds) is None and not similar_kinds(kind, kinds):
        return None
    return Heading(start=start, end=found.end(), kind=kind, id=found["id"])


def may_become_heading(line: str) -> bool:
    """Whether a line that begins so, up to the end of its kind, may be a heading."""
    return _BEGUN.fullmatch(line) is not None


def heading_line(kind: str, number: str | None) -> str:
    return f"{OPEN}{kind}{CLOSE}" + (f" {number}" if number else "")


def kind_named(kind: str, kinds: Collection[str]) -> str | None:
    """The one of *kinds* that is meant, whatever its letters are: small, capital or of full width."""
    return kind if kind in kinds else _by_folded(tuple(kinds)).get(_folded(kind))


def similar_kinds(kind: str, kinds: Collection[str]) -> tuple[str, ...]:
    """Those of *kinds* that *kind* may be a misspelling of.

    It differs from them in at most two letters, where two that changed places count as one, and in less than half of
    its letters: of a short word two letters are another word.
    """
    return _misspelt(_folded(kind), tuple(kinds))


@lru_cache(maxsize=4096)
def _misspelt(folded: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in kinds if _is_near(folded, _folded(name)))


@lru_cache(maxsize=64)
def _by_folded(kinds: tuple[str, ...]) -> dict[str, str]:
    return {_folded(name): name for name in reversed(kinds)}


def _is_near(one: str, other: str) -> bool:
    longer = max(len(one), len(other))
    if abs(len(one) - len(other)) > _MOST_WRONG:
        return False
    wrong = _distance(one, other)
    return 0 < wrong <= _MOST_WRONG and 2 * wrong < longer


def _distance(one: str, other: str) -> int:
    """How many letters must be put in, left out, exchanged or swapped with the next to make *other* of *one*."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[j] = min(row[j], earlier[j - 2] + 1)
    return row[-1]


def _folded(kind: str) -> str:
    return unicodedata.normalize("NFKC", kind).casefold()
