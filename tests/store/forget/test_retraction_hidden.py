"""Which messages are hidden with a fact: what it came from and what states it, and nothing else that was said."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, said
from memory import known
from people import NOON
from store.builders import add_own
from tertulia.memory.facts import subject_of
from tertulia.memory.values import Fact
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.store import Store
from tertulia.turns import Turn

AGENT = replace(ME, persona="Gryag")
THREAD = replace(DIRECT, thread="2")


def a_fact(text: str, place: Place = DIRECT, source: str = "0", **changes: Any) -> Fact:
    """A fact about Alice from the message of that id."""
    return known.a_fact(text, about=ALICE, place=place, **{"id": f"f{source}", "sources": (source,)} | changes)


async def tell(store: Store, message: Message, *turns: Turn) -> None:
    if message.author.persona is None:
        await store.inbox.receive(message, at=NOON)
    else:
        await add_own(store, message, turns)


async def seen(store: Store, place: Place) -> list[str]:
    """The messages of a place that can still be read."""
    messages = await store.log.read(place, 0, 99)
    return ["".join(part.text for part in one.parts if isinstance(part, Text)) for one in messages if not one.deleted]


async def left(store: Store, fact: Fact, others: list[tuple[Author, str]]) -> list[str]:
    """What is seen in the fact's place once it was forgotten, of what was said after its source."""
    await tell(store, said("the source", 0, place=fact.place))
    for number, (author, text) in enumerate(others, 1):
        await tell(store, said(text, number, place=fact.place, author=author))
    await store.facts.learn([fact])
    await store.facts.forget([fact.id])
    return await seen(store, fact.place)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("Likes tea.", "Tea is at five."),
        ("Likes tea.", "I bring tea. I like the garden."),
        ("Likes tea.", "The team met at noon."),
        ("Любить чай.", "О п'ятій буде чай."),
        ("Lives in Lviv.", "The train to Lviv leaves at nine."),
        ("Is vegetarian.", "Is there a vegetarian restaurant?"),
        ("Has two cats.", "2 tickets for Cats, please."),
        ("Is allergic to peanuts.", "Peanuts are cheap this week."),
        ("喜欢喝茶", "茶馆五点开门"),
    ],
)
@pytest.mark.parametrize("author", [ALICE, AGENT])
async def test_what_only_shares_a_word_with_it_stays(store: Store, fact: str, text: str, author: Author) -> None:
    assert await left(store, a_fact(fact), [(author, text)]) == [text]


@pytest.mark.parametrize(
    ("fact", "author", "text"),
    [
        ("Likes tea.", AGENT, "Hello Alice. As you like tea: here is an oolong."),
        ("Likes tea.", AGENT, "You love tea!"),
        ("Likes tea.", ALICE, "I really like my tea, you know"),
        ("Любить чай.", AGENT, "Ти ж любиш чай?"),
        ("Lives in Lviv.", AGENT, "You are living in Lviv."),
        ("Is vegetarian.", AGENT, "You are vegetarian, so no ham."),
        ("Is vegetarian.", ALICE, "I'm vegetarian"),
        ("Has two cats.", AGENT, "Your 2 cats are fine."),
        ("Is allergic to peanuts.", AGENT, "No peanuts, then. An allergy is no joke."),
        ("Is allergic to peanuts.", ALICE, "my peanut allergy again"),
        ("喜欢喝茶", AGENT, "你喜欢喝茶"),
    ],
)
async def test_what_states_it_is_hidden(store: Store, fact: str, author: Author, text: str) -> None:
    assert await left(store, a_fact(fact), [(author, text), (BOB, text)]) == [text]


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("Is allergic to peanuts.", "forget the peanuts"),
        ("Is allergic to peanuts.", "Thanks. Gryag, could you please forget about my peanuts?"),
        ("Is allergic to peanuts.", "/forget peanuts"),
        ("Is allergic to peanuts.", "I want you to delete that allergy thing"),
        ("Likes tea.", "Please remove tea from your memory"),
        ("Likes tea.", "Don't remember the tea any more."),
        ("Має алергію на арахіс.", "забудь про арахіс"),
        ("Любить чай.", "Будь ласка, видали чай"),
        ("喜欢喝茶", "请忘记喝茶的事"),
    ],
)
async def test_a_request_to_forget_it_is_hidden_if_it_is_the_persons(store: Store, fact: str, text: str) -> None:
    assert await left(store, a_fact(fact), [(ALICE, text), (BOB, text)]) == [text]


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("Is allergic to peanuts.", "I always forget the peanuts at home"),
        ("Is allergic to peanuts.", "Don't forget the peanuts for Bob!"),
        ("Is allergic to peanuts.", "forget it"),
        ("Is allergic to peanuts.", "Forget the meeting. Peanuts are cheap this week."),
        ("Likes tea.", "never forget that tea is at five"),
        ("Любить чай.", "не забудь про чай для Боба"),
    ],
)
async def test_what_asks_for_nothing_of_the_kind_stays(store: Store, fact: str, text: str) -> None:
    assert await left(store, a_fact(fact), [(ALICE, text)]) == [text]


