"""Pieces of a Markdown text fit into messages, and together they are the whole text as it looks."""

import random
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from platforms.telegram.markdown_texts import markdown_text
from platforms.telegram.tdlib import refusal
from sizes import EXAMPLES
from tertulia.platforms.telegram.formatted_text import Rendering, is_blank
from tertulia.platforms.telegram.markdown import render, render_spans
from tertulia.platforms.telegram.markdown_source import markdown_source
from tertulia.platforms.telegram.split import split_markdown

FAMILY = "👨‍👩‍👧‍👦"
LINK = "[link text](https://e.test/a)"

TEXTS = {
    "blank": (" \n", 20, []),
    "short": ("**a**\n", 20, ["**a**\n"]),
    "blocks": ("# One\n\nfirst *words*\n\n- a\n- b", 20, ["# One\n\nfirst *words*", "- a\n- b"]),
    "a heading stays with its text": (
        "some words here\n\n# H\n\nmore words", 24, ["some words here", "# H\n\nmore words"]
    ),
    "items": ("- one one\n- two two\n  - in\n- three", 22, ["- one one", "- two two\n  - in", "- three"]),
    "numbers": ("1. one one\n2. two two\n3. three", 22, ["1. one one\n2. two two", "3. three"]),
    "numbers that are all one": ("1. one\n1. two\n1. three", 16, ["1. one\n1. two", "3\\. three"]),
    "lines": ("one two\nthree *four\nfive* six", 20, ["one two\nthree _four_", "_five_ six"]),
    "sentences": ("One. Two three! Four five six.", 20, ["One. Two three!", "Four five six."]),
    "words": ("one two three four five", 12, ["one two", "three four", "five"]),
    "letters": ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
    "a fence": (
        "Do:\n```py\nif a:\n    b()\n\n    c()\n```\nend",
        13,
        ["Do:", "```py\nif a:\n    b()\n```", "```py\n    c()\n```\n\nend"],
    ),
    "backticks in a fence": ("````\n```\nabc\n```\ndef\n````", 8, ["````\n```\nabc\n````", "````\n```\ndef\n````"]),
    "a quote": ("> one two **three\n> four** five", 14, ["> one two **three**", "> **four** five"]),
    "a quote of a blank item": (
        "```\none two\nthree\n```\n>*  \n\nabc",
        14,
        ["```\none two\nthree\n```", ">*  \n\nabc"],
    ),
    "a bold word within words": ("a**b (c** d)e", 5, ["a**b (c**", "d)e"]),
    "a style within a word": ("*а*бв і ще слова", 8, ["_а_&#1073;в і ще", "слова"]),
    "a link stays whole": (f"see {LINK} there", 12, ["see", "[link text](<https://e.test/a>)", "there"]),
    "a link that is too long": ("[one two](http://a.b/c)", 4, ["[one](<http://a.b/c>)", "[two](<http://a.b/c>)"]),
    "a table": (
        "|a|b|\n|-|-|\n|11|22|\n|33|44|",
        16,
        ["```\na  | b\n---+---\n```", "```\n11 | 22\n33 | 44\n```"],
    ),
    "marks that are words": ("\\*a\\* \\_b\\_ 1\\. c\n\\- d", 8, ["\\*a\\* \\_b\\_", "1\\. c\n\\- d"]),
    "nothing but markup": ("#\n#\n#\n#", 4, ["\\#\n\\#", "\\#\n\\#"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_pieces_of_a_text(name: str) -> None:
    text, limit, expected = TEXTS[name]

    assert split_markdown(text, limit) == expected
    check_pieces(text, limit)


@pytest.mark.parametrize("cluster", [FAMILY, "🇺🇦", "e\u0301\u0323", "👍🏽", "नि", "각", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"])
@pytest.mark.parametrize("limit", [14, 15, 16, 17])
def test_no_piece_ends_within_a_character_that_people_see(cluster: str, limit: int) -> None:
    text = cluster * 40

    pieces = [render(piece).text for piece in split_markdown(text, limit)]

    assert [part for piece in pieces for part in iter_graphemes(piece)] == list(iter_graphemes(text))


def test_a_piece_has_no_more_links_than_a_message_can_have() -> None:
    text = " ".join(f"[{n}](https://e.test/{n})" for n in range(150))

    pieces = [render(piece) for piece in split_markdown(text)]

    urls = [[entity.url for entity in piece.entities] for piece in pieces]
    assert [len(one) for one in urls] == [100, 50]
    assert [url for one in urls for url in one] == [f"https://e.test/{n}" for n in range(150)]


def test_the_first_message_is_used_well() -> None:
    text = "\n\n".join("word " * 150 for _ in range(20))

    lengths = [len(render(piece).text) for piece in split_markdown(text)]

    assert all(3_000 < length <= 4_096 for length in lengths[:-1])
    assert len(lengths) == 4


HOSTILE = {
    "brackets": "[" * 4_000,
    "images": "![" * 1_000,
    "quotes": ">" * 4_000,
    "quotes with lazy lines": ">" * 15 + "a\n" * 1_000,
    "lists": "- " * 2_000,
    "numbered lists with lazy lines": "123456789. " * 8 + "a\n" * 1_000,
    "indented lists": "".join(" " * 2 * n + "- a\n" for n in range(100)),
    "headings": "# h\n" * 1_000,
    "empty headings": "#\n" * 1_000,
    "styles": "*a **b ~~c " * 1_000,
    "backticks": "".join("`" * n + " " for n in range(80)),
    "columns": "|" + "a" * 40 + "|" * 100 + "\n" + "|-" * 100 + "|\n" + ("|" * 101 + "\n") * 50,
    "one letter": "a" + "\u0301" * 4_000,
    "nothing to be seen": "\u200b" * 4_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_become_few_pieces(name: str) -> None:
    text = HOSTILE[name]

    check_pieces(text, 1_024)

    assert len(split_markdown(text, 1_024)) <= 10 * len(text) // 1_024 + 1


def looks(rendering: Rendering) -> list[tuple[str, frozenset[tuple[str, str | None]]]]:
    """Return each character that can be seen, with how it looks."""
    styles: list[set[tuple[str, str | None]]] = [set() for _ in rendering.text]
    for span in rendering.spans:
        for one in styles[span.start : span.end]:
            one.add((span.type, span.value))
    return [(char, frozenset(one)) for char, one in zip(rendering.text, styles, strict=True) if not is_blank(char)]


def check_clusters(text: str, limit: int) -> None:
    texts = [render(piece).text for piece in split_markdown(text, limit)]

    assert [
        (first, second)
        for first, second in pairwise(texts)
        if len([*iter_graphemes(first[-20:] + second[0])]) == len([*iter_graphemes(first[-20:])])
    ] == []


def check_pieces(text: str, limit: int) -> None:
    whole = render_spans(text)

    pieces = split_markdown(text, limit)

    rendered = [render_spans(piece) for piece in pieces]
    assert [piece for piece in rendered if len(piece.text) > limit or is_blank(piece.text)] == []
    assert [why for piece in pieces if (why := refusal(render(piece)))] == []
    assert [look for piece in rendered for look in looks(piece)] == looks(whole)


@pytest.mark.torture
@settings(max_examples=max(EXAMPLES, 300))
@given(st.integers(min_value=0))
def test_the_pieces_are_the_whole_as_it_looks(seed: int) -> None:
    chooser = random.Random(seed)  # noqa: S311 - texts, no secrets
    text, _ = markdown_text(chooser)
    limit = chooser.choice([25, 60, 120, 250])

    check_pieces(text, limit)
    check_clusters(text, limit)


ODD = [
    "[a](", "_u_", "](", "`c`", "(", "||sp||", "**b**", "~~s~~", "word ", "слово ", "\n", "\n\n", "- ", "> ", "```\n",
    "# ", "[x](http://a.b)", "*", "_", "`", "\\", "&amp;", "&#97;", "<b>", "|", "😀", "a" * 50, "AbC-_dEf09" * 30, "!",
]  # fmt: skip


@pytest.mark.torture
@settings(max_examples=max(EXAMPLES, 30))
@given(st.integers(min_value=0))
@example(28)
@example(67)
@example(139)
@example(207)
def test_no_piece_of_odd_long_markdown_is_too_long(seed: int) -> None:
    chooser = random.Random(seed)  # noqa: S311 - texts, no secrets
    some = chooser.sample(ODD, chooser.randint(2, 8))
    text = "".join(chooser.choices(some, k=9_000 // (sum(map(len, some)) // len(some) + 1)))

    shown = [render(piece).text for piece in split_markdown(text, 4096)]

    assert max(map(len, shown), default=0) <= 4096
    assert "".join("".join(shown).split()) == "".join(render(text).text.split())


@pytest.mark.torture
@settings(max_examples=max(EXAMPLES, 300))
@given(st.integers(min_value=0))
def test_a_text_can_be_written_as_markdown_and_stays_the_same(seed: int) -> None:
    check_source(markdown_text(random.Random(seed))[0])  # noqa: S311


def check_source(source: str) -> None:
    text = render_spans(source).text.strip()

    assert render_spans(markdown_source(text, ())).text == text
