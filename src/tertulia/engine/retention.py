"""Retention: prompts, raw updates and files of media are removed in the background when they are no longer needed."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from tertulia.engine.background import Sleep
from tertulia.engine.behavior import Behavior
from tertulia.errors import StoreBroken, StoreTrouble
from tertulia.media.values import MediaOptions
from tertulia.run.journal import PromptStore

log = logging.getLogger(__name__)

INTERVAL = 86_400.0  # seconds from one pass to the next
PAUSE = 0.05  # seconds after each transaction of a pass, for the writes of others


class RawUpdates(Protocol):
    async def remove_old(self, keep: timedelta, *, at: datetime) -> None: ...


class MediaFiles(Protocol):
    async def sweep(self, *, unused_since: datetime, at: datetime) -> int: ...


class Retention:
    """Removes what is older than `Behavior.keep_prompts` and `Behavior.keep_updates`, and files that are not needed.

    It sleeps in real time also where an engine has the clock of a test: nobody waits for it.
    """

    def __init__(
        self,
        prompts: PromptStore,
        updates: RawUpdates,
        media: MediaFiles,
        behavior: Behavior,
        *,
        options: MediaOptions | None = None,
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
        pause: float = PAUSE,
    ) -> None:
        self._prompts = prompts
        self._updates = updates
        self._media = media
        self._keep_files = (options or MediaOptions()).keep
        self._behavior = behavior
        self._now = now
        self._sleep = sleep
        self._pause = pause

    async def run(self) -> None:
        """Remove what is no longer needed at once, and then every day."""
        while True:
            try:
                await self.remove_old()
            except StoreBroken:
                raise
            except StoreTrouble as trouble:
                log.error("what is no longer needed is removed later: %s", trouble)
            await self._sleep(INTERVAL)

    async def remove_old(self) -> int:
        """Remove what is no longer needed now; return the number of prompts."""
        now = self._now()
        await self._updates.remove_old(self._behavior.keep_updates, at=now)
        removed = 0
        async for count in self._prompts.remove_old(now - self._behavior.keep_prompts, at=now):
            removed += count
            await self._sleep(self._pause)
        if removed:
            log.info("%d prompts were older than %s and are removed", removed, self._behavior.keep_prompts)
        if files := await self._media.sweep(unused_since=now - self._keep_files, at=now):
            log.info(
                "%d files of media were not used for %s, or nothing refers to them: removed", files, self._keep_files
            )
        return removed
