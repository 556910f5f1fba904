"""Task blocks in a model's text: headings, bodies, and the thoughts and fences around them. Pure.

A model asks for work by blocks. A block is a heading line, `# «kind»` with perhaps the id of a message, and the body
below it, up to the next heading. `parse` reads a text as follows: it skips thoughts at the start, looks into a code
fence that holds the whole text, finds the headings that are not code, and reads each body by its kind.

The cleaner removes blocks from what people see. It uses the same functions for headings and thoughts, so that a line is
either a block or text, never both and never neither.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.markdown import Fence, Fences, is_closing_fence, opening_fence
from tertulia.tasks.kinds import (
    ABOUT,
    ABOUT_IDS,
    KINDS,
    LONGEST_WAIT,
    BlockLine,
    Body,
    Kind,
    read_body,
    trim,
    usable_kinds,
    write_body,
)
from tertulia.tasks.task import Send, TaskBlock, Wait, kind_of

HEADING_END = "»"  # ends the kind in a heading

_SEND, _WAIT = "send", "wait"
_LONGEST = 64  # characters of a kind, and of an id
_MOST_BLANKS = 8  # between the parts of a heading
_MOST_WRONG = 2  # letters in which a misspelt kind differs from the one it stands for

_BLANK = r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_INDENT = r"\ufeff{0,2}+[ \u00a0]{0,3}+\ufeff{0,2}+"
_KIND = rf"[^«»\r\n]{{0,{_LONGEST}}}+"
_HASHES = rf"#{{1,6}}+{_BLANK}{{0,{_MOST_BLANKS}}}+"
_NEXT = rf"{_BLANK}|[:\[]|\r?\n|\Z"  # what may follow a kind
_HEADING = re.compile(
    rf"{_INDENT}(?:(?P<bold>\*\*){_HASHES}|{_HASHES}(?P<inner>\*\*)?+)«(?P<kind>{_KIND})»"
    rf"(?(bold)(?:(?P<closed>\*\*)|(?=\*|{_NEXT}))|(?(inner)(?:\*\*|(?=\*|{_NEXT}))|(?={_NEXT}))):?+{_BLANK}*+"
    rf"(?:(?P<id>[0-9]{{1,{_LONGEST}}}+)(?(bold)(?=\*\*|{_BLANK}|\r?\n|\Z)|(?={_BLANK}|\r?\n|\Z)){_BLANK}*+)?+"
    rf"(?(bold)(?(closed)|(?:\*\*:?+{_BLANK}*+)?+))"
)
_TO = re.compile(rf"{_BLANK}{{0,{_MOST_BLANKS}}}to{_BLANK}+([^\r\n]{{1,{2 * _LONGEST}}}+)\r?\n(?=\s*\S)", re.IGNORECASE)
_HEADING_START = re.compile(rf"{_INDENT}(?:(?:\*\*)?+{_HASHES}(?:(?:\*\*)?+«{_KIND}»?+|\*{{1,2}}+)?+|\*{{1,2}}+)?+")


class ParsedText(Struct, frozen=True, kw_only=True):
    """A model's text, parsed. The text is not cleaned yet of other markup that must not reach people."""

    text: str = ""  # before the first heading
    blocks: tuple[TaskBlock, ...] = ()
    problems: tuple[str, ...] = ()  # a line for the model for each block that cannot be used
    skipped: int = 0  # how many blocks were left out because they follow a wait that cannot be used

    @property
    def steps(self) -> tuple[TaskBlock, ...]:
        """All blocks, after the text as a plain send."""
        return (Send(text=self.text), *self.blocks) if self.text else self.blocks


class Heading(Struct, frozen=True, kw_only=True):
    """The line that begins a block."""

    start: int
    end: int  # where the body begins, which may be on the same line
    kind: str  # as it is written
    id: str | None


class _RawBlock(Struct, frozen=True, kw_only=True):
    heading: Heading
    body: Body

    @property
    def line(self) -> str:
        return heading_line(self.heading.kind, self.heading.id, self.body.to)


