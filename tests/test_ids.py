from hypothesis import given
from hypothesis import strategies as st

from tertulia.ids import abbreviate_ids, match_ids


def test_ids_are_abbreviated_to_the_shortest_prefixes_that_differ() -> None:
    assert abbreviate_ids(["a" * 20, "b" * 20, "c"]) == {"a" * 20: "a" * 8, "b" * 20: "b" * 8, "c": "c"}
    assert abbreviate_ids(["12345678", "123456789a"]) == {"12345678": "12345678", "123456789a": "123456789"}
    assert abbreviate_ids([]) == {}


def test_an_abbreviated_id_stays_the_same_when_others_come() -> None:
    first, second, block = "reminder-f00dcafe12", "reminder-2badcafe34", "85a6b7c8d9e0f1a2b3c4-0"

    assert abbreviate_ids([first]) == {first: "reminder-f00dcafe"}
    assert abbreviate_ids([first, second, block, "85a6b7c8d9e0f1a2b3c4-1"])[first] == "reminder-f00dcafe"
    assert abbreviate_ids([first, second, block])[block] == "85a6b7c8"


def test_an_id_that_is_a_prefix_of_another_one_means_itself() -> None:
    assert match_ids("t1", ["t12", "t1"]) == ["t1"]
    assert match_ids("t", ["t12", "t1", "u"]) == ["t12", "t1"]


def test_an_empty_or_too_short_prefix_means_no_id() -> None:
    assert match_ids("", ["t1"]) == []
    assert match_ids("t1", ["t12"], min_length=3) == []


@given(st.lists(st.text("ab", min_size=1, max_size=20), unique=True))
def test_an_abbreviated_id_means_its_own_id(ids: list[str]) -> None:
    assert {name: match_ids(short, ids) for name, short in abbreviate_ids(ids).items()} == {n: [n] for n in ids}
