"""A Markdown text in pieces, each of which fits into one message. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from wcwidth import grapheme_boundary_before

from tertulia.platforms.telegram.formatted_text import Block, Rendering, Span, is_blank, normal_spans
from tertulia.platforms.telegram.markdown import render_spans
from tertulia.platforms.telegram.markdown_source import markdown_source

_MOST_LINKS = 100  # Telegram takes no more entities; without a link, its URL would be lost
_BREAKS = (
    re.compile(r"\n\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?…。！？][\"')\]»”’]*(?=\s)|[。！？]"),
    re.compile(r"(?=\s)"),
)


def split_markdown(text: str, limit: int = 4096) -> list[str]:
    """Split *text*, which is Markdown, into pieces that are rendered to at most *limit* characters each.

    What the pieces are rendered to is the rendered text in order, but for white space where it is split. Pieces are
    whole blocks if possible, then items of lists; they are as they were written. A block that is too long is split by
    lines, sentences, words, in this order, and written anew: code blocks, quotes, links and styles that are split are
    closed, and opened again in the next piece. A blank text has no pieces.
    """
    whole = render_spans(text)
    if is_blank(whole.text):
        return []
    if len(whole.text) <= limit and sum(span.type == "text_link" for span in whole.spans) <= _MOST_LINKS:
        return [text]
    return list(_Splitter(text, whole, limit).pieces())


class _Splitter:
    """Splits a text. Places are counted in characters of the rendered text."""

    def __init__(self, source: str, whole: Rendering, limit: int) -> None:
        self._lines = re.split(r"\r\n?|\n", source)
        self._text = whole.text
        self._limit = limit
        self._blocks = whole.blocks or (Block(line=0, start=0, kind="block"),)
        self._links = [span for span in whole.spans if span.type == "text_link"]
        self._link_starts = [span.start for span in self._links]
        self._coming = list(reversed(whole.spans))
        self._current: list[Span] = []

    def pieces(self) -> Iterator[str]:
        """Yield the pieces: as many blocks as fit, and before them the rest of a block that was split."""
        start = number = 0
        rest = ""  # the source of the text from `start` to the block `number`
        while number < len(self._blocks):
            end = self._last_fitting(start, number)
            if end > number:
                source = self._source(number, end)
                yield from self._checked(f"{rest}\n\n{source}" if rest else source, start, self._start(end))
                start, number, rest = self._start(end), end, ""
                continue
            if rest:
                yield rest
                start, rest = self._start(number), ""
                continue
            *complete, (start, rest) = [*self._parts(start, self._start(number + 1))] or [(start, "")]
            yield from (source for _, source in complete)
            number += 1
        if rest:
            yield rest

    # blocks

    def _start(self, number: int) -> int:
        return self._blocks[number].start if number < len(self._blocks) else len(self._text)

    def _source(self, first: int, end: int) -> str:
        last_line = self._blocks[end].line if end < len(self._blocks) else len(self._lines)
        return "\n".join(self._lines[self._blocks[first].line : last_line]).strip("\n")

    def _last_fitting(self, start: int, number: int) -> int:
        """Return the block before which to split: the last that fits, rather no item and not behind a heading."""
        end = number
        while end < len(self._blocks) and self._fits(start, self._start(end + 1)):
            end += 1
        if end == len(self._blocks):
            return end
        outside = end
        while outside > number and self._blocks[outside].kind == "item":
            outside -= 1
        if outside > number and self._start(outside) - start > self._limit // 2:
            end = outside
        before = end
        while before > number and self._blocks[before - 1].kind == "heading":
            before -= 1
        return before if self._start(before) - start > self._limit // 2 else end

    def _fits(self, start: int, end: int) -> bool:
        links = bisect_left(self._link_starts, end) - bisect_left(self._link_starts, start)
        return links <= _MOST_LINKS and (
            end - start <= self._limit or len(self._text[start:end].strip("\n").rstrip()) <= self._limit
        )

    def _checked(self, source: str, start: int, end: int) -> Iterator[str]:
        """Yield *source* if it is rendered to the text from *start* to *end*; otherwise, that text written anew."""
        if self._is_source(source, self._text[start:end]):
            yield source
        else:
            yield from (part for _, part in self._parts(start, end))

    def _is_source(self, source: str, text: str) -> bool:
        rendered = render_spans(source).text
        return len(rendered) <= self._limit and rendered.split() == text.split() and not is_blank(text)

    # parts of a block

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Yield the text from *start* to *end* in parts that fit, each as the place where it begins and Markdown."""
        while self._text[start:end].strip():
            spans = self._spans(start)
            code = any(span.type == "pre" and span.start <= start for span in spans)
            blanks = re.compile(r"(?:[^\S\n]*\n)*" if code else r"\s*").match(self._text, start, end)
            assert blanks is not None  # noqa: S101 - both can match nothing
            start = blanks.end()
            stop = end if self._fits(start, end) else self._cut(start)
            text = self._text[start:stop].rstrip()
            while not is_blank(text):
                if (source := self._written(text, start)) is not None:
                    yield start, source
                    break
                stop = start + max(1, (stop - start) // 2)
                text = self._text[start:stop].rstrip()
            start = stop

    def _spans(self, start: int) -> list[Span]:
        """Return the spans that end after *start* and begin before a part from there ends. Starts only grow."""
        while self._coming and self._coming[-1].start < start + self._limit:
            self._current.append(self._coming.pop())
        self._current = [span for span in self._current if span.end > start]
        return self._current

    def _written(self, text: str, start: int) -> str | None:
        """Return Markdown that is rendered to *text*, or at least to no more than fits; None if there is none."""
        spans = normal_spans(text, start, self._spans(start))
        for kept in (spans, [span for span in spans if span.type in ("pre", "blockquote")]):
            source = markdown_source(text, kept)
            if self._is_source(source, text):
                return source
        source = markdown_source(text, ())
        return source if len(render_spans(source).text) <= self._limit else None

    def _cut(self, start: int) -> int:
        """Return where to end a part from *start*: after a paragraph, line, sentence or word of its second half."""
        end = min(start + self._limit, len(self._text))
        links = bisect_left(self._link_starts, start)
        if links + _MOST_LINKS < len(self._links):
            end = min(end, max(self._links[links + _MOST_LINKS].start, start + 1))
        for least in (start + (end - start) // 2, start + 1):
            for pattern in _BREAKS:
                places = [found.end() for found in pattern.finditer(self._text, least, end + 1)]
                for place in reversed(places):
                    if start < place <= end and self._link_around(place) is None:
                        return place
        link = self._link_around(end)
        if link is not None and link.start > start:
            return link.start
        return start + (grapheme_boundary_before(self._text[start : end + 1], end + 1 - start) or end - start)

    def _link_around(self, place: int) -> Span | None:
        number = bisect_left(self._link_starts, place) - 1
        return self._links[number] if number >= 0 and place < self._links[number].end else None
