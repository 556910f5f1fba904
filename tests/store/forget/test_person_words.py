"""What a person said is looked for in texts of others, however they are written."""

import pytest

from sizes import in_time
from tertulia.store.forget.person_words import PersonWords, said_marks


@in_time
@pytest.mark.parametrize("unit", ["\\", "\\u", "\\u00", '"text":"', '"text":"\\', "u0041"])
def test_hostile_text_is_looked_through_in_time(unit: str) -> None:
    words = PersonWords([("word", "peanuts")])

    assert words.end(unit * (1_000_000 // len(unit))) is None


@pytest.mark.parametrize("coded", [r"\u0070eanuts", r"\\u0070eanuts", r"\\\\u0070\\\\u0065anuts"])
def test_characters_written_as_numbers_are_read(coded: str) -> None:
    assert PersonWords([("word", "peanuts")]).is_in(f'{{"said":"{coded}"}}')


@pytest.mark.parametrize(
    ("said", "told", "end"),
    [
        ("pea\u200bnuts", "no peanuts, ever", 10),
        ("peanuts", "no pea\u200bnu\u2060ts, ever", 12),
        ("peanuts", "\u200bno \ufeffpeanuts\u200b", 12),
        ("067\u200b123 45 67", "call 067 123\u00ad4567", 17),
        ("朝\u200b阳区", "她住在朝阳\u2060区", 5),
    ],
)
def test_characters_that_nobody_sees_part_no_words(said: str, told: str, end: int) -> None:
    assert PersonWords(said_marks(said)).end(told) == end


def test_characters_that_nobody_sees_may_be_written_as_numbers() -> None:
    assert PersonWords(said_marks("peanuts")).is_in(r'{"said":"pea\u200bnuts"}')
