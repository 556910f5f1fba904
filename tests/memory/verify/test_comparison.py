"""A sentence in the first person as it is said of somebody, so that a fact stands once."""

import pytest

from tertulia.memory.verify.comparison import comparable_words, to_third_person


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("I am allergic to peanuts", "Is allergic to peanuts."),
        ("I'm allergic to peanuts.", "Is allergic to peanuts."),
        ("I live in Lviv", "Lives in Lviv."),
        ("I love tea", "Loves tea."),
        ("I've got a dog named Rex", "Has a dog called Rex."),
        ("My birthday is May 5", "Birthday: May 5."),
        ("I don't eat meat", "Doesn't eat meat."),
        ("Я люблю чай", "Любить чай."),
        ("У мене алергія на арахіс", "Алергія на арахіс."),
    ],
)
def test_what_patterns_read_is_what_they_would_have_learned(own: str, told: str) -> None:
    assert to_third_person(own) == told
    assert comparable_words(own, "Alice") == comparable_words(told, "Alice")


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("I am shy", "is shy"),
        ("I\u2019m shy", "is shy"),
        ("I love tea, but only on Sundays with my aunt", "loves tea, but only on Sundays with my aunt"),
        ("I am allergic to peanuts and live in Lviv", "is allergic to peanuts and live in Lviv"),
        ("I teach physics badly", "teaches physics badly"),
        ("I study law and chess", "studies law and chess"),
        ("I can juggle", "can juggle"),
        ("I moved twice", "moved twice"),
        ("Я вивчаю шахи й дебюти", "вивчає шахи й дебюти"),
    ],
)
def test_of_any_other_sentence_the_verb_is_changed(own: str, told: str) -> None:
    assert to_third_person(own) == told


@pytest.mark.parametrize(
    "text",
    [
        "Is allergic to peanuts.",
        "My sister lives in Kyiv",
        "Irene lives in Lviv",
        "likes tea",
        "I",
        "",
    ],
)
def test_what_says_more_or_something_else_stays_as_it_is(text: str) -> None:
    assert to_third_person(text) == text
