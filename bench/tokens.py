"""Measures the error of the token estimate against real tokenizers, beside characters and bytes by four."""

import argparse
import html
import json
import re
import statistics
import struct
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from splintr import Tokenizer

from tertulia import tokens
from tertulia.tokens import ESTIMATOR, features

Document = list[str]  # the texts of one file or conversation
Count = Callable[[str], int]

MOST = 3000  # texts of a half
RUN = 30  # texts taken in a row, where not all are
LINES = 20  # of code, a text
JSON_LENGTH = 400  # characters, a text
LONG = 20  # tokens from which a single text's error counts
BATCH = 1000  # tokens
ROUNDS = 3000  # of the fitting
LENGTH = 100  # characters of the message that is timed

FLOORS: dict[str, Count] = {
    "tertulia": ESTIMATOR.text,
    "chars/4": lambda text: max(1, round(len(text) / 4)),
    "bytes/4": lambda text: max(1, round(len(text.encode()) / 4)),
}


class Error(Struct, frozen=True, kw_only=True):
    """Errors in per cent: of the sum, of single texts of at least 20 tokens, of batches of 1,000 tokens."""

    signed: float
    single: float
    batch: float


class Row(Struct, frozen=True, kw_only=True):
    name: str
    texts: int
    tokens: int
    errors: dict[str, Error]  # by who counted, against Gemma 3; `o200k` is tertulia against that


class Speed(Struct, frozen=True, kw_only=True):
    name: str
    us: float
    splintr_us: float


# what is read


