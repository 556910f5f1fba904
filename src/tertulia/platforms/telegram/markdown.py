"""Markdown as Telegram shows it: a text with entities. Pure."""

import re
from collections.abc import Iterable

from markdown_it.token import Token
from msgspec.structs import replace
from wcwidth import wcswidth

from tertulia.platforms.telegram.formatted_text import (
    Block,
    BlockKind,
    Entity,
    EntityType,
    FormattedText,
    Rendering,
    Span,
    clean,
    formatted_text,
    is_blank,
    normal_spans,
)
from tertulia.platforms.telegram.markdown_parser import block_tokens, inline_tokens

__all__ = ["Entity", "FormattedText", "render"]

_STYLES: dict[str, EntityType] = {"strong_open": "bold", "em_open": "italic", "s_open": "strikethrough"}
_WIDEST_COLUMN = 40
_WIDEST_INDENT = 12  # for each line of a deep list the indents would be longer than the words
_LANGUAGE = re.compile(r"[\w+#./-]{1,40}")
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_LINK = re.compile(
    r"https?://[\w-]+(?:\.[\w-]+)+(?::(?P<port>[0-9]{1,5}))?(?:[/?#].*)?|tg://[a-z0-9-]+(?:[/?].*)?", re.I | re.S
)


def render(text: str) -> FormattedText:
    """Return *text*, which is Markdown, as Telegram takes it.

    No word is lost: what is no markup, or cannot be shown as such, stays as it is written. A text of nothing but markup
    is shown as it is. Only a blank text has an empty result.
    """
    return formatted_text(render_spans(text))


def render_spans(text: str) -> Rendering:
    """Return *text* with all of its entities, however many there are, and the places where it can be split."""
    writer = _Writer(text)
    writer.write_blocks(block_tokens(text))
    rendering = writer.rendering()
    return rendering if not is_blank(rendering.text) else Rendering(text=clean(text).strip())


def is_link(url: str) -> bool:
    """Return whether Telegram takes *url* for a link. For a mail address it makes a wrong one of it."""
    found = _LINK.fullmatch(url)
    return found is not None and 0 < int(found["port"] or 80) < 65536