def parse(text: str, *, kinds: Mapping[str, Kind] = KINDS) -> ParsedText:
    """Parse a text of the model. Nobody else's text may be given: whoever writes a block makes a task.

    Blocks after a wait that cannot be read, or is misspelt, are left out, since they would run too early.
    """
    before, found = _split(text, kinds)
    blocks: list[TaskBlock] = []
    problems: list[str] = []
    waiting: float = 0
    line = position = 0
    for number, raw in enumerate(found, start=1):
        start = raw.heading.start
        line, position = line + text.count("\n", position, start), start
        try:
            block = _read(raw, kinds)
            waiting = _add_wait(waiting, block)
        except ValueError as error:
            problems.append(f"line {line + 1}, `{raw.line}`: {' '.join(str(error).split())}")
            is_wait = kind_named(raw.heading.kind, kinds) == _WAIT
            if is_wait or _WAIT in similar_kinds(raw.heading.kind, kinds):
                skipped = len(found) - number
                return ParsedText(text=before, blocks=tuple(blocks), problems=tuple(problems), skipped=skipped)
        else:
            blocks.append(block)
    return ParsedText(text=before, blocks=tuple(blocks), problems=tuple(problems))


def lines_for_model(offered: Iterable[str], about: Mapping[str, str | None]) -> tuple[BlockLine, ...]:
    """Return a line for the model about each kind it is offered.

    *about* says what kinds are for. A kind that is None there is not mentioned.
    """
    lines = []
    for name in offered:
        if about.get(name, "") is not None:
            heading, text = f"`{heading_line(name, None)}`", " ".join((about.get(name) or "").split())
            with_id = "" if text else ABOUT_IDS.get(name, "")
            text = text or ABOUT.get(name, "")
            lines.append(BlockLine(text=f"{heading}: {text}" if text else heading, with_id=with_id))
    return tuple(lines)


def _split(text: str, kinds: Mapping[str, Kind]) -> tuple[str, list[_RawBlock]]:
    """Return the text before the first heading, and the blocks. A fence around all of it is looked into first."""
    start = skip_thoughts(text)
    if text.find(HEADING_END, start) < 0:
        return _text_between(text, start, len(text)), []
    return _split_in_fence(text, start, kinds) or _split_between(text, start, len(text), kinds)


def is_fence_of_blocks(text: str, kinds: Mapping[str, Kind]) -> bool:
    """Return whether a fence holds all of a text, and what stands in it is read as blocks, not as code."""
    return _split_in_fence(text, skip_thoughts(text), kinds) is not None


def _split_in_fence(text: str, start: int, kinds: Mapping[str, Kind]) -> tuple[str, list[_RawBlock]] | None:
    """Return what `_split` does of a fence around all of the text; None if there is none, or it is code."""
    fence = outer_fence(text, start)
    if fence is None:
        return None
    inner = fence.start + skip_thoughts(text[fence.start : fence.end])
    before, blocks = _split_between(text, inner, fence.end, kinds)
    return (before, blocks) if blocks and (fence.labelled or not before) else None


def _split_between(text: str, start: int, end: int, kinds: Mapping[str, Kind]) -> tuple[str, list[_RawBlock]]:
    headings = _headings(text[:end], start, kinds)
    ends = [heading.start for heading in headings[1:]] + [end]
    first = headings[0].start if headings else end
    blocks = [
        _RawBlock(heading=heading, body=_body(heading, text[heading.end : until], kinds))
        for heading, until in zip(headings, ends, strict=False)
    ]
    return _text_between(text, start, first), blocks


def _body(heading: Heading, text: str, kinds: Mapping[str, Kind]) -> Body:
    """Return the body below a heading; after that of a send may stand to whom it goes."""
    found = _TO.match(text) if kind_named(heading.kind, kinds) == _SEND else None
    if found is None:
        return Body(text=trim(text), id=heading.id)
    return Body(text=trim(text[found.end() :]), id=heading.id, to=found[1].strip(" \t*`:«»\"'") or None)


def _headings(text: str, start: int, kinds: Mapping[str, Kind]) -> list[Heading]:
    """Return the headings from *start* on that are not code."""
    fences = Fences()
    headings = []
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        is_code = fences.covers(text, start, ended=True)
        heading = None if is_code else heading_at(text, start, kinds)
        if heading:
            headings.append(heading)
        fences.add_line(text[start:end])
        start = end
    return headings


