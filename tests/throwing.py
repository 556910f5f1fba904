"""A model that raises what ends programs, as clients with parts in other languages do."""

from collections.abc import AsyncIterator
from typing import Any

from tertulia.models import Response, Scripted
from tertulia.parts import Part
from tertulia.turns import Prompt


class Odd(BaseException):
    pass


THROWN = (Odd("very"), SystemExit(3), KeyboardInterrupt(), GeneratorExit())


class Throwing(Scripted):
    """Raises *error* once, after the *first* pieces where it streams; then it follows its script."""

    def __init__(self, error: BaseException, *script: Any, first: tuple[Part, ...] = ()) -> None:
        super().__init__(*script)
        self._errors = [error]
        self._first = first

    async def respond(self, prompt: Prompt) -> Response:
        for error in self._errors:
            self._errors = []
            raise error
        return await super().respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        for error in self._errors:
            self._errors = []
            for part in self._first:
                yield part
            raise error
        async for piece in super().stream(prompt):
            yield piece
