"""Text and its entities as TDLib takes them: what is refused, cleaned, trimmed, split and merged. Pure."""

import re
from itertools import pairwise
from urllib.parse import urlsplit

from msgspec import Struct

from palaver.sim.errors import Wire
from palaver.sim.telegram.detection import detected
from palaver.sim.telegram.refusals import refused

SPLITTABLE = ("bold", "italic", "underline", "strikethrough", "spoiler")
PRE = ("code", "pre")
QUOTES = ("blockquote", "expandable_blockquote")
AUTOMATIC = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number")
KNOWN = (*SPLITTABLE, *PRE, *QUOTES, "text_link", "text_mention", "custom_emoji", "date_time")

_FARTHEST = 1_000_000
_INPUT_LIMIT = 35_000  # bytes
_DROPPED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_SPACED = re.compile("[\x00-\x09\x0b-\x0c\x0e-\x1f]")
_HOST = re.compile(r"[^\s/?#@:]+")


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
        return _replaced(self, offset, length)


def _replaced(entity: Entity, offset: int, length: int) -> Entity:
    return Entity(
        type=entity.type,
        offset=offset,
        length=length,
        url=entity.url,
        user=entity.user,
        language=entity.language,
        custom_emoji_id=entity.custom_emoji_id,
        unix_time=entity.unix_time,
        date_time_format=entity.date_time_format,
    )


def utf16_length(text: str) -> int:
    """Return how many UTF-16 units *text* has."""
    return len(text) + sum(character > "\uffff" for character in text)


def code_points(text: str) -> list[int]:
    """Return the index of the code point that each UTF-16 unit begins, -1 in a middle; one more for the end."""
    found: list[int] = []
    for index, character in enumerate(text):
        found.append(index)
        if character > "\uffff":
            found.append(-1)
    return [*found, len(text)]


def fixed(text: str, entities: list[Entity], *, allow_empty: bool = False) -> tuple[str, list[Entity]]:
    """Check, clean and trim a text with its entities, and find the automatic ones, as TDLib does before it sends."""
    for entity in entities:
        if not 0 <= entity.offset <= _FARTHEST:
            raise refused("entity", why=f"receive an entity with incorrect offset {entity.offset}")
        if not 0 <= entity.length <= _FARTHEST:
            raise refused("entity", why=f"receive an entity with incorrect length {entity.length}")
    kept = sort([entity for entity in entities if entity.length])
    _check_ends(text, kept)
    text, kept = _cleaned(text, nested(kept))
    if not text.strip(" \n"):
        if allow_empty:
            return "", []
        raise refused("text-blank")
    text, kept = _trimmed(text, _without_blank(text, kept))
    automatic = [entity for entity in _automatic(text) if not any(_crosses(entity, other) for other in kept)]
    return text, sort(kept + automatic)


def checked_url(url: str) -> str:
    """Return the address of a link as TDLib stores it; raise ValueError with its words."""
    if not url:
        raise ValueError("URL must be non-empty")
    if re.match(r"(?i)(tg|ton|tonsite)://?", url) and url.partition(":")[2].strip("/"):
        return url
    split = urlsplit(url if "://" in url else f"http://{url}")
    if split.scheme.lower() not in ("http", "https"):
        raise ValueError("Unsupported URL protocol")
    host = split.netloc.rpartition("@")[2]
    name = host.rpartition(":")[0] or host
    if not _HOST.fullmatch(name) or "." not in name.strip("."):
        raise ValueError("Wrong HTTP URL")
    path = split.path or "/"
    query = f"?{split.query}" if split.query else ""
    fragment = f"#{split.fragment}" if split.fragment else ""
    return f"{split.scheme.lower()}://{split.netloc.lower()}{path}{query}{fragment}"


def sort(entities: list[Entity]) -> list[Entity]:
    """Return entities in TDLib's order: by offset, then the longer, then by type."""
    return sorted(entities, key=lambda entity: (entity.offset, -entity.length, _PRIORITY.get(entity.type, 0)))


_PRIORITY = {
    "mention": 50,
    "hashtag": 50,
    "bot_command": 50,
    "url": 50,
    "email": 50,
    "bold": 90,
    "italic": 91,
    "code": 20,
    "pre": 10,
    "text_link": 49,
    "text_mention": 49,
    "cashtag": 50,
    "phone_number": 50,
    "underline": 92,
    "strikethrough": 93,
    "blockquote": 0,
    "expandable_blockquote": 0,
    "custom_emoji": 99,
    "spoiler": 94,
    "date_time": 50,
}


def _check_ends(text: str, entities: list[Entity]) -> None:
    points = code_points(text)
    end = len(points) - 1
    for entity in entities:
        if entity.offset > end or entity.end > end:
            why = f"entity beginning at UTF-16 offset {entity.offset} ends after the end of the text at UTF-16 offset"
            raise refused("entity", why=f"{why} {entity.end}")
        if points[entity.offset] < 0:
            where = _byte_offset(text, points, entity.offset)
            raise refused("entity", why=f"entity begins in a middle of a UTF-16 symbol at byte offset {where}")
        if points[entity.end] < 0:
            where = _byte_offset(text, points, entity.end)
            why = f"entity beginning at UTF-16 offset {entity.offset} ends in a middle of a UTF-16 symbol"
            raise refused("entity", why=f"{why} at byte offset {where}")


