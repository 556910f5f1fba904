"""Rows that are at hand are the rows that are there, whatever was taken back or removed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.conversation.journal import Kept
from palaver.messages import Author, Place
from palaver.store import Store
from palaver.store.people import begun, find_place, keep_name, keep_place, keep_title
from palaver.store.sqlite import Database
from people import ALICE, DIRECT, GROUP, NOON, a_message
from store.kept import PROMPT, a_run

HOME = replace(DIRECT, id=ALICE.id)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "s.db") as opened:
        yield opened


def learned(database: Database, place: Place = GROUP, author: Author = ALICE) -> tuple[int, ...]:
    """The rows of a place and an author, kept, then found, and so at hand."""
    for _ in range(2):
        row = keep_place(database, place)
        rows = (row, keep_title(database, place, row), keep_name(database, place.platform, author, NOON))
    return rows


def then_fail(database: Database) -> None:
    learned(database)
    raise ZeroDivisionError


def wishes(store: Store) -> Kept:
    """A store is what the engine wishes for: mypy reads this."""
    return store


async def test_what_was_taken_back_is_not_at_hand(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await store._writer.run(then_fail)

    assert await store._writer.run(lambda database: find_place(database, GROUP)) is None
    assert await store.inbox.receive(a_message(), at=NOON) is True
    await wishes(store).runs.begin(a_run(), PROMPT, at=NOON)
    assert await store.check() == []


async def test_what_was_removed_is_not_at_hand(store: Store) -> None:
    for _ in range(2):
        assert await store.inbox.receive(a_message(place=HOME), at=NOON) is True
        await store.runs.begin(a_run(place=HOME), PROMPT, at=NOON)
        before = await store._writer.run(lambda database: learned(database, HOME))

        await store.forget(ALICE.id, "telegram")

        after = await store._writer.run(lambda database: learned(database, HOME))
        assert set(before).isdisjoint(after)
        assert await store.check() == []
        await store.forget(ALICE.id, "telegram")


moves = st.tuples(st.sampled_from(["receive", "begin", "fail", "forget"]), st.integers(0, 2), st.integers(0, 2))


@given(st.lists(moves, max_size=20))
@settings(max_examples=60)
async def test_whatever_happens_the_store_is_whole(made: list[tuple[str, int, int]]) -> None:
    places = [GROUP, HOME, replace(HOME, title="Alice")]
    authors = [ALICE, replace(ALICE, name="Alisa"), Author(id="u9", name="Zoë")]
    async with Store.open(":memory:") as store:
        for number, (move, n, m) in enumerate(made):
            place, author = places[n], authors[m]
            match move:
                case "receive":
                    message = a_message(id=str(number), place=place, author=author)
                    assert await store.inbox.receive(message, at=NOON) is True
                    assert (await store.log.read(place, 0, 99))[-1] == message
                case "begin":
                    run = a_run(id=f"r{number}", place=place, taken=())
                    await store.runs.begin(run, PROMPT, at=NOON)
                    assert (await store.runs.open())[-1] == run
                case "fail":
                    with pytest.raises(ZeroDivisionError):
                        await store._writer.run(then_fail)
                case "forget":
                    await store.forget(author.id, "telegram")
            assert await store.check() == []


async def test_a_place_that_was_renamed_without_end_is_read_as_before(store: Store) -> None:
    renamed = [replace(GROUP, title=f'{number} "kind":"direct"') for number in range(40_000)]

    def rename(database: Database) -> int:
        place = keep_place(database, GROUP)
        for one in renamed:
            keep_title(database, one, place)
        return begun(database, GROUP)

    assert await store._writer.run(rename) == 0
    await store.inbox.receive(a_message(id="1", place=renamed[7]), at=NOON)
    direct = replace(GROUP, kind="direct")
    assert await store._reader.run(lambda database: begun(database, direct)) == 1
