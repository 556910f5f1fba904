"""Tokens are counted by alphabet, and a prompt is cached as far as it starts like an earlier one."""

import pytest

from tertulia.sim.server import Clock
from tertulia.sim.usage import PrefixCache, first_tokens, text_tokens, until_stop


def test_tokens_weigh_alphabets_differently() -> None:
    assert [text_tokens(text) for text in ("", "a", "abcdefgh", "привет", "漢字", "漢字ab")] == [0, 1, 2, 3, 2, 3]


@pytest.mark.parametrize(
    ("limit", "text"), [(0, ""), (1, "abcd"), (2, "abcdefgh"), (3, "abcdefghпр"), (9, "abcdefghпривет")]
)
def test_a_text_is_cut_at_a_number_of_tokens(limit: int, text: str) -> None:
    assert first_tokens("abcdefghпривет", limit) == text


@pytest.mark.parametrize(
    ("stops", "text"), [(["three", "two"], "one "), (["four"], "one two three"), ([None, ""], "one two three")]
)
def test_a_text_ends_at_the_first_stop_sequence(stops: list[object], text: str) -> None:
    assert until_stop("one two three", stops) == text


def test_a_prompt_is_cached_as_far_as_it_starts_like_an_earlier_one() -> None:
    cache = PrefixCache(Clock(), size=8)

    counts = [
        cache.cached_tokens("route", [("tools", 100), ("a" * 40, 10)]),
        cache.cached_tokens("route", [("tools", 100), ("a" * 20 + "b" * 20, 10)]),
        cache.cached_tokens("route", [("tools", 100), ("a" * 40, 10), ("more", 1)]),
        cache.cached_tokens("other", [("tools", 100)]),
        cache.cached_tokens("route", [("none", 100), ("a" * 40, 10)]),
    ]

    assert counts == [0, 105, 110, 0, 0]


def test_a_prompt_is_forgotten_when_it_is_old_or_others_came_after_it() -> None:
    clock = Clock()
    cache = PrefixCache(clock, size=2)

    cache.cached_tokens("route", [("old", 1)], ttl=10)
    clock.advance(11)
    old = cache.cached_tokens("route", [("old", 1)])
    for text in ("one", "two"):
        cache.cached_tokens("route", [(text, 1)])

    assert (old, cache.cached_tokens("route", [("old", 1)])) == (0, 0)
