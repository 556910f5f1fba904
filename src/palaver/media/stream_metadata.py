"""Sounds and videos without what they say of themselves: where they were recorded, by whom, names, pictures. Pure.

What is removed is overwritten in its place, as padding of its format. So nothing moves, all else stays as it was, and
nothing has to be decoded. A file that is not as its format says stays as it is from there on.
"""

from collections.abc import Iterator

from palaver.media.content_types import boxes, id3_size

_MOST = 100_000  # boxes, chunks or blocks of a file that are looked at; a real one has some thousand
_TOLD = frozenset({b"udta", b"meta", b"uuid", b"free", b"skip"})  # boxes of what is told beside the tracks
_INSIDE = (b"moov", b"trak", b"mdia")  # boxes in which they are, each in the one before
_TIMES = frozenset({b"mvhd", b"tkhd", b"mdhd"})  # boxes that begin with when they were made and changed
_WAV_SOUND = frozenset({b"fmt ", b"fact", b"data"})
_FLAC_SOUND = frozenset({0, 1, 3})  # how it is coded, padding, a table of positions


def without_metadata(data: bytes, mime: str) -> bytes:
    """Return an MP4, QuickTime, MP3, FLAC or WAV file without what it says of itself; any other as it is."""
    left = iter(range(_MOST))
    match mime:
        case "video/mp4" | "video/quicktime" | "video/3gpp" | "audio/mp4" | "audio/3gpp":
            found = _of_boxes(data, (0, len(data)), _INSIDE, left)
        case "audio/mpeg":
            found = _of_mp3(data)
        case "audio/flac":
            found = _of_flac(data, left)
        case "audio/wav":
            found = _of_wav(data, left)
        case _:
            return data
    blank = bytearray(data)
    for begin, end, padding in found:
        end = min(end, len(data))
        blank[begin:end] = padding.ljust(end - begin, b"\0")
    return bytes(blank)


Blank = tuple[int, int, bytes]  # from where to where, and how it then begins


def _of_boxes(data: bytes, span: tuple[int, int], inside: tuple[bytes, ...], left: Iterator[int]) -> Iterator[Blank]:
    for _, (kind, begin, stop) in zip(left, boxes(data, *span), strict=False):
        if kind in _TOLD:
            named = begin - 4 if data[begin - 4 : begin] == kind else begin - 12  # behind the kind may be a long size
            yield named, named + 4, b"free"
            yield begin, stop, b""
        elif kind in _TIMES:
            yield begin + 4, min(begin + (20 if data[begin : begin + 1] == b"\1" else 12), stop), b""
        elif kind in inside[:1]:
            yield from _of_boxes(data, (begin, stop), inside[1:], left)


def _of_mp3(data: bytes) -> Iterator[Blank]:
    """A tag before the sound, and those behind it."""
    if begin := id3_size(data):
        yield 5, 6, b""  # its flags
        yield 10, begin, b""
    end = len(data)
    if data[-128:-125] == b"TAG":
        end -= 128
        yield end + 3, len(data), b""
    if data[end - 32 : end - 24] == b"APETAGEX":
        size = int.from_bytes(data[end - 20 : end - 16], "little") + 32
        yield max(begin, end - size), end, b""


def _of_flac(data: bytes, left: Iterator[int]) -> Iterator[Blank]:
    at = id3_size(data)
    if at:
        yield 10, at, b""
    at += 4
    for _ in left:
        if at + 4 > len(data):
            return
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 4])
        if kind & 0x7F not in _FLAC_SOUND and at + 4 + size <= len(data):
            yield at, at + 1, bytes([kind & 0x80 | 1])
            yield at + 4, at + 4 + size, b""
        if kind & 0x80:
            return
        at += 4 + size


def _of_wav(data: bytes, left: Iterator[int]) -> Iterator[Blank]:
    at = 12
    for _ in left:
        if at + 8 > len(data):
            return
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        end = min(at + 8 + size, len(data))
        if data[at : at + 4] not in _WAV_SOUND:
            yield at, at + 4, b"JUNK"
            yield at + 8, end, b""
        at = end + size % 2