class _Writer:
    """Writes the tokens of a text one after the other. Places are counted in characters."""

    def __init__(self, source: str = "", *, linking: bool = True) -> None:
        self._lines = re.split(r"\r\n?|\n", source)
        self._linking = linking  # false: in a table, which can have none
        self._written: list[str] = []
        self._at = 0
        self._breaks = 0  # line breaks to write before the next words
        self._tail = 0  # line breaks that were written after the last words
        self._spans: list[Span] = []
        self._blocks: list[Block] = []
        self._first = True  # whether the next block is the first one in its container
        self._indents: list[str] = []  # of the lists and inner quotes around
        self._numbers: list[int | None] = []  # the next number of each list around; None: it has bullets
        self._marker = -1  # where `_written` ends after the marker of an item
        self._quotes: list[tuple[int, list[str]]] = []  # where each quote around begins; the indents outside of it
        self._styles: dict[EntityType, list[int]] = {"bold": [], "italic": [], "strikethrough": []}
        self._links: list[tuple[int, int, Token]] = []  # where each link around begins, in characters and in `_written`

    def rendering(self) -> Rendering:
        text = "".join(self._written)
        start = len(text) - len(text.lstrip())
        start = min([start, *(span.start for span in self._spans if span.type == "pre")])
        text = text[start:].rstrip()
        return Rendering(
            text=text,
            spans=normal_spans(text, start, self._spans),
            blocks=tuple(replace(block, start=max(block.start - start, 0)) for block in self._blocks),
        )

    def write_blocks(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if token.map is not None and token.type != "inline":
                self._begin_block(token, line=token.map[0])
            match token.type:
                case "inline":
                    self._write_inline(token.content)
                case "heading_open":
                    self._begin_style("bold")
                case "heading_close":
                    self._end_style("bold")
                case "fence" | "code_block":
                    self._write_code(token.content, token.info)
                case "table":
                    self._write_pre(_table(token.meta["rows"], token.meta["alignments"]))
                case "hr":
                    self._write("———")
                case "bullet_list_open" | "ordered_list_open":
                    ordered = token.type == "ordered_list_open"
                    self._numbers.append(int(token.attrs.get("start", 1)) if ordered else None)
                    self._first = True
                case "bullet_list_close" | "ordered_list_close":
                    self._numbers.pop()
                case "list_item_open":
                    self._begin_item(token.markup)
                case "list_item_close":
                    self._indents.pop()
                    self._first = False
                case "blockquote_open":
                    self._begin_quote()
                case "blockquote_close":
                    self._end_quote()

    # blocks

    def _begin_block(self, token: Token, *, line: int) -> None:
        if token.level == 0 and not token.type.endswith("list_open"):
            kind: BlockKind = "heading" if token.type == "heading_open" else "block"
            self._blocks.append(Block(line=line, start=self._at, kind=kind))
        elif token.level == 1 and token.type == "list_item_open":
            self._blocks.append(Block(line=line, start=self._at, kind="block" if self._first else "item"))
        if not self._first:
            follows_blank_line = not self._lines[line - 1].strip(" \t>")
            self._breaks = max(self._breaks, 2 if follows_blank_line else 1)
        self._first = False

    def _begin_item(self, markup: str) -> None:
        number = self._numbers[-1]
        marker = "• " if number is None else f"{number}{markup} "
        self._numbers[-1] = None if number is None else number + 1
        self._write(marker)
        self._marker = len(self._written)
        self._indents.append(" " * len(marker))
        self._first = True

    def _begin_quote(self) -> None:
        """Begin a quote. Telegram has no quotes in quotes: the lines of inner ones begin with a mark."""
        if self._quotes:
            self._write("> ")
            self._quotes.append((self._at, self._indents))
            self._indents = [*self._indents, "> "]
        else:
            self._begin_line()
            self._quotes.append((self._at, self._indents))
            self._indents = []
        self._first = True

    def _end_quote(self) -> None:
        start, self._indents = self._quotes.pop()
        if not self._quotes:
            self._spans.append(Span(type="blockquote", start=start, end=self._at))
        self._breaks = 2  # with fewer, what follows would belong to the quote
        self._first = False

    def _write_code(self, code: str, info: str) -> None:
        """Write a code block. Words behind its fence that are no language stay above it."""
        code = re.sub(r"\A(?:[ \t]*\n)+", "", code).rstrip().expandtabs(4)
        language, _, words = info.strip().partition(" ")
        if is_blank(code) or not _LANGUAGE.fullmatch(language):
            language, words = "", info.strip()
        if words:
            self._write(words)
            self._breaks = 1
        if not is_blank(code):
            self._write_pre(code, language=language or None)

    def _write_pre(self, code: str, *, language: str | None = None) -> None:
        self._begin_line()
        start = self._at
        self._append(clean(code))
        self._spans.append(Span(type="pre", start=start, end=self._at, value=language))
        self._breaks = 1

    # words

    def write_cell(self, content: str) -> None:
        self._write_tokens(inline_tokens(content))

    def _write(self, words: str) -> None:
        if self._breaks:
            self._begin_line()
            self._append("".join(self._indents)[:_WIDEST_INDENT])
        self._append(clean(words))

    def _begin_line(self) -> None:
        """Write the line breaks that are due, at least one within a line."""
        breaks = max(self._breaks, 0 if self._tail else 1) - self._tail if self._at else 0
        self._breaks = 0
        if breaks > 0:
            tail = self._tail + breaks
            self._append("\n" * breaks)
            self._tail = tail

    def _append(self, text: str) -> None:
        if text:
            self._written.append(text)
            self._at += len(text)
            self._tail = 0

    def _write_inline(self, content: str) -> None:
        tasks = _TASK.match(content) if self._marker == len(self._written) else None
        if tasks is not None:
            content = content[tasks.end() :].lstrip()
            box = "☐ " if tasks[1] == " " else "☑ "
            if self._written[-1] == "• ":
                self._written[-1] = box
            else:
                self._write(box)
        self._write_tokens(inline_tokens(content))

    def _write_tokens(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            match token.type:
                case "text" | "text_special":
                    self._write(token.content)
                case "softbreak" | "hardbreak":
                    self._breaks = 1
                case "code_inline":
                    self._write_code_words(token.content)
                case "strong_open" | "em_open" | "s_open":
                    self._begin_style(_STYLES[token.type])
                case "strong_close" | "em_close" | "s_close":
                    self._end_style(_STYLES[token.type.replace("close", "open")])
                case "link_open":
                    self._begin_link(token)
                case "link_close":
                    self._end_link()
                case "image":
                    self._begin_link(token)
                    self._write_tokens(token.children or [])
                    self._end_link()

    def _begin_style(self, type: EntityType) -> None:
        self._write("")
        self._styles[type].append(self._at)

    def _end_style(self, type: EntityType) -> None:
        start = self._styles[type].pop()
        if not self._styles[type]:
            self._spans.append(Span(type=type, start=start, end=self._at))

    def _write_code_words(self, code: str) -> None:
        """Write a code span. It can be in no link and in no style: those end before it and begin again after it."""
        self._write("")
        start = self._at
        if self._links:
            self._write(code)
            return
        for type, starts in self._styles.items():
            if starts:
                self._spans.append(Span(type=type, start=starts[0], end=start))
        self._write(code)
        self._spans.append(Span(type="code", start=start, end=self._at))
        for starts in self._styles.values():
            starts[:] = [self._at] * len(starts)

    def _begin_link(self, token: Token) -> None:
        self._write("")
        self._links.append((self._at, len(self._written), token))

    def _end_link(self) -> None:
        """Make a link of the words since it began, or more words if Telegram does not take its URL."""
        start, index, token = self._links.pop()
        label = "".join(self._written[index:]).strip()
        url = clean(str(token.attrs.get("href") or token.attrs.get("src") or "")).strip()
        if is_blank(label):
            label = url
            self._write(url)
        if self._linking and not self._links and is_link(url):
            self._spans.append(Span(type="text_link", start=start, end=self._at, value=url))
        elif url and label not in (url, url.removeprefix("mailto:")):
            self._write(f" ({url})")
        if title := token.attrs.get("title"):
            self._write(f" ({title})")


def _table(rows: list[list[str]], alignments: list[str]) -> str:
    """Lay a table out in columns, unless that needs much more room than its words."""
    cells = [[_plain(cell) for cell in row] for row in rows]
    columns = max(len(row) for row in cells)
    widths = [0] * columns
    for row in cells:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], min(_width(cell), _WIDEST_COLUMN))
    lines = [" | ".join(row) for row in cells]
    if sum(sum(widths[: len(row)]) for row in cells) <= 5 * sum(len(line) for line in lines) + 500:
        alignments = alignments + [""] * (columns - len(alignments))
        lines = [" | ".join(map(_aligned, row, widths, alignments)).rstrip() for row in cells]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def _plain(cell: str) -> str:
    writer = _Writer(linking=False)
    writer.write_cell(cell)
    return " ".join(writer.rendering().text.split("\n"))


def _aligned(cell: str, width: int, alignment: str) -> str:
    missing = max(width - _width(cell), 0)
    before = missing if alignment == "right" else missing // 2 if alignment == "center" else 0
    return " " * before + cell + " " * (missing - before)


def _width(cell: str) -> int:
    return max(wcswidth(cell), 0)