def _text_between(text: str, start: int, end: int) -> str:
    """Return the text without its last line end; nothing where it is blank."""
    part = text[start:end]
    if not part.strip():
        return ""
    return part.removesuffix("\n").removesuffix("\r") if part.endswith("\n") else part


def _read(raw: _RawBlock, kinds: Mapping[str, Kind]) -> TaskBlock:
    name = kind_named(raw.heading.kind, kinds)
    if name is None:
        raise InvalidValue(f"there is no such kind of block; there are {', '.join(usable_kinds(kinds))}")
    return read_body(name, kinds[name], raw.body)


def _add_wait(seconds: float, block: TaskBlock) -> float:
    total = seconds + (block.seconds if isinstance(block, Wait) else 0)
    if total > LONGEST_WAIT:
        raise InvalidValue(f"with the waits before it, it comes to more than {LONGEST_WAIT} seconds")
    return total


# Headings. Models miss the form a little: up to three blanks before it, a byte order mark, none or several blanks,
# no-break spaces, more hashes and bold headings are accepted. Four blanks make it code. A misspelt kind is reported to
# the model as a problem; a heading of any other kind is text.


def heading_at(text: str, start: int, kinds: Collection[str]) -> Heading | None:
    """Return the heading on the line that begins at *start*, if it names or misspells one of *kinds*."""
    found = _HEADING.match(text, start)
    if found is None:
        return None
    kind = found["kind"].strip()
    if kind_named(kind, kinds) is None and not similar_kinds(kind, kinds):
        return None
    return Heading(start=start, end=found.end(), kind=kind, id=found["id"])


def may_become_heading(line: str) -> bool:
    """Return whether the start of a line, up to the end of its kind, may be that of a heading."""
    return _HEADING_START.fullmatch(line) is not None


def heading_line(kind: str, number: str | None, to: str | None = None) -> str:
    """Return the heading as a line of text."""
    return f"# «{kind}»" + (f" {number}" if number else "") + (f" to {to}" if to else "")


def block_text(block: TaskBlock) -> str:
    """Return a block as a model writes it: its heading, and its body below."""
    body = write_body(block)
    return heading_line(kind_of(block), body.id, body.to) + (f"\n{body.text}" if body.text else "")


def kind_named(kind: str, kinds: Collection[str]) -> str | None:
    """Return the one of *kinds* with this name. Case and full-width letters do not matter."""
    return kind if kind in kinds else _kinds_by_folded_name(tuple(kinds)).get(_fold(kind))


def similar_kinds(kind: str, kinds: Collection[str]) -> tuple[str, ...]:
    """Return those of *kinds* that *kind* may be a misspelling of.

    The two differ in at most two letters, where two swapped letters count as one, and in less than half of the letters:
    a short word with two other letters is another word.
    """
    return _similar(_fold(kind), tuple(kinds))


@lru_cache(maxsize=4096)
def _similar(folded: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in kinds if _is_similar(folded, _fold(name)))


@lru_cache(maxsize=64)
def _kinds_by_folded_name(kinds: tuple[str, ...]) -> dict[str, str]:
    return {_fold(name): name for name in reversed(kinds)}


