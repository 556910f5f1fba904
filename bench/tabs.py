"""What two tabs that look on cost a bot under load, and whether they see everything in order.

    .venv/bin/python bench/tabs.py [--runs 10] [--turns 400] [--memory no|words|vectors] [--json]

In 32 direct chats people write, each again a while after the answer. Runs without tabs and with two of them alternate
in one process, whose CPU time counts; each tab is one of chromium and shows a chat whose answers stream. The bot is as
`tertulia run` makes it: with memory and its log, the store synced at every commit. Only the model is scripted.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

from tertulia import Engine, Memory, Part, Store, Text
from tertulia.config import WebConfig
from tertulia.inspector.places import place_key
from tertulia.logs import log_events
from tertulia.memory.embeddings import NO_EMBEDDER
from tertulia.models.base import Response
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.site import Site
from tertulia.turns import Prompt

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.engine import BEHAVIOR, LIMITS, PLACES, BenchPlatform, InstantModel, a_message

TABS = 2
PIECES, PIECE = 20, 0.03  # of an answer that streams, and seconds between two of them
PAUSE = 1.0  # seconds until the next message of a person
NOTED = """self.noted = [];
const Real = EventSource;
self.EventSource = class extends Real {
  constructor(...given) {
    super(...given);
    this.addEventListener("change", (event) => self.noted.push(Number(event.lastEventId)));
  }
};"""


class TypingModel(InstantModel):
    """A model that answers a piece at a time where somebody reads it, and as slowly where nobody does."""

    async def respond(self, prompt: Prompt) -> Response:
        await asyncio.sleep(PIECES * PIECE)
        return await super().respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = await super().respond(prompt)
        words = response.text.split(" ")
        for number in range(PIECES):
            await asyncio.sleep(PIECE)
            if number < len(words):
                yield Text(text=" " * bool(number) + words[number])
        yield response


async def serve(folder: Path, memory: str) -> None:
    """Be the bot: print the link of its page, then the CPU seconds of each number of turns that is asked for."""
    platform = BenchPlatform()
    async with (
        a_store(folder, memory) as store,
        Engine(
            store,
            TypingModel(),
            [platform],
            behavior=BEHAVIOR,
            limits=LIMITS,
            memory=None if memory == "no" else Memory(store),
        ) as engine,
        serve_page(
            Site(store=store, now=partial(datetime.now, UTC), engine=engine, agent="Bot"),
            WebConfig(port=0),
            store=str(folder / "bot.db"),
        ) as page,
    ):
        asyncio.create_task(log_events(engine.events()))  # as `tertulia run` does  # noqa: RUF006 (it ends with us)
        await under_load(engine, platform, 0, PLACES)
        print(page.links["owner"], flush=True)
        first = 1
        while line := await asyncio.to_thread(sys.stdin.readline):
            began = time.process_time()
            await under_load(engine, platform, first, int(line))
            print(time.process_time() - began, flush=True)
            first += int(line) // PLACES
    assert not platform.failed


@asynccontextmanager
async def a_store(folder: Path, memory: str) -> AsyncIterator[Store]:
    async with Store.open(folder / "bot.db", media_folder=folder) as store:
        if memory == "words":
            await store.index_writer.choose(NO_EMBEDDER)
        yield store


async def under_load(engine: Engine, platform: BenchPlatform, first: int, turns: int) -> None:
    """Let people talk in all places at once until there were so many turns."""

    async def talk(place: str) -> None:
        answered = platform.answered.setdefault(place, asyncio.Event())
        await asyncio.sleep(PAUSE * int(place) / PLACES)
        for number in range(first, first + turns // PLACES):
            answered.clear()
            await engine.receive(a_message(place, number))
            await answered.wait()
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(talk(str(place)) for place in range(PLACES)))
    await engine.settled()


async def measure(runs: int, turns: int, memory: str) -> list[dict[str, Any]]:
    """Return the milliseconds of CPU of a turn, without tabs and with them, in turn."""
    turns -= turns % PLACES
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # a disk; /tmp may be memory
        bot = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--serve", folder, "--memory", memory,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert bot.stdin
        assert bot.stdout
        link = (await bot.stdout.readline()).decode().strip()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for number in range(runs):
                for tabs in (0, TABS) if number % 2 else (TABS, 0):
                    async with AsyncExitStack() as opened:
                        pages = [await a_tab(browser, link, str(place), opened) for place in range(tabs)]
                        bot.stdin.write(b"%d\n" % turns)
                        cpu = float(await bot.stdout.readline()) / turns * 1000
                        for page in pages:
                            await in_order(page, turns // PLACES)
                    rows.append({"run": number, "tabs": tabs, "cpu_ms": cpu})
                    print(f"run {number}, {tabs} tabs: {cpu:.2f} ms of CPU a turn", file=sys.stderr, flush=True)
        bot.stdin.close()
        assert await bot.wait() == 0
    return rows


async def a_tab(browser: Browser, link: str, place: str, opened: AsyncExitStack) -> Page:
    """Open the page of a place in a tab of its own."""
    context = await browser.new_context()
    opened.push_async_callback(context.close)
    await context.add_init_script(NOTED)
    page = await context.new_page()
    await page.goto(link)
    await expect(page.locator("main h1")).to_be_visible()
    await page.goto(f"{link.partition('/#')[0]}/p/{place_key(a_message(place, 0).place)}")
    await expect(page.locator("article.message").last).to_be_visible()
    return page


async def in_order(page: Page, turns: int) -> None:
    """Assert that a tab was told each change once and in order, and shows the newest messages."""
    noted = await page.evaluate("noted")
    assert noted == sorted(set(noted)), noted
    assert len(noted) > turns
    key = page.url.rpartition("/")[2]
    stored = await page.evaluate(f"fetch('/api/places/{key}').then((found) => found.json())")
    texts = ["".join(part.get("text", "") for part in one["message"]["parts"]) for one in stored["messages"]]
    shown = page.locator("article.message div.text")
    await expect(shown.last).to_have_text(texts[-1])
    assert (await shown.all_text_contents())[-len(texts) :] == texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--runs", type=int, default=10, help="how many of each kind")
    parser.add_argument("--turns", type=int, default=400, help="of a run, in all places")
    parser.add_argument("--memory", choices=("no", "words", "vectors"), default="vectors", help="what it searches by")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.memory))
        return
    rows = asyncio.run(measure(options.runs, options.turns, options.memory))
    without, with_tabs = ([row["cpu_ms"] for row in rows if row["tabs"] == tabs] for tabs in (0, TABS))
    medians = statistics.median(without), statistics.median(with_tabs)
    pairs = [b / a for a, b in zip(without, with_tabs, strict=True)]
    if options.json:
        print(json.dumps(rows))
        return
    print(f"ms of CPU a turn, median of {options.runs}: {medians[0]:.2f} without tabs, {medians[1]:.2f} with {TABS}")
    print(f"{medians[1] / medians[0]:.3f} times; of a pair {min(pairs):.3f} to {max(pairs):.3f}")


if __name__ == "__main__":
    main()
