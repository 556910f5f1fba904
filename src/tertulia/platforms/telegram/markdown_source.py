"""Markdown that is rendered to a given text: rendering the other way round. Pure."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.platforms.telegram.formatted_text import Span

_MARKS = {"bold": "**", "italic": "_", "strikethrough": "~~"}
_ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_SPECIAL = re.compile(r"[\\`*_\[\]<~|&]")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_LINE_START = re.compile(r"(?P<number>[0-9]{1,9})(?=[.)])|(?=[-+#>=:])")


class _Piece(Struct, frozen=True, kw_only=True):
    """A piece of a paragraph: text to escape, a mark of a style, or other markup."""

    kind: Literal["text", "opening", "closing", "markup"]
    text: str
    within: bool = False  # a style or a link, which cannot have paragraphs


_LINK_OPENING = _Piece(kind="markup", text="[")  # after an exclamation mark it would open an image


def markdown_source(text: str, spans: Sequence[Span]) -> str:
    """Return Markdown that is rendered to *text* with *spans*; without spans, to exactly *text*.

    Code blocks and quotes must be whole lines. A style that the rules of emphasis do not allow where it stands is made
    possible by character references beside it: `a**(b)**c` is no emphasis, but `&#97;**(b)**&#99;` is.
    """
    written: list[str] = []
    for start, end, block in _blocks(text, spans):
        between = 0
        if written:
            between = 2 if written[-1].startswith(">") else max(1, min(2, start - len(text[:start].rstrip("\n"))))
        inner = [
            replace(span, start=span.start - start, end=span.end - start)
            for span in spans
            if start <= span.start and span.end <= end and span is not block
        ]
        body = text[start:end]
        if block is None:
            source = _paragraphs(body, inner)
        elif block.type == "pre":
            source = _fenced(body, block.value or "")
        else:
            source = "\n".join(f"> {line}" if line else ">" for line in markdown_source(body, inner).split("\n"))
        written += ["\n" * between, source]
    return "".join(written)


def _blocks(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int, Span | None]]:
    """Divide a text into code blocks, quotes, and what is between them."""
    at = 0
    outermost: list[Span] = []
    for span in spans:
        if span.type in ("pre", "blockquote") and (not outermost or span.start >= outermost[-1].end):
            outermost.append(span)
    for span in outermost:
        yield from _between(text, at, span.start)
        yield span.start, span.end, span
        at = span.end
    yield from _between(text, at, len(text))


def _between(text: str, start: int, end: int) -> Iterator[tuple[int, int, None]]:
    body = text[start:end]
    if body.strip():
        words = _BLANK_LINES.sub("", body)
        yield start + len(body) - len(words), start + len(body.rstrip("\n")), None


def _fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{code}\n{fence}"


def _paragraphs(text: str, spans: Sequence[Span]) -> str:
    pieces = list(_pieces(text, spans))
    first, last = _references(pieces)
    written: list[str] = []
    for number, piece in enumerate(pieces):
        if piece.kind != "text":
            written.append(piece.text)
            continue
        words = piece.text
        head = f"&#{ord(words[0])};" if number in first else ""
        words = words[1:] if head else words
        tail = f"&#{ord(words[-1])};" if number in last and words else ""
        if words.endswith("!") and pieces[number + 1 : number + 2] == [_LINK_OPENING]:
            tail = "\\!"
        words = words[:-1] if tail else words
        line_start = not head and (not written or written[-1].endswith("\n"))
        line_end = not tail and number == len(pieces) - 1
        escaped = _escaped(words, line_start=line_start, line_end=line_end)
        spared = 0 if piece.within else 2  # line breaks that make paragraphs
        written += [head, re.sub(r"\n\n+", partial(_line_breaks, spared=spared), escaped), tail]
    return "".join(written)


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[_Piece]:
    """Divide paragraphs where spans begin and end. Spans must be nested."""
    around: list[Span] = []
    coming = list(reversed(spans))
    at = 0
    while at < len(text) or around:
        while around and around[-1].end <= at:
            yield _closing(around.pop())
        while coming and coming[-1].start <= at:
            span = coming.pop()
            if span.type == "code":
                yield _Piece(kind="markup", text=_code(text[span.start : span.end]))
                at = span.end
            else:
                around.append(span)
                yield _Piece(kind="opening", text=_MARKS[span.type]) if span.type in _MARKS else _LINK_OPENING
        if around and around[-1].end <= at:
            continue
        end = min([len(text), *(span.start for span in coming[-1:]), *(span.end for span in around[-1:])])
        if at < end:
            yield _Piece(kind="text", text=text[at:end], within=bool(around))
        at = end


def _closing(span: Span) -> _Piece:
    if span.type in _MARKS:
        return _Piece(kind="closing", text=_MARKS[span.type])
    url = re.sub(r"[\\<>&]", r"\\\g<0>", span.value or "").replace("\n", "&#10;")
    return _Piece(kind="markup", text=f"](<{url}>)")


def _code(code: str) -> str:
    runs = {len(run) for run in re.findall("`+", code)}
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    padded = code[0] == "`" or code[-1] == "`" or (code[0] == code[-1] == " ")
    return f"{ticks} {code} {ticks}" if padded else f"{ticks}{code}{ticks}"


def _references(pieces: Sequence[_Piece]) -> tuple[set[int], set[int]]:
    """Return the texts whose first, and whose last character must be a reference for the marks beside it to count.

    A reference begins and ends with punctuation, which allows a mark to open and to close. Between two letters a mark
    can do so anyway, but for the underscore.
    """
    first: set[int] = set()
    last: set[int] = set()
    number = 0
    while number < len(pieces):
        start = number
        while number < len(pieces) and pieces[number].kind in ("opening", "closing"):
            number += 1
        marks = pieces[start:number]
        number += not marks
        if not marks:
            continue
        before = pieces[start - 1].text[-1] if start else " "
        after = pieces[number].text[0] if number < len(pieces) else " "
        kinds = {mark.kind for mark in marks}
        if len(marks) == 1 and marks[0].text != "_" and (after if kinds == {"opening"} else before).isalnum():
            continue
        if "opening" in kinds and not (before.isspace() or before in _ASCII_PUNCTUATION):
            last.add(start - 1)
        if "closing" in kinds and not (after.isspace() or after in _ASCII_PUNCTUATION):
            first.add(number)
    return first, last


def _escaped(text: str, *, line_start: bool, line_end: bool) -> str:
    lines = text.split("\n")
    written: list[str] = []
    for number, line in enumerate(lines):
        starts = line_start if number == 0 else True
        ends = line_end if number == len(lines) - 1 else True
        head = tail = ""
        if starts and line[:1].isspace():
            head, line = f"&#{ord(line[0])};", line[1:]
        if ends and line[-1:].isspace():
            tail, line = f"&#{ord(line[-1])};", line[:-1]
        line = _SPECIAL.sub(r"\\\g<0>", line)
        if starts and not head:
            line = _LINE_START.sub(r"\g<number>\\", line, count=1) if _LINE_START.match(line) else line
        written.append(f"{head}{line}{tail}")
    return "\n".join(written)


def _line_breaks(breaks: re.Match[str], *, spared: int) -> str:
    return "\n" * spared + "&#10;" * (len(breaks[0]) - spared)
