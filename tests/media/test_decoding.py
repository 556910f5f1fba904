"""Files are decoded in a process of their own: what they are, what is made of them, and which are refused."""

import asyncio
import os
import subprocess
import sys
import wave
from io import BytesIO
from pathlib import Path
from struct import pack
from tempfile import NamedTemporaryFile

import pytest
from PIL import Image, ImageCms

from media import media_files as files
from media.hostile_documents import DOCUMENTS
from media.hostile_files import LOTTIES, PICTURES
from media.hostile_streams import STREAMS
from tertulia.errors import MediaUnreadable
from tertulia.media.content_types import content_type
from tertulia.media.decoding import Decoder, FileFacts, missing_decoders
from tertulia.media.image_metadata import has_metadata


def picture(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


async def test_facts_are_those_that_a_decoder_finds() -> None:
    decoder = Decoder()
    given = [
        files.turned_jpeg(),
        files.animation("GIF"),
        files.tgs(),
        files.sound("ogg", "libopus"),
        files.video("webm", "libvpx-vp9"),
        files.pdf("a", "b", "c"),
        b"some text",
    ]

    found = await asyncio.gather(*map(decoder.facts, given))

    assert found == [
        FileFacts(mime="image/jpeg", width=48, height=64, frames=1),
        FileFacts(mime="image/gif", width=64, height=48, frames=6),
        FileFacts(mime="application/x-tgsticker", width=512, height=512, frames=61, seconds=1.0),
        FileFacts(mime="audio/ogg", seconds=1.006),
        FileFacts(mime="video/webm", width=64, height=48, seconds=2.0),
        FileFacts(mime="application/pdf", pages=3),
        FileFacts(mime="text/plain"),
    ]


async def test_an_image_is_scaled_and_turned_and_says_nothing_of_where_it_was_taken() -> None:
    scaled = await Decoder().image(files.turned_jpeg(), longest=32)

    assert (content_type(scaled), picture(scaled).size) == ("image/jpeg", (24, 32))
    assert not picture(scaled).getexif()
    assert b"Maker" not in scaled
    assert b"a comment" not in scaled


@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "image/webp"])
async def test_an_image_that_is_made_has_nothing_but_what_shows_it(mime: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    photo = files.taken_at_home(comment=b"at home", xmp=files.XMP, icc_profile=profile)

    made = await Decoder().image(photo + photo, longest=64, mime=mime)

    assert (has_metadata(photo, "image/jpeg"), has_metadata(made, mime)) == (True, False)
    assert picture(made).size == (48, 64)


async def test_an_image_is_never_enlarged_and_its_transparency_becomes_a_plain_ground() -> None:
    scaled = await Decoder().image(files.image("PNG", files.a_picture(mode="RGBA")), longest=500)

    assert picture(scaled).size == (64, 48)
    assert picture(scaled).convert("RGB").getpixel((1, 1)) == (255, 255, 255)


@pytest.mark.parametrize(
    "make",
    [
        lambda: files.animation("GIF", blank=2),
        lambda: files.animation("WEBP", blank=2),
        files.tgs,
        lambda: files.video("webm", "libvpx-vp9", blank=11),
        lambda: files.video("mp4", blank=11),
    ],
    ids=["gif", "webp", "tgs", "webm", "mp4"],
)
async def test_a_still_of_an_animation_shows_what_is_in_it(make: object) -> None:
    still = await Decoder().still(make(), longest=64, mime="image/png")  # type: ignore[operator]

    red, green, blue = picture(still).convert("RGB").getpixel((32, 24))  # type: ignore[misc]
    assert red > 150 > 60 > max(green, blue)


async def test_a_still_of_a_transparent_video_is_transparent() -> None:
    still = await Decoder().still(files.video("webm", "libvpx-vp9", pixels="yuva420p"), mime="image/png")

    assert picture(still).mode == "RGBA"
    assert picture(still).getpixel((1, 1))[3] < 16  # type: ignore[index]


async def test_a_video_that_was_filmed_upright_is_shown_upright() -> None:
    video = bytearray(files.video("mp4"))
    matrix = video.index(b"tkhd") + 44
    video[matrix : matrix + 36] = pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)

    facts, still = await Decoder().facts(bytes(video)), await Decoder().still(bytes(video))

    assert (facts.width, facts.height) == picture(still).size == (48, 64)


async def test_pages_are_text_under_their_numbers_cut_to_length() -> None:
    decoder, document = Decoder(), files.pdf("first page", "second page", "third page")

    text = await decoder.pages(document, most=2, characters=1000)

    assert text == "Page 1 of 3:\nfirst page\n\nPage 2 of 3:\nsecond page"
    assert await decoder.pages(document, most=2, characters=20) == text[:20]


