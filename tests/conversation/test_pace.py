import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.conversation import pace
from palaver.conversation.pace import Pace
from palaver.conversation.triggers import Limit

ALICE, BOB = ("telegram", "1"), ("telegram", "2")
TWO = Limit(messages=2, seconds=60)


def answered(*times: float, limit: Limit = TWO) -> Pace:
    made = Pace(limit)
    for now in times:
        made.answered(ALICE, now)
    return made


@pytest.mark.parametrize(
    ("times", "now", "ago", "full"),
    [
        ([], 0, [], False),
        ([0], 59, [59], False),
        ([0, 10], 59.9, [59.9, 49.9], True),
        ([0, 10], 60, [50], False),
        ([0, 10], 70, [], False),
        ([0, 10, 61], 62, [52, 1], True),
    ],
)
def test_what_an_author_was_answered_counts_for_so_many_seconds(
    times: list[float], now: float, ago: list[float], full: bool
) -> None:
    made = answered(*times)

    assert (made.ago(ALICE, now), made.is_full(ALICE, now)) == (ago, full)
    assert (made.ago(BOB, now), made.is_full(BOB, now)) == ([], False)


def test_an_author_is_one_on_each_platform() -> None:
    made = answered(0, 1)

    assert made.is_full(ALICE, 2)
    assert not made.is_full(("discord", ALICE[1]), 2)


def test_who_is_told_is_told_once_until_answered_again() -> None:
    made = answered(0, 1)

    assert [made.tell(ALICE), made.tell(ALICE), made.tell(BOB)] == [True, False, True]
    made.answered(ALICE, 100)
    assert [made.tell(ALICE), made.tell(ALICE), made.tell(BOB)] == [True, False, False]


def test_an_answer_that_is_taken_back_does_not_count() -> None:
    made = answered(0, 10)

    made.take_back(ALICE)
    made.take_back(BOB)

    assert made.ago(ALICE, 20) == [20]


def test_and_says_nothing_of_what_the_author_was_told() -> None:
    made = answered(0, 10)
    made.tell(ALICE)

    made.take_back(ALICE)

    assert not made.tell(ALICE)


def test_what_could_not_be_told_is_told_again_and_every_answer_counts_still() -> None:
    made = answered(0, 10)
    made.tell(ALICE)

    made.untell(ALICE)

    assert made.is_full(ALICE, 20)
    assert [made.tell(ALICE), made.tell(ALICE)] == [True, False]


def test_of_too_many_authors_the_one_answered_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_MOST", 2)
    made = Pace(TWO)
    for now, author in enumerate([ALICE, BOB, ALICE, ("telegram", "3")]):
        made.answered(author, now)

    assert (made.ago(ALICE, 4), made.ago(BOB, 4)) == ([4, 2], [])


@given(st.lists(st.floats(0, 50)), st.integers(1, 5), st.integers(1, 20))
def test_no_author_is_answered_more_often_than_agreed_in_any_stretch_of_time(
    pauses: list[float], most: int, seconds: int
) -> None:
    made = Pace(Limit(messages=most, seconds=seconds))
    now, granted, told = 0.0, [], []
    for pause in pauses:
        now += pause
        if made.is_full(ALICE, now):
            told.append(made.tell(ALICE))
        else:
            made.answered(ALICE, now)
            granted.append(now)
            told.append(False)

    assert all(late - early >= seconds for early, late in zip(granted, granted[most:], strict=False))
    assert sum(told) <= len(granted)
