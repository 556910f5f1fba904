"""Decoding: asks the decoder, a process of its own with limits, about files that somebody sent.

Every job is a process that is killed when it takes too long. What it answers is checked too, since a file may have
taken it over: it is of a bounded size, of the type that was asked for, and an image has nothing but its pixels.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, cast

import msgspec
from msgspec import Meta, Struct

import tertulia
from tertulia.characters import one_line
from tertulia.errors import MediaUnreadable
from tertulia.media.content_types import PDF, PICTURES, STREAMS, TGS, content_type
from tertulia.media.image_metadata import has_metadata

TIMEOUT = 30.0  # seconds for one file
CPU = 15  # seconds of computing for one file
MEMORY = 640 * 1024 * 1024  # bytes, beside what the libraries take; a picture of 50 megapixels needs up to 400 MB
PIXELS = 50_000_000  # of one picture or frame
MOST_OUTPUT = 32 * 1024 * 1024  # bytes that a job may return
AT_ONCE = 2  # processes
PATIENCE = 5.0  # seconds until the pipe of a process that was killed is closed

PACKAGES = {"PIL": "pillow", "av": "av", "pypdfium2": "pypdfium2", "rlottie_python": "rlottie-python"}
DECODED = {  # the types that each job takes
    "facts": PICTURES | STREAMS | {TGS, PDF},
    "image": PICTURES,
    "still": PICTURES | {TGS} | {mime for mime in STREAMS if mime.startswith("video/")},
    "pages": frozenset({PDF}),
    "sound": STREAMS,
}
KILLED = (1, 2, 9, 15)  # signals that come from outside: of a shutdown, of `close`, of a system without memory
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop()); from tertulia.media.decoder.process import main; main()"
_SHARED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")  # no keys, which others may be


class FileFacts(Struct, frozen=True, kw_only=True):
    """What a file is, by its content. What a type does not have is None."""

    mime: str
    width: int | None = None  # as it is shown, so after it was turned
    height: int | None = None
    frames: int | None = None
    seconds: float | None = None
    pages: int | None = None


_Count = Annotated[int, Meta(ge=0, lt=2**40)]


class _Head(Struct, frozen=True):
    failure: str | None = None
    missing: str | None = None
    width: _Count | None = None
    height: _Count | None = None
    frames: _Count | None = None
    seconds: Annotated[float, Meta(ge=0)] | None = None
    pages: _Count | None = None


def missing_decoders() -> tuple[str, ...]:
    """Return the packages of `tertulia[media]` that are not installed."""
    return tuple(package for module, package in PACKAGES.items() if find_spec(module) is None)


class Decoder:
    """Decodes files in processes of their own, two at once. Raises `MediaUnreadable` for those that cannot be."""

    def __init__(self, *, timeout: float = TIMEOUT, memory: int = MEMORY, pixels: int = PIXELS) -> None:
        self._timeout = timeout
        self._memory = memory
        self._pixels = pixels
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._processes: set[asyncio.subprocess.Process] = set()

    async def facts(self, data: bytes) -> FileFacts:
        """Return what a file is; of images, sound, video and PDF the beginning is decoded, so that it really is one."""
        mime = type_of(data)
        if mime not in DECODED["facts"]:
            return FileFacts(mime=mime)
        head, _ = await self._run(data, "facts")
        return FileFacts(
            mime=mime,
            width=head.width,
            height=head.height,
            frames=_within(head.frames, data),
            seconds=head.seconds,
            pages=_within(head.pages, data),
        )

    async def image(self, data: bytes, *, longest: int, mime: str = "image/jpeg") -> bytes:
        """Return an image with sides of at most *longest* pixels: turned upright, without EXIF, never enlarged."""
        return await self._made(data, "image", mime, longest=longest)

    async def still(self, data: bytes, *, longest: int = 1024, mime: str = "image/jpeg") -> bytes:
        """Return the frame that shows an animation or a video best: about its middle, and not blank."""
        return await self._made(data, "still", mime, longest=longest)

    async def pages(self, data: bytes, *, most: int, characters: int) -> str:
        """Return the text of the first pages of a PDF, each under its number."""
        _, body = await self._run(data, "pages", most=most, characters=characters)
        return body.decode("utf-8", "replace")[:characters]

    async def sound(self, data: bytes, *, seconds: int, mime: str = "audio/wav") -> bytes:
        """Return the sound of a file as WAV or MP3 with 16,000 samples a second; what is longer is cut.

        A WAV has at most 1000 seconds. Long sounds may take longer than other files, by a second for every forty.
        """
        return await self._made(data, "sound", mime, seconds=min(seconds, 1000) if mime == "audio/wav" else seconds)

    @property
    def running(self) -> tuple[int, ...]:
        """The ids of the processes that run."""
        return tuple(process.pid for process in self._processes)

    async def close(self) -> None:
        """Kill the processes that still run; who waits for one gets the error."""
        for process in self._processes:
            _kill(process)

    async def _made(self, data: bytes, name: str, mime: str, *, longest: int = 0, seconds: int = 0) -> bytes:
        _, body = await self._run(data, name, output=mime, longest=longest, seconds=seconds)
        if content_type(body) != mime or has_metadata(body, mime):
            raise MediaUnreadable(f"{type_of(data)}: the decoder did not return {mime}")
        return body

    async def _run(self, data: bytes, name: str, *, seconds: int = 0, **options: int | str) -> tuple[_Head, bytes]:
        mime = type_of(data)
        if mime not in DECODED[name]:
            raise MediaUnreadable(f"{mime} is not decoded as {name}")
        more = seconds // 40  # for a long sound
        limits = {"cpu": CPU + more, "memory": self._memory, "pixels": self._pixels}
        job = msgspec.json.encode({"name": name, "mime": mime, "seconds": seconds, **limits, **options}).decode()
        timeout = self._timeout + more
        async with self._turn:
            try:
                async with asyncio.timeout(timeout):
                    output, code = await self._process(job, data)
            except TimeoutError:
                raise MediaUnreadable(f"{mime}: it took more than {timeout:g} seconds", for_now=True) from None
            except OSError as error:
                raise MediaUnreadable(f"the decoder did not start: {error}", for_now=True) from error
        return _answer(mime, output, code)

    async def _process(self, job: str, data: bytes) -> tuple[bytes, int]:
        """Run a process to its end, and return what it wrote and its exit code; kill it if it is not waited for."""
        root = str(Path(tertulia.__file__).parent.parent)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _PROGRAM, job, root),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _SHARED_VARIABLES if name in os.environ}
            | {"MALLOC_ARENA_MAX": "1"},
            cwd="/" if os.name == "posix" else None,
            start_new_session=True,  # an interrupt in the terminal is not for it
        )
        self._processes.add(process)
        stdout = cast("asyncio.StreamReader", process.stdout)
        writing = asyncio.create_task(_write(cast("asyncio.StreamWriter", process.stdin), data))
        try:
            output = await _read(stdout)
            return output, await process.wait()
        finally:
            self._processes.discard(process)
            writing.cancel()
            await asyncio.shield(_end(process, stdout))


def _within(count: int | None, data: bytes) -> int | None:
    """Return how many frames or pages a file says it has; at most one for each byte."""
    return None if count is None else min(count, len(data))


def type_of(data: bytes) -> str:
    """Return the type of a file by its content. Raise `MediaUnreadable` if it is none that we know."""
    if (mime := content_type(data)) is None:
        raise MediaUnreadable(f"a file of {len(data):,} bytes is of no known type")
    return mime


async def _write(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(OSError):  # it ended before it had read all
        stdin.write(data)
        await stdin.drain()
        stdin.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and those that it started, also if it has ended itself."""
    with suppress(ProcessLookupError, PermissionError):  # of a process that has ended, by the system
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)  # it has a session of its own
        else:
            process.kill()


