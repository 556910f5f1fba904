"""The conversation, stub transport, timer and table that the benchmarks share."""

import argparse
import base64
import gc
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal

import httpx2
from msgspec import Struct

GEMINI_MODEL = "gemini-3.6-flash"
OPENAI_MODEL = "gpt-4.1"
SIZES = (10, 100, 500, 5000)
REPEATS = 21
LEAST_REPEATS = 3  # however slow the subject
SECONDS = 3.0  # after which a subject is not repeated again

SYSTEM = "You are a friend in a group chat. Answer briefly, in the language you are spoken to."
TOOL = "search_messages"
TOOL_WORDS = "Search the messages of this chat."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "what to look for"}},
    "required": ["query"],
}
IMAGE_START = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xdb\x00C"[:24]
SIGNATURE_START = b"an opaque thought of it!"  # 24 bytes, so that its base64 stands by itself
WORDS = {
    "Latin": "the we have a picture of what was said about dinner tomorrow train leaves quarter to nine please bring "
    "that book you mentioned it seems nobody remembers where café naïve good idea then".split(),
    "Cyrillic": "ми вчора говорили про поїздку до Львова а потім хтось сказав що квитки вже є якщо можна то візьми "
    "фотоапарат і теплу куртку бо ввечері холодно їдемо зранку не забудь".split(),
}


class Sample(Struct, frozen=True, kw_only=True):
    """A message of the sample conversation. Each subject stores it in its own types."""

    kind: Literal["user", "model", "call", "result"]
    text: str
    call_id: str = ""
    image: bytes = b""
    signature: bytes = b""


Run = Callable[[], tuple[float, bytes]]  # makes one request whose last message is new: its CPU seconds, its body
Subject = Callable[[Sequence[Sample], Sample], Run]  # keeps the history, takes the new message


class Row(Struct, frozen=True, kw_only=True):
    n: int
    name: str
    ms: float


# the conversation


def conversation(n: int) -> list[Sample]:
    """Make *n* messages: every 25th has an image, every tenth exchange a tool call. The last one is new."""
    random_ = random.Random(n)
    samples: list[Sample] = []
    images = 0
    plain: list[Literal["user", "model"]] = ["user", "model"]
    if n % 2 == 0:
        samples.append(Sample(kind="user", text=_words(0, random_)))
    for exchange in range(n):
        left = n - 1 - len(samples)
        if left <= 0:
            break
        for kind in ("user", "call", "result", "model") if exchange % 10 == 2 and left >= 4 else plain:
            number = len(samples)
            due = kind == "user" and (number + 20) // 25 > images
            images += due
            samples.append(
                Sample(
                    kind=kind,
                    text=_words(number, random_),
                    call_id=f"call{exchange}",
                    image=IMAGE_START + random_.randbytes(8_000) if due else b"",
                    signature=SIGNATURE_START + random_.randbytes(180) if kind == "call" else b"",
                )
            )
    return [*samples, Sample(kind="user", text=_words(n - 1, random_))]


def _words(number: int, random_: random.Random) -> str:
    """Make 20 to 400 characters. They begin with the message's number, by which `check` finds the message."""
    words = random_.choice(list(WORDS.values()))
    text = f"[[message {number}]]"
    length = random_.randint(20, 400)
    while len(text) < length:
        text += f" {random_.choice(words)}"
    return text[: max(length, 20)]


def check(name: str, body: bytes, samples: Sequence[Sample], *, signed: bool) -> None:
    """Check that all messages, images and signatures are in the body, so that no subject skips work."""
    numbers = [int(number) for number in re.findall(rb"\[\[message (\d+)\]\]", body)]
    assert sorted(numbers) == list(range(len(samples))), (
        f"{name}: {len(numbers)} of {len(samples)} messages were encoded"
    )
    images = sum(1 for one in samples if one.image)
    assert _times(IMAGE_START, body) == images, f"{name}: {_times(IMAGE_START, body)} of {images} images were encoded"
    signatures = sum(1 for one in samples if one.signature) if signed else 0
    assert _times(SIGNATURE_START, body) == signatures, f"{name}: the signatures were not encoded"
    assert TOOL_WORDS.encode() in body, f"{name}: the tool was not declared"
    assert SYSTEM.encode() in body, f"{name}: the instruction is missing"


def _times(start: bytes, body: bytes) -> int:
    """Count data that begin with *start* in the body: in base64 of either alphabet, or raw in protobuf."""
    return len({match.start() for form in _forms(start) for match in re.finditer(re.escape(form), body)})


def _forms(start: bytes) -> tuple[bytes, ...]:
    return start, base64.b64encode(start), base64.urlsafe_b64encode(start)


