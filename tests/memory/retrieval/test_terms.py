import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.characters import visible
from tertulia.memory.retrieval.terms import fold, term_prefix, terms, terms_with_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("the und być есть та", []),
        ("Bought two paintings", ["buy", "two", "paint"]),
        ("She paints and is painting", ["paint", "paint"]),
        ("stopped running", ["stop", "run"]),
        ("книжку книжкою книжки", ["книжк", "книжк", "книжк"]),
        ("Łódź Straße Ёлка", ["lodz", "strass", "елк"]),
        ("МакБук's п'ять", ["макбукs", "пят"]),
        ("п’ять пʼять", ["пят", "пят"]),
        ("กาแฟ", ["กา", "าแ", "แฟ", "ฟ"]),
        ("北京大学", ["北京", "京大", "大学", "学"]),
        ("room 7 at 12:30", ["room", "7", "12", "30"]),
        ("snake_case", ["snak", "cas"]),
    ],
)
def test_what_a_text_is_found_by(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_terms_know_the_words_they_were_written_as() -> None:
    assert terms_with_words("Painting the paintings, twice") == {"paint": "painting", "twic": "twice"}


def test_a_word_is_found_by_its_beginning_where_it_is_long_enough() -> None:
    assert term_prefix("paint") == ("pain", False)
    assert term_prefix("книжк") == ("кни", False)
    assert term_prefix("dog") == ("dog", True)
    assert term_prefix("北京") == ("北京", True)
    assert term_prefix("书") == ("书", False)


@given(st.text())
def test_whatever_is_written_is_cut_into_words(text: str) -> None:
    assert list(terms_with_words(text)) == list(dict.fromkeys(terms(text)))
    assert all(0 < len(word) <= 40 and fold(word) for word in words(text))


SHOWN = st.text(
    alphabet=st.sampled_from("ab1'’ _北京กาї?.-\u00ad\u061c\u17b4\u200b\u200c\u200d\u3164\ufe0f\ufeff\U000e0041")
)


@given(SHOWN)
def test_words_are_those_of_what_is_seen(text: str) -> None:
    assert list(words(text)) == list(words(visible(text)))


@pytest.mark.parametrize("text", ["pea\u200bnuts", "\ufeffpeanuts", "pea\u00adnuts", "p\u200de\u2060anuts\U000e0041"])
def test_characters_that_nobody_sees_part_no_words(text: str) -> None:
    assert terms(text) == terms("peanuts")
