"""Text tree: Markdown as nested elements, for a page that draws them and never has markup. Pure.

It is parsed as for Telegram. No word is lost: what cannot be shown as it is meant stays as words.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from markdown_it.token import Token
from msgspec import Struct

from tertulia.platforms.telegram.markdown_parser import block_tokens, inline_tokens

Tag = Literal[
    "p", "heading", "ul", "ol", "li", "blockquote", "pre", "table", "tr", "th", "td", "hr",
    "strong", "em", "s", "code", "a", "br",
]  # fmt: skip

_LINK = re.compile(r"https?://[^\s/?#@]+[^\s]*|mailto:[^\s@]+@[^\s@]+", re.I)
_BARE_LINK = re.compile(r"(https?://[^\s<>\"«»“”]*[^\s<>\"«»“”.,:;!?'’)\]}*_~])", re.I)
_TAGS: dict[str, Tag] = {
    "paragraph_open": "p",
    "heading_open": "heading",
    "bullet_list_open": "ul",
    "ordered_list_open": "ol",
    "list_item_open": "li",
    "blockquote_open": "blockquote",
    "strong_open": "strong",
    "em_open": "em",
    "s_open": "s",
}


class Element(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An element of a text."""

    tag: Tag
    inside: tuple["str | Element", ...] = ()
    href: str = ""  # of a link: http, https or mailto
    start: int = 1  # the first number of a list
    language: str = ""  # of a code block, as it was written


Inside = str | Element


def text_tree(text: str) -> tuple[Inside, ...]:
    """Return *text*, which is Markdown, as elements. A text of nothing but markup is a paragraph as it is written."""
    found = tuple(_blocks(iter(block_tokens(text))))
    return found if any(map(_shows, found)) else (Element(tag="p", inside=(text,)),)


def _shows(found: Inside) -> bool:
    if isinstance(found, str):
        return bool(found.strip())
    return found.tag == "hr" or any(map(_shows, found.inside))


def _blocks(tokens: Iterator[Token]) -> Iterator[Inside]:
    """Yield the elements up to the end of the block that *tokens* are in."""
    for token in tokens:
        if token.nesting < 0:
            return
        match token.type:
            case "inline":
                yield from _joined(_words(iter(inline_tokens(token.content))))
            case "fence" | "code_block":
                yield Element(tag="pre", inside=(token.content.rstrip("\n"),), language=token.info.strip())
            case "table":
                yield Element(tag="table", inside=tuple(_rows(token.meta["rows"])))
            case "hr":
                yield Element(tag="hr")
            case "paragraph_open" if token.hidden:  # of an item in a list without blank lines
                yield from tuple(_blocks(tokens))
            case _:
                start = int(token.attrs.get("start", 1))
                yield Element(tag=_TAGS[token.type], inside=tuple(_blocks(tokens)), start=start)


def _rows(rows: Iterable[list[str]]) -> Iterator[Element]:
    tag: Tag = "th"
    for row in rows:
        cells = (Element(tag=tag, inside=_joined(_words(iter(inline_tokens(cell))))) for cell in row)
        yield Element(tag="tr", inside=tuple(cells))
        tag = "td"


def _words(tokens: Iterator[Token], *, linking: bool = True) -> Iterator[Inside]:
    """Yield the elements up to the end of the style or link that *tokens* are in."""
    for token in tokens:
        if token.nesting < 0:
            return
        match token.type:
            case "text" | "text_special":
                yield from _with_links(token.content) if linking else (token.content,)
            case "softbreak" | "hardbreak":
                yield Element(tag="br")
            case "code_inline":
                yield Element(tag="code", inside=(token.content,))
            case "link_open":
                yield from _link(token, _joined(_words(tokens, linking=False)), linking=linking)
            case "image":
                yield from _link(token, _joined(_words(iter(token.children or ()), linking=False)), linking=linking)
            case _:
                yield Element(tag=_TAGS[token.type], inside=_joined(_words(tokens, linking=linking)))


def _link(token: Token, label: tuple[Inside, ...], *, linking: bool) -> Iterator[Inside]:
    """Yield a link; its label with the address behind it if nobody should follow that."""
    url = str(token.attrs.get("href") or token.attrs.get("src") or "").strip()
    label = label if any(map(_shows, label)) else (url,)
    if linking and _LINK.fullmatch(url):
        yield Element(tag="a", inside=label, href=url)
    else:
        yield from label
        if label != (url,):
            yield f" ({url})"
    if title := token.attrs.get("title"):
        yield f" ({title})"


def _with_links(words: str) -> Iterator[Inside]:
    """Yield words and the addresses among them, which are links too."""
    for at, piece in enumerate(_BARE_LINK.split(words)):
        if at % 2 and _LINK.fullmatch(piece):
            yield Element(tag="a", inside=(piece,), href=piece)
        elif piece:
            yield piece


def _joined(found: Iterable[Inside]) -> tuple[Inside, ...]:
    """Return elements with the words between them as one text each."""
    joined: list[Inside] = []
    for one in found:
        if isinstance(one, str) and joined and isinstance(joined[-1], str):
            joined[-1] += one
        else:
            joined.append(one)
    return tuple(joined)
