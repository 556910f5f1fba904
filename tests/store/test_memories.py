"""What is remembered of people, where it was learned and nowhere else."""

from collections.abc import AsyncIterator

import pytest

from palaver.context.values import Background
from palaver.messages import Author, Place
from palaver.store import Store
from palaver.store.memories import MOST
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store.open(":memory:") as opened:
        yield opened


async def remember(store: Store, *facts: str, about: Author = ALICE, place: Place = GROUP) -> None:
    await store.memories.remember(facts, about=about, place=place, source="m1", run="r1", at=NOON)


async def recalled(store: Store, about: Author = ALICE, place: Place = GROUP) -> tuple[str, ...]:
    return (await store.memories.background(a_message(author=about, place=place))).memories


async def test_facts_are_recalled_the_newest_first_and_each_once(store: Store) -> None:
    await remember(store, "likes tea", "has a cat")
    await remember(store, "has a cat", " likes tea\n", "moved to Lviv")

    assert await store.memories.background(a_message()) == Background(
        memories=("moved to Lviv", "has a cat", "likes tea")
    )


async def test_facts_are_recalled_of_their_author_in_their_place_only(store: Store) -> None:
    await remember(store, "said in the group")
    await remember(store, "said in private", place=DIRECT)
    await remember(store, "of Bob", about=BOB)

    assert await recalled(store) == ("said in the group",)
    assert await recalled(store, place=DIRECT) == ("said in private",)
    assert await recalled(store, about=BOB) == ("of Bob",)
    assert await recalled(store, place=Place(platform="discord", id=GROUP.id, kind="group")) == ()
    assert await recalled(store, about=Author(id="\ud800", name="")) == ()


async def test_empty_facts_are_none_and_any_text_can_be_one(store: Store) -> None:
    await remember(store, "", " \n\t", "half \ud83d", "nul \0", "'; DROP TABLE facts; --")
    await remember(store)

    assert await recalled(store) == ("'; DROP TABLE facts; --", "nul \ufffd", "half \ufffd")


async def test_not_everything_is_recalled_at_once(store: Store) -> None:
    await remember(store, *(f"fact {n}" for n in range(MOST + 5)))

    assert await recalled(store) == tuple(f"fact {n}" for n in reversed(range(5, MOST + 5)))
