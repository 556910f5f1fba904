"""Measures the longest gap of the event loop while an engine gets hostile and very long messages.

    .venv/bin/python bench/hostile_loop.py [--json]

Everything is real but the model, which answers at once. A ticker sleeps for a millisecond again and again; a gap is how
late it wakes up. `CPU` is the most CPU time of this process, all threads, between two ticks. On a busy machine the gap
also has the work of other processes, so the longest gap is not always the one with the most CPU.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, to_builtins

from tertulia import Author, Engine, Message, Part, Place, Quote, Store, Text, ToolCall, Turn
from tertulia.engine.limits import Limits
from tertulia.engine.memory import Memory
from tertulia.models.base import Finish, Response
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt

HOSTILE = 32_000  # characters
LONG = 10_000_000
TICK = 0.001
TEXTS: dict[str, Callable[[], str]] = {
    "hello": lambda: "Hello!",
    "From: (111… of 32 kB": lambda: "From: (" + "1" * HOSTILE,
    "[[[[ of 32 kB": lambda: "[" * HOSTILE,
    "10 MB of words": lambda: "When does the train leave? " * (LONG // 27),
    "10 MB of Ukrainian": lambda: "Коли відходить потяг? " * (LONG // 22),
    "10 MB of short lines": lambda: "From: a\n" * (LONG // 8),
    "10 MB without a space": lambda: "a" * LONG,
    "10 MB of brackets": lambda: "[" * LONG,
    "10 MB of quotes": lambda: '"\\' * (LONG // 2),
    "10 MB of combining marks": lambda: "a" + "\u0301" * LONG,
}


class Gap(Struct, frozen=True):
    text: str
    wall: float  # seconds
    cpu: float
    took: float  # until it was answered


class ToolCallingModel:
    """A model that calls the tool if the message asks for it, and otherwise answers at once."""

    name = "at-once"

    async def respond(self, prompt: Prompt) -> Response:
        last = prompt.turns[-1].parts[-1]
        parser = isinstance(last, Text) and last.text.endswith("fetch")
        said: Part = ToolCall(id="c1", name="fetch", args={}) if parser else Text(text="It leaves at nine.")
        return Response(
            turn=Turn(role="model", parts=(said,), model=self.name), finish=Finish(outcome="complete"), raw={}
        )

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


class Ticker:
    """Sleeps again and again, and stores the longest delay and the most CPU time."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    async def run(self) -> None:
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(TICK)
            self.wall = max(self.wall, time.perf_counter() - wall - TICK)
            self.cpu = max(self.cpu, time.process_time() - cpu)


async def gap(name: str, text: str, *, kind: str) -> Gap:
    """Send one message to a new engine, then an ordinary one, whose prompt shows the first again."""

    async def fetch() -> str:
        """Give a text."""
        return text

    platform, ticker = RecordedPlatform(), Ticker()
    limits = Limits(messages=10**9)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        async with (
            Store.open(Path(folder) / "s.db") as store,
            Engine(store, ToolCallingModel(), [platform], limits=limits, tools=[fetch], memory=Memory(store)) as engine,
        ):
            await say(engine, platform, 1, "hi")
            ticking = asyncio.create_task(ticker.run())
            started = time.perf_counter()
            await say(engine, platform, 2, text if kind == "message" else "fetch")
            await say(engine, platform, 3, "and now?")
            took = time.perf_counter() - started
            ticking.cancel()
    return Gap(f"{name}, {kind}", ticker.wall, ticker.cpu, took)


async def say(engine: Engine, platform: RecordedPlatform, number: int, text: str) -> None:
    """Post a message in a group that replies to the agent, so that it is answered."""
    message = Message(
        id=f"m{number}",
        place=Place(platform=platform.name, id="1", kind="group"),
        author=Author(id="u1", name="Alice"),
        sent_at=datetime.now(UTC),
        parts=(Text(text=text),),
        reply_to=Quote(message_id="m0", author=platform.me),
    )
    await engine.receive(message)
    await engine.settled()
    assert len(platform.deliveries) == number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--only", default="", help="texts that have this in their name")
    options = parser.parse_args()
    gaps = [
        asyncio.run(gap(name, text(), kind=kind))
        for name, text in TEXTS.items()
        if options.only in name
        for kind in ("message", "tool result")
    ]
    if options.json:
        print(json.dumps(to_builtins(gaps)))
        return
    print("| text | longest gap | most CPU in a gap | both answered after |\n|---|--:|--:|--:|")
    for one in gaps:
        print(f"| {one.text} | {one.wall * 1000:.0f} ms | {one.cpu * 1000:.0f} ms | {one.took:.2f} s |")


if __name__ == "__main__":
    main()