@pytest.mark.parametrize("fact", ["Likes tea.", "Is vegetarian.", "Has two cats.", "喜欢喝茶"])
async def test_what_a_tool_told_of_it_is_hidden(store: Store, fact: str) -> None:
    called = Turn(role="model", parts=(ToolCall(id="a", name="recall", args={}),))
    result = ToolResult(id="a", name="recall", value=[{"about": "Alice", "fact": fact, "id": "f0"}])
    await tell(store, said("the source", 0))
    await tell(store, said("There you are.", 1, author=AGENT), called, Turn(role="user", parts=(result,)))
    await store.facts.learn([a_fact(fact)])

    await store.facts.forget(["f0"])

    assert await seen(store, DIRECT) == []


async def test_in_a_group_what_the_agent_said_to_others_of_themselves_stays(store: Store) -> None:
    await tell(store, said("I like tea", 0, place=GROUP))
    await tell(store, said("me too", 1, place=GROUP, author=BOB))
    for number, (text, answered) in enumerate([("You like tea, Bob.", BOB), ("You like tea.", ALICE)], 2):
        quote = Quote(message_id="1" if answered is BOB else "0", author=answered)
        await tell(store, said(text, number, place=GROUP, author=AGENT, reply_to=quote))
    await store.facts.learn([a_fact("Likes tea.", GROUP)])

    await store.facts.forget(["f0"])

    assert await seen(store, GROUP) == ["me too", "You like tea, Bob."]


async def test_it_is_hidden_wherever_it_could_be_told(store: Store) -> None:
    await tell(store, said("I am allergic to peanuts", 0))
    for place in (THREAD, GROUP):
        await tell(store, said("And what can I eat?", 0, place=place))
        await tell(store, said("No peanuts: you are allergic.", 1, place=place, author=AGENT))
    await store.facts.learn([a_fact("Is allergic to peanuts.")])

    await store.facts.forget(["f0"])

    assert [await seen(store, place) for place in (DIRECT, THREAD)] == [[], ["And what can I eat?"]]
    assert len(await seen(store, GROUP)) == 2  # where it was never told from here


