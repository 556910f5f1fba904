"""What a person said is looked for in texts of others, however they are written."""

import pytest

from palaver.store.person_words import PersonWords
from sizes import in_time


@in_time
@pytest.mark.parametrize("unit", ["\\", "\\u", "\\u00", '"text":"', '"text":"\\', "u0041"])
def test_hostile_text_is_looked_through_in_time(unit: str) -> None:
    words = PersonWords([("word", "peanuts")])

    assert words.end(unit * (1_000_000 // len(unit))) is None


@pytest.mark.parametrize("coded", [r"\u0070eanuts", r"\\u0070eanuts", r"\\\\u0070\\\\u0065anuts"])
def test_characters_written_as_numbers_are_read(coded: str) -> None:
    assert PersonWords([("word", "peanuts")]).is_in(f'{{"said":"{coded}"}}')
