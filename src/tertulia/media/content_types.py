"""Content types: the MIME type of a file by its bytes, never by its name. Pure.

The first bytes decide, since a decoder reads them first; containers (MP4, Matroska, Ogg, ZIP, gzip) are told apart by
what is in them. Bytes behind the end of a format make no difference: a JPEG with a ZIP behind it is a JPEG.
"""

import codecs
import re
import zlib
from collections.abc import Iterator
from itertools import islice

import msgspec

TGS, PDF = "application/x-tgsticker", "application/pdf"
PICTURES = frozenset(f"image/{kind}" for kind in "jpeg png gif webp avif bmp tiff".split())  # this and next: decoded
STREAMS = frozenset(
    [f"audio/{kind}" for kind in "ogg mpeg wav flac aac aiff amr mp4 3gpp webm x-matroska".split()]
    + [f"video/{kind}" for kind in "ogg mp4 3gpp quicktime webm x-matroska x-msvideo".split()]
)

_HEAD = 65_536  # bytes in which the parts of a container are looked for
_MOST = 1000  # boxes or entries of a container that are looked at
_PIECE = 1 << 20  # bytes of a text that are decoded at once
_MANY = 20  # letters by which an encoding is told

_SIGNATURES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"%PDF-", PDF),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"FLV\x01", "video/x-flv"),
    (b"\0\0\x01\xba", "video/mpeg"),
    (b"\0\0\x01\xb3", "video/mpeg"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-wmv"),
    (b"{\\rtf", "application/rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
)
_CHUNKED = {
    (b"RIFF", b"WEBP"): "image/webp",
    (b"RIFF", b"WAVE"): "audio/wav",
    (b"RIFF", b"AVI "): "video/x-msvideo",
    (b"FORM", b"AIFF"): "audio/aiff",
    (b"FORM", b"AIFC"): "audio/aiff",
}
_IMAGE_BRANDS = {  # of ISO media files, the most telling first
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
}
_OFFICE = {
    b"word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_SPACES = b" \t\r\n\v\f"
_CYRILLIC, _VOWELS = re.compile("[а-яёіїєґ]", re.IGNORECASE), re.compile("[аоеиіуы]", re.IGNORECASE)
_WRONG_LETTERS = re.compile(  # what other encodings than Windows-1251 give: letters of two alphabets, or odd ones
    r"[a-z](?=[а-яёіїєґ])|[а-яёіїєґ](?=[a-z])|[^\W\d_a-zа-яёіїєґў]|[\ufffd\xa4\xa6\xac\xb1\xb5]", re.IGNORECASE
)
_HTML = re.compile(r"(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL)
_XML = re.compile(r"<(?:\?xml|svg|!doctype\s+svg)[\s>]", re.IGNORECASE)
_MP3_RATES = {  # kbit/s by (MPEG 1, layer 3)
    (True, True): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (True, False): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (False, True): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, False): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def content_type(data: bytes) -> str | None:
    """Return the MIME type of a file by its content; None if it is of no type that we know."""
    for signature, mime in _SIGNATURES:
        if data.startswith(signature):
            return mime
    if chunked := _CHUNKED.get((data[:4], data[8:12])):
        return chunked
    if data[4:8] == b"ftyp":
        return _iso_media(data)
    if data[4:8] in (b"moov", b"mdat", b"wide"):
        return "video/quicktime"  # of before there were brands
    if data.startswith(b"OggS"):
        return _ogg(data[:_HEAD])
    if data.startswith(b"\x1aE\xdf\xa3"):
        return _matroska(data[:_HEAD])
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(data)
    if data.startswith(b"\x1f\x8b"):
        return TGS if _is_lottie(data) else "application/gzip"
    return _bmp(data) or _mpeg_audio(data) or _text(data) or _late_pdf(data)


def text_of(data: bytes, most: int | None = None) -> str | None:
    """Return the text of a plain text file, or its first characters, at *most* so many; None if it is none."""
    charset = charset_of(data)
    if charset is None:
        return None
    beginning = data if most is None else data[: 4 * (most + 1)]
    return codecs.getincrementaldecoder(charset)("replace").decode(beginning)[:most]


def charset_of(data: bytes) -> str | None:
    """Return the encoding of a plain text file: UTF-8, UTF-16 with a byte order mark, or Windows-1251; else None."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16" if _is_text(data, "utf-16") else None
    if _is_text(data, "utf-8-sig"):
        return "utf-8-sig"
    return "cp1251" if _is_cyrillic(data[:_HEAD]) and not _CONTROL.search(data) else None


def _is_text(data: bytes, charset: str) -> bool:
    """Decode all of a file, a piece at a time."""
    decoder = codecs.getincrementaldecoder(charset)()
    try:
        for start in range(0, len(data), _PIECE):
            if _CONTROL_CHARACTER.search(decoder.decode(data[start : start + _PIECE])):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _is_cyrillic(head: bytes) -> bool:
    """Return whether a text is Ukrainian, Russian or the like in Windows-1251, in which spreadsheets are exported.

    It says nothing of its encoding, so its letters tell: another one gives words of two alphabets, signs that are rare
    in texts, and few of the most common vowels.
    """
    text = head.decode("cp1251", "replace")
    letters, vowels = (len(pattern.findall(text)) for pattern in (_CYRILLIC, _VOWELS))
    return letters >= _MANY and vowels > 0.3 * letters and len(_WRONG_LETTERS.findall(text)) < 0.02 * letters


def _text(data: bytes) -> str | None:
    start = text_of(data.lstrip(_SPACES), _HEAD)
    if start is None or not (start := start.lstrip()):
        return None
    if start[0] in "{[" and _is_json(data):
        return "application/json"
    if _HTML.match(start):
        return "text/html"
    return "text/xml" if _XML.match(start) else "text/plain"


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=msgspec.Raw)  # checked, not built
    except (ValueError, RecursionError):
        return False
    return True


def _bmp(data: bytes) -> str | None:
    """`BM` may begin a text: the reserved bytes and the size of the second header tell."""
    sizes = (12, 16, 40, 52, 56, 64, 108, 124)
    is_bmp = data.startswith(b"BM") and data[6:10] == bytes(4) and int.from_bytes(data[14:18], "little") in sizes
    return "image/bmp" if is_bmp else None


def _late_pdf(data: bytes) -> str | None:
    """Readers of PDF look for its first line in the first 1024 bytes."""
    return PDF if b"%PDF-" in data[:1029] and b"startxref" in data[-2048:] else None


def _mpeg_audio(data: bytes) -> str | None:
    """MP3, or AAC with ADTS headers: two frames, one behind the other. A tag of ID3 may stand before them."""
    start = id3_size(data)
    if data[start : start + 4] == b"fLaC":
        return "audio/flac"
    mime, length = _audio_frame(data[start : start + 8])
    if not mime:
        return "audio/mpeg" if start and b"\xff\xfb" in data[start : start + 4096] else None
    following = start + length
    return mime if following >= len(data) or _audio_frame(data[following : following + 8])[0] == mime else None


def id3_size(data: bytes) -> int:
    """Return the bytes of the tag of ID3 before a sound; 0 if there is none."""
    if not data.startswith(b"ID3") or len(data) <= 10:
        return 0
    return 10 + sum((byte & 0x7F) << shift for byte, shift in zip(data[6:10], (21, 14, 7, 0), strict=True))


def _audio_frame(header: bytes) -> tuple[str | None, int]:
    """The type and length of a frame that begins so; no type if none does."""
    if len(header) < 6 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None, 0
    layer = header[1] >> 1 & 3
    if layer == 0 and header[1] & 0xF6 == 0xF0:
        length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
        return ("audio/aac", length) if length >= 7 else (None, 0)
    version, rate, frequency = header[1] >> 3 & 3, header[2] >> 4, header[2] >> 2 & 3
    if layer not in (1, 2) or version == 1 or rate in (0, 15) or frequency == 3:
        return None, 0
    bits = _MP3_RATES[version == 3, layer == 1][rate - 1] * 1000
    hertz = (44_100, 48_000, 32_000)[frequency] // {3: 1, 2: 2, 0: 4}[version]
    samples = 72 if layer == 1 and version != 3 else 144
    return "audio/mpeg", samples * bits // hertz + (header[2] >> 1 & 1)


def boxes(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The boxes of an ISO media file between two positions: their kinds, and where their contents begin and end."""
    while start + 8 <= end:
        size, begin = int.from_bytes(data[start : start + 4]), start + 8
        if size == 1:
            size, begin = int.from_bytes(data[begin : begin + 8]), begin + 8
        stop = end if size == 0 else min(start + size, end)
        if stop < begin:
            return
        yield data[start + 4 : start + 8], begin, stop
        start = stop


def _inside(data: bytes, path: tuple[bytes, ...], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the contents of all boxes at a path (`moov`, `trak` …) begin and end."""
    for kind, begin, stop in islice(boxes(data, start, end), _MOST):
        if kind == path[0]:
            if len(path) == 1:
                yield begin, stop
            else:
                yield from _inside(data, path[1:], begin, stop)


def _iso_media(data: bytes) -> str:
    """MP4, QuickTime, 3GP or an image: by the tracks, where they are told, else by the brands."""
    brands = data[8 : min(int.from_bytes(data[:4]), 512)]
    main, others = brands[:4], {brands[at : at + 4] for at in range(8, len(brands), 4)}
    if main in _IMAGE_BRANDS:
        return next(mime for brand, mime in _IMAGE_BRANDS.items() if brand == main or brand in others)
    handlers = islice(_inside(data, (b"moov", b"trak", b"mdia", b"hdlr"), 0, len(data)), _MOST)
    tracks = {data[begin + 8 : begin + 12] for begin, _ in handlers}
    video = b"vide" in tracks or (b"soun" not in tracks and main not in (b"M4A ", b"M4B ", b"M4P "))
    if main == b"qt  " and video:
        return "video/quicktime"
    subtype = "3gpp" if main[:3] in (b"3gp", b"3g2") else "mp4"
    return f"{'video' if video else 'audio'}/{subtype}"


def _matroska(head: bytes) -> str:
    kind = "webm" if b"\x42\x82\x84webm" in head[:4096] else "x-matroska"
    is_sound = not re.search(rb"\x86[\x81-\xa0]V_", head) and re.search(rb"\x86[\x81-\xa0]A_", head)
    return f"{'audio' if is_sound else 'video'}/{kind}"


def _ogg(head: bytes) -> str:
    if b"\x80theora" in head:
        return "video/ogg"
    sound = (b"OpusHead", b"\x01vorbis", b"\x7fFLAC", b"Speex   ")
    return "audio/ogg" if any(mark in head for mark in sound) else "application/ogg"


def _zip(data: bytes) -> str:
    """ZIP, or a document that is a ZIP: as a reader sees it, by the directory at its end."""
    name = re.match(rb"PK\x03\x04.{22}\x08\0(?:..)mimetype([a-z0-9./+-]{1,100})", data, re.DOTALL)
    if name and name[1].startswith((b"application/vnd.oasis.opendocument", b"application/epub+zip")):
        return name[1].decode()
    names = set(islice(_zip_names(data), _MOST))
    return next((mime for part, mime in _OFFICE.items() if part in names), "application/zip")


def _zip_names(data: bytes) -> Iterator[bytes]:
    end = data.rfind(b"PK\x05\x06", max(0, len(data) - 65_557))
    at = int.from_bytes(data[end + 16 : end + 20], "little") if end >= 0 else len(data)
    while data[at : at + 4] == b"PK\x01\x02":
        name, extra, comment = (int.from_bytes(data[at + 28 + 2 * i : at + 30 + 2 * i], "little") for i in range(3))
        yield data[at + 46 : at + 46 + name]
        at += 46 + name + extra + comment


def _is_lottie(data: bytes) -> bool:
    """Whether a gzip file holds an animation of Lottie; only its beginning is unpacked."""
    try:
        head = zlib.decompressobj(wbits=31).decompress(data[:_HEAD], _HEAD)
    except zlib.error:
        return False
    keys = (b'"fr"', b'"ip"', b'"op"', b'"w"', b'"h"')
    return head.lstrip().startswith(b"{") and (b'"tgs"' in head or all(key in head for key in keys))
