"""The Markdown parser: CommonMark with tables and strikethrough, bounded so that no text takes long. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_block.table import table as table_rule
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_DEEPEST = 16  # levels; a list is two. Text that is nested deeper is a paragraph with its markers as words.
_LONGEST = 4096  # characters of a paragraph that are parsed at once: some of the rules take quadratic time
_ESCAPE_AT_END = re.compile(r"(?<!\\)(?:\\\\)*+(?P<escape>\\|&#?\w{0,32})\Z")  # or the beginning of one


def block_tokens(source: str) -> list[Token]:
    """Parse the blocks. The text in them is not parsed yet: see `inline_tokens`."""
    return _PARSER.parse(source)


def inline_tokens(content: str) -> list[Token]:
    """Parse the text of one block."""
    tokens: list[Token] = []
    for piece in _pieces(content):
        tokens += _PARSER.inline.parse(piece, _PARSER, {}, [])
    return tokens


def _pieces(content: str) -> Iterator[str]:
    start = 0
    while len(content) - start > _LONGEST:
        end = max(content.rfind("\n", start, start + _LONGEST), content.rfind(" ", start, start + _LONGEST)) + 1
        end = end or start + _whole_escapes(content[start : start + _LONGEST])
        yield content[start:end]
        start = end
    yield content[start:]


def _whole_escapes(piece: str) -> int:
    """Return where to end *piece*, so that it does not end within an escaped character: `\\*`, or `&#97;`."""
    found = _ESCAPE_AT_END.search(piece)
    return found.start("escape") if found else len(piece)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Make one paragraph of what is nested too deeply. The parser itself would drop it."""
    if state.level < _DEEPEST:
        return False
    if silent:
        return True
    line = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.line = line
    state.push("paragraph_open", "p", 1).map = [start, line]
    state.push("inline", "", 0).content = state.getLines(start, line, state.blkIndent, False).strip()
    state.push("paragraph_close", "p", -1)
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Make one token of a table, with all cells in it. The rule of the parser drops those that the head has not."""
    before = len(state.tokens)
    if not table_rule(state, start, end, silent):
        return False
    if silent:
        return True
    alignments = [
        str(token.attrs.get("style", "")).removeprefix("text-align:")
        for token in state.tokens[before:]
        if token.type == "th_open"
    ]
    del state.tokens[before:]
    lines = [start, *range(start + 2, state.line)]
    token = state.push("table", "", 0)
    token.map = [start, state.line]
    token.meta = {"rows": [_cells(getLine(state, line)) for line in lines], "alignments": alignments}
    return True


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in escapedSplit(line.strip())]
    first = 1 if cells and not cells[0] else 0
    last = len(cells) - 1 if len(cells) > first and not cells[-1] else len(cells)
    return cells[first:last]


def _product(state: StateInline, silent: bool) -> bool:
    """Leave the asterisks of `2*3*4` alone, which are emphasis by the rules."""
    at, source = state.pos, state.src
    if source[at] != "*" or not 0 < at < len(source) - 1:
        return False
    around = source[at - 1] + source[at + 1]
    if not (around.isascii() and around.isalnum()):
        return False
    if not silent:
        state.append_pending("*")
    state.pos += 1
    return True


def _unchanged(url: str) -> str:
    return url


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A definition of a link would be needed by other pieces of the text, and its words would not be shown.
    parser.disable(["reference", "html_block", "html_inline", "inline", "text_join"])
    parser.block.ruler.before("table", "too_deep", _too_deep)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("emphasis", "product", _product)
    unchanged: Any = _unchanged
    parser.normalizeLink = unchanged  # type: ignore[method-assign]
    parser.normalizeLinkText = unchanged  # type: ignore[method-assign]
    return parser


_PARSER = _parser()
