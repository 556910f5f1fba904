from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import a_message
from tertulia.context.stable_prefix import BUFFER, BufferMarks, Marks, keep_results_with_calls
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


SMALL = BufferMarks(low=4, high=16, low_tokens=20, high_tokens=80)
SIZES = st.lists(st.sampled_from([0, 1, 5, 5, 5, 9, 30, 100]), max_size=120)


def cuts(marks: BufferMarks, tokens: list[int], *, first: int = 0) -> list[tuple[int, int]]:
    """The cut after each message, each found anew."""
    return [
        marks.cut(min(first, count), count, lambda number: tokens[number]) for count in range(first, len(tokens) + 1)
    ]


def one_by_one(marks: BufferMarks, tokens: list[int]) -> list[tuple[int, int]]:
    """The same, by a buffer that remembers where it was cut."""
    start, since, found = 0, 0, [(0, 0)]
    for count in range(1, len(tokens) + 1):
        moved = max(start, marks.start(count))
        if sum(tokens[moved:count]) > marks.high_tokens:
            while sum(tokens[moved:count]) > marks.low_tokens and moved < count - 1:
                moved += 1
        since = count if moved > start else since
        start = moved
        found.append((start, since))
    return found


@given(SIZES)
def test_a_buffer_is_cut_where_one_that_remembers_its_cuts_is(tokens: list[int]) -> None:
    expected = one_by_one(SMALL, tokens)
    found = cuts(SMALL, tokens)

    assert [start for start, _ in found] == [start for start, _ in expected]
    assert all(since >= known for (_, since), (_, known) in zip(found, expected, strict=True))


@given(SIZES, st.integers(0, 40))
def test_the_cut_of_a_buffer_goes_forward_only_wherever_the_window_begins(tokens: list[int], first: int) -> None:
    found = cuts(SMALL, tokens, first=min(first, len(tokens)))

    assert found == sorted(found)


@given(SIZES)
def test_a_buffer_is_within_its_marks_or_one_message(tokens: list[int]) -> None:
    for count, (start, _) in enumerate(cuts(SMALL, tokens)):
        assert count - start <= SMALL.high
        assert sum(tokens[start:count]) <= SMALL.high_tokens or start == count - 1


def test_few_messages_are_counted_for_the_cut_of_an_ordinary_buffer() -> None:
    asked: list[int] = []

    def tokens(number: int) -> int:
        asked.append(number)
        return 50

    assert BUFFER.cut(0, 500, tokens) == (494, 498)
    assert len(asked) <= 3 * 16


def test_marks_in_tokens_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"in tokens go from 0 up, the low one first, not 9\.\.8"):
        BufferMarks(low_tokens=9, high_tokens=8)


def test_a_cut_falls_before_the_call_whose_result_it_would_part() -> None:
    messages = [
        a_message(),
        a_message(parts=(ToolCall(name="look"),)),
        a_message(parts=(ToolResult(name="look"),)),
        a_message(parts=(ToolResult(name="look"),)),
        a_message(),
    ]

    assert [keep_results_with_calls(messages, start) for start in range(6)] == [0, 1, 1, 1, 4, 5]
