"""Slots: how many runs may work at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self


class Slot:
    """One slot of a semaphore, for a run: `async with Slot(free) as slot:`."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._held = False

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give()

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Give the slot back, and take one again afterwards; a run that is cancelled meanwhile needs none."""
        self._give()
        try:
            yield
        except Exception:
            await self._take()
            raise
        await self._take()

    async def _take(self) -> None:
        await self._free.acquire()
        self._held = True

    def _give(self) -> None:
        if self._held:
            self._held = False
            self._free.release()
