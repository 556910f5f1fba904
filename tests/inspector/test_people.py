"""People with what is known of them; what is known in a place; what forgetting would remove."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.engines import ME
from memory.known import a_fact
from people import ALICE, BOB, GROUP, NOON, a_message
from store.builders import PROMPT, a_run, add_episode, add_own
from tertulia.context.values import RecalledThing
from tertulia.errors import InvalidValue
from tertulia.inspector import people
from tertulia.inspector.places import person_key
from tertulia.memory.values import Subject, Summary
from tertulia.store import Store

HER = Subject(platform="telegram", id=ALICE.id, name=ALICE.name)
KEY = person_key(HER)


@pytest.fixture
async def told(store: Store) -> Store:
    """Alice says what she likes, Bob says something, the bot answers; the fact was shown in a run."""
    await store.inbox.receive(a_message("I like tea", id="m1"), at=NOON)
    await store.inbox.receive(a_message("me too", id="m2", author=BOB, sent_at=NOON + timedelta(minutes=1)), at=NOON)
    await add_own(store, a_message("noted", id="m3", author=replace(ME, persona="gryag")))
    fact = a_fact()
    await store.facts.learn([fact])
    await store.facts.summarise(
        Summary(subject=HER, place=GROUP, text="She likes tea.", facts=1, digest="d", made_at=NOON), made_of=[fact.id]
    )
    thing = RecalledThing(kind="fact", id=fact.id, why="it is known of the author")
    await store.runs.begin(a_run(), PROMPT, at=NOON, recalled=[thing])
    await add_episode(store, episode_id="e1", topic="Tea", summary="About tea.", stop=3, people=f'["{ALICE.id}"]')
    return store


async def test_people_are_listed_with_what_they_wrote_last_first(told: Store) -> None:
    bob, alice = await people.people(told)

    assert (alice.key, alice.person, alice.messages, alice.facts, alice.last_at) == (KEY, HER, 1, 1, NOON)
    assert (bob.person.name, bob.messages, bob.facts, bob.blocked) == ("Bob", 1, 0, False)


async def test_a_person_has_facts_with_sources_summaries_episodes_and_places(told: Store) -> None:
    shown = await people.person(told, KEY)

    (fact,) = shown.facts
    assert (fact.fact.text, fact.place_key, fact.prompts) == ("likes tea", "telegram.-100123", 1)
    assert [(one.id, one.text) for one in fact.sources] == [("m1", "I like tea")]
    assert [one.text for one in shown.summaries] == ["She likes tea."]
    assert [row.key for row in shown.places] == ["telegram.-100123"]
    assert shown.names == ("Alice",)
    with pytest.raises(InvalidValue, match="there is no person telegram"):
        await people.person(told, "telegram.nobody")


async def test_of_blocked_people_only_names_are_shown(told: Store) -> None:
    await told.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)

    shown = await people.person(told, KEY)
    memory = await people.place_memory(told, GROUP, now=NOON)

    assert (shown.row.blocked, shown.facts, shown.summaries, shown.episodes) == (True, (), (), ())
    assert memory.facts == ()


async def test_a_place_has_its_people_facts_and_episodes(told: Store) -> None:
    memory = await people.place_memory(told, GROUP, now=NOON)

    assert [row.person.name for row in memory.people] == ["Bob", "Alice"]
    assert [one.fact.text for one in memory.facts] == ["likes tea"]
    assert [(one.topic, one.people, one.importance) for one in memory.episodes] == [("Tea", ("Alice",), 0.5)]


async def test_forgetting_is_planned_before_it_is_done(told: Store) -> None:
    whole = await people.plan_person(told, KEY)
    (fact,) = await told.facts.listed()
    one = await people.plan_fact(told, fact.id)

    assert {name: whole.rows[name] for name in ("messages", "facts", "summaries", "names")} == {
        "messages": 1, "facts": 1, "summaries": 1, "names": 1,
    }  # fmt: skip
    assert one.rows == {"facts": 1, "messages": 1, "summaries": 1}
    assert one.note
    assert "messages" in await people.export_person(told, KEY)
    await told.facts.forget([fact.id])
    assert (await people.person(told, KEY)).facts == ()
    with pytest.raises(InvalidValue, match="there is no fact"):
        await people.plan_fact(told, fact.id)
    with pytest.raises(InvalidValue, match="there is no person"):
        await people.plan_person(told, "telegram.nobody")
