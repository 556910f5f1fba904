"""Three bots of one engine on Telegram's simulator, in a process forked for each life."""

import asyncio

from msgspec import json

from lives import fork_lives
from numbered_echo import Echo
from platforms.telegram.bot_child import HastyTelegram, Life, short_sleep
from tertulia import Agent, Behavior, Engine, Store
from tertulia.engine.limits import Limits
from tertulia.platforms.telegram.client import Pace

NAMES = ("Ada", "Bob", "Cid")
AT_ONCE = Pace(direct=1e6, group=1e6, overall=1e6)


def model_of(name: str) -> Echo:
    return Echo(lambda number: f"{name} says {number}", words=1, pause=0.002)


async def live(life: Life) -> None:
    """Run until killed, or until all messages are there and answered; the tokens are separated by blanks."""
    bots = [HastyTelegram(one, base_url=life.url, pace=AT_ONCE, sleep=short_sleep) for one in life.token.split()]
    agents = [
        Agent(name=name, models=(model_of(name),), accounts=(bot.name,)) for name, bot in zip(NAMES, bots, strict=True)
    ]
    behavior, limits = Behavior(debounce=0.0, max_resumes=100_000), Limits(messages=100_000)
    async with Store.open(life.path) as store:
        engine = Engine(store, model_of("nobody"), bots, agents=agents, behavior=behavior, limits=limits)
        running = asyncio.create_task(engine.run())
        if not life.messages:
            await running
        while await received(store) < life.messages:  # noqa: ASYNC110 (nobody tells when the last one is there)
            await asyncio.sleep(0.01)
        await engine.settled()
        await asyncio.sleep(0.5)  # the others see the last message arrive
        await engine.settled()
        running.cancel()
        await asyncio.wait([running])


async def received(store: Store) -> int:
    return sum("number " in row["text"] for row in [row async for row in store.export()] if row["table"] == "messages")


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))
