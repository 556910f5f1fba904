import sys
import unicodedata
from functools import cache

from tertulia.characters import is_blank, one_line, visible

FILLERS = [*"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0", *map(chr, range(0xFE00, 0xFE10))]
TAGS = [chr(code) for code in (0xE0001, 0xE0020, 0xE007F, 0xE0100, 0xE01EF)]


@cache
def format_characters() -> list[str]:
    return [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"]


def test_format_characters_fillers_and_tags_are_left_out_where_texts_are_compared() -> None:
    hidden = [*format_characters(), *FILLERS, *TAGS]

    assert [one for one in hidden if visible(f"a{one}b") != "ab"] == []


def test_letters_marks_and_blanks_stay() -> None:
    seen = "Aя م 한 e\u0301 😀 \u00a0 \u3000 \n"

    assert visible(seen) == seen


def test_one_line_can_stand_between_square_brackets() -> None:
    text = "a [b] ［c］ 【d】\n\r\x00e\u2028f\u2029g\x85 h"

    assert one_line(text) == "a (b) (c) (d) e f g h"


def test_brackets_of_every_square_shape_are_square_brackets() -> None:
    shapes = ("SQUARE", "LENTICULAR", "TORTOISE SHELL")
    brackets = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Ps", "Pe") and any(one in unicodedata.name(chr(code)) for one in shapes)
    ]

    assert [one for one in brackets if one_line(one) != ("(" if unicodedata.category(one) == "Ps" else ")")] == []


def test_blank_is_what_shows_nothing() -> None:
    blank = ["", " ", "\t\n", "\x00", "\u00a0", "\u3000", "\u2800", *format_characters(), *FILLERS, "\u200b \u2060"]
    seen = ["0", "-", "a", "ا", "\u0301", "\u200ba"]

    assert [text for text in blank if not is_blank(text)] == []
    assert [text for text in seen if is_blank(text)] == []
