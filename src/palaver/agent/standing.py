"""An exchange under way: whether its next piece is awaited, and what becomes of it when another message is sent."""

import asyncio
from collections.abc import AsyncGenerator

from palaver.errors import InvalidValue
from palaver.models.base import Response
from palaver.parts import Part

Pieces = AsyncGenerator[Part | Response, None]

LEFT = "another message was sent while nobody awaited the next piece of this stream, which closed it"


class Standing:
    """An exchange from its first request to its end, of which only its reader and the next who speaks know."""

    def __init__(self, exchange: Pieces) -> None:
        self._exchange = exchange
        self._idle = asyncio.Event()  # nobody awaits a piece: its reader does something else, has left, or it is over
        self._over = False
        self._left = False

    def given(self) -> None:
        """The reader has a piece, and may come back for the next."""
        self._idle.set()

    def read_on(self) -> None:
        if self._left:
            raise InvalidValue(LEFT)
        self._idle.clear()

    async def close(self) -> None:
        """End it, unless whoever speaks next has done so."""
        if self._left:
            return
        self._idle.clear()
        try:
            await self._exchange.aclose()
        finally:
            self._over = True
            self._idle.set()

    async def make_way(self) -> None:
        """Wait while its next piece is awaited; close it once nobody does."""
        while not self._idle.is_set():
            await self._idle.wait()
        if not self._over:
            self._left = self._over = True
            await self._exchange.aclose()
