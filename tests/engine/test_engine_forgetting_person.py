"""A person is forgotten while an engine is at work: nothing that is under way brings a word of theirs back."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from engine.engine_world import World
from people import BOB, a_message
from sizes import size
from tertulia import Author, Behavior, Engine, Message, Part, Place, Prompt, ToolCall
from tertulia.engine.background import RealClock
from tertulia.engine.memory import Memory
from tertulia.models.base import Response
from tertulia.parts import ToolResult
from tertulia.tasks.task import Send, Task, args_of
from tertulia.turns import Turn, model

EVERY = size(12, full=1)  # of the moments at which something happens
HERS = Place(platform="keyed", id="zoe-77", kind="direct")
GROUP = Place(platform="keyed", id="-1", kind="group", title="Friends")
ZOE = Author(id="zoe-77", name="Zoë Quux", username="zquux")
TRACES = ("zoe-77", "Quux", "zquux", "Zanzibar", "0671234567", "chinchilla", "桃花源")
TELLING = (
    "@gryag_bot I live in Zanzibar. My number is 0671234567.",
    "@gryag_bot I have a chinchilla. I live at 桃花源.",
)


class Repeating:
    """A model that takes a while and repeats all that it was shown, now and later."""

    name = "gemini-3.8-flash"

    def __init__(self, *, calls: bool) -> None:
        self.calls = calls
        self.prompts: list[Prompt] = []

    async def respond(self, prompt: Prompt) -> Response:
        self.prompts.append(prompt)
        await asyncio.sleep(3)
        seen = " ".join(one for one in TRACES if one in str(prompt)) or "Nothing."
        parts = [part for turn in prompt.turns for part in turn.parts]
        if self.calls and not any(isinstance(part, ToolResult) for part in parts):
            call = ToolCall(id="a", name="note", args={"what": seen})
            return Response(turn=Turn(role="model", parts=(call,), model=self.name), raw={"said": seen})
        text = f"{seen}\n\n# «remember»\nLives in {seen}.\n\n# «wait»\ndelay: 4\n\n# «send»\nLater: {seen}"
        return Response(turn=model(text, by=self.name), raw={"said": seen})

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


async def note(what: str) -> str:
    """Note something."""
    await asyncio.sleep(2)
    return f"{what} is noted"


def an_engine(world: World, *, calls: bool) -> tuple[Engine, Repeating]:
    talker = Repeating(calls=calls)
    engine = Engine(
        world.store,
        talker,
        world.walls.values(),
        tools=[note],
        behavior=Behavior(debounce=0.0, cancel_tasks="nothing"),
        memory=Memory(world.store, model=Repeating(calls=False), clock=RealClock(now=world.now)),
        clock=RealClock(now=world.now),
    )
    world.loop.run(engine.start())
    return engine, talker


def said(text: str, name: str, place: Place, author: Author = ZOE, **changes: Any) -> Message:
    return a_message(text, id=name, place=place, author=author, **changes)


def held(world: World) -> list[str]:
    """What of the person is still in a file of the store."""
    kept = b"".join(file.read_bytes() for file in world.path.parent.iterdir() if file.is_file())
    return [trace for trace in TRACES if trace.encode() in kept]


def pass_time(world: World, ticks: int) -> None:
    for number in range(ticks):
        world.loop.tick(1)
        if number % 3 == 2:
            world.loop.run(asyncio.sleep(0.4))


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("place", [HERS, GROUP], ids=["direct", "group"])
@pytest.mark.parametrize("ticks", range(0, 72, EVERY))
def test_nothing_brings_a_word_of_theirs_back(world: World, ticks: int, place: Place, calls: bool) -> None:
    engine, talker = an_engine(world, calls=calls)
    reminder = Send(text="Zanzibar, zquux!")
    due = world.now() + timedelta(seconds=7)
    world.loop.run(engine.receive(said(TELLING[0], "m1", place)))
    world.loop.run(engine.schedule([Task(id="t1", kind="send", place=place, due_at=due, args=args_of(reminder))]))
    pass_time(world, ticks // 2)
    world.loop.run(engine.receive(said(TELLING[1], "m2", place)))
    world.loop.run(engine.receive(said("@gryag_bot and I?", "m3", GROUP, BOB)))
    pass_time(world, ticks)

    world.loop.run(world.store.forget(platform="keyed", author_id=ZOE.id, at=world.now()))
    before = {key for wall in world.walls.values() for key in wall.keys}
    sending = {key for key, attempts in world.rows("outbox", "outgoing_id", "attempts") if attempts}
    world.loop.run(engine.settled())
    world.loop.run(asyncio.sleep(60))
    talker.calls = False
    world.loop.run(engine.receive(said("@gryag_bot hello", "m4", GROUP, BOB)))
    world.loop.run(engine.settled())
    world.loop.run(asyncio.sleep(60))
    world.loop.run(engine.settled())
    world.loop.run(engine.close())

    made = world.walls["keyed"].made.values()
    later = [delivery.reply.text for delivery in made if delivery.id not in before | sending]
    assert [text for text in later if any(trace in text for trace in TRACES)] == []
    assert any(text.startswith("Nothing.") for text in later)
    assert not any(trace in str(talker.prompts[-1]) for trace in TRACES)
    assert held(world) == []
    assert world.loop.run(world.store.check()) == []
