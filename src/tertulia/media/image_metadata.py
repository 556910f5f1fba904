"""Images that have more than what shows them. Pure.

An image goes to a model as it is only if each of its parts is needed to show it. Any other part may say where, when,
with what or by whom it was taken, or hold a second picture: EXIF, comments, previews, what stands behind its end. So
each format has a list of the parts that are needed, and what is not on it counts as metadata. Formats without a list
never go as they are.
"""

import re
import zlib
from collections.abc import Iterator

_MOST = 100_000  # parts of a file that are looked at; one with more is made anew
_LARGEST_PROFILE = 1_000_000  # bytes
_LONGEST_TEXT = 10_000  # bytes of a text in a profile, in all languages

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC8}  # with the tables of Huffman and arithmetic coding among them
_JPEG_TABLES = frozenset({0xDA, 0xDB, 0xDC, 0xDD})  # scans, quantization, lines, restarts
_JPEG_PROFILE, _SCAN, _END = 0xE2, 0xDA, 0xD9
_MARKER = re.compile(rb"\xff++([\x01-\xfe])")
_BEHIND_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JFIF_HEAD = re.compile(rb"JFIF\0.{7}\0\0", re.DOTALL)  # without a preview
_PNG_PARTS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS bKGD hIST sBIT pHYs gAMA cHRM sRGB iCCP cICP mDCV cLLI acTL fcTL fdAT".split()
)
_GIF_EXTENSION = re.compile(
    rb"!(?:\xf9\x04.{4}\0|\xff\x0b(?:NETSCAPE2\.0|ANIMEXTS1\.0)\x03\x01..\0)", re.DOTALL
)  # how long a frame is shown, and how often all are
_WEBP_PARTS = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})
_NUMBERS = frozenset(b"XYZ |curv|para|sf32|sig |view|meas|chrm|cicp|mAB |mBA |mft1|mft2|ui08".split(b"|"))
_PROFILE_WORDS = re.compile(  # of profiles that programs give to all their images; a screen's own may name its owner
    r"|icc|icc profile|photoshop icc profile|s ?rgb|urgb|c2|c2ci|facebook|cc0|public domain|no copyright, use freely"
    r"|s?rgb (?:iec ?)?61966-?2[-.]1(?: black scaled)?|srgb iec61966-2[-.]1|srgb (?:built-in|2014)|srgb2014"
    r"|(?:gimp|krita) built-in srgb|iec http://www\.iec\.ch|iec 61966-2[-.]1 default rgb colour space - srgb"
    r"|reference viewing condition in iec ?61966-2[-.]1|copyright \(c\) 1998 hewlett-packard company"
    r"|display p3(?: gamut with srgb transfer)?|adobe rgb \(1998\)|copyright (?:1999|2000) adobe systems incorporated"
    r"|copyright apple(?: computer)?,? inc\.,? \d{4}|google inc\. \d{4}|google/skia/[0-9a-f]{32}|skia",
    re.IGNORECASE,
)


def has_metadata(data: bytes, mime: str) -> bool:
    """Return whether an image has more than what shows it; never for other files."""
    if not mime.startswith("image/"):
        return False
    match mime:
        case "image/jpeg":
            return not _is_bare_jpeg(data)
        case "image/png":
            return not _is_bare_png(data)
        case "image/gif":
            return not _is_bare_gif(data)
        case "image/webp":
            return len(data) != int.from_bytes(data[4:8], "little") + 8 or not _is_bare_webp(data)
        case _:
            return True


def _is_bare_jpeg(data: bytes) -> bool:
    at, profile = 2, bytearray()
    for _ in range(_MOST):
        if (marker := _MARKER.match(data, at)) is None:
            return False
        code, at = marker[1][0], marker.end()
        if code == _END:
            return at == len(data) and (not profile or _is_common_profile(bytes(profile)))
        length = int.from_bytes(data[at : at + 2])
        body, at = data[at + 2 : at + length], at + length
        if length < 2 or at > len(data) or not _is_needed(code, body):
            return False
        if code == _JPEG_PROFILE:
            profile += body[14:]
            if len(profile) > _LARGEST_PROFILE:
                return False
        if code == _SCAN:
            if (following := _BEHIND_SCAN.search(data, at)) is None:
                return False
            at = following.start()
    return False


def _is_needed(code: int, body: bytes) -> bool:
    """Return whether a segment of a JPEG is needed to show it."""
    match code:
        case 0xE0:  # JFIF
            return _JFIF_HEAD.fullmatch(body) is not None
        case 0xE2:
            return body.startswith(b"ICC_PROFILE\0")
        case 0xEE:  # how the colours are coded
            return body.startswith(b"Adobe") and len(body) == 12
        case _:
            return code in _JPEG_FRAMES or code in _JPEG_TABLES


