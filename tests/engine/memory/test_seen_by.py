"""What an agent is told of memory was said while it was there."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from memory.searching import a_store, hear
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message
from tertulia.context.values import RelevantMessage
from tertulia.engine.memory import Memory
from tertulia.memory.values import Episode
from tertulia.messages import Message, Place
from tertulia.seen_by import SeenBy
from tertulia.store import Store

KANT, HUME = SeenBy(agent="Kant", present=True), SeenBy(agent="Hume", present=True)
HERE = replace(DIRECT, id=ALICE.id)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with a_store() as opened:
        yield opened


async def talk_to(store: Store, agent: str, place: Place, *texts: str, start: int) -> None:
    """Let Alice say something while an agent is in a place."""
    await store.agents.join(place, agent, at=NOON)
    at = NOON - timedelta(days=9)
    said = [a_message(text, id=str(n), place=place, author=ALICE, sent_at=at) for n, text in enumerate(texts, start)]
    await hear(store, *said)
    await store.agents.leave(place, agent, at=NOON)


async def learn(store: Store) -> Memory:
    memory = Memory(store)
    await memory.start()
    await memory.done()
    await memory.close()
    return memory


async def told(memory: Memory, seen_by: SeenBy | None, text: str, place: Place = GROUP) -> tuple[set[str], str]:
    """Return the messages that an agent is shown for a question, and the facts."""
    target, knowledge = a_message(text, id="99", place=place, author=ALICE), memory.knowledge_of(seen_by)
    known = await knowledge.background(target)
    facts = "; ".join([*known.memories, *known.key_facts.values(), known.summary]).strip("; ")
    return {one.text for one in await knowledge.relevant(target)}, facts


@pytest.mark.parametrize("place", [GROUP, HERE], ids=["group", "direct"])
async def test_recall_and_facts_are_of_what_the_agent_was_there_for(store: Store, place: Place) -> None:
    fill = [f"the weather on day {number} is fine" for number in range(9)]
    await talk_to(store, "Kant", place, "I live in Lviv", "my xylophone is blue", *fill, start=0)
    await talk_to(store, "Hume", place, "I work at the bakery", "my xylophone case is grey", *fill, start=20)
    memory = await learn(store)
    seen_by = [replace(one, present=place is GROUP) for one in (KANT, HUME)]

    kant, hume, hegel = [
        await told(memory, one, "where is my xylophone", place)
        for one in (*seen_by, replace(seen_by[0], agent="Hegel"))
    ]

    assert ("my xylophone is blue" in kant[0], "my xylophone case is grey" in kant[0]) == (True, False)
    assert ("my xylophone is blue" in hume[0], "my xylophone case is grey" in hume[0]) == (False, True)
    assert ("Lviv" in kant[1], "bakery" in kant[1]) == (True, False)
    assert ("Lviv" in hume[1], "bakery" in hume[1]) == (False, True)
    assert hegel == (set(), "")


async def test_one_that_knows_all_is_told_of_a_group_what_it_missed(store: Store) -> None:
    await talk_to(store, "Kant", GROUP, "I live in Lviv", "my xylophone is blue", start=0)
    memory = await learn(store)

    everything = await told(memory, None, "where is my xylophone")

    assert everything == await told(memory, SeenBy(agent="Hume"), "where is my xylophone")
    assert "Lviv" in everything[1]


async def test_the_past_of_a_window_is_made_of_the_episodes_that_the_agent_saw(store: Store) -> None:
    await talk_to(store, "Kant", GROUP, "about tea", "more tea", start=0)
    await talk_to(store, "Hume", GROUP, "about figs", "more figs", start=2)
    for start, topic in ((0, "tea"), (2, "figs")):
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        episode = Episode(
            id=topic,
            place=GROUP,
            start=start,
            stop=start + 2,
            began_at=NOON,
            topic=topic,
            summary=f"They like {topic}.",
        )
        await store.episodes.add(episode, seen=replace(seen, read=start))
    memory = Memory(store)

    pasts = [await memory.knowledge_of(one).past(GROUP, 4) for one in (KANT, HUME, None, KANT)]

    assert [("tea" in past, "figs" in past) for past in pasts] == [
        (True, False), (False, True), (True, True), (True, False),
    ]  # fmt: skip
    found = [await memory.knowledge_of(one).episodes(a_message("tea and figs?")) for one in (KANT, HUME, None)]
    assert [sorted(one.topic for one in some) for some in found] == [["tea"], ["figs"], ["figs", "tea"]]


async def test_a_search_of_the_users_own_is_not_asked_for_an_agent_that_may_not_see_all(store: Store) -> None:
    class Everything:
        async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
            return [RelevantMessage(text="all", score=1.0)]

    memory = Memory(store, search=Everything())
    target = a_message("what?", author=BOB)

    found = [await memory.knowledge_of(one).relevant(target) for one in (None, SeenBy(agent="Kant"), KANT)]

    assert [[one.text for one in some] for some in found] == [["all"], ["all"], []]
