from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertulia.memory.retrieval.dates import DateSpan, find_dates

TODAY = date(2024, 3, 2)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 7 July, 2023", date(2023, 7, 7), date(2023, 7, 7)),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31)),
        ("in 2022", date(2022, 1, 1), date(2022, 12, 31)),
        ("summer 2023", date(2023, 6, 1), date(2023, 8, 30)),
        ("yesterday", date(2024, 3, 1), date(2024, 3, 1)),
        ("last friday", date(2024, 3, 1), date(2024, 3, 1)),
        ("a week ago", date(2024, 2, 21), date(2024, 2, 27)),
        ("2023-07-05", date(2023, 7, 5), date(2023, 7, 5)),
        ("5.7.2023", date(2023, 7, 5), date(2023, 7, 5)),
        ("2 тижні тому", date(2024, 2, 14), date(2024, 2, 20)),
        ("5 липня 2023", date(2023, 7, 5), date(2023, 7, 5)),
        ("позавчора", date(2024, 2, 29), date(2024, 2, 29)),
        ("5 июля 2023", date(2023, 7, 5), date(2023, 7, 5)),
        ("5 lipca 2023", date(2023, 7, 5), date(2023, 7, 5)),
        ("vor zwei Wochen", date(2024, 2, 14), date(2024, 2, 20)),
        ("2023年7月5日", date(2023, 7, 5), date(2023, 7, 5)),
        ("昨日", date(2024, 3, 1), date(2024, 3, 1)),
    ],
)
def test_a_time_is_understood(text: str, first: date, last: date) -> None:
    assert find_dates(text, TODAY) == [DateSpan(first, last)]


@pytest.mark.parametrize("text", ["Maria may march, mainly for her marriage", "12345", "9999 years"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert find_dates(text, TODAY) == []


@given(st.text(alphabet=st.sampled_from("0123456789 .-/年月日") | st.characters()), st.dates())
def test_any_text_may_hold_any_number(text: str, now: date) -> None:
    assert all(one.first <= one.last for one in find_dates(text, now))


@example("yesterday", date.min)
@example("next week", date.max)
@given(st.sampled_from(["last year", "999 years ago", "next week", "yesterday", "tomorrow", "in March"]), st.dates())
def test_times_at_the_edge_of_the_calendar_are_left_alone(text: str, now: date) -> None:
    assert all(one.first <= one.last for one in find_dates(text, now))
