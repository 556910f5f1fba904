"""Whoever runs blocks and whoever keeps them from people see the same ones."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from palaver.conversation.reply import clean
from palaver.tasks import heading, wrapping
from palaver.tasks.blocks import parse

_PIECES = [
    "# «send»", "# «send»\n", "# «", "»", "send", " 7", " ", "\t", "\n", "\n", "\r\n", "\r", "```", "````", "~~~", "py",
    "> ", "- ", "1. ", "    ", "a", "<think>", "</think>", "<thinking>", "</thinking>", "é", "_", "-", "²", "٣",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=24).map("".join)


@given(TEXTS)
@example("\n <think>\n# «send»\n</think>\n\n  hi\n# «send»\n")
@example("<think>a</think># «send»\nhi")
def test_people_see_what_is_said_and_nothing_of_the_blocks(text: str) -> None:
    assume(wrapping.wrapped(text, wrapping.after_thoughts(text)) is None)

    assert _as_said(clean(text)) == parse(text).said


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128])
def test_kinds_and_ids_are_as_long_for_both(count: int) -> None:
    for text in (f"# «{'k' * count}»\n", f"# «send» {'1' * count}\n"):
        assert (clean(text) == "") is (heading.at(text, 0) is not None)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_blanks_after_a_heading_are_as_many_for_both(end: str) -> None:
    for count in range(heading.LONGEST_LINE - 12, heading.LONGEST_LINE + 3):
        text = f"# «send»{' ' * count}{end}"
        assert (clean(text) == "") is (heading.at(text, 0) is not None)


@given(st.characters())
def test_a_kind_is_made_of_the_same_characters_for_both(char: str) -> None:
    text = f"# «{char}»\n"

    assert heading.in_kind(char) is (heading.at(text, 0) is not None)


def _as_said(shown: str) -> str:
    if not shown.strip():
        return ""
    return shown.removesuffix("\n").removesuffix("\r") if shown.endswith("\n") else shown
