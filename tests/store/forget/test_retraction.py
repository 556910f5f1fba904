"""What holds once a message is gone is what would have been learned without it."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message
from tertulia.memory.facts import merge_facts
from tertulia.memory.values import Fact
from tertulia.messages import Author, Place
from tertulia.store import Store

HER = a_subject(ALICE)
THREAD = replace(DIRECT, thread="1")


def a_home(day: int, town: str, place: Place = GROUP) -> Fact:
    at = NOON + timedelta(days=day)
    return a_fact(
        f"lives in {town}",
        id=f"{town} {day}",
        key="home",
        sources=(f"m{day}",),
        place=place,
        held_from=at,
        learned_at=at,
    )


async def say(store: Store, fact: Fact, author: Author = ALICE) -> None:
    (source,) = fact.sources
    await store.inbox.receive(
        a_message("so", id=source, place=fact.place, author=author, sent_at=fact.held_from), at=NOON
    )
    await store.facts.learn([fact])


async def homes(store: Store) -> list[str]:
    return [fact.text.removeprefix("lives in ") for fact in await store.facts.about(HER, place=GROUP)]


async def test_of_all_that_was_superseded_by_what_is_gone_the_newest_holds(store: Store) -> None:
    for day, town in ((0, "Lviv"), (2, "Odesa"), (1, "Kharkiv")):
        await say(store, a_home(day, town))

    await store.inbox.delete(GROUP, "m2", at=NOON)

    assert await homes(store) == ["Kharkiv"]
    assert await store.facts.listed() == merge_facts([], [a_home(0, "Lviv"), a_home(1, "Kharkiv")])


async def test_what_holds_again_and_was_said_again_is_one_fact(store: Store) -> None:
    for day, town in ((0, "Lviv"), (1, "Kyiv"), (2, "Odesa"), (3, "Lviv")):
        await say(store, a_home(day, town))

    await store.inbox.delete(GROUP, "m1", at=NOON)
    await store.inbox.delete(GROUP, "m2", at=NOON)

    assert await store.facts.listed() == [replace(a_home(3, "Lviv"), sources=("m3", "m0"))]


async def test_what_was_superseded_by_a_fact_that_became_one_with_another_is_superseded_by_that(store: Store) -> None:
    for day, town in ((0, "Odesa"), (1, "Lviv"), (2, "Kyiv"), (3, "Lviv")):
        await say(store, a_home(day, town))

    await store.inbox.delete(GROUP, "m2", at=NOON)
    assert [(fact.text, fact.superseded_by) for fact in await store.facts.listed()] == [
        ("lives in Odesa", "Lviv 3"),
        ("lives in Lviv", None),
    ]
    for source in ("m1", "m3"):
        await store.inbox.delete(GROUP, source, at=NOON)

    assert await store.facts.listed() == [a_home(0, "Odesa")]


async def test_a_fact_holds_since_the_first_of_the_messages_that_still_say_so(store: Store) -> None:
    await say(store, a_home(0, "Lviv"))
    await say(store, a_home(2, "Lviv"))
    await store.inbox.delete(GROUP, "m0", at=NOON)
    assert await store.facts.listed() == [replace(a_home(2, "Lviv"), id="Lviv 0")]

    await say(store, a_home(1, "Kyiv"))

    assert await homes(store) == ["Lviv"]


async def test_what_was_told_to_hold_since_long_ago_still_does_without_its_first_message(store: Store) -> None:
    long_ago = NOON - timedelta(days=999)
    for day in (0, 1):
        await say(store, replace(a_home(day, "Lviv"), held_from=long_ago))

    await store.inbox.delete(GROUP, "m0", at=NOON)

    assert [fact.held_from for fact in await store.facts.listed()] == [long_ago]


async def test_what_only_others_still_say_gives_way_to_what_the_person_said(store: Store) -> None:
    await say(store, a_home(0, "Lviv"))
    await say(store, a_home(1, "Rome"))
    await say(store, a_home(2, "Rome"), BOB)
    assert await homes(store) == ["Rome"]

    await store.inbox.delete(GROUP, "m1", at=NOON)

    assert await homes(store) == ["Lviv"]


async def test_a_fact_of_one_thread_gives_way_to_that_of_another_until_it_is_gone(store: Store) -> None:
    await say(store, a_home(0, "Lviv", DIRECT))
    await say(store, a_home(1, "Kyiv", THREAD))
    assert [fact.text for fact in await store.facts.about(HER, place=DIRECT, asked_by=HER)] == ["lives in Kyiv"]

    await store.inbox.delete(THREAD, "m1", at=NOON)

    assert await store.facts.listed() == [a_home(0, "Lviv", DIRECT)]


@given(st.permutations(range(7)), st.lists(st.integers(0, 6), unique=True))
async def test_what_is_kept_is_what_was_learned_of_what_is_left(order: list[int], deleted: list[int]) -> None:
    async with Store.open(":memory:") as store:
        for day in order:
            await say(store, a_home(day, f"town {day}"))
        for day in deleted:
            await store.inbox.delete(GROUP, f"m{day}", at=NOON)

        kept = {fact.id: fact for fact in await store.facts.listed()}

    left = [a_home(day, f"town {day}") for day in range(7) if day not in deleted]
    assert kept == {fact.id: fact for fact in merge_facts([], left)}
