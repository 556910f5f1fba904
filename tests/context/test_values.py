"""The context is frozen, and knows which messages are the agent's own."""

import pytest

from people import a_context, a_message
from tertulia.context.values import Persona
from tertulia.errors import InvalidValue
from tertulia.messages import Author


def test_nobody_without_a_persona_is_the_agent() -> None:
    nameless = a_context(persona=Persona())

    assert not nameless.is_own(a_message(author=Author(id="1", name="A", persona="")))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("", ()), ("гряг", ("гряг",)), ("gryag | гряг*|гряже", ("gryag", "гряг*", "гряже")), ("ге*", ("ге*",))],
)
def test_a_name_pattern_has_names_and_endings(pattern: str, names: tuple[str, ...]) -> None:
    assert Persona(name_pattern=pattern).names == names


@pytest.mark.parametrize("pattern", ["*", "г*", "гряг||гряже", "|", " ", "г*г", "гряг**", "*гряг", "\u200b\u200bг*"])
def test_a_pattern_that_could_mean_any_word_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidValue, match="is no name: write names such as gryag, or gryag"):
        Persona(name_pattern=pattern)


def test_a_context_is_frozen() -> None:
    with pytest.raises(AttributeError):
        a_context().summary = "x"  # type: ignore[misc]
