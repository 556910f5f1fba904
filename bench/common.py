"""What the benchmarks share: the conversation, the stubbed transport, the measuring and the table."""

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


class Said(Struct, frozen=True, kw_only=True):
    """One message of the conversation everybody encodes; each subject keeps it in its own types."""

    kind: Literal["user", "model", "call", "result"]
    text: str
    call_id: str = ""
    image: bytes = b""
    signature: bytes = b""


Run = Callable[[], tuple[float, bytes]]  # makes one request whose last message is new: its CPU seconds, its body
Subject = Callable[[Sequence[Said], Said], Run]  # keeps the history, takes the new message


class Row(Struct, frozen=True, kw_only=True):
    n: int
    name: str
    ms: float


# the conversation


def conversation(n: int) -> list[Said]:
    """*n* messages, the last of them new: every 25th with an image, every tenth exchange with a tool call."""
    random_ = random.Random(n)
    said: list[Said] = []
    images = 0
    plain: list[Literal["user", "model"]] = ["user", "model"]
    if n % 2 == 0:
        said.append(Said(kind="user", text=_words(0, random_)))
    for exchange in range(n):
        left = n - 1 - len(said)
        if left <= 0:
            break
        for kind in ("user", "call", "result", "model") if exchange % 10 == 2 and left >= 4 else plain:
            number = len(said)
            due = kind == "user" and (number + 20) // 25 > images
            images += due
            said.append(
                Said(
                    kind=kind,
                    text=_words(number, random_),
                    call_id=f"call{exchange}",
                    image=IMAGE_START + random_.randbytes(8_000) if due else b"",
                    signature=SIGNATURE_START + random_.randbytes(180) if kind == "call" else b"",
                )
            )
    return [*said, Said(kind="user", text=_words(n - 1, random_))]


def _words(number: int, random_: random.Random) -> str:
    """20 to 400 characters that begin with the message's number, by which it is found again in the bytes."""
    words = random_.choice(list(WORDS.values()))
    text = f"[[message {number}]]"
    length = random_.randint(20, 400)
    while len(text) < length:
        text += f" {random_.choice(words)}"
    return text[: max(length, 20)]


def check(name: str, body: bytes, said: Sequence[Said], *, signed: bool) -> None:
    """Nobody is measured doing nothing: all messages, images and signatures are in the body."""
    numbers = [int(number) for number in re.findall(rb"\[\[message (\d+)\]\]", body)]
    assert sorted(numbers) == list(range(len(said))), f"{name}: {len(numbers)} of {len(said)} messages were encoded"
    images = sum(1 for one in said if one.image)
    assert _times(IMAGE_START, body) == images, f"{name}: {_times(IMAGE_START, body)} of {images} images were encoded"
    signatures = sum(1 for one in said if one.signature) if signed else 0
    assert _times(SIGNATURE_START, body) == signatures, f"{name}: the signatures were not encoded"
    assert TOOL_WORDS.encode() in body, f"{name}: the tool was not declared"
    assert SYSTEM.encode() in body, f"{name}: the instruction is missing"


def _times(start: bytes, body: bytes) -> int:
    """How often data beginning with *start* is in the body: in base64 of either alphabet, or as it is in protobuf."""
    return len({match.start() for form in _forms(start) for match in re.finditer(re.escape(form), body)})


def _forms(start: bytes) -> tuple[bytes, ...]:
    return start, base64.b64encode(start), base64.urlsafe_b64encode(start)


# the transport


class Stub:
    """A transport that takes the time when the request's bytes reach it, and gives a small answer."""

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
    """The median CPU time, after runs that are checked and warm what is kept."""
    name, subject = named
    said = conversation(n)
    run = subject(said[:-1], said[-1])
    for _ in range(2):  # the second finds everything kept that will be
        _, body = run()
        check(name, body, said, signed="openai" not in name)
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
    """Each subject in a process of its own, so that none lives on what another left in the memory allocator."""
    measured = partial(measure_subject, sizes=sizes, repeats=repeats)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return [row for rows in pool.imap(measured, subjects.items(), chunksize=1) for row in rows]


def progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


def table(rows: Sequence[Row], sizes: Sequence[int], *, unit: str) -> str:
    """Milliseconds of CPU a *unit*, then how ours stand to the fastest peer, and all to the floor if there is one."""
    ms = {(row.name, row.n): row.ms for row in rows}
    names = list(dict.fromkeys(row.name for row in rows))
    ours = [name for name in names if name.startswith("palaver")]
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
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(n) for n in text.split(",")}))
    if sizes[0] < 2:
        raise ValueError(text)
    return sizes


def main(words: str | None, subjects: Mapping[str, Subject], *, unit: str) -> None:
    """The command line of a benchmark: measure all *subjects*, print the table or the rows."""
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
