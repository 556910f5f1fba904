"""Markers of media in a prompt, such as `[photo]`; the cleaner removes them where a model repeats them. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tertulia.errors import ResponseUnreadable
from tertulia.jsonio import loads
from tertulia.parts import Media, Opaque, Part, Text
from tertulia.prompt import forms
from tertulia.prompt.escape import MEDIA_KINDS
from tertulia.prompt.render import EMPTY
from tertulia.turns import Layer, Prompt, Role, Turn
from tertulia.value_cache import cached
from tertulia.wire.part_forms import media_of
from tertulia.wire.rules import INLINE_LIMIT
from tertulia.wire.turn_repair import OPAQUE_MEDIA, inline_size

Takes = Callable[[Media, Role], bool]

LABELS = ("Image", "Video", "Audio", "YouTube", "Document", "Attachment")
_KINDS = {
    "photo": "Image", "image": "Image", "sticker": "Image",
    "video": "Video", "animation": "Video", "gif": "Video", "video_note": "Video", "video_sticker": "Video",
    "audio": "Audio", "voice": "Audio", "music": "Audio",
    "youtube": "YouTube",
    "document": "Document", "file": "Document",
}  # fmt: skip

_MARKER = re.compile(rf"\[(?:[\w-][\w -]{{0,39}} part|{'|'.join(MEDIA_KINDS)})\]")
_LABEL = re.compile(rf"\[(?:{'|'.join(LABELS)})(?: x\d{{1,6}}+)?\]")
_QUOTE_LINES = re.compile(
    rf"^{re.escape(forms.ORIGINAL)}[^\n]*+|^{re.escape(forms.CONTEXT_LINE[0])}.*+",
    re.MULTILINE | re.DOTALL,
)
_OURS = (forms.FROM, forms.ID, "[#")  # what begins a turn in which people's own words can hold no marker


def markers_in(prompt: Prompt, *, takes: Takes | None = None) -> frozenset[str]:
    """Return the markers in the request for *prompt*, without those that people wrote themselves.

    *takes* tells which media are sent themselves; the others are markers. By default it is all that have content. Where
    inline media exceed the limit of a request, any of them may be a marker.
    """
    over = (
        sum(cached(turn, "inline size", inline_size) for layer in prompt.layers for turn in layer.turns) > INLINE_LIMIT
    )
    return frozenset(marker for layer in prompt.layers for marker in _of_layer(layer, takes or _has_content, over=over))


def _has_content(media: Media, _: Role) -> bool:
    return media.has_content


def _of_layer(layer: Layer, takes: Takes, *, over: bool) -> Iterator[str]:
    for line in _QUOTE_LINES.findall(layer.instruction):
        yield from _LABEL.findall(line)
    for turn in layer.turns:
        words, media = turn.__dict__.get("markers") or cached(turn, "markers", _of_turn)
        if words:
            yield from words
        if media:
            yield from (one.words for one in media if (over and one.data) or not takes(one, turn.role))
        if over and any(isinstance(part, Opaque) for part in turn.parts):
            yield OPAQUE_MEDIA
        if layer.name == "dynamic":
            yield from _of_quote(turn)


def _of_turn(turn: Turn) -> tuple[frozenset[str], tuple[Media, ...]]:
    """Return the markers in the texts of a turn, and its media without a description."""
    media = tuple(one for part in turn.parts for one in media_of(part) if not one.is_described)
    return frozenset(_markers_of(turn)), media


def _markers_of(turn: Turn) -> Iterator[str]:
    if turn.role != "user":
        return
    first = turn.parts[0] if turn.parts else None
    ours = isinstance(first, Text) and first.text.startswith(_OURS)
    for part in turn.parts:
        match part:
            case Text(text=text) if text.endswith(EMPTY):
                yield EMPTY
            case Text(text=text) if ours and "]" in text:
                yield from _MARKER.findall(text)


def _of_quote(turn: Turn) -> Iterator[str]:
    """Yield the markers of quoted media in the dynamic layer."""
    text = turn.text
    if '"quote": {' not in text:
        return
    try:
        known = loads(text.encode())
    except ResponseUnreadable:
        return
    quote = known.get("quote") if isinstance(known, dict) else None
    yield from _LABEL.findall(str(quote.get("text", ""))) if isinstance(quote, dict) else ()


def marker_line(parts: Iterable[Part]) -> str:
    """`[Image x2] [Audio]`: the kinds of the media, in a fixed order."""
    found = Counter(_label(media) for media in parts if isinstance(media, Media))
    return " ".join(
        f"[{label} x{found[label]}]" if found[label] > 1 else f"[{label}]" for label in LABELS if found[label]
    )


def _label(media: Media) -> str:
    mime = media.mime or ""
    if re.search(r"//(?:www\.|m\.)?(?:youtube\.com|youtu\.be)/", media.uri or ""):
        return "YouTube"
    if media.media_kind == "sticker" and mime.startswith("video/"):
        return "Video"
    by_mime = {"image": "Image", "video": "Video", "audio": "Audio"}.get(mime.partition("/")[0], "Attachment")
    return _KINDS.get(media.media_kind, by_mime)