def _byte_offset(text: str, points: list[int], unit: int) -> int:
    """Return how many bytes come before the character behind the broken one, as TDLib counts."""
    return len(text[: points[unit + 1]].encode())


def nested(entities: list[Entity]) -> list[Entity]:
    """Return entities that never cross: the later of two crossing ones is cut in two, or dropped if it cannot be."""
    kept: list[Entity] = []
    solid = [entity for entity in entities if entity.type not in SPLITTABLE]
    for entity in solid:
        if not any(_intersects(entity, other) for other in kept):
            kept.append(entity)
    for kind in SPLITTABLE:
        for start, end in _joined([entity for entity in entities if entity.type == kind]):
            for piece_start, piece_end in _pieces(start, end, kept):
                kept.append(Entity(type=kind, offset=piece_start, length=piece_end - piece_start))
    return sort(kept)


def _intersects(entity: Entity, other: Entity) -> bool:
    """Tell whether two entities that cannot be split may not stand together; quotes may hold others."""
    if entity.end <= other.offset or other.end <= entity.offset:
        return False
    outer, inner = (other, entity) if other.type in QUOTES else (entity, other)
    holds = outer.offset <= inner.offset and inner.end <= outer.end
    return not (outer.type in QUOTES and inner.type not in QUOTES and holds)


def _crosses(entity: Entity, other: Entity) -> bool:
    if entity.end <= other.offset or other.end <= entity.offset:
        return False
    holds = other.offset <= entity.offset and entity.end <= other.end
    held = entity.offset <= other.offset and other.end <= entity.end
    return not ((holds or held) and other.type in (*SPLITTABLE, *QUOTES))


def _joined(entities: list[Entity]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for entity in entities:
        if joined and entity.offset <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], entity.end))
        else:
            joined.append((entity.offset, entity.end))
    return joined


def _pieces(start: int, end: int, kept: list[Entity]) -> list[tuple[int, int]]:
    """Cut a span at the edges of entities it crosses; inside code nothing is left of it."""
    cuts = {start, end}
    for entity in kept:
        if entity.type in PRE:
            cuts |= {entity.offset, entity.end}
        elif entity.offset < start < entity.end < end:
            cuts.add(entity.end)
        elif start < entity.offset < end < entity.end:
            cuts.add(entity.offset)
    edges = sorted(cut for cut in cuts if start <= cut <= end)
    pre = [entity for entity in kept if entity.type in PRE]
    pieces = list(pairwise(edges))
    return [(a, b) for a, b in pieces if not any(code.offset <= a and b <= code.end for code in pre)]


def _cleaned(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Remove what TDLib removes from every text, and move the entities."""
    if not _DROPPED.search(text) and not _SPACED.search(text):
        return text, entities
    before = [0]  # units that are left before each unit
    for character in text:
        width = 2 if character > "\uffff" else 1
        left = 0 if _DROPPED.match(character) else width
        before += [before[-1] + left * step // width for step in range(1, width + 1)]
    moved = [entity.moved(before[entity.offset], before[entity.end] - before[entity.offset]) for entity in entities]
    return _SPACED.sub(" ", _DROPPED.sub("", text)), [entity for entity in moved if entity.length]


def _without_blank(text: str, entities: list[Entity]) -> list[Entity]:
    points = code_points(text)
    return [entity for entity in entities if text[points[entity.offset] : points[entity.end]].strip(" \n")]


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Trim both ends, but never the beginning of the first entity."""
    text = text.rstrip(" \n")
    end = utf16_length(text)
    kept = [entity.moved(entity.offset, min(entity.end, end) - entity.offset) for entity in entities]
    blank = len(text) - len(text.lstrip(" \n"))
    cut = min([blank, *(entity.offset for entity in kept)])
    return text[cut:], [entity.moved(entity.offset - cut, entity.length) for entity in kept]


def _automatic(text: str) -> list[Entity]:
    return [Entity(type=kind, offset=offset, length=length) for kind, offset, length in detected(text)]


def wire_entities(entities: list[Entity], users: dict[int, Wire]) -> list[Wire]:
    """Return entities as the Bot API shows them."""
    return [_wire(entity, users) for entity in entities]


def _wire(entity: Entity, users: dict[int, Wire]) -> Wire:
    shown: Wire = {"offset": entity.offset, "length": entity.length, "type": entity.type}
    optional = {
        "url": entity.url,
        "user": users.get(entity.user) if entity.user is not None else None,
        "language": entity.language or None,
        "custom_emoji_id": entity.custom_emoji_id,
        "unix_time": entity.unix_time,
        "date_time_format": entity.date_time_format,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}
