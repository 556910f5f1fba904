"""Text and its entities as TDLib takes them: what is refused, cleaned, split, trimmed and found. Pure."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.detection import detected
from tertulia.sim.telegram.refusals import refused

SPLITTABLE = ("bold", "italic", "underline", "strikethrough", "spoiler")
PRE = ("code", "pre", "date_time")  # nothing else stands inside them
QUOTES = ("blockquote", "expandable_blockquote")
AUTOMATIC = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number")
KNOWN = (*SPLITTABLE, *PRE, *QUOTES, "text_link", "text_mention", "custom_emoji", "date_time")

_FARTHEST = 1_000_000
_END = 1 << 31
_DROPPED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_SPACED = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f]")
_MARKS = re.compile("[\u200e\u200f](?=[\u200e\u200f])")


class Entity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a text with a form; offset and length in UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    user: int | None = None
    language: str | None = None
    custom_emoji_id: str | None = None
    unix_time: int | None = None
    date_time_format: str | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length

    def moved(self, offset: int, length: int) -> "Entity":
        return replace(self, offset=offset, length=length)


def utf16_length(text: str) -> int:
    """Return how many UTF-16 units *text* has."""
    return len(text) + sum(character > "\uffff" for character in text)


def fixed(
    text: str, entities: list[Entity], *, allow_empty: bool = False, find: bool = True
) -> tuple[str, list[Entity]]:
    """Check, clean and trim a text with its entities, and find the automatic ones, as TDLib does before it sends."""
    for entity in entities:
        if not 0 <= entity.offset <= _FARTHEST:
            raise refused("entity", why=f"receive an entity with incorrect offset {entity.offset}")
        if not 0 <= entity.length <= _FARTHEST:
            raise refused("entity", why=f"receive an entity with incorrect length {entity.length}")
    kept = nested([entity for entity in entities if entity.length])
    _check_ends(text, kept)
    text, kept = _cleaned(text, kept)
    if not text.strip(" \n"):
        if allow_empty:
            return "", []
        raise refused("text-blank")
    text, kept = _trimmed(text, nested(kept))
    return text, _with_automatic(text, kept) if find else kept


def sort(entities: list[Entity]) -> list[Entity]:
    """Return entities in TDLib's order: by offset, then the longer, then by type."""
    return sorted(entities, key=lambda entity: (entity.offset, -entity.length, _PRIORITY.get(_kind(entity), 50)))


_PRIORITY = {
    "blockquote": 0,
    "expandable_blockquote": 0,
    "precode": 10,
    "pre": 11,
    "code": 20,
    "date_time": 21,
    "text_link": 49,
    "text_mention": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "custom_emoji": 99,
}


def _kind(entity: Entity) -> str:
    return "precode" if entity.type == "pre" and entity.language else entity.type


def nested(entities: list[Entity]) -> list[Entity]:
    """Return entities that never cross.

    Of links, code and the like that overlap, the first stays. Quotes hold them or drop them. Bold and its like are
    cut at the edges of those, and vanish inside code; pieces of one kind that touch become one.
    """
    entities = sort(entities)
    if _are_nested(entities):
        return entities
    solid = _apart([one for one in entities if one.type not in SPLITTABLE and one.type not in QUOTES])
    quotes = _apart([one for one in entities if one.type in QUOTES])
    solid = sort([one for one in solid if not _breaks(one, quotes)] + quotes)
    return sort(_split([one for one in entities if one.type in SPLITTABLE], solid) + solid)


def _are_nested(entities: list[Entity]) -> bool:
    ends = dict.fromkeys(SPLITTABLE, -1)
    outer: list[Entity] = []
    for entity in entities:
        while outer and entity.offset >= outer[-1].end:
            outer.pop()
        if outer and not _fits(entity, outer):
            return False
        if entity.type in ends:
            if ends[entity.type] >= entity.offset:
                return False
            ends[entity.type] = entity.end
        outer.append(entity)
    return True


def _fits(entity: Entity, outer: list[Entity]) -> bool:
    """Tell whether an entity may stand inside others as it is."""
    kinds = {one.type for one in outer}
    if entity.end > outer[-1].end or entity.type in kinds or outer[-1].type in PRE or kinds & set(SPLITTABLE):
        return False
    if entity.type in PRE:
        return not kinds - set(QUOTES)
    if entity.type in SPLITTABLE:
        return True
    is_quote = entity.type in QUOTES
    return not kinds - set(QUOTES) - set(SPLITTABLE) - set(PRE) and not (is_quote and kinds & set(QUOTES))


def _apart(entities: list[Entity]) -> list[Entity]:
    kept: list[Entity] = []
    for entity in entities:
        if not kept or entity.offset >= kept[-1].end:
            kept.append(entity)
    return kept


def _breaks(entity: Entity, quotes: list[Entity]) -> bool:
    """Tell whether an entity crosses the edge of the first quote that ends behind its beginning."""
    quote = next((quote for quote in quotes if quote.end > entity.offset), None)
    return quote is not None and (quote.end < entity.end or entity.offset < quote.offset < entity.end)


def _split(entities: list[Entity], solid: list[Entity]) -> list[Entity]:
    """Cut entities at the edges of solid ones, drop what lies in code, and join those of one kind that touch."""
    splitter = _Splitter(entities)
    outer: list[Entity] = []
    for other in [*solid, Entity(type="", offset=_END, length=0)]:
        while outer and other.offset >= outer[-1].end:
            splitter.advance(outer[-1].end, drop=outer[-1].type in PRE)
            outer.pop()
        splitter.advance(other.offset)
        outer.append(other)
    return splitter.result


