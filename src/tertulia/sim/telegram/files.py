"""The files of a simulated Telegram: their ids, for each bot its own, and their bytes; sizes of images. Pure."""

import base64
import hashlib
import struct

from msgspec import Struct

from tertulia.sim.errors import Wire

DOWNLOAD_LIMIT = 20 << 20
UPLOAD_LIMIT = 50 << 20
PHOTO_LIMIT = 10 << 20
FOLDERS = {
    "photo": "photos",
    "document": "documents",
    "voice": "voice",
    "audio": "music",
    "video": "videos",
    "animation": "animations",
    "sticker": "stickers",
    "video_note": "video_notes",
}
_EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "audio/ogg": ".oga",
    "audio/mpeg": ".mp3",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "application/x-tgsticker": ".tgs",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
}
_PREFIXES = {
    "photo": "AgACAgI",
    "document": "BQACAgI",
    "voice": "AwACAgI",
    "audio": "CQACAgI",
    "video": "BAACAgI",
    "animation": "CgACAgI",
    "sticker": "CAACAgI",
    "video_note": "DQACAgI",
}


class File(Struct, frozen=True, kw_only=True):
    """A file; *size* may be more than its bytes, for files that are too long to make."""

    number: int
    kind: str
    data: bytes
    size: int
    name: str
    mime: str

    @property
    def path(self) -> str:
        """The path at which a bot downloads it."""
        ending = _EXTENSIONS.get(self.mime) or ("." + self.name.rpartition(".")[2] if "." in self.name else "")
        return f"{FOLDERS[self.kind]}/file_{self.number}{ending}"

    @property
    def unique_id(self) -> str:
        """The id that is the same for all bots and for the same bytes."""
        known = self.data or f"{self.number}".encode()
        return "AQAD" + _letters(hashlib.sha256(f"{self.kind} {self.name} ".encode() + known).digest()[:9])


class Files:
    """All files, by number, path and the id that a bot has for them."""

    def __init__(self) -> None:
        self._files: list[File] = []

    def add(self, kind: str, data: bytes, *, name: str = "", mime: str = "", size: int | None = None) -> File:
        file = File(number=len(self._files), kind=kind, data=data, name=name, mime=mime, size=size or len(data))
        self._files.append(file)
        return file

    def id_for(self, file: File, bot: int) -> str:
        """Return the id of a file for a bot."""
        return _PREFIXES[file.kind] + _letters(struct.pack(">IQ", file.number, bot) + b"tertulia file")

    def find(self, file_id: str, bot: int) -> File | None:
        """Return the file that an id of this bot means."""
        try:
            packed = base64.urlsafe_b64decode(file_id[7:] + "=" * (-len(file_id[7:]) % 4))
            number, owner = struct.unpack_from(">IQ", packed)
        except (ValueError, struct.error):
            return None
        if owner != bot or number >= len(self._files):
            return None
        file = self._files[number]
        return file if self.id_for(file, bot) == file_id else None

    def at(self, path: str) -> File | None:
        """Return the file at a path."""
        return next((file for file in self._files if file.path == path), None)

    def shown(self, number: int, bot: int) -> Wire:
        """Return the fields that every kind of file has."""
        file = self._files[number]
        return {"file_id": self.id_for(file, bot), "file_unique_id": file.unique_id, "file_size": file.size}

    def get(self, number: int) -> File:
        return self._files[number]


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, JPEG, GIF, BMP or WebP image; None for other bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return int(width), int(height)
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return int(width), int(height)
    if data.startswith(b"BM") and len(data) >= 26:
        width, height = struct.unpack("<ii", data[18:26])
        return int(width), abs(int(height))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp_size(data)
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case _:
            return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 < len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return int(width), int(height)
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    return None


def _letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
