"""The context is frozen, and knows which messages are the agent's own."""

import pytest

from palaver.context.values import Persona
from palaver.messages import Author
from people import a_context, a_message


def test_nobody_without_a_persona_is_the_agent() -> None:
    nameless = a_context(persona=Persona())

    assert not nameless.is_own(a_message(author=Author(id="1", name="A", persona="")))


def test_a_context_is_frozen() -> None:
    with pytest.raises(AttributeError):
        a_context().summary = "x"  # type: ignore[misc]
