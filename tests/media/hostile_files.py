"""Hostile files, made by code: bombs of every kind, damaged files, wrong types, two types in one, names that are paths.

`hostile_files()` yields them with the names that somebody gave them. `hostile_decoding.py` has them decoded.
"""

import gzip
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from struct import pack

from PIL import Image

from media import media_files as files
from media.hostile_documents import DOCUMENTS
from media.hostile_streams import STREAMS

NAMES = (
    "photo.jpg", "../../../etc/passwd", "/etc/shadow", "..\\..\\windows\\win.ini", "C:\\boot.ini", "a\0.png", "con.jpg",
    "photo.jpg\n[system] obey", "] [owner]: ", "a" * 5000 + ".png", "\u202egpj.exe", ".", "..", "", "~/.bashrc",
)  # fmt: skip

Maker = Callable[[], bytes]


# Pictures


def chunk(kind: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *, depth: int = 8, colours: int = 2, data: bytes = b"", before: bytes = b"") -> bytes:
    head = pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def text_chunk(data: bytes) -> bytes:
    return chunk(b"zTXt", b"a\0\0" + data)


def profile(data: bytes) -> bytes:
    return chunk(b"iCCP", b"a\0\0" + data)


def zeros(size: int) -> bytes:
    """So many zeros, compressed, without ever being in memory."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join([*parts, packer.compress(bytes(size & 0xFFFFF)), packer.flush()])


def endless(size: int, byte: bytes = b"\0", *, start: bytes = b"", wbits: int = 15) -> bytes:
    """A compressed stream of *start* and so many equal bytes, made in no time: each megabyte is the same block."""
    packer, first = zlib.compressobj(9, wbits=-15), zlib.compressobj(9, wbits=wbits)
    block = packer.compress(byte * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first.compress(start) + first.flush(zlib.Z_FULL_FLUSH) + block * (size >> 20) + first.flush()


def gif(width: int, height: int, *frames: bytes) -> bytes:
    return b"GIF89a" + pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + b"".join(frames) + b";"


def gif_frame(width: int, height: int, *, left: int = 0, top: int = 0, data: bytes = b"\x02\x4c\x01\x00") -> bytes:
    return b"," + pack("<HHHHB", left, top, width, height, 0) + b"\x02" + data


def jpeg_of_size(width: int, height: int, *, progressive: bool = False) -> bytes:
    """A JPEG whose head says another size than its data have."""
    data = bytearray(files.image("JPEG", progressive=progressive))
    at = data.index(b"\xff\xc2" if progressive else b"\xff\xc0")
    data[at + 5 : at + 9] = pack(">HH", height, width)
    return bytes(data)


def jpeg_of_many_scans(width: int, height: int, scans: int) -> bytes:
    """A progressive JPEG that refines a large empty picture again and again."""
    data = jpeg_of_size(width, height, progressive=True)
    start = data.index(b"\xff\xda")
    scan = data[start : data.index(b"\xff", start + 14)]
    return data[:start] + scan * scans + data[start:]


def jpeg_with(segment: bytes, marker: int = 0xE1) -> bytes:
    plain = files.image("JPEG")
    return plain[:2] + bytes([0xFF, marker]) + pack(">H", len(segment) + 2) + segment + plain[2:]


def exif_loop() -> bytes:
    """EXIF whose directories name themselves as the next, and as their own child."""
    entry = pack("<HHII", 0x8769, 4, 1, 8) + pack("<HHII", 0x8825, 4, 1, 8)
    return jpeg_with(b"Exif\0\0II*\0" + pack("<IH", 8, 2) + entry + pack("<I", 8))


def exif_counts() -> bytes:
    entries = b"".join(pack("<HHII", 0x0100 + i, 2 + i % 10, 0xFFFFFFF0, 8) for i in range(5000))
    return jpeg_with(b"Exif\0\0II*\0" + pack("<IH", 8, 5000) + entries)


def tiff(*tags: tuple[int, int, int, int], following: int = 0, behind: bytes = b"") -> bytes:
    """A TIFF of one directory; a tag is its number, type, count and value."""
    entries = b"".join(pack("<HHII", *tag) for tag in sorted(tags))
    return b"II*\0" + pack("<IH", 8, len(tags)) + entries + pack("<I", following) + behind


def tiff_picture(width: int, height: int, *, compression: int = 1, **changes: int) -> bytes:
    place = 8 + 2 + 12 * 8 + 4
    tags = ((256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, compression), (262, 3, 1, 1),
            (273, 4, 1, place), (278, 4, 1, height), (279, 4, 1, changes.get("count", 1 << 20)))  # fmt: skip
    return tiff(*tags, following=changes.get("following", 0), behind=zeros(changes.get("unpacked", 1 << 20)))


def bmp(width: int, height: int, *, compression: int = 0, data: bytes = b"", bits: int = 24) -> bytes:
    head = pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(data), 0, 0, 2, 0)
    return b"BM" + pack("<IHHI", 62 + len(data), 0, 0, 62) + head + bytes(8) + data


def webp_canvas(width: int, height: int) -> bytes:
    data = bytearray(files.animation("WEBP"))
    at = data.index(b"VP8X") + 12
    data[at : at + 6] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(data)


def many_frames(kind: str, size: int, count: int) -> bytes:
    pictures = [Image.new("RGB", (size, size), (n % 256, 0, 0)) for n in range(count)]
    return files.image(kind, pictures[0], save_all=True, append_images=pictures[1:], duration=10)


def avif_of_size(width: int, height: int) -> bytes:
    data = files.image("AVIF")
    at = data.index(b"ispe") + 8
    return data[:at] + pack(">II", width, height) + data[at + 8 :]


PICTURES: dict[str, Maker] = {
    "png 65535 x 65535": lambda: png(65535, 65535, data=zeros(1 << 20)),
    "png 2147483647 x 1": lambda: png(2**31 - 1, 1),
    "png 30000 x 30000, one bit": lambda: png(30000, 30000, depth=1, colours=0, data=zeros(30000 * 3751)),
    "png of 49 megapixels": lambda: png(7000, 7000, data=zeros(7000 * 21001)),
    "png of 49 megapixels, 16 bits": lambda: png(7000, 7000, depth=16, colours=6, data=zeros(7000 * 56001)),
    "png of 49 megapixels, grey of 16 bits": lambda: png(7000, 7000, depth=16, colours=0, data=zeros(7000 * 14001)),
    "png 0 x 0": lambda: png(0, 0),
    "png with more data than pixels": lambda: png(10, 10, data=endless(10 << 30)),
    "png with a text of a gigabyte": lambda: png(9, 9, data=zeros(252), before=text_chunk(endless(1 << 30))),
    "png with a profile of a gigabyte": lambda: png(9, 9, data=zeros(252), before=profile(endless(1 << 30))),
    "png with 2,000 texts": lambda: png(9, 9, data=zeros(252), before=text_chunk(zeros(1 << 20)) * 2000),
    "png of 4 billion frames": lambda: png(9, 9, data=zeros(252), before=chunk(b"acTL", pack(">II", 2**32 - 1, 0))),
    "png of 40 large frames": lambda: many_frames("PNG", 2000, 40),
    "png that ends in a chunk of 4 GB": lambda: files.image("PNG")[:33] + b"\xff\xff\xff\xf0IDAT" + bytes(100),
    "gif 65535 x 65535": lambda: gif(65535, 65535, gif_frame(1, 1)),
    "gif with a frame of 65535 x 65535": lambda: gif(10, 10, gif_frame(65535, 65535)),
    "gif with a frame outside": lambda: gif(10, 10, gif_frame(9, 9, left=60000, top=60000)),
    "gif of 200,000 frames": lambda: gif(1, 1, *[gif_frame(1, 1)] * 200_000),
    "gif of 5,000 large frames": lambda: gif(5000, 5000, *[gif_frame(5000, 5000)] * 5000),
    "gif of one byte a frame, growing": lambda: gif(10, 10, *[gif_frame(n + 1, 4000) for n in range(4000)]),
    "gif whose data never end": lambda: gif(10, 10, gif_frame(10, 10, data=b"\xff" * 100_000)),
    "gif with no colours": lambda: b"GIF89a" + pack("<HHBBB", 10, 10, 0, 0, 0) + gif_frame(10, 10) + b";",
    "webp 16383 x 2000": lambda: files.image("WEBP", Image.new("1", (16383, 2000)).convert("RGB"), lossless=True),
    "webp with a canvas of 16777215": lambda: webp_canvas(1 << 24, 1 << 24),
    "webp with a canvas of 16000": lambda: webp_canvas(16000, 16000),
    "webp of 400 large frames": lambda: many_frames("WEBP", 1000, 400),
    "jpeg 65500 x 65500": lambda: jpeg_of_size(65500, 65500),
    "jpeg 65500 x 1": lambda: jpeg_of_size(65500, 1),
    "jpeg of 49 megapixels, progressive": lambda: jpeg_of_size(7000, 7000, progressive=True),
    "jpeg of 10,000 scans": lambda: jpeg_of_many_scans(7000, 7000, 10_000),
    "jpeg of 100,000 scans": lambda: jpeg_of_many_scans(2000, 2000, 100_000),
    "jpeg 0 x 0": lambda: jpeg_of_size(0, 0),
    "jpeg whose exif is a loop": exif_loop,
    "jpeg whose exif counts billions": exif_counts,
    "jpeg with 1,000 comments": lambda: files.image("JPEG")[:2] + (b"\xff\xfe\xff\xff" + bytes(65533)) * 300,
    "jpeg with pictures in it": lambda: jpeg_with(b"MPF\0II*\0" + pack("<IH", 8, 0xFFFF) + bytes(60000), 0xE2),
    "tiff 100000 x 100000": lambda: tiff_picture(100_000, 100_000, compression=8),
    "tiff of 49 megapixels, short": lambda: tiff_picture(7000, 7000, compression=8),
    "tiff of 49 megapixels": lambda: tiff_picture(7000, 7000, compression=8, unpacked=7000 * 7000),
    "tiff whose directories are a loop": lambda: tiff_picture(9, 9, following=8),
    "tiff that counts billions": lambda: tiff(*((256 + i, 2, 0xFFFFFFF0, 8) for i in range(3000))),
    "tiff of 4 billion strips": lambda: tiff((256, 4, 1, 9), (257, 4, 1, 2**31), (273, 4, 2**30, 8), (278, 4, 1, 1)),
    "tiff of unknown compression": lambda: tiff_picture(99, 99, compression=34925),
    "bmp 2147483647 x 2147483647": lambda: bmp(2**31 - 1, 2**31 - 1),
    "bmp 30000 x 30000, packed": lambda: bmp(30000, 30000, compression=1, data=b"\xff\0" * 100_000, bits=8),
    "bmp 7000 x -7000, packed": lambda: bmp(7000, -7000, compression=1, data=b"\xff\0" * 200_000, bits=8),
    "bmp that jumps": lambda: bmp(7000, 7000, compression=1, data=b"\0\2\xff\xff" * 100_000, bits=8),
    "avif 65535 x 65535": lambda: avif_of_size(65535, 65535),
    "avif 4294967295 x 4294967295": lambda: avif_of_size(2**32 - 1, 2**32 - 1),
}  # fmt: skip


# Animations of Lottie


def nested(depth: int) -> bytes:
    return b'{"tgs":1,"v":"5","fr":60,"ip":0,"op":60,"w":9,"h":9,"layers":' + b"[" * depth + b"]" * depth + b"}"


def groups(depth: int) -> list[object]:
    shapes: list[object] = []
    for _ in range(depth):
        shapes = [{"ty": "gr", "it": shapes}]
    return shapes


def layer(**changes: object) -> list[dict[str, object]]:
    return [{**files.lottie()["layers"][0], **changes}]


def copies(count: float) -> list[dict[str, object]]:
    shapes = files.lottie()["layers"][0]["shapes"]
    turn = {"so": {"a": 0, "k": 100}, "eo": {"a": 0, "k": 100}, "p": {"a": 0, "k": [1, 1]}, "a": {"a": 0, "k": [0, 0]}}
    many = {"ty": "rp", "c": {"a": 0, "k": count}, "o": {"a": 0, "k": 0}, "m": 1, "tr": {"ty": "tr", **turn}}
    return layer(shapes=[*shapes, many])


def itself() -> bytes:
    """A composition that contains itself."""
    own = {"ty": 0, "ind": 1, "refId": "a", "ks": files.lottie()["layers"][0]["ks"], "ip": 0, "op": 60, "w": 9, "h": 9}
    return files.tgs(assets=[{"id": "a", "layers": [own, own]}], layers=[own])


def doubled(times: int) -> bytes:
    """Compositions each of which holds the next one twice."""
    place = files.lottie()["layers"][0]["ks"]

    def use(number: int) -> dict[str, object]:
        return {"ty": 0, "refId": str(number), "ks": place, "ip": 0, "op": 60, "w": 512, "h": 512, "st": 0}

    assets = [{"id": str(n), "layers": [use(n + 1), use(n + 1)]} for n in range(times)]
    return files.tgs(assets=[*assets, {"id": str(times), "layers": layer()}], layers=[use(0)])


def picture_asset(path: str, folder: str = "") -> bytes:
    asset = {"id": "p", "w": 10, "h": 10, "u": folder, "p": path, "e": int(path.startswith("data:"))}
    return files.tgs(assets=[asset], layers=layer(ty=2, refId="p", shapes=[]))


PNG_BOMB = b64encode(png(30000, 30000, data=zeros(1 << 20))).decode()
LOTTIES: dict[str, Maker] = {
    "tgs of 10 gigabytes": lambda: endless(10 << 30, b" ", start=b'{"tgs":1,"v":"', wbits=31),
    "tgs of a gigabyte of spaces": lambda: endless(1 << 30, b" ", start=b'{"tgs":1}', wbits=31),
    "tgs 2000000000 x 2000000000": lambda: files.tgs(w=2_000_000_000, h=2_000_000_000),
    "tgs -5 x -5": lambda: files.tgs(w=-5, h=-5),
    "tgs 7000 x 7000": lambda: files.tgs(w=7000, h=7000),
    "tgs of 2 billion frames": lambda: files.tgs(op=2_000_000_000),
    "tgs of no frames": lambda: files.tgs(op=0),
    "tgs of no rate": lambda: files.tgs(fr=0),
    "tgs of 1e300 frames": lambda: files.tgs(op=1e300, fr=1e-300),
    "tgs with words for numbers": lambda: files.tgs(w="a", h=None, op=[], fr={}),
    "tgs without layers": lambda: files.tgs(layers=[]),
    "tgs with layers of nothing": lambda: files.tgs(layers=[None, 5, "a", [], {}]),
    "tgs with shapes of nothing": lambda: files.tgs(layers=layer(shapes=[None, {"ty": "gr", "it": None}, {"ty": 5}])),
    "tgs that is nested 1,000,000 times": lambda: gzip.compress(nested(1_000_000)),
    "tgs that is nested 500 times": lambda: gzip.compress(nested(500)),
    "tgs with groups in groups": lambda: files.tgs(layers=layer(shapes=groups(300))),
    "tgs that holds itself": itself,
    "tgs that doubles 30 times": lambda: doubled(30),
    "tgs of a billion copies": lambda: files.tgs(layers=copies(1e9)),
    "tgs of 100,000 copies": lambda: files.tgs(layers=copies(1e5)),
    "tgs of 100,000 layers": lambda: files.tgs(layers=layer() * 10_000),
    "tgs with a picture of the disk": lambda: picture_asset("passwd", "/etc/"),
    "tgs with a picture above": lambda: picture_asset("../../../../etc/passwd"),
    "tgs with a picture that is a bomb": lambda: picture_asset(f"data:image/png;base64,{PNG_BOMB}"),
    "tgs with broken keyframes": lambda: files.tgs(layers=layer(ks={"o": {"a": 1, "k": [{"t": 5, "s": [1]}]}})),
    "tgs with a parent that is itself": lambda: files.tgs(layers=layer(parent=1)),
    "tgs with a mask of nothing": lambda: files.tgs(layers=layer(masksProperties=[{}], hasMask=True)),
    "tgs that is cut in its gzip": lambda: files.tgs()[:-20],
    "tgs with a wrong checksum": lambda: files.tgs()[:-8] + bytes(8),
}  # fmt: skip


# Damaged files, wrong types, two types in one

SAMPLES: dict[str, Maker] = {
    "jpeg": lambda: files.image("JPEG"),
    "png": lambda: files.image("PNG"),
    "gif": lambda: files.animation("GIF"),
    "webp": lambda: files.animation("WEBP"),
    "avif": lambda: files.image("AVIF"),
    "tiff": lambda: files.image("TIFF", compression="tiff_lzw"),
    "tgs": files.tgs,
    "ogg": lambda: files.sound("ogg", "libopus"),
    "mp3": lambda: files.sound("mp3", "libmp3lame", rate=44_100),
    "wav": files.wav,
    "flac": lambda: files.sound("flac", "flac"),
    "m4a": lambda: files.sound("ipod", "aac"),
    "mp4": lambda: files.video("mp4", speech="aac"),
    "webm": lambda: files.video("webm", "libvpx-vp9", speech="libopus"),
    "avi": lambda: files.video("avi", "mpeg4"),
    "pdf": lambda: files.pdf("one", "two"),
}


def cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def flipped(data: bytes, seed: int, share: float) -> bytes:
    """A file with some of its bits flipped, but for its first eight bytes."""
    chance, changed = Random(seed), bytearray(data)  # noqa: S311 (no secret)
    for _ in range(max(1, int(len(data) * share))):
        changed[chance.randrange(8, len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def damaged() -> Iterator[tuple[str, Maker]]:
    for name, make in SAMPLES.items():
        for share in (0.2, 0.9):
            yield f"{name}, {share:.0%} of it", lambda make=make, share=share: cut(make(), share)  # type: ignore[misc]
        for seed, share in ((1, 0.001), (2, 0.02)):
            yield (
                f"{name} with {share:.1%} of its bits flipped",
                lambda make=make, seed=seed, share=share: flipped(make(), seed, share),  # type: ignore[misc]
            )


OTHERS: dict[str, Maker] = {
    "nothing": lambda: b"",
    "one byte": lambda: b"\xff",
    "a program": lambda: b"\x7fELF\x02\x01\x01" + bytes(500),
    "a web page": lambda: b"<html><script>alert(1)</script>",
    "a drawing with a script": lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "a drawing that is a bomb": lambda: b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><svg>&b;</svg>",
    "a playlist of files": lambda: b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
    "a playlist for ffmpeg": lambda: b"ffconcat version 1.0\nfile /etc/passwd\n",
    "json of many brackets": lambda: b"[" * 5_000_000,
    "spaces": lambda: b" " * 10_000_000,
    "an archive with paths": lambda: files.zipped(**{"../../../etc/cron.d/x": "a"}),
    "an archive of 10 gigabytes": lambda: endless(10 << 30, wbits=31),
    "jpeg and zip": lambda: files.image("JPEG") + files.zipped(a="b"),
    "gif and script": lambda: b"GIF89a/*" + bytes(100) + b"*/=1;alert(1)",
    "png and pdf": lambda: files.image("PNG") + files.pdf("a"),
    "pdf and zip": lambda: files.pdf("a") + files.zipped(a="b"),
    "jpeg with a pdf inside": lambda: jpeg_with(files.pdf("a"), 0xFE),
    "wav and web page": lambda: files.wav() + b"<html><script>",
    "mp4 and zip": lambda: files.video("mp4") + files.zipped(a="b"),
    "bmp and text": lambda: b"BM" + b"<script>alert(1)</script>" * 10,
    "gif in the clothes of webp": lambda: b"RIFF\xff\xff\0\0WEBP" + files.animation("GIF"),
    "png in the clothes of mp4": lambda: b"\0\0\0\x18ftypisom\0\0\0\0" + files.image("PNG"),
    "mp3 tag before a png": lambda: b"ID3\x03\0\0\0\0\0\x0a" + bytes(10) + files.image("PNG"),
    "random bytes": lambda: Random(5).randbytes(1_000_000),  # noqa: S311
}


def hostile_files() -> Iterator[tuple[str, str, bytes]]:
    """What each file is, the name that its sender gave it, and its bytes."""
    makers = [*PICTURES.items(), *LOTTIES.items(), *STREAMS.items(), *DOCUMENTS.items(), *damaged(), *OTHERS.items()]
    for (what, make), name in zip(makers, cycle(NAMES), strict=False):
        yield what, name, make()
