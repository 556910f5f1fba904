"""The texts that Telegram shows: words, and entities that say how parts of them look. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

EntityType = Literal["blockquote", "text_link", "pre", "code", "bold", "italic", "strikethrough"]

BlockKind = Literal["block", "heading", "item"]  # an item: but the first of its list

_ORDER: tuple[EntityType, ...] = ("blockquote", "text_link", "pre", "code", "bold", "italic", "strikethrough")
STYLES: tuple[EntityType, ...] = ("bold", "italic", "strikethrough")
_MOST_ENTITIES = 100  # Telegram ignores those beyond
_WORTH: tuple[EntityType, ...] = ("text_link", "pre", "blockquote", "code", "bold", "italic", "strikethrough")

# What TDLib does with the characters that a message cannot have.
_REPLACED = {**dict.fromkeys(range(32), " "), 10: "\n", 13: None, **dict.fromkeys(range(0x2028, 0x202F))}
_REPLACED |= {**dict.fromkeys((0x30A, 0x333, 0x33F)), **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}

_INVISIBLE = "\u034f\u115f\u1160\u2800\u3164\uffa0"
_UNCLEAN = re.compile("[\x00-\x09\x0b-\x1f\u2028-\u202e\u030a\u0333\u033f\ud800-\udfff]")


class Entity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a text that is shown in another way, as the Bot API has it."""

    type: str
    offset: int  # UTF-16 units, as the length
    length: int
    url: str | None = None
    language: str | None = None


class FormattedText(Struct, frozen=True, kw_only=True):
    """A text and its entities, as the Bot API takes them."""

    text: str
    entities: tuple[Entity, ...] = ()


class Span(Struct, frozen=True, kw_only=True):
    """An entity whose place is counted in characters."""

    type: EntityType
    start: int
    end: int
    value: str | None = None  # the URL or the language


class Block(Struct, frozen=True, kw_only=True):
    """Where a block of the source, or an item of a list, begins."""

    line: int  # of the source
    start: int  # of the text, in characters
    kind: BlockKind


class Rendering(Struct, frozen=True, kw_only=True):
    """A text with all of its entities, and the blocks it was made of."""

    text: str
    spans: tuple[Span, ...] = ()
    blocks: tuple[Block, ...] = ()


def is_blank(text: str) -> bool:
    """Return whether nothing of *text* can be seen."""
    return all(char.isspace() or char in _INVISIBLE or unicodedata.category(char) in ("Cc", "Cf") for char in text)


def clean(text: str) -> str:
    """Replace the characters that Telegram replaces or removes."""
    if not _UNCLEAN.search(text):
        return text
    return unicodedata.normalize("NFC", text).translate(_REPLACED)  # a ring alone would be removed


def normal_spans(text: str, start: int, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans as TDLib would: of the *text* that begins at *start*, without blank ends, joined and sorted."""
    last: dict[EntityType, int] = {}
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        first, end = max(span.start - start, 0), min(span.end - start, len(text))
        if span.type != "pre":
            while first < end and text[end - 1].isspace():
                end -= 1
        if span.type in STYLES or span.type == "text_link":
            while first < end and text[first].isspace():
                first += 1
        if first >= end or is_blank(text[first:end]):
            continue
        before = found[last[span.type]] if span.type in last else None
        if before is not None and span.type in STYLES and first <= before.end:
            found[last[span.type]] = replace(before, end=max(before.end, end))
            continue
        last[span.type] = len(found)
        found.append(Span(type=span.type, start=first, end=end, value=span.value))
    return _sorted(found)


def _sorted(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, _ORDER.index(span.type))))


def formatted_text(rendering: Rendering) -> FormattedText:
    """Return the text with as many entities as Telegram takes: links before styles, early ones before late ones."""
    text, spans = rendering.text, rendering.spans
    if len(spans) > _MOST_ENTITIES:
        worth = sorted(spans, key=lambda span: (_WORTH.index(span.type), span.start))
        spans = _sorted(worth[:_MOST_ENTITIES])
    offsets: dict[int, int] = {}
    at = units = 0
    for place in sorted({span.start for span in spans} | {span.end for span in spans}):
        units += len(text[at:place].encode("utf-16-le")) // 2
        offsets[place] = units
        at = place
    entities = tuple(
        Entity(
            type=span.type,
            offset=offsets[span.start],
            length=offsets[span.end] - offsets[span.start],
            url=span.value if span.type == "text_link" else None,
            language=span.value if span.type == "pre" else None,
        )
        for span in spans
    )
    return FormattedText(text=text, entities=entities)
