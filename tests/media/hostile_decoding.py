"""Hostile files are decoded: each ends in facts or in one error, in time, within memory. `make hostile-files` runs all.

The files are made in another process, so that the memory of this one is that of a bot. Every job is tried that takes
the type of a file: its facts, an image, a still, its pages, its sound.
"""

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from struct import pack, unpack

from msgspec import Struct

from media.hostile_files import hostile_files
from tertulia.errors import MediaUnreadable
from tertulia.media.content_types import content_type
from tertulia.media.decoding import DECODED, MEMORY, TIMEOUT, Decoder
from tertulia.media.file_names import safe_name

LIBRARIES = 150 << 20  # bytes that the libraries themselves take
BOT = 200 << 20  # bytes that the process which asks may take, with a file of 20 MB and what is made of it
JOBS: dict[str, Callable[[Decoder, bytes], Awaitable[object]]] = {
    "facts": lambda decoder, data: decoder.facts(data),
    "image": lambda decoder, data: decoder.image(data, longest=1024),
    "still": lambda decoder, data: decoder.still(data, longest=1024),
    "pages": lambda decoder, data: decoder.pages(data, most=10, characters=20_000),
    "sound": lambda decoder, data: decoder.sound(data, seconds=60),
}


class Report(Struct):
    files: int = 0
    jobs: int = 0
    decoded: int = 0
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")  # bytes of a decoder
    failures: list[str] = []
    errors: Counter[str] = Counter()


async def decode(decoder: Decoder, what: str, data: bytes, report: Report) -> None:
    """Try every job with a file, and note what went wrong."""
    mime = content_type(data)
    report.files += 1
    for name, job in JOBS.items():
        if name != "facts" and mime not in DECODED[name]:
            continue
        began = time.perf_counter()
        outcome = "decoded"
        try:
            await job(decoder, data)
            report.decoded += 1
        except MediaUnreadable as error:
            outcome = str(error)
            report.errors[outcome.partition(": ")[2].partition(" (")[0] or outcome] += 1
            if "\n" in outcome or len(outcome) > 400 or "Too many open files" in outcome:
                report.failures.append(f"{what}: {name}: no good line: {outcome}")
        except Exception as error:  # noqa: BLE001 (this is what must not happen)
            report.failures.append(f"{what}: {name}: {error!r}")
        seconds = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        report.jobs += 1
        report.slowest = max(report.slowest, (seconds, f"{what}: {name}"))
        if memory > report.largest[0]:
            report.largest = (memory, f"{what}: {name}")
        if seconds > TIMEOUT + 5:
            report.failures.append(f"{what}: {name} took {seconds:.0f} seconds")
        if "-v" in sys.argv:
            print(f"{what}: {name}: {seconds:.1f} s, at most {memory >> 20} MB so far: {outcome}", flush=True)


def write_files() -> None:
    for what, name, data in hostile_files():
        for part in (what.encode(), name.encode(), data):
            sys.stdout.buffer.write(pack(">I", len(part)) + part)
    sys.stdout.flush()
    os.close(1)
    sys.stdin.read()  # until all are decoded: the memory of a child that has ended is counted


async def read_part(stream: asyncio.StreamReader) -> bytes:
    return await stream.readexactly(*unpack(">I", await stream.readexactly(4)))


async def main() -> int:
    pipe = asyncio.subprocess.PIPE
    maker = await asyncio.create_subprocess_exec(sys.executable, __file__, "--make", stdin=pipe, stdout=pipe)
    report, decoder = Report(), Decoder()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TMPDIR"] = os.environ["HOME"] = folder
        while maker.stdout:
            try:
                what, name, data = [await read_part(maker.stdout) for _ in range(3)]
            except asyncio.IncompleteReadError:
                break
            if set(safe_name(name.decode())) & set("/\\\0") or not safe_name(name.decode()).strip("."):
                report.failures.append(f"the name {name!r} leaves the folder")
            await decode(decoder, what.decode(), data, report)
        if written := os.listdir(folder):
            report.failures.append(f"files were written: {written}")
        os.chdir("/")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    await maker.communicate(b"")
    if report.files < 200 or maker.returncode:
        report.failures.append("the files could not be made")
    if own > BOT:
        report.failures.append(f"this process took {own >> 20} MB")
    if report.largest[0] > MEMORY + LIBRARIES:
        report.failures.append(f"a decoder took {report.largest[0] >> 20} MB: {report.largest[1]}")
    print(f"{report.files} files, {report.jobs} jobs: {report.decoded} decoded, {report.errors.total()} refused")
    print(f"longest: {report.slowest[0]:.1f} s, {report.slowest[1]}")
    print(f"memory of a decoder: {report.largest[0] >> 20} MB, {report.largest[1]}; of this process: {own >> 20} MB")
    print(*(f"{count:5} {why}" for why, count in report.errors.most_common(20)), sep="\n")
    print(*report.failures, sep="\n")
    return len(report.failures)


if __name__ == "__main__":
    if "--make" in sys.argv:
        write_files()
    else:
        sys.exit(asyncio.run(main()))