# the transport


class Stub:
    """A transport that stores the time and the bytes of a request and returns a small answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.body = b""
        self.at = 0.0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.at = time.process_time()
        self.body = request.content
        return httpx2.Response(200, json=self.answer)

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(self))

    def async_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))

    def timed(self, call: Callable[[], object]) -> Run:
        def run() -> tuple[float, bytes]:
            start = time.process_time()
            call()
            return self.at - start, self.body

        return run


ANSWER = "Yes."
GEMINI_ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    "modelVersion": GEMINI_MODEL,
    "responseId": "r",
}
OPENAI_ANSWER: dict[str, Any] = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": OPENAI_MODEL,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}

# measuring


def measure(named: tuple[str, Subject], n: int, repeats: int) -> Row:
    """Measure the median CPU time. Two runs before it are checked and fill the caches."""
    name, subject = named
    samples = conversation(n)
    run = subject(samples[:-1], samples[-1])
    for _ in range(2):  # the second finds the caches filled
        _, body = run()
        check(name, body, samples, signed="openai" not in name)
    gc.collect()
    times: list[float] = []
    until = time.monotonic() + SECONDS
    while len(times) < repeats and (len(times) < LEAST_REPEATS or time.monotonic() < until):
        took, _ = run()
        times.append(took)
    return Row(n=n, name=name, ms=statistics.median(times) * 1000)


def measure_subject(named: tuple[str, Subject], *, sizes: Sequence[int], repeats: int) -> list[Row]:
    name, _ = named
    rows: list[Row] = []
    try:
        for n in sizes:
            progress(f"{name}, {n:,} messages")
            rows.append(measure(named, n, repeats))
    except ImportError as error:
        progress("")
        print(f"{name} is left out: {error} (`make bench` installs the peers)", file=sys.stderr)
    progress("")
    return rows


def measure_all(subjects: Mapping[str, Subject], sizes: Sequence[int], repeats: int) -> list[Row]:
    """Measure each subject in its own process, so that memory freed by one cannot speed up another."""
    measured = partial(measure_subject, sizes=sizes, repeats=repeats)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return [row for rows in pool.imap(measured, subjects.items(), chunksize=1) for row in rows]


def progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


def table(rows: Sequence[Row], sizes: Sequence[int], *, unit: str) -> str:
    """Show milliseconds of CPU a *unit*, ours relative to the fastest peer, and all relative to the floor."""
    ms = {(row.name, row.n): row.ms for row in rows}
    names = list(dict.fromkeys(row.name for row in rows))
    ours = [name for name in names if name.startswith("tertulia")]
    floors = [name for name in names if name.startswith("floor")]
    peers = [name for name in names if name not in (*ours, *floors)]
    lines = [[f"ms of CPU a {unit}, messages:", *(f"{n:,}" for n in sizes)], []]
    lines += [[name, *(_number(ms[name, n]) for n in sizes)] for name in names]
    if peers:
        fastest = {n: min(ms[name, n] for name in peers) for n in sizes}
        lines += [[], ["times faster than the fastest peer:"], []]
        lines += [[name, *(f"{_number(fastest[n] / ms[name, n])}x" for n in sizes)] for name in ours]
    if floors:
        floor = {n: min(ms[name, n] for name in floors) for n in sizes}
        lines += [[], ["times the floor:"], []]
        lines += [[name, *(f"{_number(ms[name, n] / floor[n])}x" for n in sizes)] for name in [*ours, *peers]]
    width = max(len(line[0]) for line in lines if line)
    padded = (line[0].ljust(width) + "".join(cell.rjust(10) for cell in line[1:]) if line else "" for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _number(value: float) -> str:
    """Format with three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(n) for n in text.split(",")}))
    if sizes[0] < 2:
        raise ValueError(text)
    return sizes


def main(words: str | None, subjects: Mapping[str, Subject], *, unit: str) -> None:
    """Run the command line of a benchmark: measure all *subjects*, print the table or the rows."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--json", action="store_true", help="print a list of {n, name, ms}")
    parser.add_argument("--n", type=_sizes, default=SIZES, help="how many messages, e.g. 10,500; at least 2")
    parser.add_argument("--repeat", type=int, default=REPEATS, help="at most so many; slow subjects are repeated less")
    given = parser.parse_args()
    rows = measure_all(subjects, given.n, given.repeat)
    if given.json:
        print(json.dumps([{"n": row.n, "name": row.name, "ms": round(row.ms, 4)} for row in rows], indent=1))
        return
    print(table(rows, given.n, unit=unit))
