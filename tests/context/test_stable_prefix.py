from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import a_message
from tertulia.context.stable_prefix import BUFFER, Marks, keep_results_with_calls
from tertulia.errors import InvalidValue
from tertulia.parts import ToolCall, ToolResult


@pytest.mark.parametrize(
    ("count", "start"),
    [(0, 0), (1, 0), (500, 0), (501, 376), (502, 376), (876, 376), (877, 752), (50_000, 49_632)],
)
def test_a_window_grows_to_the_high_mark_and_is_cut_to_the_low_one(count: int, start: int) -> None:
    assert Marks().start(count) == start


@given(st.integers(0, 100_000), st.integers(0, 300), st.integers(0, 300))
def test_what_is_left_after_a_cut_lies_between_the_marks(count: int, low: int, more: int) -> None:
    marks = Marks(low=low, high=low + more)

    left = count - marks.start(count)

    assert min(count, low) <= left <= marks.high


def test_a_cut_comes_once_in_hundreds_of_messages() -> None:
    starts = [Marks().start(count) for count in range(10_000)]

    cuts = [count for count, (before, after) in enumerate(pairwise(starts)) if after != before]

    assert {later - earlier for earlier, later in pairwise(cuts)} == {376}


@given(st.integers(0, 5_000), st.integers(0, 100), st.integers(0, 100))
def test_a_cut_began_with_the_smallest_number_that_has_it(count: int, low: int, more: int) -> None:
    marks = Marks(low=low, high=low + more)

    began = marks.last_cut(count)

    assert marks.start(began) == marks.start(count)
    assert began == 0 or marks.start(began - 1) != marks.start(count)


@pytest.mark.parametrize(
    ("size", "marks"),
    [
        (1000, Marks(low=250, high=1000)),
        (500, Marks()),
        (500, Marks(low=125, high=500)),
        (399, Marks(low=99, high=399)),
        (150, Marks(low=37, high=150)),
        (101, Marks(low=25, high=101)),
        (100, Marks(low=25, high=100)),
        (30, Marks(low=7, high=30)),
        (1, Marks(low=1, high=1)),
        (0, Marks(low=0, high=0)),
    ],
)
def test_history_size_is_the_high_mark_and_a_quarter_of_it_the_low_one(size: int, marks: Marks) -> None:
    assert Marks.up_to(size) == marks


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidValue, match="history_size is a number of messages, 0 for none, not -1"):
        Marks.up_to(-1)


def test_marks_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"the low one first, not 5\.\.4"):
        Marks(low=5, high=4)


def test_a_buffer_is_promoted_down_to_four() -> None:
    assert [count - BUFFER.start(count) for count in (16, 17, 29, 30)] == [16, 4, 16, 4]


def test_a_cut_falls_before_the_call_whose_result_it_would_part() -> None:
    messages = [
        a_message(),
        a_message(parts=(ToolCall(name="look"),)),
        a_message(parts=(ToolResult(name="look"),)),
        a_message(parts=(ToolResult(name="look"),)),
        a_message(),
    ]

    assert [keep_results_with_calls(messages, start) for start in range(6)] == [0, 1, 1, 1, 4, 5]