async def _end(process: asyncio.subprocess.Process, stdout: asyncio.StreamReader) -> None:
    """Kill a process that still runs, and read what is left in its pipe, so that the pipe is closed."""
    _kill(process)
    with suppress(TimeoutError):  # a process that left the session may have the pipe
        async with asyncio.timeout(PATIENCE):
            while await stdout.read(1 << 16):
                pass
            await process.wait()


async def _read(stdout: asyncio.StreamReader) -> bytes:
    output = bytearray()
    while piece := await stdout.read(1 << 16):
        output += piece
        if len(output) > MOST_OUTPUT:
            raise MediaUnreadable(f"the decoder returned more than {MOST_OUTPUT:,} bytes")
    return bytes(output)


def _answer(mime: str, output: bytes, code: int) -> tuple[_Head, bytes]:
    has_begun = output.startswith(b"\n")
    first, _, body = output.removeprefix(b"\n").partition(b"\n")
    try:
        head = msgspec.json.decode(first, type=_Head)
    except (ValueError, RecursionError):
        if code > 0 and not has_begun:
            raise MediaUnreadable(f"the decoder did not start: its exit status is {code}", for_now=True) from None
        if -code in KILLED:
            raise MediaUnreadable(f"{mime}: its decoder was killed", for_now=True) from None
        how = f"signal {-code}" if code < 0 else f"exit status {code}" if code else "no answer"
        raise MediaUnreadable(f"{mime}: it cannot be decoded within the limits ({how})") from None
    if head.missing:
        package = PACKAGES.get(head.missing.partition(".")[0], one_line(head.missing))
        raise MediaUnreadable(f"{mime} needs tertulia[media]: {package} is not installed", for_now=True)
    if head.failure is not None:
        raise MediaUnreadable(f"{mime}: {one_line(head.failure)[:300]}")
    return head, body