def _is_similar(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > _MOST_WRONG:
        return False
    wrong = _edit_distance(one, other)
    return 0 < wrong <= _MOST_WRONG and 2 * wrong < max(len(one), len(other))


def _edit_distance(one: str, other: str) -> int:
    """Count the insertions, deletions, replacements and swaps of neighbours that make *other* of *one*."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[j] = min(row[j], earlier[j - 2] + 1)
    return row[-1]


def _fold(kind: str) -> str:
    return unicodedata.normalize("NFKC", kind).casefold()


THOUGHT_TAGS = ("think", "thinking", "thought")
MOST_TAG_BLANKS = 16  # within a tag, before its end
MOST_UNSURE = 4096  # characters that wait for the end of a thought that seemed to hold another

_LABELS = ("markdown", "md")
_LINE_BLANK = " \t\r"
_THOUGHT_START = re.compile(
    rf"[ \t\r\n\ufeff]*+<({'|'.join(THOUGHT_TAGS)})[ \t]{{0,{MOST_TAG_BLANKS}}}>", re.ASCII | re.IGNORECASE
)
_BLANK_LINES = re.compile(r"(?:[ \t\r\ufeff]*+\n)*+")


class ThoughtSkipper:
    """Finds the end of a thought, `<think> … </think>`, in a text that comes in chunks.

    Thoughts nest, so tags of the same name are counted. But a thought that only mentions its own tag seems to hold
    another one. Where no end comes for `MOST_UNSURE` characters, the last end tag was that of the thought.
    """

    def __init__(self, name: str) -> None:
        self._tags = re.compile(rf"<(/?){name}[ \t]{{0,{MOST_TAG_BLANKS}}}>", re.ASCII | re.IGNORECASE)
        self._longest_tag = len(name) + MOST_TAG_BLANKS + 3
        self._depth = 1
        self._has_end = False  # an end tag was read
        self._seen = 0  # characters read after those that were skipped

    def skip(self, text: str, at: int, *, ended: bool) -> tuple[int, bool]:
        """Return up to where *text* can be skipped, and whether the thought ends there."""
        seen = at + self._seen
        for tag in self._tags.finditer(text, seen):
            if self._has_end and tag.end() - at > MOST_UNSURE:
                return at, True
            seen = tag.end()
            self._depth += -1 if tag[1] else 1
            if tag[1]:
                at, self._has_end = seen, True
            if not self._depth:
                return at, True
        seen = max(seen, len(text) - self._longest_tag)
        if not self._has_end:
            return seen, False
        self._seen = seen - at
        return at, ended or len(text) - at >= MOST_UNSURE


class OuterFence(Struct, frozen=True, kw_only=True):
    """A code fence around a whole text."""

    start: int  # of the text inside
    end: int
    labelled: bool  # as Markdown; else it may be any code


def skip_thoughts(text: str) -> int:
    """Return where the text after the thoughts begins; its end where a thought never ends."""
    end = 0
    while tag := _THOUGHT_START.match(text, end):
        end, is_over = ThoughtSkipper(tag[1].lower()).skip(text, tag.end(), ended=True)
        if not is_over:
            return len(text)
    blank = _BLANK_LINES.match(text, end) if end else None
    return blank.end() if blank else 0


def outer_fence(text: str, start: int) -> OuterFence | None:
    """Return the fence that holds all from *start* on. Other fences may open and close in it."""
    lines = text[start:].split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip(_LINE_BLANK)]
    if len(filled) < 2:
        return None
    first, last = filled[0], filled[-1]
    fence = _plain_fence(lines[first])
    if fence is None or not _closes_last(fence, lines[first + 1 : last + 1]):
        return None
    begin = start + sum(map(len, lines[: first + 1])) + first + 1
    length = sum(map(len, lines[first + 1 : last])) + last - first - 1
    return OuterFence(start=begin, end=begin + length, labelled=_label(fence, lines[first]) != "")


def may_be_outer_fence(text: str, kinds: Collection[str]) -> bool | None:
    """Return whether a text with this beginning may be a fence around blocks of *kinds*; None if not known yet."""
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip(_LINE_BLANK)]
    if not filled or (len(lines) == filled[0] + 1 and lines[-1].lstrip(_LINE_BLANK)[0] in "`~"):
        return None
    fence = _plain_fence(lines[filled[0]])
    if fence is None:
        return False
    if _label(fence, lines[filled[0]]):
        return True
    if len(filled) < 2 or len(lines) == filled[1] + 1:
        return None
    first = lines[filled[1]]
    return heading_at(f"{first}\n", 0, kinds) is not None or _THOUGHT_START.match(first) is not None


def _plain_fence(line: str) -> Fence | None:
    """Return the fence that a line opens, if it is neither indented, quoted nor labelled as another language."""
    fence = opening_fence(line.rstrip("\r"))
    plain = fence is not None and fence == Fence(run=fence.run) and _label(fence, line) in ("", *_LABELS)
    return fence if plain else None


def _label(fence: Fence, line: str) -> str:
    return line.strip().removeprefix(fence.run).strip().lower()


def _closes_last(fence: Fence, lines: list[str]) -> bool:
    """Return whether the last of *lines* is the first that closes the fence."""
    inner = Fences()
    for number, line in enumerate(lines, start=1):
        if not inner.covers(line, 0, ended=True) and is_closing_fence(fence, line.rstrip("\r")):
            return number == len(lines)
        inner.add_line(line)
    return False