async def test_the_same_fact_of_that_person_is_forgotten_with_it(store: Store) -> None:
    for number, place in enumerate((DIRECT, THREAD, GROUP)):
        await tell(store, said("I am allergic to peanuts", number, place=place))
    await tell(store, said("Bob is allergic to peanuts", 3, place=GROUP, author=BOB))
    same = [a_fact("Is allergic to peanuts.", place, str(n)) for n, place in enumerate((DIRECT, THREAD, GROUP))]
    bobs = a_fact("Is allergic to peanuts.", GROUP, "3", subject=subject_of(BOB, GROUP))
    await store.facts.learn([*same, bobs])

    assert await store.facts.forget(["f0"]) == 3

    assert [fact.id for fact in await store.facts.listed()] == ["f3"]
    assert [await seen(store, place) for place in (DIRECT, THREAD, GROUP)] == [[], [], ["Bob is allergic to peanuts"]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("I am allergic to peanuts!!", False),
        ("I am allergic to peanuts, and to walnuts as well, so please take care when you cook", False),
        ("No peanuts for me", False),
        ("I am fond of walnuts.", True),
        ("see you at five", True),
    ],
)
async def test_a_hidden_message_is_seen_again_only_if_it_says_something_else(
    store: Store, text: str, shown: bool
) -> None:
    await tell(store, said("I am allergic to peanuts", 0))
    await store.facts.learn([a_fact("Is allergic to peanuts.")])
    await store.facts.forget(["f0"])

    await store.inbox.edit(said(text, 0), at=NOON + timedelta(minutes=1))

    assert await seen(store, DIRECT) == ([text] if shown else [])
    assert await store.check() == []


async def test_what_is_hidden_or_cleared_is_so_from_the_time_that_is_given(store: Store) -> None:
    quote = Quote(message_id="0", author=ALICE, parts=(Text(text="I like tea"),))
    await tell(store, said("I like tea", 0))
    await tell(store, said("and this", 1, reply_to=quote))
    await store.facts.learn([a_fact("Likes tea.")])

    await store.facts.forget(["f0"], at=NOON + timedelta(days=1))
    await store.place_settings.clear(DIRECT, 1, at=NOON + timedelta(days=2))

    rows = [row async for row in store.export() if row["table"] == "message_changes"]
    days = [datetime.fromisoformat(row["at"]) - NOON for row in rows]
    assert days == [timedelta(days=1), timedelta(days=1), timedelta(days=2)]


SECRET = "I am allergic to peanuts."
EDITS = [  # of a message that was hidden for the secret in it, and whether it is seen again
    (f"I walk a lot. {SECRET} And you?", "I walk a lot. And you?", True),
    (f"I walk a lot. {SECRET} And you?", f"I walk a lot. {SECRET}", False),
    (f"I walk a lot. {SECRET} And you?", "I walk a lot. I am so very allergic to them.", False),
    (f"I walk a lot. {SECRET}", "I walk a lot.\nPeanuts!", False),
    (f"Hello! {SECRET}", "Hello! I am fond of walnuts.", True),
    (SECRET, "I am allergic", False),
    (SECRET, "Never mind.", True),
    ("The source. It says so in other words.", "The source. It says so.", False),
    ("The source. It says so in other words.", "Never mind.", True),
]


@pytest.mark.parametrize(("before", "after", "again"), EDITS)
async def test_a_message_is_seen_again_once_the_sentence_is_gone_that_was_forgotten(
    store: Store, before: str, after: str, again: bool
) -> None:
    await tell(store, said(before, 0))
    fact = a_fact("Is allergic to peanuts.")
    await store.facts.learn([fact])
    await store.facts.forget([fact.id])

    edits = [f"{before} {after}", after]  # in two steps
    for number, text in enumerate(edits, 1):
        at = NOON + timedelta(minutes=number)
        await store.inbox.edit(said(text, 0, edited_at=at), at=at)

    assert await seen(store, DIRECT) == ([after] if again else [])
    assert await store.check() == []


async def test_a_message_with_two_forgotten_facts_is_seen_again_without_both(store: Store) -> None:
    await tell(store, said(f"{SECRET} I live in Lviv. Hello!", 0))
    facts = [a_fact("Is allergic to peanuts.", id="f1"), a_fact("Lives in Lviv.", id="f2")]
    await store.facts.learn(facts)
    for fact in facts:
        await store.facts.forget([fact.id])

    shown = []
    for number, text in enumerate((f"{SECRET} Hello!", "I live in Lviv. Hello!", "Hello!"), 1):
        at = NOON + timedelta(minutes=number)
        await store.inbox.edit(said(text, 0, edited_at=at), at=at)
        shown.append(await seen(store, DIRECT))

    assert shown == [[], [], ["Hello!"]]
