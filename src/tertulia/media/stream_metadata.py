"""Sounds and videos without what they say of themselves: where they were recorded, by whom, names, pictures. Pure.

What is removed is overwritten in its place, as padding of its format. So nothing moves, all else stays as it was, and
nothing has to be decoded. A file that is not as its format says stays as it is from there on.
"""

from collections.abc import Iterator
from typing import Literal

from tertulia.media.content_types import boxes, id3_size

_MOST = 100_000  # boxes, chunks, blocks or tags of a file that are looked at; a real one has some thousand
_BOXES = {  # of how a film is coded, by the box that they are in; what any other says is nobody's business
    b"": frozenset(b"ftyp styp moov mdat moof mfra sidx ssix pdin wide".split()),
    b"moov": frozenset(b"mvhd trak mvex iods cmov clip ctab".split()),
    b"trak": frozenset(b"tkhd mdia edts tref trgr load imap clip matt tapt txas".split()),
    b"mdia": frozenset(b"mdhd hdlr minf elng".split()),
}
_TIMES = frozenset({b"mvhd", b"tkhd", b"mdhd"})  # boxes that begin with when they were made and changed
_WAV = frozenset(b"fmt |fact|data".split(b"|"))  # chunks of how it is coded; so are the next two
_AIFF = frozenset({b"FVER", b"COMM", b"SSND", b"wave"})
_AVI_LISTS = frozenset({b"hdrl", b"strl", b"odml", b"AVIX"})  # chunks with others in them
_AVI = _AVI_LISTS | frozenset(b"movi avih strh strf indx vprp dmlh idx1".split())
_FLAC_SOUND = frozenset({0, 1, 3})  # how it is coded, padding, a table of positions


def without_metadata(data: bytes, mime: str) -> bytes:
    """Return an MP4, QuickTime, AVI, MP3, AAC, FLAC, WAV or AIFF file without what it says of itself; others as is."""
    left = iter(range(_MOST))
    match mime:
        case "video/mp4" | "video/quicktime" | "video/3gpp" | "audio/mp4" | "audio/3gpp":
            found = _of_boxes(data, (0, len(data)), b"", left)
        case "video/x-msvideo":
            found = _of_chunks(data, "little", _AVI, left)
        case "audio/mpeg" | "audio/aac":
            found = _of_tags(data, left)
        case "audio/flac":
            found = _of_flac(data, left)
        case "audio/wav":
            found = _of_chunks(data, "little", _WAV, left)
        case "audio/aiff":
            found = _of_chunks(data, "big", _AIFF, left)
        case _:
            return data
    blank = bytearray(data)
    for begin, end, padding in found:
        end = min(end, len(data))
        blank[begin:end] = padding.ljust(end - begin, b"\0")
    return bytes(blank)


Blank = tuple[int, int, bytes]  # from where to where, and how it then begins


def _of_boxes(data: bytes, span: tuple[int, int], inside: bytes, left: Iterator[int]) -> Iterator[Blank]:
    """What is in other boxes than those of how a film is coded, and behind the last box."""
    stop, end = span
    for _, (kind, begin, stop) in zip(left, boxes(data, *span), strict=False):
        if kind not in _BOXES[inside]:
            named = begin - 4 if data[begin - 4 : begin] == kind else begin - 12  # behind the kind may be a long size
            yield named, named + 4, b"free"
            yield begin, stop, b""
        elif kind in _TIMES:
            yield begin + 4, min(begin + (20 if data[begin : begin + 1] == b"\1" else 12), stop), b""
        elif kind in _BOXES:
            yield from _of_boxes(data, (begin, stop), kind, left)
    if next(left, None) is not None:
        yield stop, end, b"\0\0\0\0free"[: end - stop]  # a box up to the end


def _of_tags(data: bytes, left: Iterator[int]) -> Iterator[Blank]:
    """The tags before a sound, and those behind it."""
    begin = 0
    for _ in left:
        size = id3_size(data[begin : begin + 11])
        if not size:
            break
        yield begin + 5, begin + 6, b""  # its flags
        yield begin + 10, begin + size, b""
        begin += size
    end = len(data)
    if data[-128:-125] == b"TAG":
        end -= 128
        yield end + 3, len(data), b""
    if data[end - 32 : end - 24] == b"APETAGEX":
        size = int.from_bytes(data[end - 20 : end - 16], "little") + 32
        yield max(begin, end - size), end, b""


def _of_flac(data: bytes, left: Iterator[int]) -> Iterator[Blank]:
    yield from _of_tags(data, left)
    at = id3_size(data) + 4
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


def _of_chunks(
    data: bytes, order: Literal["little", "big"], kept: frozenset[bytes], left: Iterator[int]
) -> Iterator[Blank]:
    """What is in other chunks than those to be kept; chunks in a list follow each other like all others."""
    at = 12
    for _ in left:
        if at + 8 > len(data):
            return
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], order)
        kind = data[at + 8 : at + 12] if kind in (b"LIST", b"RIFF") else kind
        end = min(at + 8 + size, len(data))
        if kind not in kept:
            yield at, at + 4, b"JUNK"
            yield at + 8, end, b""
        at = at + 12 if kind in kept & _AVI_LISTS else end + size % 2
