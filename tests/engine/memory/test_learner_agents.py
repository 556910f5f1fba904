"""What an agent learns for itself, and the summaries of agents that do not see all."""

from collections.abc import Sequence

from msgspec.structs import replace

from engine.memory.learners import a_learner, a_store, hear, read
from people import ALICE, BOB, GROUP, NOON, a_message
from store.builders import PROMPT, a_run
from tertulia.memory.facts import subject_of
from tertulia.messages import Message, Place
from tertulia.seen_by import SeenBy
from tertulia.store import Store

KANT, HUME = SeenBy(agent="Kant", own=True), SeenBy(agent="Hume", present=True)


def said(text: str, number: int) -> Message:
    return a_message(text, id=str(number), author=(ALICE, BOB)[number % 2])


async def agents_of(_: Place) -> Sequence[SeenBy | None]:
    return None, KANT, HUME


async def answer(store: Store, number: int, agent: str) -> None:
    run = a_run(id=f"r{number}", agent=agent, target=str(number), taken=(str(number),))
    await store.runs.begin(run, PROMPT, at=NOON)
    await store.runs.end(replace(run, status="done", ended_at=NOON))


async def known(store: Store, seen_by: SeenBy | None) -> dict[str, list[str]]:
    found = {}
    for person in (ALICE, BOB):
        facts = await store.facts.about(subject_of(person, GROUP), place=GROUP, seen_by=seen_by)
        found[person.name] = sorted(fact.text for fact in facts)
    return found


async def test_an_agent_with_a_memory_of_its_own_learns_what_it_answered() -> None:
    async with a_store() as store:
        learner = a_learner(store, agents=agents_of)
        await hear(store, said("I live in Lviv.", 0), said("I live in Kyiv.", 1), said("I like tea.", 2))
        await answer(store, 0, "Kant")
        await answer(store, 1, "Hume")
        await read(learner, GROUP)
        first = await known(store, KANT), await known(store, SeenBy(agent="Hegel"))
        await answer(store, 2, "Kant")
        await read(learner, GROUP)
        await read(learner, GROUP)

        shared = {"Alice": ["Lives in Lviv.", "Likes tea."], "Bob": ["Lives in Kyiv."]}
        assert first == ({"Alice": ["Lives in Lviv."], "Bob": []}, {name: sorted(one) for name, one in shared.items()})
        assert await known(store, KANT) == {"Alice": sorted(shared["Alice"]), "Bob": []}
        listed = [(fact.agent, fact.sources) for fact in await store.facts.listed(subject_of(ALICE, GROUP))]
        assert sorted(listed, key=str) == [("Kant", ("0",)), ("Kant", ("2",)), (None, ("0",)), (None, ("2",))]
        assert await store.cursors.answered(GROUP, "Kant", most=9) is None
        assert await store.check() == []


async def test_what_changes_while_it_is_read_is_read_again() -> None:
    async with a_store() as store:
        await hear(store, said("I live in Lviv.", 0))
        await answer(store, 0, "Kant")
        answered = await store.cursors.answered(GROUP, "Kant", most=9)
        assert answered is not None
        assert [one.text for one in answered.messages] == ["I live in Lviv."]
        await store.inbox.edit(replace(said("I live in Kyiv.", 0), edited_at=NOON), at=NOON)

        assert await store.facts.learn([], reading=answered) == []
        again = await store.cursors.answered(GROUP, "Kant", most=9)

        assert again is not None
        assert [one.text for one in again.messages] == ["I live in Kyiv."]


async def test_an_agent_that_does_not_see_all_has_summaries_of_what_it_sees() -> None:
    async with a_store() as store:
        learner = a_learner(store, agents=agents_of)
        await hear(store, *(said(text, 2 * n) for n, text in enumerate(("I live in Lviv.", "I like tea."))))
        await store.agents.join(GROUP, "Hume", at=NOON)
        texts = ("I work at the bakery.", "I like figs.", "I am allergic to nuts.", "My dog is called Rex.")
        await hear(store, *(said(text, 10 + 2 * n) for n, text in enumerate(texts)))
        await read(learner, GROUP)

        alice = subject_of(ALICE, GROUP)
        shared, theirs = [await store.facts.summary(alice, place=GROUP, seen_by=one) for one in (None, HUME)]
        assert shared is not None
        assert theirs is not None
        assert (theirs.agent, theirs.facts) == ("Hume", len((await known(store, HUME))["Alice"]))
        assert shared.facts > theirs.facts
        assert "Lviv" not in theirs.text
