"""Tables align whatever the script, and fit where they can."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.cli.tables import aligned, counted, cut, from_now, local, one_line, short_ids, the_id, width
from people import NOON


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("Привіт", 6), ("世界", 4), ("e\u0301", 1), ("👍", 2), ("\u200b", 0)]
)
def test_a_text_takes_the_columns_a_terminal_gives_it(text: str, columns: int) -> None:
    assert width(text) == columns


def test_columns_stand_below_each_other_and_empty_ones_are_left_out() -> None:
    rows = [("id", "what", "why", "n"), ("1", "世界", "", "5"), ("22", "tea", "", "")]

    assert aligned(rows, room=None) == ["id  what  n", "1   世界  5", "22  tea"]


def test_the_widest_give_way_where_there_is_little_room() -> None:
    rows = [("id", "text", "why"), ("1", "a" * 60, "b" * 30), ("2", "世" * 30, "")]

    lines = aligned(rows, room=50)

    assert lines[1] == f"1   {'a' * 21}…  {'b' * 21}…"
    assert lines[2] == f"2   {'世' * 10}…"
    assert max(map(width, lines)) == 50


@given(st.text(), st.integers(1, 40))
def test_what_is_cut_fits(text: str, room: int) -> None:
    assert width(cut(text, room)) <= room or cut(text, room) == "…"
    assert cut(text, width(text)) == text


@given(st.text())
def test_a_line_is_one_line_that_steers_nothing(text: str) -> None:
    line = one_line(text, None)

    assert len(line.splitlines()) <= 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in line)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "now"), (0.9, "now"), (1, "in 1 s"), (-59, "59 s ago"), (60, "in 1 min"), (-7199, "2 h ago"),
        (5300, "in 1 h"), (86_400, "in 1 d"), (-400 * 86_400, "400 d ago"),
    ],
)  # fmt: skip
def test_how_long_from_now_is_said_in_one_unit(seconds: float, words: str) -> None:
    assert from_now(NOON + timedelta(seconds=seconds), NOON) == words


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOON])
def test_any_moment_can_be_shown(moment: datetime) -> None:
    assert local(moment)
    assert from_now(moment, NOON)


def test_an_id_that_another_one_begins_with_is_meant_itself() -> None:
    assert the_id("t1", ["t12", "t1"], "task") == "t1"


@given(st.lists(st.text("ab", min_size=1, max_size=20), unique=True))
def test_a_short_id_leads_back_to_its_own(ids: list[str]) -> None:
    assert {name: the_id(short, ids, "task") for name, short in short_ids(ids).items()} == {name: name for name in ids}


@pytest.mark.parametrize(
    ("count", "plural", "words"),
    [(0, "tasks", "0 tasks"), (1, "tasks", "1 task"), (1, "replies", "1 reply"), (2, "replies", "2 replies")],
)
def test_things_are_counted(count: int, plural: str, words: str) -> None:
    assert counted(count, plural) == words
