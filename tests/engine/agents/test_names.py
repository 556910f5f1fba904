from collections.abc import Callable

import pytest

from sizes import in_time
from tertulia.engine.agents.names import Called, NameSearch, name_key

NAMES = ("Al", "Albert", "Albert Einstein", "Sir Albert", "гряг*", "Einstein on the Beach")
SEARCH = NameSearch(Called(name, name, "name") for name in NAMES)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("nobody", []),
        ("Albert, hi", ["Albert"]),
        ("al and albert", ["Al", "Albert"]),
        ("alberta, alber, albert_", []),
        ("Albert Einstein!", ["Albert Einstein"]),
        ("Albert Einstein and Albert", ["Albert Einstein", "Albert"]),
        ("Albert, is Albert Einstein here?", ["Albert", "Albert Einstein"]),
        ("Sir Albert Einstein", ["Albert Einstein"]),  # of names that overlap the longest
        ("Sir Albert", ["Sir Albert"]),
        ("Albert Einstein on the Beach", ["Einstein on the Beach"]),
        ("у гряга, Альберте", ["гряг*"]),
        ("@albert mail@albert.org", []),
        ("Albert and Albert", ["Albert", "Albert"]),
    ],
)
def test_names_are_found_in_the_order_of_the_text(text: str, names: list[str]) -> None:
    assert [one.name for one in SEARCH.find(text.casefold())] == names


def test_a_name_that_two_have_is_that_of_the_first() -> None:
    search = NameSearch([Called("gryag", "one", "name"), Called("Gryag", "two", "name")])

    assert [one.agent for one in search.find("gryag")] == ["one"]


def test_there_may_be_no_names() -> None:
    assert NameSearch([Called("@", "one", "mention"), Called(" ", "one", "name")]).find("@ one") == []


def test_names_that_look_the_same_have_one_key() -> None:
    assert {name_key(name) for name in ("Gry\u200bag", "GRYAG", " gryag")} == {"gryag"}


@in_time
@pytest.mark.parametrize("make", ["albert einstein ".__mul__, "albert".__mul__, "al ".__mul__, " гряг".__mul__])
def test_a_long_text_is_searched_in_time(make: Callable[[int], str]) -> None:
    SEARCH.find(make(100_000))
