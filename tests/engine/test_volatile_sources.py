"""The dynamic layer is the latest state: volatile sources are asked again before each step of a run."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import engine_with, said, talked, texts_of
from people import NOON
from tertulia import Context, ContextOptions, Workspace, tool, volatile
from tertulia.engine.behavior import FAILED, Behavior
from tertulia.errors import Overloaded
from tertulia.messages import Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Text, ToolCall
from tertulia.run.journal import SentPrompt
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Layer, Prompt

CALL = ToolCall(id="c1", name="finish", args={})
AGAIN = ToolCall(id="c2", name="look", args={})


class Desk:
    """A todo that a tool finishes: the state is changed in place, as programs do."""

    def __init__(self) -> None:
        self.todo: dict[str, Any] = {"text": "bake", "done": False}
        self.asked = 0

    @property
    def tools(self) -> list[Any]:
        return [tool(self.finish), tool(self.look)]

    def finish(self) -> str:
        """Finish the todo."""
        self.todo["done"] = True
        return "done"

    def look(self) -> str:
        """Look around."""
        return "nothing new"

    def state(self, context: Context) -> Context:
        self.asked += 1
        return replace(context, workspace=Workspace(todos=(self.todo,)))


def known(prompt: Prompt) -> dict[str, Any]:
    """The JSON of the dynamic layer of a prompt."""
    (layer,) = (layer for layer in prompt.layers if layer.name == "dynamic")
    found: dict[str, Any] = json.loads(texts_of(layer.turns)[0])
    return found


def shown(prompt: Prompt) -> bool:
    """Whether the dynamic layer of a prompt shows the todo as done."""
    done: bool = known(prompt)["todos"][0]["done"]
    return done


def others(prompt: Prompt) -> tuple[Layer, ...]:
    return tuple(layer for layer in prompt.layers if layer.name != "dynamic")


async def sent_prompts(store: Store) -> list[SentPrompt]:
    return list(await store.prompts.sent_by())


@pytest.mark.parametrize("profile", ["layered", "tail"])
async def test_each_step_shows_the_state_after_the_tools_before_it(profile: str, store: Store) -> None:
    desk, model = Desk(), Scripted([CALL], [AGAIN], "Ready.")
    given = ContextOptions(sources=(volatile(desk.state),))
    async with engine_with(model, store=store, profile=profile, tools=desk.tools, context=given) as engine:
        await talked(engine, said("bake!"))

    first, second, third = model.prompts
    assert [shown(one) for one in model.prompts] == [False, True, True]
    assert others(second)[: len(first.layers) - 1] == others(first)
    assert others(third)[: len(second.layers) - 1] == others(second)
    assert [layer.name for layer in second.layers] == [*(layer.name for layer in first.layers), "run"]
    assert [one.prompt for one in await sent_prompts(store)] == model.prompts


async def test_a_state_that_is_the_same_changes_no_byte_though_time_goes_on() -> None:
    desk, model, times = Desk(), Scripted([AGAIN], "Ready."), [NOON]

    async def look() -> str:
        """Look around."""
        times.append(times[-1] + timedelta(minutes=1))
        return "nothing new"

    given = ContextOptions(sources=(volatile(desk.state),))
    async with engine_with(model, tools=[look], context=given, now=lambda: times[-1]) as engine:
        await talked(engine, said("bake!"))

    first, second = model.prompts
    assert second.layers[: len(first.layers)] == first.layers
    assert desk.asked == 2


async def test_a_source_that_is_not_volatile_is_asked_once_a_run() -> None:
    desk, model = Desk(), Scripted([CALL], "Ready.")
    async with engine_with(model, tools=desk.tools, context=ContextOptions(sources=(desk.state,))) as engine:
        await talked(engine, said("bake!"))

    assert (desk.asked, [shown(one) for one in model.prompts]) == (1, [False, False])


async def test_a_run_that_a_crash_cut_off_goes_on_with_the_state_of_now(store: Store) -> None:
    desk, model, began = Desk(), Scripted([CALL]), asyncio.Event()

    async def finish() -> str:
        """Finish the todo."""
        desk.finish()
        began.set()
        return await asyncio.Future()

    given = ContextOptions(sources=(volatile(desk.state),))
    async with engine_with(model, store=store, tools=[finish], context=given) as engine:
        await engine.receive(said("bake!"))
        await began.wait()
    resumed = Scripted("Ready.")
    async with engine_with(resumed, store=store, tools=[finish], context=given) as engine:
        await engine.settled()

    (first,), (second,) = model.prompts, resumed.prompts
    assert (shown(first), shown(second)) == (False, True)
    assert others(second)[: len(first.layers) - 1] == others(first)
    assert [one.prompt for one in await sent_prompts(store)] == [first, second]


async def test_a_message_that_joined_a_run_is_no_part_of_its_state_after_a_crash(store: Store) -> None:
    desk, model, held = Desk(), Scripted([CALL], [AGAIN]), asyncio.Event()

    async def look() -> str:
        """Look around."""
        held.set()
        return await asyncio.Future()

    async def finish() -> str:
        """Finish the todo, while somebody writes more."""
        await engine.receive(said("and eat", 2, reply_to=Quote(message_id="0", parts=(Text(text="a quote"),))))
        return desk.finish()

    named: dict[str, Any] = {
        "tools": [finish, look],
        "context": ContextOptions(sources=(volatile(desk.state),)),
        "behavior": Behavior(debounce=0.0, during_run="next_step"),
    }
    async with engine_with(model, store=store, **named) as engine:
        await engine.receive(said("bake!"))
        await held.wait()
    resumed = Scripted("Ready.")
    async with engine_with(resumed, store=store, **named) as again:
        await again.settled()

    last = resumed.prompts[0]
    assert "quote" not in known(last)
    assert others(last)[: len(model.prompts[1].layers) - 1] == others(model.prompts[1])


async def test_the_state_is_that_of_now_where_another_model_takes_over() -> None:
    desk, down, up = Desk(), Scripted([CALL], Overloaded("busy"), name="one"), Scripted("Ready.", name="two")
    given = ContextOptions(sources=(volatile(desk.state),))
    async with engine_with([down, up], tools=desk.tools, context=given) as engine:
        await talked(engine, said("bake!"))

    assert [shown(one) for one in (*down.prompts, *up.prompts)] == [False, True, True]
    assert desk.asked == 3


async def test_a_volatile_source_that_fails_in_a_later_step_ends_the_run_with_an_honest_line() -> None:
    model, platform, calls = Scripted([AGAIN], "Ready."), RecordedPlatform(), iter([None])

    @volatile
    def state(context: Context) -> Context:
        next(calls)
        return context

    named: dict[str, Any] = {"tools": Desk().tools, "context": ContextOptions(sources=(state,))}
    async with engine_with(model, platform, **named) as engine:
        await talked(engine, said("bake!"))

    assert (platform.texts, len(model.prompts)) == ([FAILED], 1)


async def test_what_a_volatile_source_adds_does_not_pile_up() -> None:
    model, seen = Scripted([CALL], [AGAIN], "Ready."), list[tuple[str, ...]]()

    @volatile
    async def more(context: Context) -> Context:
        seen.append(context.memories)
        return replace(context, memories=(*context.memories, f"memory {len(seen)}"))

    async with engine_with(model, tools=Desk().tools, context=ContextOptions(sources=(more,))) as engine:
        await talked(engine, said("bake!"))

    assert seen == [(), (), ()]
    assert [known(one)["memories"] for one in model.prompts] == [["memory 1"], ["memory 2"], ["memory 3"]]


@pytest.mark.parametrize("profile", ["native", "block", "headers", "single"])
async def test_a_profile_without_a_dynamic_layer_stays_as_it_is(profile: str) -> None:
    desk, model = Desk(), Scripted([CALL], "Ready.")
    given = ContextOptions(sources=(volatile(desk.state),))
    async with engine_with(model, profile=profile, tools=desk.tools, context=given) as engine:
        await talked(engine, said("bake!"))

    first, second = model.prompts
    assert second.layers[: len(first.layers)] == first.layers


async def test_plain_gets_its_layer_when_there_is_something_to_tell() -> None:
    model, facts = Scripted([CALL], "Ready."), list[str]()

    def finish() -> str:
        """Learn a fact."""
        facts.append("likes tea")
        return "done"

    @volatile
    def known_now(context: Context) -> Context:
        return replace(context, memories=tuple(facts))

    named: dict[str, Any] = {"tools": [finish], "context": ContextOptions(sources=(known_now,)), "profile": "plain"}
    async with engine_with(model, **named) as engine:
        await talked(engine, said("bake!"))

    names = [[layer.name for layer in prompt.layers] for prompt in model.prompts]
    assert names == [["static", "buffered", "trigger"], ["static", "buffered", "dynamic", "trigger", "run"]]
    assert "likes tea" in str(model.prompts[1].layers[2])
