"""Measures how often the context has the message that was really answered: the last N, and our selection."""

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from tertulia.context import gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.selection import IMMEDIATE
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = IMMEDIATE + sources.RECENT
_LINE = re.compile(r"\[\d\d:\d\d\] (?:<([^>]+)>|\s*\* (\S+)) ?(.*)")


class Hour(Struct, frozen=True, kw_only=True):
    """The messages of one file, and pairs of a message and its answer."""

    name: str
    messages: tuple[Message, ...]
    links: tuple[tuple[str, str], ...]  # ids of the answered and of the answer


def hours(folder: Path, *, system: bool) -> Iterator[Hour]:
    """Read the files of *folder*. System lines are messages only with *system*."""
    for path in sorted(folder.glob("*.ascii.txt")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        place = Place(platform="irc", id=path.name, kind="group")
        messages = tuple(
            message
            for number, line in enumerate(lines)
            if (message := _message(number, line, place)) and (system or message.author.id)
        )
        ids = {message.id for message in messages}
        named = path.with_name(path.name.replace(".ascii.", ".annotation."))
        pairs = [sorted(map(int, line.split()[:2])) for line in named.read_text().splitlines() if line.strip()]
        links = [(str(first), str(then)) for first, then in pairs if first != then]
        yield Hour(
            name=path.name, messages=messages, links=tuple(link for link in links if link[0] in ids and link[1] in ids)
        )


def _message(number: int, line: str, place: Place) -> Message:
    found = _LINE.match(line)
    name = (found[1] or found[2]) if found else ""
    text = found[3] if found else line
    return Message(id=str(number), place=place, author=Author(id=name.casefold(), name=name), parts=(Text(text=text),))


async def measured(hour: Hour) -> list[tuple[bool, bool, float]]:
    """Return for each link: is it among the newest, is it in our selection, and the ms of our selection."""
    log = InMemoryLog(hour.messages)
    at = {message.id: index for index, message in enumerate(hour.messages)}
    source = sources.levels(log)
    found: list[tuple[bool, bool, float]] = []
    chosen: dict[str, tuple[set[str], float]] = {}
    for answered, answer in hour.links:
        if answer not in chosen:
            began = time.perf_counter()
            context = await gather(hour.messages[at[answer]], [source], NOW)
            took = (time.perf_counter() - began) * 1000
            chosen[answer] = {message.id for message in (*context.recent, *context.immediate)}, took
        ids, took = chosen[answer]
        assert len(ids) <= SHOWN
        found.append((at[answer] - at[answered] <= SHOWN, answered in ids, took))
    return found


def summary(folder: Path, *, system: bool) -> list[dict[str, Any]]:
    rows = [one for hour in hours(folder, system=system) for one in asyncio.run(measured(hour))]
    if not rows:
        raise SystemExit(f"no links were found in {folder}; it should hold *.ascii.txt and *.annotation.txt")
    slow = statistics.quantiles([row[2] for row in rows], n=20)[-1] if len(rows) > 1 else rows[0][2]
    lines = "with" if system else "without"
    return [
        {"method": method, "system": lines, "links": len(rows), "found": _share(rows, index), "p95 ms": milliseconds}
        for index, (method, milliseconds) in enumerate([(f"last {SHOWN}", None), ("chosen", round(slow, 2))])
    ]


def _share(rows: list[tuple[bool, bool, float]], index: int) -> float:
    return round(sum(bool(row[index]) for row in rows) / len(rows), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: bench/context.py irc-dev --json")
    parser.add_argument("data", type=Path, help="a folder of *.ascii.txt and *.annotation.txt")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    options = parser.parse_args()
    rows = [row for system in (True, False) for row in summary(options.data, system=system)]
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
        return
    print("| method | system lines | links | found | p95 ms |\n|---|---|---|---|---|")
    for row in rows:
        took = "" if row["p95 ms"] is None else f"{row['p95 ms']:.2f}"
        print(f"| {row['method']} | {row['system']} | {row['links']:,} | {row['found']:.2%} | {took} |")


if __name__ == "__main__":
    main()
