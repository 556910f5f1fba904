"""Sounds and videos go without what they say of themselves, and sound and look as before."""

from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from struct import pack

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from media import media_files as files
from sizes import in_time
from tertulia.media.content_types import content_type
from tertulia.media.stream_metadata import without_metadata

PRIVATE = (b"at home", b"Ann of", b"+50.4500", b"a comment", "at home".encode("utf-16-le"))


def box(kind: bytes, *contents: bytes, long: bool = False) -> bytes:
    body = b"".join(contents)
    return (pack(">I4sQ", 1, kind, len(body) + 16) if long else pack(">I4s", len(body) + 8, kind)) + body


def with_date(video: bytes) -> tuple[bytes, ...]:
    """An AVI that says at its beginning when it was made."""
    at, date = video.index(b"LIST") + 12, b"IDIT\7\0\0\0at home\0"
    size = int.from_bytes(video[at - 8 : at - 4], "little") + len(date)
    return video[: at - 8], pack("<I", size), video[at - 4 : at], date, video[at:]


ID3 = b"ID3\3\0\0\0\0\0\x12TIT2" + pack(">IH", 8, 0) + b"\0at home"
TAG = b"TAG" + b"at home".ljust(125, b"\0")
MP3 = files.sound("mp3", "libmp3lame", rate=44_100)
APE = pack("<II", 7, 0) + b"title\0at home" + b"APETAGEX" + pack("<IIII8x", 2000, 53, 1, 0)
WAV = files.wav(0.1)
FILES: dict[str, Callable[[], bytes]] = {
    "mp4": lambda: files.telling(files.video("mp4", speech="aac"), "mp4"),
    "mov": lambda: files.telling(files.video("mov"), "mov"),
    "3gp": lambda: files.telling(files.video("3gp", "mpeg4"), "3gp"),
    "m4a": lambda: files.telling(files.sound("ipod", "aac"), "ipod"),
    "mp3": lambda: files.telling(MP3, "mp3"),
    "mp3 with tags behind": lambda: MP3 + APE + TAG,
    "flac": lambda: files.telling(files.sound("flac", "flac"), "flac"),
    "wav": lambda: files.telling(WAV, "wav"),
    "mp3 with two tags before": lambda: ID3 + ID3 + MP3,
    "flac with a tag behind": lambda: files.sound("flac", "flac") + TAG,
    "aac": lambda: ID3 + files.sound("adts", "aac") + TAG,
    "aiff": lambda: files.telling(files.sound("aiff", "pcm_s16be"), "aiff") + b"ID3 " + pack(">I", len(ID3)) + ID3,
    "avi": lambda: files.telling(files.video("avi", "mpeg4"), "avi"),
    "avi of a camera": lambda: b"".join(with_date(files.video("avi", "mpeg4"))),
    "box of a camera": lambda: files.video("mp4") + box(b"gps0", b"at home"),
    "box of a camera in another": lambda: files.video("mp4") + box(b"moov", box(b"gps ", b"at home")),
    "mp4 with something behind": lambda: files.video("mp4") + b"SEFHat home",
    "mp4 with a broken box behind": lambda: files.video("mp4") + b"\0\0\0\2more at home",
    "box of xmp": lambda: files.video("mp4") + box(b"uuid", b"a" * 16, b"at home"),
    "box with a long size": lambda: files.video("mp4") + box(b"udta", b"at home", long=True),
}


def decoded(data: bytes) -> list[bytes]:
    """The frames of a file, up to where it can be decoded."""
    found: list[bytes] = []
    with av.open(BytesIO(data), "r") as container, suppress(av.FFmpegError):
        for frame in container.decode():
            found.append(frame.to_ndarray().tobytes())
    return found


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_says_of_itself_is_removed_and_nothing_else(name: str) -> None:
    data = FILES[name]()
    mime = content_type(data) or ""

    sent = without_metadata(data, mime)

    assert any(mark in data for mark in PRIVATE)
    assert [mark for mark in PRIVATE if mark in sent] == []
    assert (len(sent), content_type(sent)) == (len(data), mime)
    assert decoded(sent) == decoded(data) != []
    with av.open(BytesIO(sent)) as container:
        assert not set(files.TOLD) & set(container.metadata)
    assert without_metadata(sent, mime) == sent


def test_when_a_video_was_made_is_removed() -> None:
    head, film = box(b"mvhd", bytes(4), b"made" * 2, bytes(88)), files.video("mp4")

    sent = without_metadata(film + box(b"moov", head), "video/mp4")

    assert sent.endswith(box(b"moov", box(b"mvhd", bytes(100))))


def test_other_files_stay_as_they_are() -> None:
    data = files.sound("ogg", "libopus")

    assert without_metadata(data, "audio/ogg") is data


MIMES = ("video/mp4", "audio/mpeg", "audio/aac", "audio/flac", "audio/wav", "audio/aiff", "video/x-msvideo")
BEGINNINGS = (b"", b"\0\0\0\x10ftypisom\0\0\0\0\0\0\0\0moov", b"ID3\4\0\0\0\0\0\5", b"fLaC\4\0\0\1", WAV[:36])


@given(st.sampled_from(MIMES), st.sampled_from(BEGINNINGS), st.binary(max_size=200))
def test_any_bytes_stay_as_many(mime: str, beginning: bytes, data: bytes) -> None:
    assert len(without_metadata(beginning + data, mime)) == len(beginning + data)


@in_time
@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"\0\0\0\x08free" * 1_000_000, "video/mp4"),
        (b"".join(pack(">I4s", 8 * left, b"moov") for left in range(500_000, 0, -1)), "video/mp4"),
        (b"fLaC" + b"\4\0\0\0" * 2_000_000, "audio/flac"),
        (WAV[:12] + b"LIST\0\0\0\0" * 1_000_000, "audio/wav"),
        (
            b"RIFF\0\0\0\0AVI " + b"".join(pack("<4sI4s", b"LIST", 12 * n + 4, b"strl") for n in range(300_000, 0, -1)),
            "video/x-msvideo",
        ),
        (b"ID3\3\0\0\0\0\0\0" * 1_000_000, "audio/mpeg"),
    ],
)
def test_long_files_take_no_quadratic_time(data: bytes, mime: str) -> None:
    assert len(without_metadata(data, mime)) == len(data)


@pytest.mark.parametrize(
    ("before", "told", "mime"),
    [
        (box(b"trak", box(b"edts") * 60_000) * 2, box(b"udta", b"at home"), "video/mp4"),
        (b"\1\0\0\0" * 100_000, b"\x84\0\0\7at home", "audio/flac"),
        (b"data\0\0\0\0" * 100_000, b"LIST\7\0\0\0at home", "audio/wav"),
    ],
    ids=["mp4", "flac", "wav"],
)
def test_only_the_first_pieces_of_a_file_are_looked_at(before: bytes, told: bytes, mime: str) -> None:
    begins = {"audio/flac": b"fLaC", "audio/wav": WAV[:12]}
    data = begins.get(mime, b"") + (box(b"moov", before, told) if mime == "video/mp4" else before + told)

    assert without_metadata(data, mime) == data
