"""HeldModel: a scripted model that waits before or within an answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from palaver.models.base import Response
from palaver.models.scripted import Scripted
from palaver.parts import Part
from palaver.turns import Prompt


class HeldModel(Scripted):
    """A scripted model whose first *held* answers wait for `release`; `asked` is set by every request.

    With *pieces* an answer that is streamed waits after so many of its words, else before the first.
    """

    def __init__(self, *script: Any, held: int = 1, pieces: int = 0, name: str = "scripted") -> None:
        super().__init__(*script, name=name)
        self.asked = asyncio.Event()
        self._released = asyncio.Event()
        self._held = held
        self._pieces = pieces

    def release(self) -> None:
        """Let all answers continue."""
        self._released.set()

    async def respond(self, prompt: Prompt) -> Response:
        self.asked.set()
        if not self._pieces:
            await self._wait()
        return await super().respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        left = self._pieces
        async for piece in super().stream(prompt):
            if self._pieces and left == 0:
                await self._wait()
            left -= 1
            yield piece

    async def _wait(self) -> None:
        if self._held:
            self._held -= 1
            await self._released.wait()
