"""Measures a bot on Telegram: storing updates beside aiogram with aiosqlite, the way to a request, and memory.

    .venv/bin/python bench/telegram.py [--updates 4000] [--rounds 3] [--messages 3600] [--json]

Updates come over HTTP from a server in another process, and are stored in a file whose every commit is synced. Each
subject has a process and a file of its own; they take turns, so that a busy machine is busy for all of them. CPU time
is that of the bot's process alone. bench/telegram_import.py measures the import of an export.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx2

from tertulia import Engine, Memory, Part, Store
from tertulia.memory.embeddings import MINILM, NO_EMBEDDER
from tertulia.models.base import Model, Response
from tertulia.platform import Inbox
from tertulia.platforms.telegram import Telegram
from tertulia.turns import Prompt

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import GEMINI_ANSWER, Stub, progress
from bench.engine import BEHAVIOR, LIMITS
from bench.peer_types import stubbed_gemini
from bench.telegram_memory import AT_ONCE, CHATS, memory_rows
from bench.telegram_server import DISK, TOKEN, Control, direct_updates, group_updates, served
from bench.telegram_storing import SUBJECTS, WARM, Stored, store_updates

WINDOW = 50  # messages of a median
SIZES = (10, 100, 500)  # messages in the chat
MEMORIES = ("without", "by words", "with vectors")
STAGES = ("poll", "store", "prompt", "encode")


# storing updates


def stored_rows(count: int, rounds: int) -> list[Stored]:
    """Return the median of each subject over *rounds*, in which each has its turn."""
    updates, context, rows = group_updates(WARM + count), get_context("spawn"), []
    for number in range(rounds):
        for name in SUBJECTS:
            progress(f"storing, round {number + 1}: {name}")
            with (
                served(updates) as port,
                tempfile.TemporaryDirectory(dir=DISK) as folder,
                context.Pool(1) as pool,
            ):
                rows.append(pool.apply(store_updates, (name, port, count, folder)))
    progress("")
    return [
        Stored(
            name=name,
            cpu=statistics.median(row.cpu for row in rows if row.name == name),
            wall=statistics.median(row.wall for row in rows if row.name == name),
        )
        for name in SUBJECTS
    ]


# from the update to the request


class EventStub(Stub):
    """A transport that says when the request left, and streams an answer."""

    def __init__(self) -> None:
        super().__init__(GEMINI_ANSWER)
        self.called = asyncio.Event()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        super().__call__(request)
        self.called.set()
        content = b"data: %b\r\n\r\n" % json.dumps(self.answer).encode()
        return httpx2.Response(200, content=content, headers={"content-type": "text/event-stream"})


class Marks:
    """CPU time at which a message has passed the stages of its way."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def mark(self, stage: str) -> None:
        self.at[stage] = time.process_time()


class MarkedTelegram(Telegram):
    def __init__(self, marks: Marks, *, base_url: str) -> None:
        super().__init__(TOKEN, base_url=base_url, pace=AT_ONCE)
        self._marks = marks

    async def apply(self, inbox: Inbox, number: int, raw: bytes) -> None:
        self._marks.mark("poll")
        await super().apply(inbox, number, raw)
        self._marks.mark("store")


class MarkedModel:
    def __init__(self, marks: Marks, model: Model) -> None:
        self.name = model.name
        self._marks = marks
        self._model = model

    async def respond(self, prompt: Prompt) -> Response:
        self._marks.mark("prompt")
        return await self._model.respond(prompt)

    def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        self._marks.mark("prompt")
        return self._model.stream(prompt)


