"""The reference is what the code says, and has a line about every name."""

from reference_page import PAGE, Meanings, render


def test_the_reference_is_that_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == render(Meanings()), "`make reference` writes it anew"


def test_every_name_has_a_line_and_every_line_a_name() -> None:
    meanings = Meanings()

    render(meanings)

    assert (meanings.missing, meanings.unused) == ([], [])
