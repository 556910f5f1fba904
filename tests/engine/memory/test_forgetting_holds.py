"""What was forgotten or cleared is in no later prompt: neither recalled, nor shown, nor quoted, nor told again."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import ALICE, DIRECT, GROUP, ME, engine_with, said, talked
from memory.searching import Letters, a_search, index
from people import NOON
from tertulia.engine.engine import Engine
from tertulia.engine.memory import Memory
from tertulia.memory.facts import subject_of
from tertulia.messages import Message, Place, Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Text, ToolCall
from tertulia.platform import Capabilities
from tertulia.profiles import PROFILES
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.toolbox.toolbox import tool

SECRET = "I am allergic to peanuts."
NOTED = "Noted: you are allergic to peanuts, so no peanuts for you."
LETTERS = Letters()


def at(minutes: int, text: str, number: int, **changes: Any) -> Message:
    return said(text, number, sent_at=NOON + timedelta(minutes=minutes), **changes)


def a_quote_of(number: int, text: str) -> Quote:
    return Quote(message_id=str(number), author=ALICE, parts=(Text(text=text),))


def an_engine(model: Scripted, store: Store, memory: Memory, profile: str) -> AbstractAsyncContextManager[Engine]:
    platform = RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max))
    return engine_with(model, platform, store=store, memory=memory, profile=profile)


async def told_before(store: Store, memory: Memory, *, profile: str = "layered", place: Place = DIRECT) -> None:
    """A secret, an answer that repeats it, something else, and two hours of silence."""
    model = Scripted(NOTED, "Bon voyage.", "Good night.")
    async with an_engine(model, store, memory, profile) as engine:
        await talked(
            engine,
            at(0, f"Gryag! {SECRET}", 1, place=place),
            at(1, "Gryag, the ferry to Odesa leaves on Friday.", 2, place=place),
            at(150, "Gryag, good night.", 3, place=place, reply_to=a_quote_of(1, SECRET)),
        )
        await memory.done()


async def asked_after(store: Store, memory: Memory, *, profile: str = "layered", place: Place = DIRECT) -> str:
    """All that the model is shown for a question about the secret, with a quote of it."""
    model = Scripted("I do not know.", "Nor now.")
    async with an_engine(model, store, memory, profile) as engine:
        await talked(
            engine,
            at(300, "Gryag, what am I allergic to? Which nuts?", 4, place=place),
            at(301, "Gryag, and this?", 5, place=place, reply_to=a_quote_of(1, SECRET)),
        )
    return str(model.prompts)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("place", [DIRECT, GROUP])
async def test_the_messages_a_forgotten_fact_came_from_are_in_no_later_prompt(
    store: Store, profile: str, place: Place
) -> None:
    memory = Memory(store)
    await told_before(store, memory, profile=profile, place=place)
    (fact,) = await store.facts.listed(subject_of(ALICE, place))
    assert fact.text == "Is allergic to peanuts."

    await store.facts.forget([fact.id])
    await index(store, lambda _: LETTERS)
    prompts = await asked_after(store, memory, profile=profile, place=place)

    assert "peanut" not in prompts
    assert "ferry to Odesa" in prompts or profile == "single"  # which shows no history
    assert [one.message.id for one in await a_search(store).find("peanuts", place=place, author=ALICE)] == []
    assert await store.facts.listed() == []
    assert await store.check() == []


@pytest.mark.parametrize("profile", sorted(PROFILES))
async def test_what_was_cleared_is_in_no_later_prompt_but_for_what_is_known(store: Store, profile: str) -> None:
    memory = Memory(store)
    await told_before(store, memory, profile=profile)
    assert await store.episodes.listed(DIRECT)

    async with engine_with(Scripted(), store=store) as engine:
        await engine.clear(DIRECT)
    await index(store, lambda _: LETTERS)
    await store.facts.forget([fact.id for fact in await store.facts.listed()])
    prompts = await asked_after(store, memory, profile=profile)

    assert "peanut" not in prompts
    assert "ferry to Odesa" not in prompts
    found = await a_search(store, embedders=lambda _: LETTERS).find("ferry", place=DIRECT, author=ALICE)
    assert {one.message.id for one in found} <= {"4", "5"}
    assert all("ferry" not in one.summary for one in await store.episodes.listed(DIRECT))


async def test_what_is_known_outlasts_a_clear(store: Store) -> None:
    memory = Memory(store)
    await told_before(store, memory)

    async with engine_with(Scripted(), store=store) as engine:
        await engine.clear(DIRECT)
    prompts = await asked_after(store, memory)

    assert "Is allergic to peanuts." in prompts
    assert "ferry" not in prompts
    assert NOTED not in prompts


async def test_a_hidden_message_that_says_something_else_is_seen_again_without_what_it_said(store: Store) -> None:
    memory = Memory(store)
    await told_before(store, memory)
    await store.facts.forget([fact.id for fact in await store.facts.listed()])

    async with engine_with(
        Scripted("Hm.", "Hm."),
        RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max)),
        store=store,
    ) as engine:
        await engine.edit(at(0, f"Gryag! {SECRET}", 1, edited_at=NOON + timedelta(minutes=200)))
        await talked(engine, at(201, "And now?", 6))
        await engine.edit(at(0, "Gryag! I am fond of walnuts.", 1, edited_at=NOON + timedelta(minutes=202)))
    prompts = await asked_after(store, memory)

    assert "peanut" not in prompts
    assert "I am fond of walnuts." in prompts
    assert await store.check() == []


async def test_the_answer_to_a_message_and_what_a_tool_said_are_hidden_with_it(store: Store) -> None:
    @tool
    async def look_up() -> str:
        """What is known."""
        return "peanuts: allergic"

    memory = Memory(store)
    model = Scripted("Then satay is not for you.", [ToolCall(name="look_up", args={}, id="a")], "There you are.", "Hm.")
    platform = RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max))
    async with engine_with(model, platform, store=store, memory=memory, tools=[look_up], profile="plain") as engine:
        await talked(engine, at(0, SECRET, 1), at(1, "What do you know?", 2))
        await memory.done()
        await store.facts.forget([fact.id for fact in await store.facts.listed()])
        await talked(engine, at(2, "Thanks.", 3))

    last = str(model.prompts[-1].turns)
    assert [word in last for word in ("peanut", "satay", "There you are.", "What do you know?")] == [
        False,
        False,
        False,
        True,
    ]


async def test_nothing_is_learned_from_what_is_hidden_in_other_words(store: Store) -> None:
    memory = Memory(store)
    await told_before(store, memory)
    (fact,) = await store.facts.listed()
    await store.facts.forget([fact.id])

    again = await store.facts.learn([replace(fact, id="other", text="Has a peanut allergy.")])

    assert (again, await store.facts.listed()) == ([], [])


async def test_why_a_fact_is_known_does_not_show_what_is_hidden(store: Store) -> None:
    memory = Memory(store)
    async with engine_with(Scripted("Ok."), store=store, memory=memory) as engine:
        await talked(engine, said("I live in Lviv. I am allergic to peanuts."))
        await memory.done()
    facts = {fact.key.partition(":")[0]: fact for fact in await store.facts.listed()}

    await store.facts.forget([facts["allergy"].id])

    assert [fact.text for fact in await store.facts.listed()] == ["Lives in Lviv."]
    assert await store.facts.why(facts["home"].id) == []


@given(
    hidden=st.sets(st.integers(0, 5)),
    cleared=st.integers(0, 6),
    quotes=st.lists(st.integers(0, 5), min_size=6, max_size=6),
)
@settings(deadline=None)
async def test_no_word_of_what_is_hidden_or_cleared_is_read_or_found(
    hidden: set[int], cleared: int, quotes: list[int]
) -> None:
    words = ["apples", "bananas", "cherries", "dates", "elderberries", "figs"]
    async with Store.open(":memory:") as store:
        for number, word in enumerate(words):
            quote = a_quote_of(quotes[number], words[quotes[number]]) if quotes[number] < number else None
            await store.inbox.receive(at(number, f"I love {word}", number, reply_to=quote), at=NOON)
        memory = Memory(store)
        await memory.start()
        await memory.done()
        facts = {fact.sources[0]: fact.id for fact in await store.facts.listed()}
        await store.facts.forget([facts[str(number)] for number in hidden])
        await store.place_settings.clear(DIRECT, cleared, at=NOON)
        await index(store, lambda _: LETTERS)

        first = await store.place_settings.beginning(DIRECT)
        read = str(await store.log.read(DIRECT, first, 99))
        search = a_search(store, embedders=lambda _: LETTERS)
        found = [one for word in words for one in await search.find(word, place=DIRECT, author=ALICE)]
        await memory.close()

    gone = {word for number, word in enumerate(words) if number in hidden or number < cleared}
    assert [word for word in gone if word in f"{read} {found}"] == []
    assert [word for word in words if word not in gone and word not in read] == []


async def test_who_replies_to_what_the_agent_said_before_a_clear_is_answered(store: Store) -> None:
    platform = RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max))
    model = Scripted("I am Gryag.", "Yes?")
    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, at(0, "Gryag, who are you?", 1, place=GROUP))
        await engine.clear(GROUP)
        quote = Quote(message_id=next(iter(platform.shown)), author=ME, parts=(Text(text="I am Gryag."),))
        await talked(engine, at(1, "really?", 2, place=GROUP, reply_to=quote))

    assert platform.texts == ["I am Gryag.", "Yes?"]
    assert "I am Gryag." not in str(model.prompts[1])


@pytest.mark.parametrize(
    ("told", "question", "answer", "hidden"),
    [
        ("I live in Lviv.", "Where do I live?", "In Lviv.", True),
        ("I live in Lviv.", "When do we leave?", "The train to Lviv leaves at nine.", False),
        ("I am vegetarian.", "What kind of food is mine?", "Vegetarian.", True),
        ("I am vegetarian.", "Do you know a restaurant?", "I know a vegetarian one.", False),
        ("I am vegetarian.", "What is on the menu?", "Ham, and a vegetarian soup.", False),
        ("I love tea.", "What do I love?", "Cake. Tea, too.", True),
    ],
)
async def test_an_answer_that_states_it_together_with_its_question_is_hidden(
    store: Store, told: str, question: str, answer: str, hidden: bool
) -> None:
    memory = Memory(store)
    async with engine_with(Scripted("Ok.", answer), store=store, memory=memory) as engine:
        await talked(engine, at(0, told, 1))
        await memory.done()
        await talked(engine, at(1, question, 2))

    assert await store.facts.forget([fact.id for fact in await store.facts.listed()]) == 1

    read = str(await store.log.read(DIRECT, 0, 9))
    assert (question in read, answer in read) == (True, not hidden)
