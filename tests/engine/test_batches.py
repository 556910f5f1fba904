from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import NOON, a_message
from tertulia.engine.batches import burst_at, follow_ups, time_left
from tertulia.engine.store_protocols import WaitingMessage
from tertulia.messages import Author

GAP, LONGEST = timedelta(seconds=1), timedelta(seconds=3)

Said = tuple[str, float]  # who, and how many seconds after noon


def waiting(*said: Said) -> list[WaitingMessage]:
    return [
        WaitingMessage(
            message=a_message(id=str(number), author=Author(id=who, name=who)),
            since=NOON + timedelta(seconds=after),
            number=number,
        )
        for number, (who, after) in enumerate(said)
    ]


def numbers(burst: Sequence[WaitingMessage]) -> list[int]:
    return [int(one.message.id) for one in burst]


TOGETHER: list[tuple[int, list[Said], list[int]]] = [
    (0, [("a", 0)], [0]),
    (0, [("a", 0), ("a", 1)], [0, 1]),
    (0, [("a", 0), ("a", 1.001)], [0]),
    (0, [("a", 0), ("a", 0.9), ("a", 1.8), ("a", 2.7), ("a", 3.6)], [0, 1, 2, 3]),
    (0, [("a", 0), ("a", 1), ("a", 2), ("a", 3)], [0, 1, 2, 3]),
    (0, [("a", 0), ("b", 0.5), ("a", 1), ("b", 1.5)], [0, 2]),
    (1, [("a", 0), ("b", 0.5), ("a", 1), ("b", 1.5)], [1, 3]),
    (1, [("a", 0), ("a", 0.5), ("a", 1)], [1, 2]),
    (0, [("a", 0), ("a", 2), ("a", 0.5)], [0]),  # nothing is answered before what came first
    (0, [("a", 60), ("a", 0), ("a", 0.5)], [0, 1, 2]),  # the clock was set back
]


@pytest.mark.parametrize(("first", "said", "found"), TOGETHER)
def test_messages_of_one_author_belong_together_while_no_pause_is_too_long(
    first: int, said: list[Said], found: list[int]
) -> None:
    assert numbers(burst_at(first, waiting(*said), GAP, LONGEST)) == found


FOLLOWING: list[tuple[set[str], list[Said], list[int]]] = [
    ({"0"}, [("a", 0), ("a", 2)], [1]),
    ({"0"}, [("a", 0), ("b", 1), ("a", 2)], [2]),
    ({"0", "1"}, [("a", 0), ("a", 1), ("a", 2.5)], [2]),
    ({"0"}, [("a", 0), ("a", 3), ("a", 3.1)], [1]),  # longer than that nothing belongs to it
    ({"1"}, [("a", 0), ("a", 1)], []),
    ({"9"}, [("a", 0), ("a", 1)], []),
]


@pytest.mark.parametrize(("taken", "said", "found"), FOLLOWING)
def test_what_an_author_adds_later_follows_what_is_taken(taken: set[str], said: list[Said], found: list[int]) -> None:
    assert numbers(follow_ups(taken, waiting(*said), LONGEST)) == found


WAITED: list[tuple[list[float], float, float]] = [
    ([0], 0, 1),
    ([0], 0.4, 0.6),
    ([0], 1, 0),
    ([0], 9, -8),
    ([0, 0.9], 0.9, 1),
    ([0, 0.9, 1.8, 2.7], 2.7, 0.3),  # longer than that nobody waits
    ([0, 0.9, 1.8, 2.7], 3.5, -0.5),
    ([0], -0.001, 0),  # the clock was set back
    ([0], -3600, 0),
    ([60, 0], 0, 1),
]


@pytest.mark.parametrize(("since", "now", "left"), WAITED)
def test_more_is_waited_for_until_the_gap_is_over_or_it_took_too_long(
    since: list[float], now: float, left: float
) -> None:
    burst = waiting(*(("a", after) for after in since))

    assert time_left(burst, NOON + timedelta(seconds=now), GAP, LONGEST) == timedelta(seconds=left)


def test_without_a_gap_each_message_is_answered_at_once() -> None:
    said = waiting(("a", 0), ("a", 0.001))

    assert numbers(burst_at(0, said, timedelta(0), LONGEST)) == [0]
    assert time_left(said[:1], NOON, timedelta(0), LONGEST) == timedelta(0)


SAID = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 12).map(lambda half: half / 2)), min_size=1)


@given(SAID)
def test_whatever_waits_is_in_one_burst_and_in_the_order_it_came(said: list[Said]) -> None:
    left = waiting(*said)
    answered: list[WaitingMessage] = []
    while left:
        burst = burst_at(0, left, GAP, LONGEST)
        assert burst[0] == left[0]
        assert {one.message.author for one in burst} == {left[0].message.author}
        assert all(after.since - before.since <= GAP for before, after in pairwise(burst))
        assert max(one.since for one in burst) - burst[0].since <= LONGEST
        answered += burst
        left = [one for one in left if one not in burst]

    assert sorted(numbers(answered)) == list(range(len(said)))
    for author in "abc":
        of_one = [number for number in numbers(answered) if said[number][0] == author]
        assert of_one == sorted(of_one)


@given(SAID, st.integers(-100, 100))
def test_nobody_is_kept_waiting_longer_than_the_gap_whatever_the_clock_says(said: list[Said], now: int) -> None:
    burst = burst_at(0, waiting(*said), GAP, LONGEST)

    assert time_left(burst, NOON + timedelta(seconds=now), GAP, LONGEST) <= GAP
