"""How media are sent to a service: as they are, within a tool's result, or as words. Pure."""

import re
from collections.abc import Iterable, Iterator, Set

from msgspec.structs import replace

from palaver.parts import USUAL_MIME, Media, Part, ToolResult
from palaver.turns import Turn
from palaver.wire.rules import when_mime_refused, when_refused
from palaver.wire.signatures import Wire

_SPELLINGS = {
    "image/jpg": "image/jpeg",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/m4a",
    "audio/mp4": "audio/m4a",
    "audio/x-flac": "audio/flac",
}
_WITHIN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


def gemini_mime(media: Media) -> str | None:
    """Return the MIME type that Gemini is sent; None if it is not known."""
    mime = media.mime or (USUAL_MIME.get(media.media_kind) if media.data else None)
    return _SPELLINGS.get(mime.lower(), mime.lower()) if mime else None


def is_sent_inline(media: Media) -> bool:
    """Return whether Gemini gets the bytes themselves."""
    mime = gemini_mime(media)
    return bool(media.data and mime) and when_mime_refused(mime or "") == "never"


def is_sent_to_gemini(media: Media) -> bool:
    """Return whether Gemini gets the media, in bytes or by address; else it gets words."""
    mime = gemini_mime(media)
    return is_sent_inline(media) or (bool(media.uri) and (mime is None or when_mime_refused(mime) == "never"))


def fits_in_result(media: Media, model: str) -> bool:
    """Return whether Gemini takes the media inside the tool's result it came with."""
    return (
        is_sent_inline(media)
        and gemini_mime(media) in _WITHIN_RESULTS
        and when_refused(model, "result-parts") == "never"
    )


def file_uris(turns: Iterable[Turn]) -> list[str]:
    """Return the URIs of the media that are sent by URI, in order."""
    return [
        one.uri
        for turn in turns
        for part in turn.parts
        for one in _media_of(part)
        if one.uri and not is_sent_inline(one)
    ]


def is_file(uri: str, file: str) -> bool:
    """Return whether *uri* is the address of an uploaded file with the id *file*."""
    return bool(file) and (uri == file or re.search(rf"(?:^|/)files/{re.escape(file)}(?:$|[/?])", uri) is not None)


def without_expired_files(turn: Turn, gone: Set[str]) -> Turn:
    """Return the turn without the URIs that are *gone*: such media are sent as bytes, or as words."""
    parts = tuple(_without_file(part, gone) for part in turn.parts)
    same = all(new is old for new, old in zip(parts, turn.parts, strict=True))
    return turn if same else replace(turn, parts=parts)


def _media_of(part: Part) -> tuple[Media, ...]:
    if isinstance(part, Media):
        return (part,)
    return part.media if isinstance(part, ToolResult) else ()


def _without_file(part: Part, gone: Set[str]) -> Part:
    if not any(one.uri in gone for one in _media_of(part)):
        return part
    if isinstance(part, Media):
        return replace(part, uri=None, raw=None)
    assert isinstance(part, ToolResult)  # noqa: S101 (nothing else holds media)
    media = tuple(replace(one, uri=None, raw=None) if one.uri in gone else one for one in part.media)
    return replace(part, media=media, raw=None)


def has_only_results(turn: Turn, model: str, wire: Wire) -> bool:
    """Return whether only results are left of the turn once it is encoded: no media are sent beside them."""
    return all(
        isinstance(part, ToolResult) and not any(True for _ in media_beside_result(part, model, wire))
        for part in turn.parts
    )


def media_beside_result(result: ToolResult, model: str, wire: Wire) -> Iterator[Media]:
    """Yield the media of a result that are sent beside it. A result that is sent raw keeps its media inside."""
    if wire == "gemini" and result.raw is not None:
        return
    yield from (media for media in result.media if wire == "openai" or not fits_in_result(media, model))
