import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.talks import TRIP, UKRAINIAN
from tertulia.memory.retrieval.terms import key_sentences, keywords, shared_terms, split_sentences, term_set


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("the and for was", []),
        ("І що це було для мене", []),
        ("Where are the train tickets?", ["train", "ticket"]),
        ("Велосипеди велосипедом", ["велосипед", "велосипед"]),
        ("room 42 or 7", ["room", "42"]),
        ("see https://example.com/secret?a=b now", []),
        ("明日の天気", ["明日", "日の", "の天", "天気"]),
        ("snake_case I O", ["snak", "cas"]),
    ],
)
def test_what_a_text_is_about(text: str, expected: list[str]) -> None:
    assert term_set(text) == frozenset(expected)


def test_the_words_of_a_topic_are_as_they_were_written() -> None:
    assert keywords(TRIP, 2) == ("Lviv", "train")
    assert keywords(TRIP, 2, without={"lviv"}) == ("train", "Tickets")
    assert keywords(UKRAINIAN, 1) == ("велосипед",)
    assert keywords([], 3) == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("明日は東京タワーに行きました", {"明日", "東京", "タワー"}),
        ("我喜欢吃苹果。真的", {"我喜欢吃苹果", "真的"}),
        ("서울에 갔어요", {"서울에", "갔어요"}),
        ("この長文章全部漢字連続続行可能性", set()),
        ("tokyo は 楽しい city", {"tokyo", "city"}),
    ],
)
def test_of_scripts_without_spaces_short_runs_are_words_and_pieces_are_none(said: str, words: set[str]) -> None:
    assert set(keywords([said], 9)) == words


def test_a_name_of_several_characters_is_left_out_as_a_whole() -> None:
    assert keywords(["田中太郎と明日"], 9, without=term_set("田中太郎")) == ("明日",)


def test_who_repeats_a_word_does_not_make_it_the_topic() -> None:
    assert keywords(["spam " * 50, "garden news", "our garden"], 1) == ("garden",)


def test_sentences_that_tell_most_and_not_the_same_twice() -> None:
    said = ["ok", "the garden has slugs", "the garden has slugs", "beer traps kill the slugs", "Lviv is far"]

    assert key_sentences(said, 9) == [1, 3, 4]
    assert key_sentences(said, 1) == [3]
    assert key_sentences(["ok", "no"], 2) == []


def test_sentences_stand_on_one_line() -> None:
    assert split_sentences("One.  Two\nlines! Три? 四。五") == ["One.", "Two", "lines!", "Три?", "四。", "五"]
    assert split_sentences("143.75 each. See tertulia.toml, or not.") == ["143.75 each.", "See tertulia.toml, or not."]


@given(st.text(), st.text())
def test_whatever_is_written_has_terms(one: str, other: str) -> None:
    assert 0 <= shared_terms(term_set(one), term_set(other)) <= 1
    assert all("\n" not in sentence for sentence in split_sentences(one))
