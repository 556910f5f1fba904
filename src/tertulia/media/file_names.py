"""File names that people and servers gave, made safe. Pure."""

import re

from tertulia.characters import one_line, visible
from tertulia.parts import Media

MAX_BYTES = 150  # of a name in UTF-8; file systems take 255, and others add something of their own
UNNAMED = "file"

_SLASHES = re.compile(r"[/\\\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c]")  # and what looks like them
_RESERVED = re.compile(r'[<>:"|?*\ud800-\udfff\ufffe\uffff]')  # by Windows; `:` also ends a word of our markers
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|\Z)", re.IGNORECASE)
_SUFFIX = re.compile(r"\.\w{1,10}\Z")
_SUFFIXES = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/plain": ".txt",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
}


def name_of(media: Media) -> str:
    """Return a safe name for media that are sent or saved: their label if that is a file name, else their kind."""
    suffix = _SUFFIXES.get(media.mime or "", "")
    label = safe_name(media.label) if media.label else ""
    if _SUFFIX.search(label):
        return label
    return f"{safe_name(media.kind_word)}{suffix}"


def safe_name(name: str) -> str:
    """Return a file name that stays in its folder on every system, and in its marker in a prompt.

    It is the last part of a path, on one line, without square brackets, invisible and reserved characters, dots at its
    ends, and names of devices; a long one is cut before its suffix. One without anything left is `file`.
    """
    last = _SLASHES.split(name[-10_000:].rstrip("/\\"))[-1]
    plain = _trim(_RESERVED.sub("_", one_line(visible(last))))
    if _DEVICES.match(plain):
        plain = f"_{plain}"
    suffix = found.group() if (found := _SUFFIX.search(plain)) else ""
    stem = plain.removesuffix(suffix).encode()[: MAX_BYTES - len(suffix.encode())].decode(errors="ignore")
    return _trim(f"{stem}{suffix}") or UNNAMED


def _trim(name: str) -> str:
    return name.strip(". ")
