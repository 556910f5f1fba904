"""Measures how long it takes to render and to split a Markdown text for Telegram, beside parsing it and a peer."""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from importlib import import_module

from markdown_it import MarkdownIt

from tertulia.platforms.telegram.markdown import render
from tertulia.platforms.telegram.split import split_markdown

SIZES = (300, 3_000, 30_000)  # characters
WORDS = "слово word **bold** `code` [link](https://e.test/a) і *so* text. we have, a picture ~~no~~ yes!".split()


def answer(size: int) -> str:
    """Make a text as models write them: paragraphs, headings, lists, code and tables."""
    chooser = random.Random(size)

    def words(most: int) -> str:
        return " ".join(chooser.choices(WORDS, k=chooser.randint(2, most)))

    kinds: list[Callable[[], str]] = [
        lambda: words(60),
        lambda: words(60),
        lambda: f"## {words(5)}",
        lambda: "\n".join(f"- {words(15)}" for _ in range(5)),
        lambda: "```python\n" + "    value = compute(1, 2)\n" * 8 + "```",
        lambda: "| a | b |\n|---|--:|\n" + "\n".join(f"| {words(3)} | {words(3)} |" for _ in range(4)),
    ]
    blocks: list[str] = []
    while sum(map(len, blocks)) < size:
        blocks.append(chooser.choice(kinds)())
    return "\n\n".join(blocks)[:size]


def milliseconds(call: Callable[[str], object], text: str) -> float:
    """Return the median CPU time of a call."""
    times: list[float] = []
    for _ in range(max(5, min(200, 600_000 // len(text)))):
        start = time.process_time()
        call(text)
        times.append(time.process_time() - start)
    return statistics.median(times) * 1000


def subjects() -> dict[str, Callable[[str], object]]:
    """Return what is measured; the peer, if it is installed."""
    found: dict[str, Callable[[str], object]] = {
        "floor: markdown-it parse": MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse,
        "tertulia render": render,
        "tertulia split": split_markdown,
    }
    try:
        found["telegramify-markdown convert"] = import_module("telegramify_markdown").convert
    except ImportError:
        print("telegramify-markdown is left out: it is not installed")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a list of {characters, name, ms}")
    as_json = parser.parse_args().json
    texts = {size: answer(size) for size in SIZES}
    rows = {name: [milliseconds(call, text) for text in texts.values()] for name, call in subjects().items()}
    if as_json:
        listed = [
            {"characters": size, "name": name, "ms": round(ms, 4)}
            for name, times in rows.items()
            for size, ms in zip(SIZES, times, strict=True)
        ]
        print(json.dumps(listed, indent=1))
        return
    floor = rows["floor: markdown-it parse"]
    print(f"{'ms of CPU (times the floor), characters:':42}" + "".join(f"{size:>18,}" for size in SIZES))
    for name, times in rows.items():
        print(f"{name:42}" + "".join(f"{ms:>10.3f} ({ms / of:.2f})" for ms, of in zip(times, floor, strict=True)))


if __name__ == "__main__":
    main()