def _is_bare_png(data: bytes) -> bool:
    at = 8
    for _ in range(_MOST):
        begin, kind = at + 8, data[at + 4 : at + 8]
        end = begin + int.from_bytes(data[at : at + 4])
        at = end + 4  # behind the checksum
        if at > len(data) or kind not in _PNG_PARTS or (kind == b"iCCP" and not _is_common_iccp(data[begin:end])):
            return False
        if kind == b"IEND":
            return begin == end and at == len(data)
    return False


def _is_common_iccp(body: bytes) -> bool:
    name, _, packed = body.partition(b"\0")
    try:
        profile = zlib.decompressobj().decompress(packed[1:], _LARGEST_PROFILE)
    except zlib.error:
        return False
    return _is_common(name.decode("latin-1")) and _is_common_profile(profile)


def _is_bare_gif(data: bytes) -> bool:
    at = 13 + _colours(data[10:11])
    parts = iter(range(_MOST))  # images, extensions and the blocks of images together
    for _ in parts:
        if extension := _GIF_EXTENSION.match(data, at):
            at = extension.end()
        elif data[at : at + 1] == b",":
            at += 11 + _colours(data[at + 9 : at + 10])
            for _ in parts:
                size = int.from_bytes(data[at : at + 1])
                at += 1 + size
                if not size:
                    break
        else:
            return data[at:] == b";"
    return False


def _colours(flags: bytes) -> int:
    """Return the bytes of a table of colours, by the flags before it."""
    found = int.from_bytes(flags)
    return 3 << (found & 7) + 1 if found & 0x80 else 0


def _is_bare_webp(data: bytes) -> bool:
    parts = iter(range(_MOST))  # chunks, and those inside of frames, together
    for _, (kind, begin, end) in zip(parts, _riff(data, 12, len(data)), strict=False):
        inner = zip(parts, _riff(data, begin + 16, end) if kind == b"ANMF" else (), strict=False)
        if kind not in _WEBP_PARTS or any(one not in (b"VP8 ", b"VP8L", b"ALPH") for _, (one, _, _) in inner):
            return False
        if kind == b"ICCP" and not _is_common_profile(data[begin:end]):
            return False
    return next(parts, None) is not None


def _riff(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the chunks between two positions: their kinds, and where their contents begin and end.

    What is no whole chunk is one without a kind.
    """
    while start < end:
        kind, size = data[start : start + 4], int.from_bytes(data[start + 4 : start + 8], "little")
        stop = start + 8 + size
        if start + 8 > end or stop > end:
            yield b"", start, end
            return
        yield kind, start + 8, stop
        start = stop + size % 2


def _is_common_profile(data: bytes) -> bool:
    """Return whether a colour profile is one that many images have: all of its texts are known."""
    count = int.from_bytes(data[128:132])
    covered = 132 + 12 * count
    if count > 100 or len(data) < covered:
        return False
    tags = [data[at : at + 12] for at in range(132, covered, 12)]
    for begin, size in sorted((int.from_bytes(tag[4:8]), int.from_bytes(tag[8:])) for tag in tags):
        if begin + size > len(data) or data[covered:begin].strip(b"\0"):
            return False
        if data[begin : begin + 4] not in _NUMBERS and (
            size > _LONGEST_TEXT or not all(map(_is_common, _texts(data[begin : begin + size])))
        ):
            return False
        covered = max(covered, begin + size)
    return not data[covered:].strip(b"\0")


def _texts(tag: bytes) -> Iterator[str]:
    """Yield the texts of a tag of a profile; what is no text is one that nobody knows."""
    match tag[:4]:
        case b"text":
            yield tag[8:].decode("latin-1")
        case b"desc":
            end = 12 + int.from_bytes(tag[8:12])
            yield tag[12:end].decode("latin-1")
            yield re.sub(rb"[^ -~]+", b"", tag[end:]).decode()  # the same once more, for old systems
        case b"mluc":
            for at in range(16, 16 + 12 * min(int.from_bytes(tag[8:12]), 100), 12):
                begin = int.from_bytes(tag[at + 8 : at + 12])
                yield tag[begin : begin + int.from_bytes(tag[at + 4 : at + 8])].decode("utf-16-be", "replace")
        case _:
            yield "unknown"


def _is_common(words: str) -> bool:
    return _PROFILE_WORDS.fullmatch(words.strip("\0 ")) is not None
