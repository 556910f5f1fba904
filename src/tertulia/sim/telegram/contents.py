"""What messages hold, kind by kind, as the Bot API words it; a file stands as its number. Pure."""

import struct
import zlib
from typing import Any

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.files import Files, image_size

KINDS = ("photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note")
MIMES = {
    "photo": "image/jpeg",
    "document": "application/octet-stream",
    "voice": "audio/ogg",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "animation": "video/mp4",
    "sticker": "image/webp",
    "video_note": "video/mp4",
}
_SIDES = (90, 320, 800, 1280)  # of the sizes of a photo; the last is the most


def media(files: Files, kind: str, data: bytes, **details: Any) -> Wire:
    """Return a message with one file; *details* are the fields of its kind, and `file_name`, `mime_type`, `size`."""
    if kind == "photo":
        return {"photo": photo_sizes(files, data, details.get("width"), details.get("height"))}
    mime = details.pop("mime_type", None) or _mime(kind, details)
    name = details.pop("file_name", None) or ""
    file = files.add(kind, data, name=name, mime=mime, size=details.pop("size", None))
    shown: Wire = {"file": file.number} | _defaults(kind, data) | _given(details)
    if kind in ("document", "audio", "video", "animation") and name:
        shown["file_name"] = name
    if kind not in ("sticker", "video_note"):
        shown["mime_type"] = mime
    if kind == "animation":
        return {"animation": shown, "document": {"file": file.number, "mime_type": mime}}
    return {kind: shown}


def photo_sizes(files: Files, data: bytes, width: int | None = None, height: int | None = None) -> list[Wire]:
    """Return a photo in its sizes, the smallest first; none is larger than 1280."""
    found = image_size(data) or (1280, 720)
    width, height = width or found[0], height or found[1]
    longest = max(width, height)
    sides = [side for side in _SIDES if side < longest] + [min(longest, _SIDES[-1])]
    sizes: list[Wire] = []
    for side in dict.fromkeys(sides):
        scaled = (max(1, width * side // longest), max(1, height * side // longest))
        size = max(1, len(data) * side * side // (longest * longest)) if side < longest else len(data)
        file = files.add("photo", data, name=f"{scaled[0]}x{scaled[1]}", mime="image/jpeg", size=size)
        sizes.append({"file": file.number, "width": scaled[0], "height": scaled[1]})
    return sizes


def again(files: Files, number: int) -> Wire:
    """Return a message with a file that was sent before."""
    file = files.get(number)
    if file.kind == "photo":
        return {"photo": photo_sizes(files, file.data)}
    return media(files, file.kind, file.data, file_name=file.name, mime_type=file.mime, size=file.size)


def image(width: int = 640, height: int = 480, shade: int = 128) -> bytes:
    """Return a grey picture as a PNG."""
    rows = (b"\x00" + bytes([shade]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _mime(kind: str, details: Wire) -> str:
    if kind == "sticker" and details.get("is_animated"):
        return "application/x-tgsticker"
    return "video/webm" if kind == "sticker" and details.get("is_video") else MIMES[kind]


def _defaults(kind: str, data: bytes) -> Wire:
    match kind:
        case "voice" | "audio":
            return {"duration": max(1, len(data) // 4000)}
        case "video" | "animation":
            return {"width": 640, "height": 360, "duration": 3}
        case "video_note":
            return {"length": 240, "duration": 3}
        case "sticker":
            width, height = image_size(data) or (512, 512)
            size = {"width": width, "height": height}
            return {"type": "regular", **size, "is_animated": False, "is_video": False}
        case _:
            return {}


def _given(values: Wire) -> Wire:
    return {name: value for name, value in values.items() if value is not None}