def documents(path: Path) -> list[Document]:
    """Read the texts of a file or a folder; in a folder, files of the first known kind that it has."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for suffix, read in READERS.items():
        found = [document for file in files if file.name.endswith(suffix) for document in read(file) if document]
        if found:
            return found
    return []


def _catalogue(file: Path) -> Iterable[Document]:
    """Read the translations of a gettext catalogue, without its header."""
    data = file.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, _, at = struct.unpack_from(f"{order}3I", data, 8)
    spans = [struct.unpack_from(f"{order}2I", data, at + 8 * index) for index in range(count)]
    texts = [data[start : start + size].split(b"\0")[0].decode("utf-8", "replace") for size, start in spans[1:]]
    yield [text for text in texts if text.strip() and "\ufffd" not in text]


def _page(file: Path) -> Iterable[Document]:
    found = re.findall(r"<p>(.*?)</p>", file.read_text("utf-8"), re.DOTALL)
    if file.stem != "print":  # the whole book once more
        yield [html.unescape(re.sub("<[^>]+>", "", paragraph)) for paragraph in found]


def _code(file: Path) -> Iterable[Document]:
    lines = file.read_text("utf-8", "ignore").splitlines(keepends=True)
    yield ["".join(lines[at : at + LINES]) for at in range(0, len(lines), LINES)]


def _log(file: Path) -> Iterable[Document]:
    yield file.read_text("utf-8", "replace").splitlines()


def _conversations(file: Path) -> Iterable[Document]:
    """Read the texts of each conversation in a list; other JSON is one text, written compactly."""
    found = json.loads(file.read_bytes())
    if not (isinstance(found, list) and all("conversation" in item for item in found)):
        compact = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        yield [compact[at : at + JSON_LENGTH] for at in range(0, len(compact), JSON_LENGTH)]
        return
    for item in found:
        sessions = [value for value in item["conversation"].values() if isinstance(value, list)]
        yield [said["text"] for session in sessions for said in session]


def _lines(file: Path) -> Iterable[Document]:
    for line in file.read_text("utf-8").splitlines():
        yield [paragraph for paragraph in json.loads(line)["text"].split("\n") if paragraph.strip()]


READERS: dict[str, Callable[[Path], Iterable[Document]]] = {
    ".mo": _catalogue,
    ".html": _page,
    ".ascii.txt": _log,
    ".jsonl": _lines,
    ".json": _conversations,
    ".py": _code,
    ".js": _code,
}


def emoji() -> list[Document]:
    """Make texts of thirty emoji each, from the older half, which people use most."""
    ranges = chain(range(0x2600, 0x27C0), range(0x1F300, 0x1F650))
    found = [chr(code) for code in ranges if unicodedata.east_asian_width(chr(code)) == "W"]
    return [["".join(found[at : at + 30])] for at in range(0, len(found), 30)]


def halves(found: Sequence[Document]) -> tuple[Document, Document]:
    """Split the documents: every other one to fit on, the rest to report."""
    first, second = (_some(list(chain.from_iterable(found[half::2]))) for half in (0, 1))
    return (first, second) if second else (first[0::2], first[1::2])


def _some(texts: Document) -> Document:
    step = max(RUN, len(texts) * RUN // MOST)
    return [text for at in range(0, len(texts), step) for text in texts[at : at + RUN]]


# what is measured


def error(counted: Sequence[int], real: Sequence[int]) -> Error:
    long = [abs(ours / theirs - 1) for ours, theirs in zip(counted, real, strict=True) if theirs >= LONG]
    batches, ours_so_far, theirs_so_far = [], 0, 0
    for ours, theirs in zip(counted, real, strict=True):
        ours_so_far, theirs_so_far = ours_so_far + ours, theirs_so_far + theirs
        if theirs_so_far >= BATCH:
            batches.append(abs(ours_so_far / theirs_so_far - 1))
            ours_so_far = theirs_so_far = 0
    mean = statistics.fmean
    signed = sum(counted) / sum(real) - 1
    return Error(signed=100 * signed, single=100 * mean(long or [0]), batch=100 * mean(batches or [abs(signed)]))


def measure(name: str, texts: Document, gemma: Count, o200k: Count) -> Row:
    real = [gemma(text) for text in texts]
    errors = {who: error([count(text) for text in texts], real) for who, count in FLOORS.items()}
    errors["o200k"] = error([ESTIMATOR.text(text) for text in texts], [o200k(text) for text in texts])
    return Row(name=name, texts=len(texts), tokens=sum(real), errors=errors)


def speed(name: str, texts: Document, gemma: Count) -> Speed:
    """Return CPU microseconds for a message of 100 characters: the fastest of several passes."""
    whole = "\n".join(texts)[: 500 * LENGTH]
    messages = [whole[at : at + LENGTH] for at in range(0, len(whole) - LENGTH + 1, LENGTH)]
    return Speed(name=name, us=_us(ESTIMATOR.text, messages), splintr_us=_us(gemma, messages))


def _us(count: Count, messages: Document) -> float:
    took = []
    for _ in range(15):
        start = time.process_time()
        for message in messages:
            count(message)
        took.append(time.process_time() - start)
    return min(took) / len(messages) * 1e6


# how the weights are found


def fit(classes: dict[str, Document], gemma: Count) -> list[float]:
    """Fit weights of at least zero by the squared relative error; every class counts the same."""
    size = sum(len(table) for table in _tables())
    squares, targets = [[0.0] * size for _ in range(size)], [0.0] * size
    for texts in classes.values():
        for text in texts:
            _add(text, gemma(text), 1 / len(texts), squares, targets)
    weights = [0.0] * size
    for _ in range(ROUNDS):
        for at in range(size):
            if squares[at][at]:
                miss = targets[at] - sum(a * b for a, b in zip(squares[at], weights, strict=True))
                weights[at] = max(0.0, weights[at] + miss / squares[at][at])
    return weights


def _add(text: str, real: int, weight: float, squares: list[list[float]], targets: list[float]) -> None:
    counts = [(at, count) for at, count in enumerate(features(text)) if count]
    weight /= max(real, LONG) ** 2
    for at, count in counts:
        targets[at] += weight * count * (real - 1)
        for other, times in counts:
            squares[at][other] += weight * count * times


def _tables() -> tuple[dict[bytes, float], ...]:
    european = (tokens.EUROPEAN_SHAPES, tokens.EUROPEAN_MARKS)
    return (tokens.SHAPES, tokens.MARKS, *european, tokens.FAR_SHAPES, tokens.FAR_MARKS)


# what is shown


def table(rows: Sequence[Row]) -> str:
    who = [*FLOORS, "o200k"]
    lines = [f"{'':18}{'tokens':>9}" + "".join(f"{name:>23}" for name in who)]
    lines.append(" " * 27 + f"{'sum':>11}{'text':>6}{'batch':>6}" * len(who))
    for row in rows:
        errors = [row.errors[name] for name in who]
        cells = "".join(f"{one.signed:>+11.1f}{one.single:>6.1f}{one.batch:>6.1f}" for one in errors)
        lines.append(f"{row.name:18}{row.tokens:>9,}{cells}")
    return "\n".join(lines)


def _speeds(speeds: Sequence[Speed]) -> str:
    lines = [f"{'':18}{'tertulia':>9}{'splintr':>9}{'ratio':>8}"]
    for one in speeds:
        lines.append(f"{one.name:18}{one.us:>9.2f}{one.splintr_us:>9.2f}{one.splintr_us / one.us:>7.1f}x")
    return "\n".join(lines)


def _read(data: Sequence[str]) -> dict[str, list[Document]]:
    """Read documents by the name before `=`, and the emoji."""
    paths: dict[str, list[Path]] = {}
    for item in data:
        name, _, path = item.rpartition("=")
        paths.setdefault(name or Path(path).stem, []).append(Path(path))
    found = {name: [one for path in several for one in documents(path)] for name, several in paths.items()}
    return found | {"emoji": emoji()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", help="[NAME=]PATH: a chat, logs, texts, catalogues, pages, or code")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fit", action="store_true", help="print weights fitted to the other half instead")
    args = parser.parse_args()
    gemma, o200k = (_count(Tokenizer.from_pretrained(name)) for name in ("gemma3", "o200k_base"))
    classes = {name: halves(found) for name, found in _read(args.data).items() if found}
    if args.fit:
        weights = fit({name: texts for name, (texts, _) in classes.items()}, gemma)
        names = chain.from_iterable(_tables())
        print(*(f"{name!r}: {weight:.3f}" for name, weight in zip(names, weights, strict=True)), sep="\n")
        return
    rows = [measure(name, texts, gemma, o200k) for name, (_, texts) in classes.items()]
    speeds = [speed(name, texts, gemma) for name, (_, texts) in classes.items()]
    shown = {"rows": to_builtins(rows), "speeds": to_builtins(speeds)}
    print(json.dumps(shown) if args.json else f"{table(rows)}\n\n{_speeds(speeds)}")


def _count(tokenizer: Any) -> Count:
    return lambda text: len(tokenizer.encode(text))


if __name__ == "__main__":
    main()
