from datetime import timedelta

import pytest

from tertulia.backoff import backoff


@pytest.mark.parametrize(
    ("first", "longest", "waits"),
    [
        (1.0, 60.0, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        (1.0, float("inf"), [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]),
        (5.0, 5.0, [5.0] * 9),
    ],
)
def test_a_wait_is_twice_the_one_before_until_the_longest(first: float, longest: float, waits: list[float]) -> None:
    assert [backoff(failures, first=first, longest=longest) for failures in range(9)] == waits


def test_a_wait_can_be_a_timedelta() -> None:
    second, hour = timedelta(seconds=1), timedelta(hours=1)

    assert [backoff(failures, first=second, longest=hour) for failures in (1, 3, 1_000)] == [second, 4 * second, hour]
