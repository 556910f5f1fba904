"""The bot of the demo, in a process of its own: `python -m tertulia.demo.bot STORE PACE`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from tertulia.context.gather import ContextOptions
from tertulia.context.values import Persona
from tertulia.demo.pipe_platform import BOT, PipePlatform
from tertulia.demo.script import answer
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.memory import Memory
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Part
from tertulia.store import Store
from tertulia.tools.memory import memory_tools
from tertulia.tools.reminders import reminder_tool
from tertulia.turns import Prompt

HISTORY = 4  # messages at most, so that what was said first is soon known by memory alone
DEBOUNCE = 0.1  # seconds
PERSONA = Persona(name=BOT.name, text=f"You are {BOT.name}, a friend in a group. Answer in a sentence or two.")


class SlowModel:
    """Answers by the script of the demo, with *pace* seconds between two words."""

    name = "scripted"

    def __init__(self, pace: float) -> None:
        self._pace = pace

    async def respond(self, prompt: Prompt) -> Response:
        return await Scripted(answer(prompt), name=self.name).respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        async for piece in Scripted(answer(prompt), name=self.name).stream(prompt):
            yield piece
            await asyncio.sleep(self._pace)


def _now() -> datetime:
    return datetime.now(UTC)


async def main(path: str, pace: float) -> None:
    async with Store.open(path) as store:
        engine = Engine(
            store,
            SlowModel(pace),
            [PipePlatform()],
            persona=PERSONA,
            tools=[*memory_tools(store, _now), reminder_tool(store.tasks, _now, "UTC")],
            memory=Memory(store),
            context=ContextOptions(history_size=HISTORY),
            behavior=Behavior(debounce=DEBOUNCE),
        )
        await engine.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
