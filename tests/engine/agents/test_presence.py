from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.agents.casts import MARIE
from people import DIRECT, GROUP
from tertulia.engine.agents.presence import (
    ALWAYS,
    Presence,
    Stay,
    added,
    intersection,
    known_to,
    presence_of,
    removed,
    sees,
    visible_ranges,
)

NUMBERS = range(12)


def stays(*intervals: tuple[int, int | None]) -> Presence:
    return tuple(Stay(since=since, until=until) for since, until in intervals)


def seen(present: Presence) -> set[int]:
    return {number for number in NUMBERS if sees(present, number)}


@pytest.mark.parametrize(
    ("present", "numbers"),
    [
        (ALWAYS, range(12)),
        ((), ()),
        (stays((3, 5)), (3, 4)),
        (stays((3, 5), (8, None)), (3, 4, 8, 9, 10, 11)),
    ],
)
def test_an_agent_sees_what_was_said_while_it_was_there(present: Presence, numbers: range | tuple[int, ...]) -> None:
    assert seen(present) == set(numbers)


def test_an_agent_is_added_and_removed_and_added_again() -> None:
    once = removed(added((), 3), 5)

    assert (once, added(once, 8), added(once, 5)) == (stays((3, 5)), stays((3, 5), (8, None)), stays((3, None)))
    assert (removed((), 5), removed(added((), 5), 5), added(ALWAYS, 4)) == ((), (), ALWAYS)


def test_a_window_has_the_ranges_that_are_visible() -> None:
    present = stays((2, 4), (6, 8), (10, None))

    assert visible_ranges(present, 3, 11) == (range(3, 4), range(6, 8), range(10, 11))
    assert (visible_ranges(present, 4, 6), visible_ranges(ALWAYS, 0, 5)) == ((), (range(5),))


def test_of_a_direct_chat_an_agent_knows_only_what_it_was_present_for() -> None:
    present, knows = stays((3, None)), [MARIE, replace(MARIE, knows="present")]

    known = [known_to(agent, place, present) for agent, place in product(knows, (GROUP, DIRECT))]

    assert known == [ALWAYS, present, present, present]


STAYS = st.lists(st.builds(Stay, since=st.integers(0, 9), until=st.none() | st.integers(0, 11)), max_size=4)


@given(STAYS, STAYS, st.integers(0, 11), st.integers(0, 11))
def test_presence_is_a_set_of_numbers(one: list[Stay], other: list[Stay], start: int, stop: int) -> None:
    first, second = presence_of(one), presence_of(other)

    assert seen(first) == set().union(*(seen((stay,)) for stay in one))
    assert seen(intersection(first, second)) == seen(first) & seen(second)
    assert {n for part in visible_ranges(first, start, stop) for n in part} == seen(first) & set(range(start, stop))
    assert presence_of(first) == first
    assert all(a.until is not None and a.until < b.since for a, b in pairwise(first))