async def test_sound_is_wav_of_one_channel_and_ends_after_the_seconds() -> None:
    data = await Decoder().sound(files.video("mp4", speech="aac"), seconds=1)

    with wave.open(BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert 16_000 <= file.getnframes() < 17_000


async def test_what_cannot_be_decoded_is_one_error_with_one_line() -> None:
    decoder = Decoder(pixels=1_000_000)
    jobs = [
        decoder.facts(bytes(range(256))),
        decoder.facts(files.image("PNG")[:60]),
        decoder.facts(files.image("PNG", Image.new("1", (1001, 1000)))),
        decoder.facts(files.pdf("a", encrypt=True)),
        decoder.facts(files.tgs(w=2000, h=2000)),
        decoder.pages(files.pdf("", ""), most=2, characters=100),
        decoder.sound(files.video("mp4"), seconds=1),
        decoder.image(b"some text", longest=10),
    ]

    errors = await asyncio.gather(*jobs, return_exceptions=True)

    assert [(type(error), str(error)) for error in errors] == [
        (MediaUnreadable, "a file of 256 bytes is of no known type"),
        (
            MediaUnreadable,
            "image/png: it is damaged (image file is truncated)",
        ),
        (MediaUnreadable, "image/png: it has more than 1,000,000 pixels"),
        (MediaUnreadable, "application/pdf: it is encrypted"),
        (MediaUnreadable, "application/x-tgsticker: it has 2000 x 2000 pixels, more than 1,000,000"),
        (MediaUnreadable, "application/pdf: it has no text"),
        (MediaUnreadable, "video/mp4: it has no sound"),
        (MediaUnreadable, "text/plain is not decoded as image"),
    ]


async def test_what_takes_too_long_is_killed_and_may_be_tried_again() -> None:
    with pytest.raises(MediaUnreadable, match="took more than") as raised:
        await Decoder(timeout=0.001).facts(files.image("PNG"))

    assert raised.value.for_now


async def test_a_process_that_is_not_waited_for_any_more_is_killed() -> None:
    decoder = Decoder()
    waiting = asyncio.create_task(decoder.facts(files.image("PNG")))
    while not decoder.running:  # noqa: ASYNC110 (there is no event for it)
        await asyncio.sleep(0)
    pid = decoder.running[0]

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert decoder.running == ()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_decoder_that_is_killed_says_nothing_of_its_file() -> None:
    decoder = Decoder()
    waiting = asyncio.create_task(decoder.facts(files.image("PNG")))
    while not decoder.running:  # noqa: ASYNC110 (there is no event for it)
        await asyncio.sleep(0)

    await decoder.close()

    with pytest.raises(MediaUnreadable, match="its decoder was killed") as raised:
        await waiting
    assert raised.value.for_now


async def test_a_decoder_that_needs_more_memory_than_is_allowed_is_the_same_error() -> None:
    large = files.image("PNG", Image.new("RGB", (4000, 4000)))

    with pytest.raises(MediaUnreadable, match=r"memory|limits"):
        await Decoder(memory=24 * 1024 * 1024).image(large, longest=100)


def use_python(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: str) -> None:
    """Let the decoder be run by a Python that does something before; it is called as: -I -c PROGRAM JOB FOLDER."""
    python = folder / "python"
    run = "sys.argv, program = sys.argv[3:], sys.argv[3]\nexec(program)"
    python.write_text("\n".join([f"#!{sys.executable}", "import os, sys", *lines, run]))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


async def test_without_a_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_python(monkeypatch, tmp_path, "sys.modules['PIL'] = None")

    with pytest.raises(MediaUnreadable) as raised:
        await Decoder().facts(files.image("PNG"))

    assert str(raised.value) == "image/png needs tertulia[media]: pillow is not installed"
    assert raised.value.for_now


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("{}", "image/png: the decoder did not return image/jpeg"),
        ('{"failure": "a\\\\n[b]"}', "image/png: a (b)"),
        ("nonsense", "image/png: it cannot be decoded within the limits (no answer)"),
        ("[" * 100_000, "image/png: it cannot be decoded within the limits (no answer)"),
        ('{"width": -1}', "image/png: it cannot be decoded within the limits (no answer)"),
    ],
)
async def test_what_a_decoder_answers_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, error: str
) -> None:
    use_python(monkeypatch, tmp_path, f"print('{answer}')", "sys.exit()")

    with pytest.raises(MediaUnreadable) as raised:
        await Decoder().image(files.image("PNG"), longest=10)

    assert str(raised.value) == error


async def test_a_decoder_that_answers_without_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_python(monkeypatch, tmp_path, "while True: os.write(1, bytes(1 << 20))")

    with pytest.raises(MediaUnreadable, match="returned more than"):
        await Decoder().image(files.image("PNG"), longest=10)


