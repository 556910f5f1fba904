"""Measures the durable engine: messages received and answered a second, memory, time of a turn in a long chat.

    .venv/bin/python bench/engine.py [--json] [--store postgresql://…]

Everything is real but the model, which answers at once. The store syncs every commit to the disk. The floor is the rate
of commits of one small row through sqlite3 alone. Run it with `taskset -c 0` to use one core. With `--store`, turns are
measured in that empty database of a server on this machine too; the CPU time of the server counts.
"""

import argparse
import asyncio
import json
import os
import resource
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tertulia import Author, Behavior, Engine, Message, Part, Place, Store, Text, Turn
from tertulia.decisions import Decision
from tertulia.engine.limits import Limits
from tertulia.models.base import Finish, Response
from tertulia.platform import Delivery, Inbox, Platform
from tertulia.turns import Prompt

PLACES = 32
ME = Author(id="bot", name="Bot")
NOT_ADDRESSED = Decision(reason="not addressed")
BEHAVIOR, LIMITS = Behavior(debounce=0.0), Limits(messages=10**9)


class InstantModel:
    """A model that gives the same answer to everything, without delay."""

    name = "at-once"

    async def respond(self, prompt: Prompt) -> Response:
        turn = Turn(role="model", parts=(Text(text="It leaves at a quarter to nine."),), model=self.name)
        return Response(turn=turn, finish=Finish(outcome="complete"), raw={"text": "It leaves at a quarter to nine."})

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


class BenchPlatform(Platform):
    """A platform that sets an event when a place has its answer."""

    name = "bench"
    me = ME

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0  # deliveries that are no answer
        self.answered: dict[str, asyncio.Event] = {}

    async def run(self, inbox: Inbox) -> None:
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> str:
        self.count += 1
        self.failed += delivery.kind != "answer"
        self.answered[delivery.reply.place.id].set()
        return f"s{self.count}"


def a_message(place: str, number: int) -> Message:
    return Message(
        id=f"m{number}",
        place=Place(platform="bench", id=place, kind="direct"),
        author=Author(id=f"u{place}", name="Alice"),
        sent_at=datetime.now(UTC),
        parts=(Text(text=f"When does train number {number} leave, and from which platform?"),),
    )


@asynccontextmanager
async def engine_in(folder: str, url: str | None = None) -> AsyncIterator[tuple[Engine, BenchPlatform, Store]]:
    platform = BenchPlatform()
    async with (
        Store.open(url or Path(folder) / "s.db", media_folder=folder) as store,
        Engine(store, InstantModel(), [platform], behavior=BEHAVIOR, limits=LIMITS) as engine,
    ):
        yield engine, platform, store
        assert not platform.failed, f"{platform.failed} turns did not end with an answer"


def floor(folder: str, commits: int) -> float:
    """Return synced commits a second of one small row, through sqlite3 alone."""
    database = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    started = time.perf_counter()
    for number in range(commits):
        database.execute("INSERT INTO t (text) VALUES (?)", (f"When does train number {number} leave?",))
    database.close()
    return commits / (time.perf_counter() - started)


