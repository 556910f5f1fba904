"""What agents of one engine remember: what all share, what was said while one was there, or what it answered."""

from engine.engines import GROUP, engine_with, said, talked
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.engine.memory import Memory
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.seen_by import SeenBy
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.toolbox.run_context import RunContext


def an_agent(name: str, **changes: object) -> Agent:
    return Agent(name=name, persona=Persona(name=name, text=f"You are {name}."), **changes)  # type: ignore[arg-type]


async def test_agents_share_what_is_known_of_people_and_one_with_its_own_memory_knows_what_it_answered() -> None:
    async with Store.open(":memory:") as store:
        memory, model = Memory(store), Scripted(*["Yes."] * 9)
        agents = [an_agent("Kant"), an_agent("Hume"), an_agent("Hegel", memory="own")]
        async with engine_with(model, RecordedPlatform(), store=store, memory=memory, agents=agents) as engine:
            await talked(engine, said("Kant, I live in Lviv.", 1, place=GROUP))
            await memory.done()
            await talked(engine, said("Hegel, I like tea.", 2, place=GROUP))
            await memory.done()
            await talked(engine, said("Hume, what of me?", 3, place=GROUP))
            await talked(engine, said("Hegel, what of me?", 4, place=GROUP))
        facts = {(fact.agent, fact.text) for fact in await store.facts.listed()}

    assert facts == {(None, "Lives in Lviv."), (None, "Likes tea."), ("Hegel", "Likes tea.")}
    hume, hegel = [str(prompt.instruction) + str(prompt.turns) for prompt in model.prompts[2:4]]
    assert ("Lives in Lviv." in hume, "Likes tea." in hume) == (True, True)
    assert ("Lives in Lviv." in hegel, "Likes tea." in hegel) == (False, True)


async def test_a_tool_is_told_for_which_agent_it_is_called() -> None:
    seen: list[SeenBy | None] = []

    async def look(context: RunContext) -> str:
        """Look."""
        seen.append(context.seen_by)
        return "done"

    call = ToolCall(name="look", args={}, id="a")
    cast = [an_agent("Kant"), an_agent("Hume", knows="present", memory="own")]
    for agents in (cast, cast[1:]):
        model = Scripted([call], "Yes.")
        async with engine_with(model, RecordedPlatform(), agents=agents, tools=[look]) as engine:
            await talked(engine, said("Hume?", 1, place=GROUP))

    assert seen == [SeenBy(agent="Hume", present=True, own=True), None]
