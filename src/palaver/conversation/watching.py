"""A model whose requests are entered in a ledger."""

from collections.abc import AsyncGenerator, AsyncIterator

from palaver.models.base import Model, Response
from palaver.parts import Part
from palaver.prompt.ledger import Ledger
from palaver.turns import Prompt


class Watched:
    """*model*, with each of its requests entered in *ledger*."""

    def __init__(self, model: Model, ledger: Ledger) -> None:
        self.model = model
        self.name = model.name
        self._ledger = ledger

    async def aclose(self) -> None:
        """Close the model, if it is one that can be closed."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    async def respond(self, prompt: Prompt) -> Response:
        self._ledger.note(prompt)
        response = await self.model.respond(prompt)
        self._ledger.heard(response.usage)
        return response

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        self._ledger.note(prompt)
        pieces = self.model.stream(prompt)
        try:
            async for piece in pieces:
                if isinstance(piece, Response):
                    self._ledger.heard(piece.usage)
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
