"""Lines break between words, however a text arrives, and the text is in them unchanged."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcwidth import iter_graphemes, wcswidth

from tertulia.platforms.terminal.word_wrap import WordWrapper

FAMILY = "👨‍👩‍👧"
SPACES = " \t\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u200b\u2028\u2029\u205f\u3000"
words = st.sampled_from(
    [
        *("a", "word", "Україна", "longer-than-a-line", "x" * 50, "https://example.org/a/long/path", "a\u00a0b"),
        *("你好。", "日本語", "한국어", FAMILY, "🇺🇦🇺🇦🇺🇦", "❤️", "e\u0301a\u0308", "\u0301", "\u200d"),
        *(" ", " ", " ", " ", "  ", "   ", "\t", "\u3000", "\n", "\n\n", "- "),
    ]
)
texts = st.lists(words | st.text(max_size=3), max_size=20).map("".join).map(lambda text: text.replace("\r", ""))
widths = st.integers(1, 30)


def wrapped(text: str, width: int, *, indent: int = 0) -> str:
    return streamed([text], width, indent=indent)


def streamed(pieces: list[str], width: int, *, indent: int = 0) -> str:
    wrapper = WordWrapper(lambda: width, indent=indent)
    return "".join([*[wrapper.feed(piece) for piece in pieces], wrapper.flush()])


def assert_only_breaks_were_added(written: str, text: str) -> None:
    """Walk along both: only line breaks are added, and only spaces are missing, at the end of a line."""
    place = 0
    for character in written:
        while place < len(text) and text[place] != character and text[place] in SPACES:
            place += 1
        if place < len(text) and text[place] == character:
            place += 1
        else:
            assert character == "\n", (written, text)
    assert not text[place:].strip(SPACES), (written, text)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 8, ["one two", "three"]),
        ("one  two", 4, ["one", "two"]),
        ("one two \nthree", 7, ["one two", "three"]),
        ("a longest b", 4, ["a", "long", "est", "b"]),
        ("see https://e.org now", 8, ["see", "https://", "e.org", "now"]),
        ("你好世界。a", 5, ["你好", "世", "界。a"]),
        ("한국어 한국어", 8, ["한국어", "한국어"]),
        (f"{FAMILY}{FAMILY}{FAMILY}", 4, [FAMILY * 2, FAMILY]),
        ("e\u0301e\u0301 e\u0301", 3, ["e\u0301e\u0301", "e\u0301"]),
        ("🇺🇦🇺🇦🇺🇦", 5, ["🇺🇦🇺🇦", "🇺🇦"]),
        ("a\tbc", 9, ["a", "bc"]),
        ("a\tb", 9, ["a\tb"]),
        ("    indented words", 12, ["    indented", "words"]),
        ("10\u00a0km of road", 6, ["10\u00a0km", "of", "road"]),
        ("", 5, []),
    ],
)
def test_lines_break_between_words(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width).split("\n") == (lines or [""])


def test_lines_that_go_on_are_indented() -> None:
    assert wrapped("/help      this page of help", 20, indent=4) == "/help      this page\n    of help"


def test_code_is_left_to_the_terminal() -> None:
    code = "```python\nprint('a long line of code') \n    x = 1\n```"

    assert wrapped(f"See this code:\n{code}\nand say so", 10) == f"See this\ncode:\n{code}\nand say so"


def test_code_is_written_as_it_comes() -> None:
    wrapper = WordWrapper(lambda: 80)
    wrapper.feed("```\nx = ")

    assert wrapper.feed("a_long_na") == " a_long_na"


def test_a_word_is_held_back_until_it_ends() -> None:
    wrapper = WordWrapper(lambda: 10)

    assert [wrapper.feed(piece) for piece in ("see", " th", "at", " w", "ord")] == ["", "see", "", " that", ""]
    assert wrapper.is_open
    assert wrapper.flush() == "\nword"


def test_a_word_without_an_end_is_written_as_it_comes() -> None:
    wrapper = WordWrapper(lambda: 4)

    assert "".join(wrapper.feed("a") for _ in range(11)) == "aaaa\naaaa\naa"
    assert wrapper.flush() == "a"


def test_punctuation_ends_a_han_word_also_where_it_is_wider_than_a_line() -> None:
    assert streamed(["好。", "word"], 3) == wrapped("好。word", 3) == "好\n。\nwor\nd"


def test_the_line_goes_on_where_a_resized_terminal_has_put_it() -> None:
    width = 20
    wrapper = WordWrapper(lambda: width)
    before = wrapper.feed("twelve cells and ")
    width = 8  # "twelve c", "ells and"

    assert before + wrapper.feed("more words ") + wrapper.flush() == "twelve cells and\nmore\nwords "


@given(texts, widths)
@example("``` a", 3)
@example("\t\u0301", 1)
def test_without_the_breaks_it_is_the_text(text: str, width: int) -> None:
    assert_only_breaks_were_added(wrapped(text, width), text)


@given(texts.map(lambda text: text.replace("`", "").replace("~", "")), widths)
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    for line in wrapped(text, width).split("\n"):
        widths_there = [max(wcswidth(grapheme), 0) for grapheme in iter_graphemes(line)]
        assert sum(widths_there) <= width or sum(map(bool, widths_there)) == 1, line


@given(texts, widths, st.data())
def test_it_does_not_matter_in_which_pieces_a_text_arrives(text: str, width: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]

    assert streamed(pieces, width) == wrapped(text, width)


@given(st.lists(st.text("abcdef", min_size=1, max_size=6), max_size=12), st.integers(6, 20))
def test_a_word_that_fits_on_a_line_is_never_broken(said: list[str], width: int) -> None:
    assert wrapped(" ".join(said), width).split() == said
