"""Tables align whatever the script, and fit where they can."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from people import NOON
from tertulia.cli.output import align, count_of, local_time, one_line, relative_time, resolve_id, short_ids, truncate


@pytest.mark.parametrize(
    ("cell", "padding"), [("Привіт", 2), ("世界", 4), ("e\u0301", 7), ("👍", 6), ("👍🏽", 6), ("\u200b", 8)]
)
def test_a_cell_is_padded_by_the_columns_that_a_terminal_gives_it(cell: str, padding: int) -> None:
    assert align([("a" * 8, "|"), (cell, "|")], width=None) == ["aaaaaaaa  |", f"{cell}{' ' * padding}  |"]


def test_columns_stand_below_each_other_and_empty_ones_are_left_out() -> None:
    rows = [("id", "what", "why", "n"), ("1", "世界", "", "5"), ("22", "tea", "", "")]

    assert align(rows, width=None) == ["id  what  n", "1   世界  5", "22  tea"]


def test_the_widest_give_way_where_there_is_little_room() -> None:
    rows = [("id", "text", "why"), ("1", "a" * 60, "b" * 30), ("2", "世" * 30, "")]

    lines = align(rows, width=50)

    assert lines[1] == f"1   {'a' * 21}…  {'b' * 21}…"
    assert lines[2] == f"2   {'世' * 10}…"
    assert max(map(cell_len, lines)) == 50


@given(st.text(), st.integers(1, 40))
def test_what_is_cut_fits(text: str, room: int) -> None:
    assert cell_len(truncate(text, room)) <= room or truncate(text, room) == "…"
    assert truncate(text, cell_len(text)) == text


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
    assert relative_time(NOON + timedelta(seconds=seconds), NOON) == words


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOON])
def test_any_moment_can_be_shown(moment: datetime) -> None:
    assert local_time(moment)
    assert relative_time(moment, NOON)


def test_an_id_that_another_one_begins_with_is_meant_itself() -> None:
    assert resolve_id("t1", ["t12", "t1"], "task") == "t1"


@given(st.lists(st.text("ab", min_size=1, max_size=20), unique=True))
def test_a_short_id_leads_back_to_its_own(ids: list[str]) -> None:
    assert {name: resolve_id(short, ids, "task") for name, short in short_ids(ids).items()} == {
        name: name for name in ids
    }


@pytest.mark.parametrize(
    ("count", "plural", "words"),
    [(0, "tasks", "0 tasks"), (1, "tasks", "1 task"), (1, "replies", "1 reply"), (2, "replies", "2 replies")],
)
def test_things_are_counted(count: int, plural: str, words: str) -> None:
    assert count_of(count, plural) == words
