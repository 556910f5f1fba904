"""Whoever runs blocks and whoever keeps them from people see the same ones."""

from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tertulia.run.cleaner import clean
from tertulia.tasks import blocks
from tertulia.tasks.blocks import parse
from tertulia.tasks.kinds import KINDS

KNOWN = ["send", "k" * 64]
_PIECES = [
    "# «send»", "# «sned»", "#«send»", "## «send»", "**", "**# «send»**", "# **«send»**", "#", "*",
    "# «Кобзар»", " # «", "\ufeff", "\u00a0", ":",
    "# «send»\n", "# «", "»", "send", " 7", " ", "\t", "\n", "\n", "\r\n", "\r", "```", "````", "~~~", "py",
    "> ", "- ", "1. ", "    ", "a", "<think>", "</think>", "<thinking>", "</thinking>", "é", "_", "-", "²", "٣",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=24).map("".join)


@given(TEXTS)
@example("\n <think>\n# «send»\n</think>\n\n  hi\n# «send»\n")
@example("<think>a</think># «send»\nhi")
def test_people_see_what_is_said_and_nothing_of_the_blocks(text: str) -> None:
    assume(blocks.outer_fence(text, blocks.skip_thoughts(text)) is None)

    assert _as_said(clean(text)) == parse(text).text


LEADS = ["", " ", "   ", "    ", "\t", "\ufeff", "\ufeff" * 3, "\u00a0", "x", " \ufeff ", "> "]
LEADS += ["**", "#", "#####", "######", " **##", "*", "***"]
BLANKS = ["", " ", "  ", "\t", "\u00a0", " " * 8, " " * 9, "\u2028", "\u200b"]
WORDS = ["send", "Send", " send ", "sned", "fly", "", "k" * 64, "k" * 65, "a«b"]
ENDS = ["", "\n", "\r\n", "\r", " ", "\t", ":", "x", ",", "\u2028", " 5", " x", " " * 5000]
ENDS += ["*", "**", "**\n", "**x", " 5**", "** 5"]


def test_a_heading_has_the_same_form_for_both() -> None:
    for lead, blank, word, end in product(LEADS, [*BLANKS, " **"], WORDS, ENDS):
        text = f"{lead}#{blank}«{word}»{end}"

        assert (clean(text, kinds=KNOWN) == "") is (blocks.heading_at(text, 0, KNOWN) is not None), text


@given(st.text(max_size=6), st.characters())
def test_any_kind_that_is_known_can_stand_in_a_heading_for_both(word: str, char: str) -> None:
    text = f"# «{word}{char}»\n"
    kinds = [f"{word}{char}".strip()]

    assert (clean(text, kinds=kinds) == "") is (blocks.heading_at(text, 0, kinds) is not None)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("send", ()),
        ("SEND", ()),
        ("sned", ("send",)),
        ("seend", ("send",)),
        ("sent", ("send",)),
        ("son", ()),
        ("сон", ()),
        ("senditt", ()),
        ("unlock", ("block", "unblock")),
        ("нагадйа", ("нагадай",)),
        ("Нагадати", ("нагадай",)),
        ("нога", ()),
        ("do", ()),
        ("发件", ()),
        ("", ()),
    ],
)
def test_a_kind_is_misspelt_in_two_letters_at_most_and_in_less_than_half_of_them(
    kind: str, found: tuple[str, ...]
) -> None:
    assert blocks.similar_kinds(kind, [*KINDS, "нагадай", "go", "发送"]) == found


@given(st.text("abс", max_size=5), st.text("abс", max_size=5))
def test_misspelling_goes_both_ways(one: str, other: str) -> None:
    assert bool(blocks.similar_kinds(one, [other])) is bool(blocks.similar_kinds(other, [one]))


def _as_said(shown: str) -> str:
    if not shown.strip():
        return ""
    return shown.removesuffix("\n").removesuffix("\r") if shown.endswith("\n") else shown