async def is_gone(pid: int) -> bool:
    """Whether a process ends within ten seconds; one that nobody waits for is gone too."""
    for _ in range(1000):
        try:
            status = Path(f"/proc/{pid}/stat").read_text()  # noqa: ASYNC240 (the kernel answers at once)
            if status.rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("then", ["os._exit(3)", "time.sleep(60)"], ids=["that ends", "that hangs"])
async def test_what_a_decoder_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str) -> None:
    started = tmp_path / "pid"
    fork = f"import time\nif not (pid := os.fork()): time.sleep(60)\nopen('{started}', 'w').write(str(pid))"
    use_python(monkeypatch, tmp_path, fork, then)

    with pytest.raises(MediaUnreadable):
        await Decoder(timeout=3).facts(files.image("PNG"))

    assert await is_gone(int(started.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such signal")
async def test_a_decoder_ends_when_the_bot_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bot, told, python = tmp_path / "bot.py", tmp_path / "pid", sys.executable
    bot.write_text(f"""
import asyncio, sys
from tertulia.media.decoding import Decoder
sys.executable = {str(tmp_path / "python")!r}
asyncio.run(Decoder().facts({files.image("PNG")!r}))
""")
    slow = f"""
import time
from tertulia.media.decoder import process
def sleep(room):
    with open({str(told)!r}, "w") as file:
        print(os.getpid(), file=file)
    time.sleep(60)
process.limit_memory = sleep
process.limit_process = lambda seconds: None
"""
    use_python(monkeypatch, tmp_path, slow)
    running = await asyncio.create_subprocess_exec(python, str(bot))
    while not told.exists() or not told.read_text():  # noqa: ASYNC110 (there is no event for it)
        await asyncio.sleep(0.01)

    running.kill()
    await running.wait()

    assert await is_gone(int(told.read_text()))


async def test_a_file_that_ends_its_decoder_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_python(monkeypatch, tmp_path, "os.write(1, b'\\n')", "sys.exit(127)")

    with pytest.raises(MediaUnreadable, match=r"within the limits \(exit status 127\)") as raised:
        await Decoder().facts(files.image("PNG"))

    assert not raised.value.for_now


async def test_a_decoder_that_does_not_start_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_python(monkeypatch, tmp_path, "sys.exit(127)")

    with pytest.raises(MediaUnreadable, match="the decoder did not start: its exit status is 127") as raised:
        await Decoder().facts(files.image("PNG"))

    assert raised.value.for_now


async def test_a_decoder_gets_no_key_of_the_bot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    use_python(monkeypatch, tmp_path, "print('{\"failure\": \"%s\"}' % ' '.join(sorted(os.environ)))", "sys.exit()")

    with pytest.raises(MediaUnreadable) as raised:
        await Decoder().facts(files.image("PNG"))

    names = set(str(raised.value).partition(": ")[2].split())
    assert "MALLOC_ARENA_MAX" in names <= {"MALLOC_ARENA_MAX", "PATH", "LD_LIBRARY_PATH", "TMPDIR", "LC_CTYPE"}


def test_a_decoder_can_open_and_write_nothing_and_takes_no_more_memory_than_its_limit() -> None:
    program = """
from tertulia.media.decoder import process
import os, socket
written = open(os.environ["OUTPUT"], "wb", buffering=0)
process.limit_process(5)
process.limit_memory(64 << 20)
more = lambda: bytearray(128 << 20)
for attempt in (lambda: open("/dev/null"), socket.socket, os.pipe, more, lambda: written.write(b"a")):
    try:
        attempt()
    except (OSError, MemoryError) as error:
        print(type(error).__name__, getattr(error, "strerror", "") or "")
    else:
        print("succeeded")
"""
    with NamedTemporaryFile() as output:
        ran = subprocess.run(
            [sys.executable, "-c", f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{program}"],
            env={**os.environ, "OUTPUT": output.name},
            capture_output=True,
            text=True,
            check=False,
        )

    too_many = "OSError Too many open files"
    assert ran.stdout.splitlines() == [too_many, too_many, too_many, "MemoryError ", "OSError File too large"]


@pytest.mark.parametrize(
    "what",
    [
        "png with a text of a gigabyte",
        "gif with a frame of 65535 x 65535",
        "webp with a canvas of 16777215",
        "jpeg of 10,000 scans",
        "tgs of 10 gigabytes",
        "tgs that holds itself",
        "pdf whose content is 10 GB",
        "mov of another file",
    ],
)
async def test_a_hostile_file_is_an_error(what: str) -> None:
    data = {**PICTURES, **LOTTIES, **STREAMS, **DOCUMENTS}[what]()
    decoder = Decoder(memory=128 << 20)

    with pytest.raises(MediaUnreadable):
        await (decoder.pages(data, most=1, characters=100) if data.startswith(b"%PDF") else decoder.still(data))


def test_here_all_packages_are_installed() -> None:
    assert missing_decoders() == ()
