"""A scripted model that waits before it answers."""

import asyncio
from typing import Any

from palaver.models.base import Response
from palaver.models.scripted import Scripted
from palaver.turns import Prompt


class HeldModel(Scripted):
    """A scripted model whose first *held* answers wait for `release`; `asked` is set by every request."""

    def __init__(self, *script: Any, held: int = 1, name: str = "scripted") -> None:
        super().__init__(*script, name=name)
        self.asked = asyncio.Event()
        self._released = asyncio.Event()
        self._held = held

    def release(self) -> None:
        """Let every answer go out."""
        self._released.set()

    async def respond(self, prompt: Prompt) -> Response:
        self.asked.set()
        if self._held:
            self._held -= 1
            await self._released.wait()
        return await super().respond(prompt)
