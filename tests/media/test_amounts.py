"""What of the media of a request is over its limits."""

from tertulia.media.amounts import over_limit


def test_the_oldest_are_over_a_limit_in_steps_and_what_weighs_nothing_stays() -> None:
    over = [over_limit([0, *[3] * count], 36) for count in range(31)]

    words = [len(one) for one in over]
    assert over == [set(range(1, 1 + cut)) for cut in words]
    assert words == [0] * 13 + [3] * 3 + [6] * 3 + [9] * 3 + [12] * 3 + [15] * 3 + [18] * 3


def test_the_oldest_may_not_be_the_first() -> None:
    assert over_limit([1] * 5, 4, [4, 3, 2, 1, 0]) == {4}
    assert over_limit([1] * 5, 0, [4, 3, 2, 1, 0]) == {0, 1, 2, 3, 4}
