"""What a person said is looked for in texts of others, however they are written."""

import pytest

from sizes import in_time
from tertulia.memory.person_words import PersonWords, said_marks


@in_time
@pytest.mark.parametrize("unit", ["\\", "\\u", "a ", "1 ", "朝", "u0041"])
def test_hostile_text_is_looked_through_in_time(unit: str) -> None:
    words = PersonWords([("word", "peanuts"), ("words", ("no", "peanuts"))])

    assert not words.is_in(unit * (1_000_000 // len(unit)))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("pea\u200bnuts", "no peanuts, ever"),
        ("peanuts", "no pea\u200bnu\u2060ts, ever"),
        ("peanuts", "\u200bno \ufeffpeanuts\u200b"),
        ("067\u200b123 45 67", "call 067 123\u00ad4567"),
        ("朝\u200b阳区", "她住在朝阳\u2060区"),
        ("👍", "👍"),
    ],
)
def test_characters_that_nobody_sees_part_no_words(said: str, told: str) -> None:
    assert PersonWords(said_marks(said)).is_in(told)


def test_texts_in_json_are_read_wherever_they_are() -> None:
    words = PersonWords([("word", "peanuts")])

    assert words.is_in_json(r'{"a": [1, {"peanuts": null}]}')
    assert words.is_in_json(r'["\u0070eanuts"]')
    assert not words.is_in_json(r'["no\npeas", 1e999]')
