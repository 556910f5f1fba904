"""Every language says everything, and fills in the same."""

import re
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from tertulia.engine.behavior import Behavior
from tertulia.engine.languages import BUILT_IN, fields_of, languages_with, lines_in
from tertulia.engine.languages.lines import ENGLISH, Lines
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.errors import InvalidValue

CYRILLIC = re.compile(r"[а-яґєії]", re.IGNORECASE)
FOREIGN = re.compile(r"[ыэъё]|\b(?:если|или|только|что)\b", re.IGNORECASE)


@pytest.mark.parametrize("tag", BUILT_IN)
def test_every_line_of_a_language_fills_in_what_the_english_one_does(tag: str) -> None:
    lines, english = asdict(BUILT_IN[tag]), asdict(ENGLISH)

    assert {name: fields_of(text) for name, text in lines.items()} == {
        name: fields_of(text) for name, text in english.items()
    }
    assert all(text.strip() == text != "" for text in lines.values())


def test_ukrainian_is_ukrainian() -> None:
    lines = asdict(UKRAINIAN)

    assert [name for name, text in lines.items() if not CYRILLIC.search(text)] == []
    assert [name for name, text in lines.items() if FOREIGN.search(text)] == []


@pytest.mark.parametrize(
    ("tag", "lines"),
    [
        ("uk", UKRAINIAN),
        ("UK", UKRAINIAN),
        ("uk-UA", UKRAINIAN),
        ("uk_UA", UKRAINIAN),
        ("en-GB", ENGLISH),
        ("ukr", None),
        ("pl", None),
        ("", None),
        ("-", None),
    ],
)
def test_a_language_is_found_by_its_tag(tag: str, lines: Lines | None) -> None:
    assert lines_in(tag, BUILT_IN) == lines


def test_a_config_adds_a_language_and_changes_lines() -> None:
    behavior = Behavior(lines={"pl": {"forgotten": "Zapomniane."}, "uk": {"forgotten": "Готово."}}, language="pl")

    assert behavior.lines_in("pl") == replace(ENGLISH, forgotten="Zapomniane.")
    assert behavior.lines_in("uk-UA") == replace(UKRAINIAN, forgotten="Готово.")
    assert behavior.lines_in("fr") == behavior.lines_in("pl")
    assert behavior.lines_in("en") == ENGLISH


def test_a_language_of_a_country_has_what_the_language_has() -> None:
    found = languages_with({"uk-ua": {"forgotten": "Готово."}})

    assert found["uk-ua"] == replace(UKRAINIAN, forgotten="Готово.")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"lines": {"uk": {"forgoten": "x"}}}, "lines.uk.forgoten: there is no such line, did you mean forgotten?"),
        (
            {"lines": {"uk": {"zzz": "x"}}},
            "lines.uk.zzz: there is no such line; tertulia/engine/languages/lines.py has",
        ),
        ({"lines": {"uk": {"forgotten": "{fact}"}}}, "lines.uk.forgotten must have a text that fills in nothing alone"),
        ({"lines": {"uk": {"greeting": "{name} {"}}}, "lines.uk.greeting: "),
        ({"lines": {"uk": {"greeting": "{name.x}"}}}, "lines.uk.greeting: "),
        ({"lines": {"uk": {"greeting": "{}"}}}, "lines.uk.greeting"),
        ({"lines": {"uk": {"greeting": " "}}}, "lines.uk.greeting must have a text that fills in {name} alone"),
        ({"lines": {"!": {"forgotten": "x"}}}, "lines: '!' is no tag of a language, such as uk or pt-br"),
        ({"language": "fr"}, "Behavior: language 'fr' has no lines; add them to lines"),
    ],
)
def test_lines_that_could_not_be_said_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Behavior(**given)

    assert str(caught.value).startswith(why)
