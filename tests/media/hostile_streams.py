"""Hostile sound and video, made by code."""

from collections.abc import Callable
from io import BytesIO
from struct import pack

import av

from media import media_files as files

Maker = Callable[[], bytes]


def wav(
    *, channels: int = 1, rate: int = 16_000, bits: int = 16, block: int | None = None, size: int = 2**32 - 1
) -> bytes:
    block = channels * bits // 8 if block is None else block
    form = pack("<HHIIHH", 1, channels, rate, (rate * block) % 2**32, block % 65536, bits)
    return b"RIFF\xff\xff\xff\xffWAVEfmt " + pack("<I", 16) + form + b"data" + pack("<I", size) + bytes(100_000)


def patched(data: bytes, mark: bytes, offset: int, value: bytes) -> bytes:
    """A file with other bytes at a distance behind a mark."""
    at = data.index(mark) + offset
    return data[:at] + value + data[at + len(value) :]


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return pack(">I", len(body) + 8) + kind + body


def boxes_in_boxes(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = box(b"moov", data)
    return box(b"ftyp", b"isom\0\0\0\0isom") + data


def mp4(container: str = "mp4") -> bytes:
    return files.video(container, speech="aac")


def external(path: bytes) -> bytes:
    """A QuickTime file whose pictures are in another file."""
    data = files.video("mov")
    at = data.index(b"dref")
    entry = box(b"alis", bytes(4), path)
    return data[: at + 12] + entry + data[at + 24 :]


def vp9_of_size(width: int, height: int) -> bytes:
    """A WebM of one frame of one colour."""
    output = BytesIO()
    with av.open(output, "w", format="webm") as file:
        stream = file.add_stream("libvpx-vp9", rate=1, options={"deadline": "realtime", "cpu-used": "8"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        frame = av.VideoFrame(width, height, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.pts = 0
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return output.getvalue()


def growing() -> bytes:
    """A WebM whose first frame is small and whose second one is large."""
    small, large = files.video("webm", "libvpx-vp9", frames=1), vp9_of_size(7000, 6000)
    cluster = large.index(b"\x1f\x43\xb6\x75")
    return small + large[cluster:]


def ogg_page(data: bytes, *, serial: int = 1, number: int = 0, kind: int = 0) -> bytes:
    segments = bytes([255] * (len(data) // 255) + [len(data) % 255])[:255]
    return (
        b"OggS\0"
        + bytes([kind])
        + bytes(8)
        + pack("<III", serial, number, 0)
        + bytes([len(segments)])
        + segments
        + data
    )


def mkv(mark: bytes, value: bytes) -> bytes:
    return patched(files.video("webm", "libvpx-vp9", size=(320, 240), speech="libopus"), mark, len(mark), value)


MP3_FRAME = b"\xff\xfb\x90\0"
STREAMS: dict[str, Maker] = {
    "wav of 65535 channels": lambda: wav(channels=65535),
    "wav of no channels": lambda: wav(channels=0),
    "wav of no rate": lambda: wav(rate=0),
    "wav of one sample a second": lambda: wav(rate=1),
    "wav of 4 billion samples a second": lambda: wav(rate=2**32 - 1),
    "wav of 65535 bits": lambda: wav(bits=65535),
    "wav of blocks of nothing": lambda: wav(block=0),
    "mp3 with a tag of 256 MB": lambda: b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + files.sound("mp3", "libmp3lame", rate=44_100),
    "mp3 with a picture of 4 GB": lambda: b"ID3\x04\0\0\0\0\x10\0APIC\x7f\x7f\x7f\x7f" + bytes(3000) + MP3_FRAME,
    "flac of one sample a second": lambda: patched(files.sound("flac", "flac"), b"fLaC", 18, b"\0\0\x10"),
    "flac of blocks of 65535": lambda: patched(files.sound("flac", "flac"), b"fLaC", 8, b"\xff\xff\xff\xff"),
    "flac with a picture of 16 MB": lambda: b"fLaC\x06\xff\xff\xff" + files.sound("flac", "flac")[4:],
    "ogg of empty pages": lambda: ogg_page(b"OpusHead\x01\x01" + bytes(9), kind=2) + ogg_page(b"") * 200_000,
    "ogg of 10,000 streams": lambda: b"".join(
        ogg_page(b"OpusHead\x01\x02" + bytes(9), serial=i, kind=2) for i in range(10_000)
    ),
    "opus of 255 channels": lambda: patched(files.sound("ogg", "libopus"), b"OpusHead", 9, b"\xff"),
    "opus that begins in an hour": lambda: patched(files.sound("ogg", "libopus"), b"OpusHead", 10, b"\xff\xff"),
    "mp4 65535 x 65535": lambda: patched(mp4(), b"avc1", 28, pack(">HH", 65535, 65535)),
    "mp4 of 2^63 seconds": lambda: patched(mp4(), b"mvhd", 16, pack(">II", 1, 2**32 - 1)),
    "mp4 of no time scale": lambda: patched(mp4(), b"mdhd", 12, bytes(4)),
    "mp4 of 4 billion samples": lambda: patched(mp4(), b"stsz", 12, b"\xff\xff\xff\xff"),
    "mp4 of samples of 4 GB": lambda: patched(mp4(), b"stsz", 8, b"\xff\xff\xff\xff"),
    "mp4 of 4 billion chunks": lambda: patched(mp4(), b"stco", 8, b"\xff\xff\xff\xff"),
    "mp4 of 4 billion times": lambda: patched(mp4(), b"stts", 8, b"\xff\xff\xff\xff"),
    "mp4 of 10,000 boxes in boxes": lambda: boxes_in_boxes(10_000),
    "mp4 of a million boxes": lambda: box(b"ftyp", b"isom\0\0\0\0isom") + box(b"free") * 1_000_000,
    "mp4 of 100,000 tracks": lambda: box(b"ftyp", b"isom\0\0\0\0isom") + box(b"moov", box(b"trak") * 100_000),
    "mp4 without samples": lambda: box(b"ftyp", b"isom\0\0\0\0isom") + box(b"moov", box(b"mvhd", bytes(100))),
    "mp4 of 4 billion references": lambda: patched(mp4(), b"dref", 8, b"\xff\xff\xff\xff"),
    "mov of another file": lambda: external(b"/etc/passwd"),
    "mov of an address": lambda: external(b"http://127.0.0.1:9/a"),
    "webm 16383 x 8000": lambda: mkv(b"\xb0\x82", b"\x3f\xff"),
    "webm 7000 x 6000": lambda: vp9_of_size(7000, 6000),
    "webm 9000 x 6000": lambda: vp9_of_size(9000, 6000),
    "webm that grows": growing,
    "webm of unknown sizes": lambda: mkv(b"\x1f\x43\xb6\x75", b"\x01\xff\xff\xff\xff\xff\xff\xff"),
    "webm of clusters in clusters": lambda: files.video("webm", "libvpx-vp9") + b"\x1f\x43\xb6\x75\xff" * 100_000,
    "webm with a name of 2^56 bytes": lambda: b"\x1aE\xdf\xa3\x01" + b"\xff" * 7 + b"\x42\x82\x84webm" + bytes(1000),
    "avi of 4 billion frames": lambda: patched(files.video("avi", "mpeg4"), b"avih", 24, b"\xff\xff\xff\xff"),
    "avi 65535 x 65535": lambda: patched(files.video("avi", "mpeg4"), b"strf", 12, pack("<II", 65535, 65535)),
    "avi of lists in lists": lambda: b"RIFF\xff\xff\xff\xffAVI " + b"LIST\xff\xff\xff\x7fhdrl" * 100_000,
    "aac of empty frames": lambda: b"\xff\xf1\x50\x80\x00\xff\xfc" * 500_000,
    "amr of one kind": lambda: b"#!AMR\n" + b"\x7c" * 1_000_000,
    "aiff of no rate": lambda: b"FORM\0\0\xff\xffAIFFCOMM\0\0\0\x12\xff\xff" + bytes(16) + b"SSND" + bytes(1000),
}  # fmt: skip
