"""What agents plan is theirs, and their memory tools read and write what is theirs."""

from typing import Any

from engine.engines import GROUP, engine_with, said, talked
from people import NOON
from tertulia.engine.agents.agent import Agent
from tertulia.engine.memory import Memory
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.platform import Commanded
from tertulia.seen_by import SeenBy
from tertulia.store import Store
from tertulia.testing import Clock, RecordedPlatform
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import tool
from tertulia.tools.memory import memory_tools
from tertulia.tools.reminders import reminder_tool


async def test_a_tool_knows_whose_run_calls_it(store: Store) -> None:
    seen: list[tuple[str, SeenBy | None]] = []

    @tool
    def look(context: RunContext) -> str:
        """Look."""
        seen.append((context.agent, context.seen_by))
        return "seen"

    model = Scripted(ToolCall(id="1", name="look", args={}), "Yes.", ToolCall(id="2", name="look", args={}), "Yes.")
    agents = [Agent(name="Kant", knows="present"), Agent(name="Hume", memory="own")]
    async with engine_with(model, store=store, agents=agents, tools=[look]) as engine:
        await talked(engine, said("Kant, Hume?", place=GROUP))

    assert seen == [("Kant", SeenBy(agent="Kant", present=True)), ("Hume", SeenBy(agent="Hume", own=True))]


async def test_reminders_are_said_by_the_agent_that_planned_them(store: Store) -> None:
    clock, platform = Clock(NOON), RecordedPlatform()
    call = ToolCall(id="1", name="remind_me", args={"when": "in 1 hour", "text": "Tea"})
    options: dict[str, Any] = {"now": clock.now, "sleep": clock.sleep}
    agents = [Agent(name="Kant"), Agent(name="Hume")]
    tools = [reminder_tool(store.tasks, clock.now, "UTC")]

    async with engine_with(
        Scripted(call, "Set."), platform, store=store, agents=agents, tools=tools, **options
    ) as engine:
        await talked(engine, said("Hume, remind me of tea", place=GROUP))
        command = Commanded(message=said("/remind", 2, place=GROUP), name="remind", argument="in 2 hours Cake")
        await engine.inbox("recorded").apply([command], key="1")
        await engine.settled()
        planned = [task.agent for task in await store.tasks.listed(GROUP)]
        for _ in range(2):
            await clock.advance(3600.0)
            await engine.settled()

    assert planned == ["Hume", "Kant"]
    log = await store.log.read(GROUP, 0, 9)
    assert [(one.agent, one.author.name) for one in log[-2:]] == [("Hume", "Hume"), ("Kant", "Kant")]


async def test_memory_tools_of_an_agent_with_its_own_memory(store: Store) -> None:
    tools = memory_tools(store, lambda: NOON)
    remember = ToolCall(id="1", name="remember", args={"fact": "Likes tea"})
    recall = [ToolCall(id=str(number), name="recall", args={}) for number in (2, 3)]
    model = Scripted(remember, "Yes.", recall[0], "Yes.", recall[1], "Yes.")
    agents = [Agent(name="Kant"), Agent(name="Hegel", memory="own")]

    async with engine_with(model, store=store, agents=agents, tools=tools) as engine:
        await talked(engine, said("Hegel, I like tea.", 1, place=GROUP), said("Kant, what of me?", 2, place=GROUP))
        await talked(engine, said("Hegel, what of me?", 3, place=GROUP))

    of_kant, of_hegel = [str(model.prompts[number].turns[-1]) for number in (3, 5)]
    assert ("Likes tea" in of_kant, "Likes tea" in of_hegel) == (False, True)
    assert [fact.agent for fact in await store.facts.listed()] == ["Hegel"]


async def test_what_an_agent_remembers_by_a_block_is_its_own(store: Store) -> None:
    agents = [Agent(name="Kant"), Agent(name="Hegel", memory="own")]
    model = Scripted("Yes.\n\n# «remember»\nLikes tea", "Yes.\n\n# «remember»\nLikes cake")

    async with engine_with(model, store=store, agents=agents) as engine:
        await talked(engine, said("Hegel, I like tea.", 1, place=GROUP), said("Kant, I like cake.", 2, place=GROUP))

    assert {(fact.agent, fact.text) for fact in await store.facts.listed()} == {
        ("Hegel", "Likes tea"),
        (None, "Likes cake"),
    }


async def test_a_place_is_told_once_what_its_agents_know_of_a_person_and_forgets_all_of_it(store: Store) -> None:
    platform = RecordedPlatform()
    agents = [Agent(name="Kant"), Agent(name="Hegel", memory="own")]

    async with engine_with(
        Scripted(*["Yes."] * 9), platform, store=store, memory=Memory(store), agents=agents
    ) as engine:

        async def command(name: str, number: int, argument: str = "") -> str:
            given = Commanded(message=said(f"/{name}", number, place=GROUP), name=name, argument=argument)
            await engine.inbox("recorded").apply([given], key=str(number))
            await engine.settled()
            return platform.texts[-1]

        await talked(engine, said("Hegel, I like tea.", 1, place=GROUP), said("Kant, I live in Lviv.", 2, place=GROUP))
        shown = await command("memory", 3)
        await command("forget", 4, "tea")
        left = await store.facts.listed()

    assert (shown.count("Likes tea."), shown.count("Lives in Lviv.")) == (1, 1)
    assert [(fact.agent, fact.text) for fact in left] == [(None, "Lives in Lviv.")]
