"""An engine whose model caches prompts at a service, in a process that somebody else kills."""

import asyncio
from pathlib import Path

from msgspec import Struct, json

from engine.engines import AT_ONCE, said
from lives import fork_lives
from tertulia import Engine, Limits, Persona, Store
from tertulia.models import CachedGemini, Gemini
from tertulia.testing import RecordedPlatform

MODEL = "gemini-2.5-flash"
PERSONA = Persona(name="gryag", text="You keep the log of a ship and you are never in a hurry. " * 150)
KEY = "k"


class CacheLife(Struct, frozen=True, kw_only=True):
    """What a child is told: where everything is, and which messages it hears."""

    path: str
    url: str
    first: int = 0
    count: int = 1  # 0: it hears none, and lives until it is killed
    caches: bool = True  # whether its model still caches


async def live(line: str) -> None:
    life = json.decode(line, type=CacheLife)
    gemini = Gemini(MODEL, key=KEY, base_url=life.url)
    async with (
        Store.open(Path(life.path)) as store,
        CachedGemini(gemini, threshold=1024) if life.caches else gemini as model,
        Engine(
            store,
            model,
            [RecordedPlatform()],
            persona=PERSONA,
            behavior=AT_ONCE,
            limits=Limits(messages=1000),
        ) as engine,
    ):
        for number in range(life.first, life.first + life.count):
            await engine.receive(said(f"said number {number}", f"m{number}"))
            await engine.settled()
        if not life.count:
            await asyncio.Event().wait()


if __name__ == "__main__":
    fork_lives(live)