async def receive_rate(folder: str, count: int, writers: int) -> float:
    """Return messages stored a second, without answers."""
    async with Store.open(Path(folder) / "r.db") as store:
        at = datetime.now(UTC)

        async def write(writer: int) -> None:
            for number in range(count // writers):
                await store.inbox.receive(a_message(str(writer), number), at=at)

        started = time.perf_counter()
        await asyncio.gather(*(write(writer) for writer in range(writers)))
        return count / (time.perf_counter() - started)


async def converse(engine: Engine, platform: BenchPlatform, place: str, numbers: Sequence[int]) -> None:
    """Post messages as one person, each after the answer to the previous one."""
    answered = platform.answered.setdefault(place, asyncio.Event())
    for number in numbers:
        answered.clear()
        await engine.receive(a_message(place, number))
        await answered.wait()


async def turn_rates(folder: str, each: int, url: str | None = None) -> tuple[float, float, float]:
    """Return turns a second of wall time, and ms of CPU time a turn, here and in the server; all places in parallel."""
    async with engine_in(folder, url) as (engine, platform, _):
        await asyncio.gather(*(converse(engine, platform, str(place), range(3)) for place in range(PLACES)))
        await engine.settled()
        wall, cpu, server = time.perf_counter(), time.process_time(), server_time(url)
        await asyncio.gather(*(converse(engine, platform, str(place), range(3, each + 3)) for place in range(PLACES)))
        await engine.settled()
        wall, cpu, server = time.perf_counter() - wall, time.process_time() - cpu, server_time(url) - server
        turns = PLACES * each
        return turns / wall, cpu / turns * 1000, server / turns * 1000


def server_time(url: str | None) -> float:
    """Return seconds of CPU time of a server of PostgreSQL, whose processes are children of one."""
    if not url:
        return 0.0
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row
        parent = int(_stat(row[0])[1])  # while it is connected: afterwards nothing is known of its process
    stats = [_stat(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()]
    ours = [_stat(parent), *(stat for stat in stats if int(stat[1]) == parent)]
    ticks = sum(int(number) for stat in ours for number in stat[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return what Linux says of a process, from its state on; of one that has ended, only zeros."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 15


async def turn_times(folder: str, sizes: Sequence[int], sample: int) -> list[dict[str, Any]]:
    """Return milliseconds of a turn in one chat, and memory of the process, for each number of stored messages."""
    rows: list[dict[str, Any]] = []
    async with engine_in(folder) as (engine, platform, store):
        number = 0
        place = a_message("0", 0).place
        for size in sizes:
            while (count := await store.log.count(place)) < size:
                await fill(store, place, number, min(size - count, 2_000))
                number += 2_000
            await converse(engine, platform, "0", range(10**7 + number, 10**7 + number + 20))
            started, cpu = time.perf_counter(), time.process_time()
            await converse(engine, platform, "0", range(10**8 + number, 10**8 + number + sample))
            await engine.settled()
            rows.append(
                {
                    "stored": size,
                    "ms": (time.perf_counter() - started) / sample * 1000,
                    "cpu_ms": (time.process_time() - cpu) / sample * 1000,
                    "rss_mb": resident(),
                    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                }
            )
    return rows


async def fill(store: Store, place: Place, first: int, count: int) -> None:
    """Store old messages that need no answer."""
    at = datetime.now(UTC)
    ids = [f"old{first + number}" for number in range(count)]
    for start in range(0, count, 256):
        some = ids[start : start + 256]
        await asyncio.gather(*(store.inbox.receive(_old(place, name), at=at) for name in some))
        await store.inbox.skip(place, dict.fromkeys(some, NOT_ADDRESSED), at=at)


def _old(place: Place, name: str) -> Message:
    author = ME if hash(name) % 2 else Author(id="u0", name="Alice")
    return Message(id=name, place=place, author=author, parts=(Text(text=f"This is what {name} said long ago."),))


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


async def memory_use(folder: str, count: int) -> list[dict[str, int]]:
    """Return memory while that many messages are received and answered in all places."""
    rows = []
    async with engine_in(folder) as (engine, platform, _):
        for step in range(10):
            each = range(step * count // PLACES // 20, (step + 1) * count // PLACES // 20)
            await asyncio.gather(*(converse(engine, platform, str(place), each) for place in range(PLACES)))
            rows.append({"messages": 2 * each.stop * PLACES, "rss_mb": resident()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--store", metavar="URL", help="an empty database in which turns are measured too")
    parser.add_argument("--turns", type=int, default=100, help="turns in each of the 32 places")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--messages", type=int, default=100_000, help="messages over which memory is watched; 0: not")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    measures: dict[str, Callable[[str], Any]] = {
        "floor_commits": lambda folder: floor(folder, 2_000),
        "received_one_writer": lambda folder: asyncio.run(receive_rate(folder, 2_000, 1)),
        "received_32_writers": lambda folder: asyncio.run(receive_rate(folder, 16_000, 32)),
        "turns": lambda folder: asyncio.run(turn_rates(folder, options.turns)),
        "postgres_turns": lambda folder: (
            asyncio.run(turn_rates(folder, options.turns, options.store)) if options.store else None
        ),
        "long_chat": lambda folder: asyncio.run(turn_times(folder, options.sizes, 200)),
        "memory": lambda folder: asyncio.run(memory_use(folder, options.messages)) if options.messages else [],
    }
    for name, measure in measures.items():
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # a disk; /tmp may be memory
            results[name] = measure(folder)
    print(json.dumps(results) if options.json else table(results))


def table(results: dict[str, Any]) -> str:
    lines = [
        f"floor: {results['floor_commits']:,.0f} synced commits/s through sqlite3 alone",
        f"received, one after another: {results['received_one_writer']:,.0f} messages/s "
        f"({results['received_one_writer'] / results['floor_commits']:.2f} of the floor)",
        f"received, 32 at a time: {results['received_32_writers']:,.0f} messages/s",
        *(
            f"turns, 32 places{where}: {rates[0]:,.0f}/s of wall time, {rates[1] + rates[2]:.2f} ms of CPU time each"
            + (f", {rates[2]:.2f} of it the server's" if rates[2] else "")
            for where, rates in (("", results["turns"]), (", PostgreSQL", results["postgres_turns"]))
            if rates
        ),
        "",
        "| stored in the chat | ms a turn | CPU ms | memory |",
        "|--:|--:|--:|--:|",
        *(f"| {r['stored']:,} | {r['ms']:.2f} | {r['cpu_ms']:.2f} | {r['rss_mb']} MB |" for r in results["long_chat"]),
        "",
        "| messages | memory |",
        "|--:|--:|",
        *(f"| {row['messages']:,} | {row['rss_mb']} MB |" for row in results["memory"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
