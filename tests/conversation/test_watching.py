"""A watched model is closed with what watches it."""

from typing import Any

from palaver.conversation.watching import Watched
from palaver.models import Scripted
from palaver.prompt.ledger import Ledger


async def test_closing_closes_the_model() -> None:
    class Held(Scripted):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    held = Held("Hello.")
    await Watched(held, Ledger()).aclose()

    assert held.closed == 1


async def test_a_model_that_cannot_be_closed_is_left_alone() -> None:
    class Plain:
        name = "plain"

    plain: Any = Plain()
    await Watched(plain, Ledger()).aclose()
