"""A summary says what is known of a person, and no more."""

import pytest

from memory.known import a_fact, a_subject
from people import GROUP, NOON
from tertulia.errors import Overloaded, RequestRefused
from tertulia.memory.facts import facts_digest
from tertulia.memory.summaries import MAX_SUMMARY_LENGTH, compose_summary, is_stale, summarise, summary_beyond
from tertulia.memory.values import Fact, Summary
from tertulia.models.scripted import Scripted

HOME = a_fact("Lives in Lviv.", key="home")
WORK = a_fact("Works as a nurse", key="work")
TEA = a_fact("Likes tea.", key="taste:tea")
NAME = a_fact("Name is Olena.", key="name")
FACTS = (TEA, WORK, HOME)


def a_summary(*facts: Fact, text: str = "…") -> Summary:
    return Summary(
        subject=a_subject(), place=GROUP, text=text, facts=len(facts), digest=facts_digest(facts), made_at=NOON
    )


async def summary_of(model: Scripted | None, *facts: Fact) -> Summary:
    return await summarise(model, facts, subject=a_subject(), place=GROUP, now=NOON)


def test_without_a_model_the_facts_are_told_in_a_fixed_order() -> None:
    assert compose_summary(FACTS) == compose_summary(FACTS[::-1]) == "Lives in Lviv. Works as a nurse. Likes tea."


def test_as_many_are_told_as_there_is_room_for() -> None:
    many = [a_fact(f"Likes thing number {number}.", key=f"taste:{number}") for number in range(100)]

    assert len(compose_summary(many)) <= MAX_SUMMARY_LENGTH


async def test_a_model_words_it() -> None:
    model = Scripted("Alice is a nurse who lives in Lviv. She likes tea.")

    assert await summary_of(model, *FACTS) == a_summary(
        *FACTS, text="Alice is a nurse who lives in Lviv. She likes tea."
    )


@pytest.mark.parametrize(
    "said",
    [
        "Alice is a nurse who lives in Kyiv.",
        "Alice is a nurse in Lviv. She earned 3 medals.",
        "Always call her a nurse in Lviv.",
        "Alice is a nurse in Lviv. Her password is tea.",
        "Alice is a warm, curious and generous soul.",
        "Lives in Lviv. " * 100,
        "",
        RequestRefused("400"),
    ],
)
async def test_what_a_model_adds_to_the_facts_is_not_taken(said: str | RequestRefused) -> None:
    assert await summary_of(Scripted(said), *FACTS) == a_summary(
        *FACTS, text="Lives in Lviv. Works as a nurse. Likes tea."
    )


async def test_a_model_that_is_away_is_asked_again_later() -> None:
    with pytest.raises(Overloaded):
        await summary_of(Scripted(Overloaded("busy")), *FACTS)


@pytest.mark.parametrize(
    ("made_of", "facts", "stale"),
    [
        (None, (), False),
        (None, (HOME,), False),
        (None, (HOME, WORK), True),
        ((HOME, WORK), (HOME, WORK), False),
        ((HOME, WORK), (WORK, HOME), False),
        ((HOME, WORK), (HOME, WORK, TEA), True),
        ((HOME, WORK, TEA), (HOME, WORK), True),
        ((HOME, WORK), (HOME, TEA), True),
        ((HOME, WORK), (), True),
        ((HOME, WORK), (HOME,), True),
    ],
)
def test_a_summary_is_stale_when_enough_has_come_or_anything_has_gone(
    made_of: tuple[Fact, ...] | None, facts: tuple[Fact, ...], stale: bool
) -> None:
    assert is_stale(None if made_of is None else a_summary(*made_of), facts) == stale


def test_one_more_among_many_does_not_make_it_stale() -> None:
    many = [a_fact(f"Likes {number}.", key=f"taste:{number}") for number in range(12)]

    assert [is_stale(a_summary(*many[:-come]), many) for come in (1, 2, 3)] == [False, False, True]


@pytest.mark.parametrize("facts", [(), (HOME,)])
async def test_of_what_is_hardly_anything_no_model_is_asked(facts: tuple[Fact, ...]) -> None:
    assert (await summary_of(Scripted(), *facts)).text == compose_summary(facts)


def test_of_a_summary_only_what_no_fact_says_is_told_beside_the_facts() -> None:
    known = [a_fact("Lives in Lviv."), a_fact("Is allergic to peanuts."), a_fact("Works for Dr. Smith.")]

    assert summary_beyond(compose_summary(known), known) == ""
    assert summary_beyond("Alice lives in Lviv, allergic to peanuts. Is a night owl.", known) == "Is a night owl."
    assert summary_beyond("A gardener.", known) == "A gardener."
    assert summary_beyond("A gardener.", []) == "A gardener."
