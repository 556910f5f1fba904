"""A model's text as what it says and the task blocks it asks for, and back. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.markdown import Fences
from palaver.tasks import heading, wrapping
from palaver.tasks.kinds import KINDS, LONGEST_WAIT, Body, Kind, body_of, read, trimmed, usable
from palaver.tasks.task import Block, Send, Wait, kind_of

_WAIT = "wait"


class ParsedText(Struct, frozen=True, kw_only=True):
    """What a model's text comes to. Its words are not cleaned yet of what else must not reach people."""

    said: str = ""  # before the first heading
    blocks: tuple[Block, ...] = ()
    problems: tuple[str, ...] = ()  # a line for the model for each block that cannot be used
    skipped: int = 0  # how many blocks follow a wait that cannot be used: they would be early, and are left out

    @property
    def steps(self) -> tuple[Block, ...]:
        """All there is to do, with what was said as a plain send."""
        return (Send(text=self.said), *self.blocks) if self.said else self.blocks


class _Found(Struct, frozen=True, kw_only=True):
    start: int  # of the heading
    kind: str  # as it is written
    body: Body

    @property
    def line(self) -> str:
        return heading.heading_line(self.kind, self.body.id)

    def is_wait(self, kinds: Mapping[str, Kind]) -> bool:
        """Whether it is a wait, or may be one that is misspelt."""
        return heading.kind_named(self.kind, kinds) == _WAIT or _WAIT in heading.similar_kinds(self.kind, kinds)


def parse(text: str, *, kinds: Mapping[str, Kind] = KINDS) -> ParsedText:
    """What a model says and asks for in *text*, which must be its own: nobody else can make a task.

    What follows a wait that cannot be used is not among the blocks, as it would come early.
    """
    said, found = _found(text, kinds)
    blocks: list[Block] = []
    problems: list[str] = []
    waited: float = 0
    line = at = 0
    for number, one in enumerate(found, start=1):
        line, at = line + text.count("\n", at, one.start), one.start
        try:
            block = _read(one, kinds)
            waited = _waited(waited, block)
        except ValueError as error:
            problems.append(f"line {line + 1}, `{one.line}`: {' '.join(str(error).split())}")
            if one.is_wait(kinds):
                return ParsedText(
                    said=said, blocks=tuple(blocks), problems=tuple(problems), skipped=len(found) - number
                )
        else:
            blocks.append(block)
    return ParsedText(said=said, blocks=tuple(blocks), problems=tuple(problems))


def format_text(parsed: ParsedText, *, kinds: Mapping[str, Kind] = KINDS) -> str:
    """The text that is parsed as this again; refused where there is none, as with a heading in a text to send."""
    pieces = [f"{parsed.said}\n"] if parsed.said else []
    pieces += map(_written, parsed.blocks)
    text = "".join(pieces)
    if parse(text, kinds=kinds) != ParsedText(said=parsed.said, blocks=parsed.blocks):
        raise InvalidValue("these blocks cannot be written so that they are read again as they are")
    return text


def _found(text: str, kinds: Mapping[str, Kind]) -> tuple[str, list[_Found]]:
    start = wrapping.skip_thoughts(text)
    if text.find(heading.CLOSE, start) < 0:
        return _said(text, start, len(text)), []
    around = wrapping.outer_fence(text, start)
    if around is not None:
        inner = around.start + wrapping.skip_thoughts(text[around.start : around.end])
        said, found = _between(text, inner, around.end, kinds)
        if found and (around.labelled or not said):
            return said, found
    return _between(text, start, len(text), kinds)


def _between(text: str, start: int, end: int, kinds: Mapping[str, Kind]) -> tuple[str, list[_Found]]:
    """What is said there before the first heading, and the blocks."""
    headings = _headings(text[:end], start, kinds)
    ends = [found.start for found in headings[1:]] + [end]
    first = headings[0].start if headings else end
    blocks = [
        _Found(start=found.start, kind=found.kind, body=Body(text=trimmed(text[found.end : until]), id=found.id))
        for found, until in zip(headings, ends, strict=False)
    ]
    return _said(text, start, first), blocks


def _headings(text: str, start: int, kinds: Mapping[str, Kind]) -> list[heading.Heading]:
    """The headings from *start* on that are not code."""
    fences = Fences()
    headings = []
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        covered = fences.covers(text, start, ended=True)
        found = None if covered else heading.heading_at(text, start, kinds)
        if found:
            headings.append(found)
        fences.line(text[start:end])
        start = end
    return headings


def _said(text: str, start: int, end: int) -> str:
    said = text[start:end]
    if not said.strip():
        return ""
    return said.removesuffix("\n").removesuffix("\r") if said.endswith("\n") else said


def _read(found: _Found, kinds: Mapping[str, Kind]) -> Block:
    name = heading.kind_named(found.kind, kinds)
    if name is None:
        raise InvalidValue(f"there is no such kind of block; there are {', '.join(usable(kinds))}")
    return read(name, kinds[name], found.body)


def _waited(before: float, block: Block) -> float:
    waited = before + (block.seconds if isinstance(block, Wait) else 0)
    if waited > LONGEST_WAIT:
        raise InvalidValue(f"with the waits before it, it comes to more than {LONGEST_WAIT} seconds")
    return waited


def _written(block: Block) -> str:
    body = body_of(block)
    return f"{heading.heading_line(kind_of(block), body.id)}\n" + (f"{body.text}\n" if body.text else "")
