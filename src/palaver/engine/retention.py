"""Retention: prompts and raw updates are removed in the background when they have become too old."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from palaver.engine.background import Sleep
from palaver.engine.behavior import Behavior
from palaver.errors import StoreBroken, StoreTrouble
from palaver.run.journal import PromptStore

log = logging.getLogger(__name__)

INTERVAL = 86_400.0  # seconds from one pass to the next
PAUSE = 0.05  # seconds after each transaction of a pass, for the writes of others


class RawUpdates(Protocol):
    async def remove_old(self, keep: timedelta, *, at: datetime) -> None: ...


class Retention:
    """Removes what is older than `Behavior.keep_prompts` and `Behavior.keep_updates`.

    It sleeps in real time also where an engine has the clock of a test: nobody waits for it.
    """

    def __init__(
        self,
        prompts: PromptStore,
        updates: RawUpdates,
        behavior: Behavior,
        *,
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
        pause: float = PAUSE,
    ) -> None:
        self._prompts = prompts
        self._updates = updates
        self._behavior = behavior
        self._now = now
        self._sleep = sleep
        self._pause = pause

    async def run(self) -> None:
        """Remove what is too old at once, and then every day."""
        while True:
            try:
                await self.remove_old()
            except StoreBroken:
                raise
            except StoreTrouble as trouble:
                log.error("what is too old is removed later: %s", trouble)
            await self._sleep(INTERVAL)

    async def remove_old(self) -> int:
        """Remove what is too old now; return the number of prompts."""
        now = self._now()
        await self._updates.remove_old(self._behavior.keep_updates, at=now)
        removed = 0
        async for count in self._prompts.remove_old(now - self._behavior.keep_prompts, at=now):
            removed += count
            await self._sleep(self._pause)
        if removed:
            log.info("%d prompts were older than %s and are removed", removed, self._behavior.keep_prompts)
        return removed
