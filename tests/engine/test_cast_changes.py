"""Agents that come and go while an engine runs, or between two of its processes."""

from datetime import timedelta

from engine.engines import GROUP, engine_with, said, talked
from people import NOON
from tertulia import Agent
from tertulia.context.values import Persona
from tertulia.engine.behavior import Behavior
from tertulia.engine.languages.lines import ENGLISH
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import HeldModel, RecordedPlatform

ADA, BOB = Agent(name="Ada"), Agent(name="Bob")
OWNED = Behavior(debounce=0.0, owners=("recorded:1",))
OF_BOB = Task(id="t1", kind="send", place=GROUP, due_at=NOON + timedelta(days=36_500), args={"text": "!"}, agent="Bob")


async def test_tasks_of_an_agent_that_is_gone_at_the_next_start_are_cancelled_and_told(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, agents=[ADA, BOB]) as engine:
        await engine.schedule([OF_BOB])
    async with engine_with(Scripted(), platform, store=store, agents=[ADA]) as engine:
        await engine.settled()

    assert [(task.status, task.why) for task in await store.tasks.listed(GROUP)] == [
        ("cancelled", "its agent was removed")
    ]
    assert platform.texts == [ENGLISH.agent_tasks_cancelled.format(name="Bob", count=1)]


async def test_a_removed_agent_ends_in_the_middle_of_its_answer_without_a_word(store: Store) -> None:
    platform, model = RecordedPlatform(), HeldModel("I am Bob.")
    async with engine_with(model, platform, store=store, agents=[ADA, BOB]) as engine:
        await engine.receive(said("Bob?", place=GROUP))
        await model.asked.wait()
        await engine.set_agents([ADA])
        await engine.settled()
        [run] = [one.run for one in await store.inspection.runs(most=9)]

    assert (run.agent, run.status, run.why) == ("Bob", "failed", "its agent was removed")
    assert platform.texts == []


async def test_an_owner_adds_an_agent_that_answers_also_after_the_next_start(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("I am Eve.", "Still Eve.")
    async with engine_with(model, platform, store=store, persona=Persona(name="Ada"), behavior=OWNED) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([platform.received(said("/agent add Eve: You are Eve.", 1, place=GROUP))], key="1")
        await engine.settled()
        await talked(engine, said("Eve?", 2, place=GROUP))
        assert [agent.name for agent in engine.agents] == ["Ada", "Eve"]
    async with engine_with(model, platform, store=store, persona=Persona(name="Ada"), behavior=OWNED) as engine:
        await talked(engine, said("Eve?", 3, place=GROUP))
        inbox = engine.inbox("recorded")
        await inbox.apply([platform.received(said("/agent remove eve", 4, place=GROUP))], key="4")
        await engine.settled()
        await talked(engine, said("Eve?", 5, place=GROUP))

    assert platform.texts == [
        ENGLISH.agent_added.format(name="Eve"),
        "I am Eve.",
        "Still Eve.",
        ENGLISH.agent_removed.format(name="eve"),
    ]
    assert [prompt.instruction.splitlines()[1] for prompt in model.prompts] == ["You are Eve.", "You are Eve."]
    assert [message.agent for message in await store.log.read(GROUP, 0, 9)] == [None, "Eve", None, "Eve", None]


async def test_in_a_direct_chat_a_new_agent_knows_nothing_of_what_was_told_before(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("Noted.", "Hello.", "Again.")
    async with engine_with(model, platform, store=store, agents=[ADA, BOB]) as engine:
        inbox = engine.inbox("recorded")
        await talked(engine, said("The key is in the petunia.", 1))
        await inbox.apply([platform.received(said("/agent Bob", 2))], key="2")
        await engine.settled()
        await talked(engine, said("Where is it?", 3))
        await inbox.apply([platform.received(said("/agent Ada", 4))], key="4")
        await engine.settled()
        await talked(engine, said("And you?", 5))

    of_ada, of_bob, again = map(str, model.prompts)
    assert ("petunia" in of_ada, "petunia" in of_bob, "petunia" in again) == (True, False, True)
    assert ("Where is it" in again, "Hello." in again) == (False, False)


async def test_a_part_of_an_album_that_two_answer_is_taken_once_by_each(store: Store) -> None:
    platform, model = RecordedPlatform(), HeldModel("I am Ada.", "I am Bob.")
    cy = Agent(name="Cy")
    async with engine_with(model, platform, store=store, agents=[ADA, cy, BOB]) as engine:
        await engine.receive(said("Ada, Cy, Bob?", 1, place=GROUP, album="a"))
        await model.asked.wait()
        await engine.set_agents([ADA, BOB])
        model.release()
        await engine.settled()
        runs = [one.run for one in await store.inspection.runs(most=9)]

    assert sorted((run.agent, run.taken) for run in runs) == [("Ada", ("1",)), ("Bob", ("1",))]


async def test_what_waits_for_an_agent_that_has_become_the_only_one_is_answered_once(store: Store) -> None:
    platform, model = RecordedPlatform(), HeldModel("One.", "Two.", "Three.")
    async with engine_with(model, platform, store=store, agents=[ADA, BOB]) as engine:
        await engine.receive(said("Ada, Bob?", 1, place=GROUP))
        await model.asked.wait()
        await engine.set_agents([BOB])
        model.release()
        await engine.settled()
        runs = [one.run for one in await store.inspection.runs(most=9)]

    assert sorted((run.agent, run.status) for run in runs) == [("Ada", "failed"), ("Bob", "done")]
    assert platform.texts == ["One."]
