"""Runs `tertulia run` against the simulators for an hour, and prints how much memory its process has.

    .venv/bin/python bench/soak.py [--minutes 60] [--rate 4] [--chats 60] [--no-memory] [--json]

People write *rate* messages a second, 20 to 400 characters each, half of them in direct chats and half in groups, and
do not wait for the answers. The simulators run in this process, the bot in one of its own, with its default settings.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import WORDS
from bench.telegram_memory import usage
from bench.telegram_server import DISK

from tertulia.sim.behaviours import Answer, Ask
from tertulia.sim.gemini import GeminiSim
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim

LOOK = 60.0  # seconds between two lines

CONFIG = """
model = "gemini-3.8-flash"
[persona]
text = "You are a friend in a group chat."
[limits]
messages = 1_000_000
[memory]
enabled = {memory}
"""


def some_words(chance: random.Random) -> str:
    text, length, words = "", chance.randint(20, 400), chance.choice(list(WORDS.values()))
    while len(text) < length:
        text += f"{chance.choice(words)} "
    return text


class Talker:
    """A model that answers with some words."""

    def __init__(self) -> None:
        self._chance = random.Random(2)

    def answer(self, ask: Ask) -> Answer:
        return Answer(text=some_words(self._chance))


@asynccontextmanager
async def running_bot(telegram: TelegramSim, gemini: GeminiSim, *, memory: bool) -> AsyncIterator[int]:
    """Run the bot in an empty folder; yield the id of its process."""
    config = CONFIG.format(memory=str(memory).lower())
    addresses = {"TERTULIA_TELEGRAM_BASE_URL": telegram.url, "TERTULIA_GEMINI_BASE_URL": gemini.url}
    keys = {"TERTULIA_TELEGRAM_TOKEN": telegram.token, "GEMINI_API_KEY": "any"}
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        Path(folder, "tertulia.toml").write_text(config)  # noqa: ASYNC240 (nothing else runs yet)
        bot = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("tertulia"),
            "run",
            cwd=folder,
            env={**os.environ, **addresses, **keys},
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield bot.pid
        finally:
            bot.terminate()
            await bot.wait()


async def talk(telegram: TelegramSim, rooms: list[tuple[SimUser, SimChat]], rate: float, sent: list[float]) -> None:
    """Let people write for ever; note when in *sent*."""
    chance, begun = random.Random(1), time.monotonic()
    while True:
        person, room = chance.choice(rooms)
        person.send(room, f"@{telegram.bot.account.username} {len(sent)}: {some_words(chance)}")
        sent.append(time.monotonic())
        await asyncio.sleep(max(0.0, begun + len(sent) / rate - time.monotonic()))


async def soak(*, minutes: float, rate: float, chats: int, memory: bool) -> AsyncIterator[dict[str, float]]:
    """Yield a row a minute: what was sent and answered, and the memory and CPU time of the bot's process."""
    async with TelegramSim(clock=time.time) as telegram, GeminiSim(behaviour=Talker()) as gemini:
        people = [telegram.user(f"Person {number}") for number in range(chats)]
        rooms = [
            (one, telegram.private(one) if number % 2 else telegram.group(f"Group {number}", [one], supergroup=True))
            for number, one in enumerate(people)
        ]
        sent: list[float] = []
        async with running_bot(telegram, gemini, memory=memory) as pid:
            talking = asyncio.create_task(talk(telegram, rooms, rate, sent))
            answered, begun, looks = 0, time.monotonic(), 0
            while looks * LOOK < minutes * 60:
                looks += 1
                await asyncio.sleep(begun + looks * LOOK - time.monotonic())
                answered += sum(request.status == 200 for request in gemini.requests)
                forget_calls(telegram, gemini)
                yield {"minutes": looks * LOOK / 60, "sent": len(sent), "answered": answered, **usage(pid)}
            talking.cancel()


def forget_calls(telegram: TelegramSim, gemini: GeminiSim) -> None:
    """Empty what the simulators recorded, which would be gigabytes after an hour."""
    gemini.requests[:] = [request for request in gemini.requests if not request.status]
    for recorded in (telegram.calls, telegram.drafts, telegram.actions):
        recorded.clear()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=4, help="messages a second")
    parser.add_argument("--chats", type=int, default=60)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = soak(minutes=given.minutes, rate=given.rate, chats=given.chats, memory=not given.no_memory)
    async for row in rows:
        print(json.dumps(row) if given.json else "  ".join(f"{name} {value:,.0f}" for name, value in row.items()))
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
