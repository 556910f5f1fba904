"""What is under way while a fact is forgotten does not tell it: runs, what they planned, what waits to be sent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import World
from memory import known
from people import ALICE, BOB, a_message
from sizes import size
from store.builders import skip
from tertulia import Behavior, Engine, Message, Part, Place, Prompt, Reply, ToolCall
from tertulia.engine.background import RealClock
from tertulia.engine.behavior import FAILED
from tertulia.engine.memory import Memory
from tertulia.models.base import Response
from tertulia.parts import ToolResult
from tertulia.store.messages import text_of
from tertulia.tasks.task import Send, Task, args_of
from tertulia.toolbox.toolbox import Function
from tertulia.turns import Turn, model

EVERY = size(4, full=1)  # of the moments at which something happens
HERE = Place(platform="keyed", id="1", kind="direct")
THREAD = replace(HERE, thread="2")
GROUP = Place(platform="plain", id="-1", kind="group", title="Friends")
SECRET = "I am allergic to peanuts."
TOLD = "No peanuts, you are allergic."
UNTOLD = "I know nothing of that."


class Reminded:
    """A model that takes a while and tells what it was shown."""

    name = "gemini-3.8-flash"

    def __init__(self, *, told: str = TOLD, calls: bool = False) -> None:
        self.prompts: list[Prompt] = []
        self._add_text = told
        self._calls = calls

    async def respond(self, prompt: Prompt) -> Response:
        self.prompts.append(prompt)
        await asyncio.sleep(5)
        parts = [part for turn in prompt.turns for part in turn.parts]
        if self._calls and not any(isinstance(part, ToolResult) for part in parts):
            return Response(turn=Turn(role="model", parts=(ToolCall(id="a", name="note", args={}),), model=self.name))
        return Response(turn=model(self._add_text if "peanut" in str(prompt) else UNTOLD, by=self.name))

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


async def note() -> str:
    """Note something, once."""
    await asyncio.sleep(5)
    return "noted"


def an_engine(world: World, talker: Reminded, tools: tuple[Function, ...] = (), **changes: Any) -> Engine:
    behavior = Behavior(debounce=0.0, cancel_tasks="nothing")
    engine = Engine(
        world.store,
        talker,
        world.walls.values(),
        tools=tools,
        behavior=behavior,
        clock=RealClock(now=world.now),
        **changes,
    )
    world.loop.run(engine.start())
    return engine


def said(text: str, name: str, place: Place = HERE, **changes: Any) -> Message:
    return a_message(text, id=name, place=place, **changes)


def shown(world: World) -> list[str]:
    return [text for wall in world.walls.values() for text in wall.texts]


def told_before(world: World, place: Place = HERE) -> None:
    """A fact about Alice, from a message that was answered."""
    store = world.store
    source = said(SECRET, "m0", place)
    fact = known.a_fact("Is allergic to peanuts.", about=ALICE, place=place, id="f1", sources=("m0",))

    async def tell() -> None:
        await store.inbox.receive(source, at=world.now())
        await skip(store, place, "m0")
        await store.facts.learn([fact])

    world.loop.run(tell())


def forget(world: World) -> None:
    assert world.loop.run(world.store.facts.forget(["f1"], at=world.now())) == 1


def until(world: World, condition: Callable[[], object]) -> None:
    while not condition():
        world.loop.tick(1)
        if not condition():
            world.loop.run(asyncio.sleep(0.1))


def statuses(world: World) -> list[str]:
    return [status for (status,) in world.rows("runs", "status")]


@pytest.mark.parametrize(("place", "fact_place"), [(HERE, HERE), (THREAD, HERE), (GROUP, GROUP)])
def test_a_run_that_was_shown_it_begins_anew_without_it(world: World, place: Place, fact_place: Place) -> None:
    told_before(world, fact_place)
    talker = Reminded()
    engine = an_engine(world, talker, memory=Memory(world.store, clock=RealClock(now=world.now)))
    if place != fact_place:
        world.loop.run(engine.receive(said("hello there", "m1", place)))
        world.loop.run(engine.settled())
        del talker.prompts[:]
        world.walls["keyed"].shown.clear()

    world.loop.run(engine.receive(said("@gryag_bot what can I eat?", "m2", place)))
    until(world, lambda: talker.prompts)
    forget(world)
    world.loop.run(engine.settled())

    assert shown(world) == [UNTOLD]
    assert ["peanut" in str(prompt) for prompt in talker.prompts] == [True, False]
    assert set(statuses(world)) == {"done"}
    assert world.loop.run(world.store.check()) == []


def test_what_was_begun_anew_outlasts_the_process(world: World) -> None:
    told_before(world)
    talker = Reminded()
    engine = an_engine(world, talker)
    world.loop.run(engine.receive(said("what can I eat?", "m2")))
    until(world, lambda: talker.prompts)
    forget(world)

    world.kill()
    world.open()
    world.loop.run(an_engine(world, talker).settled())

    assert (shown(world), statuses(world)) == ([UNTOLD], ["done"])
    assert "peanut" not in str(talker.prompts[1:])


def test_a_run_that_has_begun_a_tool_ends_with_an_honest_line_and_runs_it_once(world: World) -> None:
    told_before(world)
    talker = Reminded(calls=True)
    engine = an_engine(world, talker, (note,))
    world.loop.run(engine.receive(said("what can I eat?", "m2")))
    until(world, lambda: world.rows("tool_runs"))

    forget(world)
    world.loop.run(engine.settled())

    assert (shown(world), statuses(world), len(talker.prompts)) == ([FAILED], ["failed"], 1)
    assert world.loop.run(world.store.check()) == []


def test_what_it_was_learned_from_is_not_answered_any_more(world: World) -> None:
    talker = Reminded()
    engine = an_engine(world, talker)
    world.loop.run(engine.receive(said(SECRET, "m0")))
    until(world, lambda: talker.prompts)
    fact = known.a_fact("Is allergic to peanuts.", about=ALICE, place=HERE, id="f1", sources=("m0",))
    world.loop.run(world.store.facts.learn([fact]))

    forget(world)
    world.loop.run(engine.settled())
    world.loop.run(engine.receive(said("hello", "m1")))
    world.loop.run(engine.settled())

    assert shown(world) == [UNTOLD]
    assert "peanut" not in str(talker.prompts[1:])


def test_the_answer_to_what_waits_and_states_it_is_hidden_with_it(world: World) -> None:
    told_before(world)
    talker = Reminded(told="Rice.")
    engine = an_engine(world, talker)
    question = said("With my peanut allergy, what can I eat?", "m2")
    world.loop.run(world.store.inbox.receive(question, at=world.now()))

    forget(world)
    world.loop.run(engine.receive(said("and drink?", "m3")))
    world.loop.run(engine.settled())

    read = world.loop.run(world.store.log.read(HERE, 0, 99))
    assert shown(world)[0] == "Rice."
    assert "peanut" not in " ".join(text_of(message) for message in read)
    assert "Rice." not in [text_of(message) for message in read]


def test_a_planned_send_that_tells_it_is_called_off_and_the_others_fire(world: World) -> None:
    told_before(world)
    plan = f"Rice.\n\n# «wait»\ndelay: 60\n\n# «send»\n{TOLD}\n\n# «send»\nAnd tea at five."
    engine = an_engine(world, Reminded(told=plan))
    world.loop.run(engine.receive(said("what can I eat?", "m2")))
    world.loop.run(engine.settled())
    due = world.now() + timedelta(minutes=2)
    reminders = [
        Task(id=name, kind="send", place=HERE, due_at=due, args=args_of(Send(text=text)))
        for name, text in (("t1", "Buy peanuts!"), ("t2", "Your peanut allergy: see the doctor."))
    ]
    world.loop.run(engine.schedule(reminders))

    forget(world)
    world.loop.run(asyncio.sleep(300))
    world.loop.run(engine.settled())

    assert [text.strip() for text in shown(world)] == ["Rice.", "And tea at five.", "Buy peanuts!"]
    (gone,) = world.rows("tasks", "body", task_id="t2")
    assert "doctor" not in gone[0]


@pytest.mark.parametrize("fault", ["later", "not now"])
def test_a_reply_that_waits_and_tells_it_is_dropped(world: World, fault: str) -> None:
    told_before(world)
    world.walls["keyed"].faults.extend([fault])
    engine = an_engine(world, Reminded())
    world.loop.run(engine.receive(said("what can I eat?", "m2")))
    until(world, lambda: world.rows("outbox", status="waiting", attempts=1))

    forget(world)
    world.loop.run(engine.settled())

    assert shown(world) == []
    (reply,) = world.loop.run(world.store.outbox.listed())
    assert (reply.status, reply.reply) == ("dropped", Reply(place=HERE, text=""))


def test_what_the_agent_says_to_somebody_else_of_themselves_goes_out(world: World) -> None:
    told_before(world, GROUP)
    fact = known.a_fact("Likes tea.", about=ALICE, place=GROUP, id="f2", sources=("m0",))
    world.loop.run(world.store.facts.learn([fact]))
    world.walls["plain"].faults.extend(["later"])
    engine = an_engine(world, Reminded(told="You like tea."))
    world.loop.run(engine.receive(said("@gryag_bot what do I like?", "m2", GROUP, author=BOB)))
    until(world, lambda: world.rows("outbox", attempts=1))

    world.loop.run(world.store.facts.forget(["f2"], at=world.now()))
    world.loop.run(engine.settled())

    assert shown(world) == ["You like tea."]


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("ticks", range(0, 48, EVERY))
def test_whenever_it_is_forgotten_nothing_that_was_not_being_sent_tells_it(
    world: World, ticks: int, calls: bool
) -> None:
    """After *ticks* rounds, time passes as it must: a run is some forty of them."""
    told_before(world)
    talker = Reminded(calls=calls)
    engine = an_engine(world, talker, (note,), memory=Memory(world.store, clock=RealClock(now=world.now)))
    world.loop.run(engine.receive(said("what can I eat?", "m2")))
    for number in range(ticks):
        world.loop.tick(1)
        if number % 4 == 3:
            world.loop.run(asyncio.sleep(0.7))

    forget(world)
    out = len(shown(world)) + sum("forgotten" in why for (why,) in world.rows("outbox", "why", attempts=1))
    world.loop.run(engine.settled())
    world.loop.run(engine.receive(said("and now?", "m3")))
    world.loop.run(engine.settled())

    assert len(shown(world)) in (1, 2)  # an answer that told it was dropped, or there was one, or a line
    assert [text for text in shown(world)[out:] if "peanut" in text] == []
    read = world.loop.run(world.store.log.read(HERE, 0, 99))
    assert "peanut" not in " ".join(text_of(message) for message in read)
    assert "peanut" not in str(talker.prompts[-1])
    assert world.loop.run(world.store.check()) == []
