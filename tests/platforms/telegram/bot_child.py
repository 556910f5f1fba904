"""A bot on Telegram's simulator, in a process forked for each life."""

import asyncio

from msgspec import Struct, json
from msgspec.structs import replace

from lives import fork_lives
from numbered_echo import Echo
from tertulia import Behavior, Engine, Store
from tertulia.engine.limits import Limits
from tertulia.messages import Place
from tertulia.platform import Capabilities
from tertulia.platforms.telegram.client import Pace
from tertulia.platforms.telegram.platform import Telegram

AT_ONCE = Pace(direct=1e6, group=1e6, overall=1e6)
PIECE = 0.001  # seconds between two pieces of an answer
WORDS = 40  # in a piece


class Life(Struct, frozen=True, kw_only=True):
    """What a child is told."""

    path: str
    url: str
    token: str
    messages: int = 0  # after which it ends when all is done; 0: it lives until it is killed


def answer_to(number: int) -> str:
    """An answer of one to four parts, which do not fit into fewer messages."""
    return "\n\n".join(f"answer {number}.{part}{' word' * 500}" for part in range(number % 4 + 1))


class HastyTelegram(Telegram):
    """It shows answers more often than people could read."""

    def capabilities_in(self, place: Place) -> Capabilities:
        return replace(super().capabilities_in(place), preview_interval=2 * PIECE)


async def short_sleep(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


def bot_of(life: Life) -> Telegram:
    return HastyTelegram(life.token, base_url=life.url, pace=AT_ONCE, sleep=short_sleep)


async def live(life: Life) -> None:
    behavior, limits = Behavior(debounce=0.0, max_resumes=100_000), Limits(messages=100_000)
    async with Store.open(life.path) as store:
        engine = Engine(
            store, Echo(answer_to, words=WORDS, pause=PIECE), [bot_of(life)], behavior=behavior, limits=limits
        )
        running = asyncio.create_task(engine.run())
        if not life.messages:
            await running
        while await received(store) < life.messages:  # noqa: ASYNC110 (nobody tells when the last one is there)
            await asyncio.sleep(0.01)
        await engine.settled()
        running.cancel()
        await asyncio.wait([running])


async def received(store: Store) -> int:
    """How many of people's messages are stored."""
    rows = [row async for row in store.export() if row["table"] == "messages"]
    return sum("number " in row["text"] for row in rows if not row["own"])


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))
