"""Which files and inline data are taken. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from palaver.sim.gemini.rules.shape import inline_data, parts_of
from palaver.sim.gemini.rules.violations import Violation

Wire = dict[str, Any]

_BASE64 = re.compile(r"[A-Za-z0-9+/\-_=]*")
_TAKEN = frozenset(
    {f"image/{kind}" for kind in "png jpeg webp heic heif gif".split()}
    | {f"audio/{kind}" for kind in "wav x-wav mp3 mpeg aiff aac ogg flac m4a opus webm".split()}
    | {f"video/{kind}" for kind in "mp4 mpeg mov avi x-flv mpg webm wmv 3gpp quicktime".split()}
    | {"application/pdf", "application/json"}
)


def undecodable(request: Wire) -> Iterator[Violation]:
    """Inline data that is not base64."""
    for where, data in inline_data(request):
        if not _BASE64.fullmatch(data.get("data", "!")):
            message = f"Invalid value at '{where}.data' (TYPE_BYTES), Base64 decoding failed"
            yield Violation("base64", message, f"{where}.data")


def media(request: Wire) -> Iterator[Violation]:
    """Kinds of media that are not taken."""
    for where, part in parts_of(request):
        if "inlineData" in part:
            if not part["inlineData"].get("mimeType"):
                yield Violation("no-mime", "Unsupported MIME type: ", f"{where}.inlineData")
            yield from _mime(part["inlineData"], f"{where}.inlineData")
        if "fileData" in part:
            yield from _mime(part["fileData"], f"{where}.fileData")
            if not part["fileData"].get("fileUri"):
                yield Violation("no-uri", "fileUri is required", f"{where}.fileData", always=False)


def _mime(data: Wire, where: str) -> Iterator[Violation]:
    if not data.get("mimeType"):
        return
    mime = data["mimeType"].split(";")[0].strip()
    message = f"Unsupported MIME type: {mime}"
    if mime in ("image/jpg", "application/octet-stream") or "/" not in mime:
        yield Violation("mime", message, f"{where}.mimeType")
    elif mime not in _TAKEN and not mime.startswith("text/"):
        yield Violation("mime", message, f"{where}.mimeType", always=False)
