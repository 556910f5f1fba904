"""How media go to a service: as themselves, within a tool's result, or as words. Pure."""

from collections.abc import Iterator

from palaver.parts import USUAL_MIME, Media, ToolResult
from palaver.turns import Turn
from palaver.wire.foreign import Wire
from palaver.wire.rules import mime_refused, refuses

_SPELLINGS = {
    "image/jpg": "image/jpeg",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/m4a",
    "audio/mp4": "audio/m4a",
    "audio/x-flac": "audio/flac",
}
_WITHIN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


def gemini_mime(media: Media) -> str | None:
    """The MIME type Gemini is told; None when it is not known."""
    mime = media.mime or (USUAL_MIME.get(media.media_kind) if media.data else None)
    return _SPELLINGS.get(mime.lower(), mime.lower()) if mime else None


def goes_inline(media: Media) -> bool:
    """Whether Gemini gets the bytes themselves."""
    mime = gemini_mime(media)
    return bool(media.data and mime) and mime_refused(mime or "") == "never"


def fits_in_result(media: Media, model: str) -> bool:
    """Whether Gemini takes the media inside the tool's result it came with."""
    return goes_inline(media) and gemini_mime(media) in _WITHIN_RESULTS and refuses(model, "result-parts") == "never"


def only_results(turn: Turn, model: str, wire: Wire) -> bool:
    """Whether the turn is nothing but results once it is encoded; media that leave their result stand beside it."""
    return all(
        isinstance(part, ToolResult) and not any(True for _ in outside(part, model, wire)) for part in turn.parts
    )


def outside(result: ToolResult, model: str, wire: Wire) -> Iterator[Media]:
    """The media that leave their result and stand beside it; one that goes as received keeps its own."""
    if wire == "gemini" and result.raw is not None:
        return
    yield from (media for media in result.media if wire == "openai" or not fits_in_result(media, model))