class _Splitter:
    """Goes through a text from left to right with one open span for each kind."""

    def __init__(self, entities: list[Entity]) -> None:
        self.result: list[Entity] = []
        self._waiting = list(reversed(entities))
        self._open: dict[str, tuple[int, int]] = {}

    def advance(self, end: int, *, drop: bool = False) -> None:
        """Finish all that is before *end*; with *drop* it is forgotten."""
        before = len(self.result)
        while self._waiting and self._waiting[-1].offset < end:
            entity = self._waiting.pop()
            span = self._open.get(entity.type)
            if span is not None and entity.offset <= span[1]:
                self._open[entity.type] = (span[0], max(span[1], entity.end))
            else:
                self._flush(entity.offset)
                self._open[entity.type] = (entity.offset, entity.end)
        self._flush(end)
        if drop:
            del self.result[before:]

    def _flush(self, offset: int) -> None:
        for kind in SPLITTABLE:
            begin, end = self._open.get(kind, (offset, 0))
            if begin >= offset:
                continue
            self.result.append(Entity(type=kind, offset=begin, length=min(end, offset) - begin))
            if end <= offset:
                del self._open[kind]
            else:
                self._open[kind] = (offset, end)


def _check_ends(text: str, entities: list[Entity]) -> None:
    """Refuse an entity that begins or ends in a middle of a character or behind the text, the first by place."""
    starts: dict[int, int] = {}  # bytes before a character, by its first unit
    unit = size = 0
    for character in text:
        starts[unit] = size
        unit += 2 if character > "\uffff" else 1
        size += len(character.encode(errors="surrogatepass"))
    starts[unit] = size
    problems: list[tuple[int, int, int, str]] = []
    for order, entity in enumerate(entities):
        if entity.offset > unit:
            problems.append(
                (_END, 1, order, f"entity begins after the end of the text at UTF-16 offset {entity.offset}")
            )
        elif entity.offset not in starts:
            where = starts[entity.offset + 1]
            problems.append((where, 1, order, f"entity begins in a middle of a UTF-16 symbol at byte offset {where}"))
        elif entity.end > unit:
            beyond = f"ends after the end of the text at UTF-16 offset {entity.end}"
            why = f"entity beginning at UTF-16 offset {entity.offset} {beyond}"
            problems.append((_END + 1, 1, -order, why))
        elif entity.end not in starts:
            where = starts[entity.end + 1]
            middle = f"ends in a middle of a UTF-16 symbol at byte offset {where}"
            problems.append((where, 0, -order, f"entity beginning at UTF-16 offset {entity.offset} {middle}"))
    if problems:
        raise refused("entity", why=min(problems)[3])


def _cleaned(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Remove what TDLib removes from every text, and move the entities."""
    if _DROPPED.search(text):
        left = [0]  # units that stay before each unit
        for character in text:
            width = 2 if character > "\uffff" else 1
            stays = 0 if _DROPPED.match(character) else 1
            left += [left[-1] + stays * step for step in range(1, width + 1)]
        moved = [one.moved(left[one.offset], left[one.end] - left[one.offset]) for one in entities]
        entities = [one for one in moved if one.length]
    return _MARKS.sub("\u200c", _SPACED.sub(" ", _DROPPED.sub("", text))), entities


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Trim both ends, but never the beginning of the first entity."""
    text = text.rstrip(" \n")
    end = utf16_length(text)
    inside = [one.moved(one.offset, min(one.end, end) - one.offset) for one in entities if one.offset < end]
    kept = sort(inside)
    blank = len(text) - len(text.lstrip(" \n"))
    cut = min([blank, *(one.offset for one in kept)])
    return text[cut:], [one.moved(one.offset - cut, one.length) for one in kept]


def _with_automatic(text: str, entities: list[Entity]) -> list[Entity]:
    """Add what TDLib finds in a text: links and quotes that are there already stay as they are."""
    found = [Entity(type=kind, offset=offset, length=length) for kind, offset, length in detected(text)]
    quotes = [one for one in entities if one.type in QUOTES]
    solid = [one for one in entities if one.type not in SPLITTABLE and one.type not in QUOTES]
    found = [one for one in found if not _breaks(one, quotes)]
    found = [one for one in found if not any(one.offset < old.end and old.offset < one.end for old in solid)]
    if not found:
        return entities
    outside = sort(solid + found + quotes)
    return sort(_split([one for one in entities if one.type in SPLITTABLE], outside) + outside)


def wire_entities(entities: list[Entity], users: dict[int, Wire]) -> list[Wire]:
    """Return entities as the Bot API shows them."""
    return [_wire(entity, users) for entity in entities if entity.type != "bank_card_number"]


def _wire(entity: Entity, users: dict[int, Wire]) -> Wire:
    shown: Wire = {"offset": entity.offset, "length": entity.length, "type": entity.type}
    optional: dict[str, Any] = {
        "url": entity.url,
        "user": users.get(entity.user) if entity.user is not None else None,
        "language": entity.language or None,
        "custom_emoji_id": entity.custom_emoji_id,
        "unix_time": entity.unix_time,
        "date_time_format": entity.date_time_format or None,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}