async def ways(kind: str, port: int, folder: str, count: int) -> list[dict[str, float]]:
    """Send messages one after another; return the milliseconds of CPU of each, by stage and of the whole turn."""
    marks, stub, control = Marks(), EventStub(), await Control.connect(port)
    model = MarkedModel(marks, stubbed_gemini(stub, asyncio.get_running_loop()))
    platform = MarkedTelegram(marks, base_url=f"http://127.0.0.1:{port}")
    found = []
    async with Store.open(Path(folder) / "s.db") as store:
        await store.index_writer.choose(MINILM if kind == "with vectors" else NO_EMBEDDER)
        memory = None if kind == "without" else Memory(store)
        engine = Engine(store, model, [platform], behavior=BEHAVIOR, limits=LIMITS, memory=memory)
        await engine.start()
        polling = asyncio.create_task(platform.run(engine.inbox(platform.name)))
        for number in range(1, count + 1):
            await engine.settled()
            await asyncio.sleep(0)
            stub.called.clear()
            began = time.process_time()
            control.release(number)
            await stub.called.wait()
            await engine.settled()
            end = time.process_time()
            assert f"{number}: ".encode() in stub.body, "the request has not the message"
            at = [began, *(marks.at[stage] for stage in STAGES[:-1]), stub.at]
            ms = [(later - earlier) * 1000 for earlier, later in pairwise(at)]
            found.append({**dict(zip(STAGES, ms, strict=True)), "request": sum(ms), "turn": (end - began) * 1000})
        polling.cancel()
        await asyncio.wait([polling])
        await engine.close()
    return found


def run_ways(kind: str, port: int, folder: str, count: int) -> list[dict[str, float]]:
    return asyncio.run(ways(kind, port, folder, count))


def way_rows(count: int) -> list[dict[str, Any]]:
    """Return the median way of a message in the chat, around each number of messages before it."""
    rows = []
    for kind in MEMORIES:
        progress(f"from the update to the request, memory: {kind}")
        with (
            served(direct_updates(count), released=0) as port,
            tempfile.TemporaryDirectory(dir=DISK) as folder,
            get_context("spawn").Pool(1) as pool,
        ):
            found = pool.apply(run_ways, (kind, port, folder, count))
        for size in (size for size in SIZES if size // 2 + WINDOW <= count):
            some = found[size // 2 : size // 2 + WINDOW]  # each message before it has an answer
            medians = {key: statistics.median(one[key] for one in some) for key in some[0]}
            rows.append({"memory": kind, "stored": size, **medians})
    progress("")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--updates", type=int, default=4_000, help="updates that each subject stores; 0: none")
    parser.add_argument("--rounds", type=int, default=3, help="times that each subject stores them")
    parser.add_argument("--turns", type=int, default=300, help="messages of the direct chat; 0: none")
    parser.add_argument("--messages", type=int, default=3_600, help="messages over which memory is watched; 0: none")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    options = parser.parse_args()
    stored = stored_rows(options.updates, options.rounds) if options.updates else []
    way = way_rows(options.turns) if options.turns else []
    memory = [row for chats in CHATS for row in memory_rows(options.messages, chats)] if options.messages else []
    if options.json:
        rows = [{"name": row.name, "cpu": row.cpu, "wall": row.wall} for row in stored]
        print(json.dumps({"updates": options.updates, "stored": rows, "way": way, "memory": memory}, indent=1))
        return
    print("\n\n".join(filter(None, (stored_table(stored, options.updates), way_table(way), memory_table(memory)))))
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"\nload {load} on {os.cpu_count()} cores")


def stored_table(rows: Sequence[Stored], count: int) -> str:
    """Show what an update costs, and that as a multiple of ours."""
    if not rows:
        return ""
    lines = [
        f"| {row.name} | {row.cpu / count * 1e6:,.0f} | {count / row.cpu:,.0f} | {row.cpu / rows[0].cpu:.2f} |"
        for row in rows
    ]
    head = "| | µs of CPU an update | updates a second of CPU | CPU, times the first line |"
    return "\n".join([head, "|---|--:|--:|--:|", *lines])


def way_table(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    keys = (*STAGES, "request", "turn")
    lines = [f"| {row['memory']} | {row['stored']} | {' | '.join(f'{row[key]:.2f}' for key in keys)} |" for row in rows]
    head = f"| memory | stored in the chat | {' | '.join(STAGES)} | ms of CPU to the request | of the whole turn |"
    return "\n".join([head, "|---" + "|--:" * 7 + "|", *lines])


def memory_table(rows: Sequence[dict[str, float]]) -> str:
    lines = [
        f"| {row['chats']:.0f} | {row['messages']:,.0f} | {row['rss_mb']:.0f} MB | {row['cpu_s']:.1f} s |"
        for row in rows
    ]
    head = "| chats | messages | memory | CPU |"
    return "\n".join([head, "|--:|--:|--:|--:|", *lines]) if rows else ""


if __name__ == "__main__":
    main()
