"""Summaries of people follow the facts that are visible in a place."""

from engine.engines import ALICE, BOB, DIRECT, GROUP, said
from engine.memory.learners import a_learner, a_store, answer, hear, read
from tertulia.memory.facts import subject_of
from tertulia.models.scripted import Scripted

LIKED = "love sushi;hate olives;work as a nurse;speak Polish;play the guitar;have a cat;am vegan;am from Odesa".split(
    ";"
)


async def test_the_summary_of_a_place_holds_only_what_may_be_heard_there() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("I live in Lviv", 1), said("I'm allergic to peanuts", 2))
        await hear(store, said("I love sushi", 1, place=GROUP), said("I work as a nurse", 2, place=GROUP))
        await hear(store, said("I hate olives", 3, place=GROUP, author=BOB))
        await read(learner)
        await read(learner, GROUP)
        alice = subject_of(ALICE, DIRECT)

        summaries = [await store.facts.summary(alice, place=place) for place in (DIRECT, GROUP)]

    assert [summary and summary.text for summary in summaries] == [
        "Lives in Lviv. Is allergic to peanuts.",
        "Works as a nurse. Loves sushi.",
    ]


async def test_a_summary_is_made_anew_when_enough_has_changed() -> None:
    model = Scripted(
        answer((1, "Lives in Lviv."), (2, "Loves sushi.")), "She lives in Lviv, loves sushi.", answer(), answer()
    )
    async with a_store() as store:
        learner = a_learner(store, model)
        await hear(store, said("I live in Lviv", 1), said("I love sushi", 2))
        await read(learner)
        await hear(store, said("hm", 3))
        await read(learner)
        summary = await store.facts.summary(subject_of(ALICE, DIRECT), place=DIRECT)

    assert (summary and summary.text, len(model.prompts)) == ("She lives in Lviv, loves sushi.", 3)


async def test_a_summary_never_says_what_no_longer_holds() -> None:
    alice = subject_of(ALICE, DIRECT)
    summaries = []
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, *(said(f"I {what}", number) for number, what in enumerate(LIKED)))
        for number, town in enumerate(("Lviv", "Kyiv"), len(LIKED)):
            await hear(store, said(f"I live in {town}", number), said(f"I love {town}", f"too {number}"))
            await read(learner)
            summary = await store.facts.summary(alice, place=DIRECT)
            summaries.append(summary.text.partition(".")[0] if summary else "")

    assert summaries == ["Lives in Lviv", "Lives in Kyiv"]


async def test_who_was_spoken_of_is_summed_up_anew() -> None:
    model = Scripted(
        answer((2, "Loves sushi.")),
        answer((1, "Works as a nurse."), key="work"),
        "Loves sushi. Works as a nurse.",
        answer((1, "Works as a pilot."), key="work"),
        "Loves sushi. Works as a pilot.",
    )
    alice = subject_of(ALICE, GROUP)
    async with a_store() as store:
        learner = a_learner(store, model)
        for heard in (
            (("hi", BOB), ("I love sushi", ALICE)),
            [("Alice works as a nurse", BOB)],
            [("Alice works as a pilot", BOB)],
        ):
            for text, author in heard:
                await hear(store, said(text, text, place=GROUP, author=author))
            await read(learner, GROUP)

        summary = await store.facts.summary(alice, place=GROUP)
    assert (summary and summary.text) == "Loves sushi. Works as a pilot."
