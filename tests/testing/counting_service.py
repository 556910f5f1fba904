"""The invented chat service, with what happens to it counted."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

from tertulia.testing.example_service import ExampleService
from tertulia.testing.platform_world import Fault


class CountingService(ExampleService):
    """Counts requests (`asked`), those to send or edit (`written`), new messages (`sent`), and second ones and later.

    Those are `continued`: new messages in a place where people see one of the bot's already.
    """

    def __init__(self, *, keys: bool) -> None:
        super().__init__(keys=keys)
        self.counts: Counter[str] = Counter()
        self._counted = asyncio.Event()

    def count(self, what: str) -> None:
        self.counts[what] += 1
        self._counted.set()

    async def until(self, count: int, what: str, *, patience: float | None = None) -> None:
        """Wait until there are so many, or until nothing is counted for *patience* seconds."""
        with suppress(TimeoutError):
            while self.counts[what] < count:
                self._counted.clear()
                await asyncio.wait_for(self._counted.wait(), patience)

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        self.count("asked")
        return await super()._answer(request)

    def _write(self, request: dict[str, Any], fault: Fault | None) -> dict[str, Any] | None:
        answer = super()._write(request, fault)
        self.count("written")
        return answer

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        before, is_first = len(self._messages), not self.shown(request["place"])
        answer = super()._send(request)
        if len(self._messages) > before:
            self.count("sent")
            if not is_first:
                self.count("continued")
        return answer
