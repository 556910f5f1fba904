"""An evening in a group, with a tool, a rate-limited service, a failed answer and a doubtful reply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.engines import BOB, GROUP, ME, engine_with, said
from tertulia.engine.behavior import Behavior
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Message, Reply
from tertulia.models import Gemini
from tertulia.sim import GeminiSim, faults
from tertulia.sim.behaviours import Answer, Ask, Call
from tertulia.store import Store

NOW = datetime(2025, 1, 15, 12, 0, tzinfo=UTC)
KEY = "AIzaSyA1234567890abcdefghijklmnopqrstuv"
MODEL = "gemini-3.8-flash"


class InTurn:
    """Gives these answers one after another."""

    def __init__(self) -> None:
        look = Call(name="look", args={"seat": "3A"})
        self.answers = [Answer(text="Hello, Alice."), Answer(calls=[look]), Answer(text="Seat 3A is free. Take it.")]

    def answer(self, ask: Ask) -> Answer:
        return self.answers.pop(0)


class MovingClock:
    """A clock on which sleeping takes no time, and moves it."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        await asyncio.sleep(0)


def look(seat: str) -> str:
    """Look at a seat."""
    return f"{seat} is free"


def in_group(text: str, number: int, **changes: Any) -> Message:
    sent_at = NOW + timedelta(minutes=number)
    return said(text, number, **{"place": GROUP, "sent_at": sent_at, **changes})


@asynccontextmanager
async def an_evening(path: Path | str = ":memory:") -> AsyncIterator[Store]:
    """A store after the evening: messages 1 to 4 of people, of which 2 and 3 are answered, and 4 is not."""
    clock = MovingClock()
    sim = GeminiSim(behaviour=InTurn())
    async with sim, Gemini(MODEL, key=KEY, base_url=sim.url) as model, Store.open(path, durable=False) as store:
        async with engine_with(
            model,
            store=store,
            tools=[look],
            behavior=Behavior(debounce=0),
            now=clock.now,
            sleep=clock.sleep,
        ) as engine:
            for message in (
                in_group("anybody here?", 1, author=BOB),
                in_group("Gryag, hello!", 2),
                in_group("Gryag, is 3A free?", 3),
            ):
                if message.id == "3":
                    sim.fail(faults.RateLimited(2.0))
                await engine.receive(message)
                await engine.settled()
            sim.fail(faults.Overloaded(), 20)
            await engine.receive(in_group("Gryag, and 3B?", 4))
            await engine.settled()
        yield store


async def doubt(store: Store) -> OutboxItem:
    """A reply of which nobody knows whether it arrived."""
    reply = Reply(place=GROUP, text="Perhaps.")
    item = OutboxItem(id="o-doubtful", reply=reply, made_at=NOW, author=ME)
    await store.outbox.put(item)
    await store.outbox.put(OutboxItem(id=item.id, reply=reply, made_at=NOW, author=ME, status="doubtful", sent_at=NOW))
    return (await store.outbox.listed("doubtful"))[0]
