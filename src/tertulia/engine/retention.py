"""Retention: what is no longer needed is removed in the background, here and at services that have files of ours."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from tertulia.engine.background import Sleep, foreign_code, log_text
from tertulia.engine.behavior import Behavior
from tertulia.errors import HandleGone, StoreBroken, StoreTrouble
from tertulia.media.values import Handle, MediaOptions
from tertulia.models.base import Model, UploadsFiles
from tertulia.models.gemini.cache_store import delete_unwanted
from tertulia.models.gemini.cache_values import CachesPrompts, CacheStore, HasCaches
from tertulia.run.journal import PromptStore

log = logging.getLogger(__name__)

INTERVAL = 86_400.0  # seconds from one pass to the next
HANDLES_INTERVAL = 300.0  # … of what services have
TIMEOUT = 30.0  # seconds of one deletion there
PAUSE = 0.05  # seconds after each transaction of a pass, for the writes of others


async def every(seconds: float, work: Callable[[], Awaitable[object]], *, later: str, sleep: Sleep) -> None:
    """Do *work* now, and again after so many seconds, for ever; while the store is in trouble, log *later*."""
    while True:
        try:
            await work()
        except StoreBroken:
            raise
        except StoreTrouble as trouble:
            log.error("%s: %s", later, trouble)
        await sleep(seconds)


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
        await every(INTERVAL, self.remove_old, later="what is no longer needed is removed later", sleep=self._sleep)

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


class UnwantedHandles(Protocol):
    async def unwanted_handles(self, *, at: datetime | None = None) -> Sequence[Handle]: ...

    async def remove_handle(self, handle: Handle) -> None: ...


class HandleRemoval:
    """Deletes unwanted files and caches at their services; one that fails is retried in the next pass.

    It sleeps in real time also where an engine has the clock of a test: nobody waits for it.
    """

    def __init__(
        self,
        media: UnwantedHandles,
        models: Iterable[Model],
        *,
        now: Callable[[], datetime],
        caches: CacheStore | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._media = media
        self._caches = caches
        self._all_models = tuple(models)
        self._models = [model for model in self._all_models if isinstance(model, UploadsFiles)]
        self._read: set[str] = set()  # accounts whose list of caches was read, and of which nothing unwanted is left
        self._unknown: set[str] = set()  # accounts that no model has
        self._failed: set[str] = set()  # names of files that could not be deleted in the last pass
        self._now = now
        self._sleep = sleep

    async def run(self) -> None:
        """Delete what is unwanted at once, and then every five minutes."""
        later = "files and caches at services are deleted later"
        await every(HANDLES_INTERVAL, self._delete_all, later=later, sleep=self._sleep)

    async def _delete_all(self) -> None:
        await self.delete_unwanted()
        await self.delete_caches()

    async def delete_unwanted(self) -> int:
        """Delete the unwanted handles; return how many are gone. One that has expired needs no call."""
        gone, failed_before = 0, self._failed
        self._failed = set()
        for handle in await self._media.unwanted_handles(at=self._now()):
            is_expired = handle.expires_at is not None and handle.expires_at <= self._now()
            if is_expired or await self._delete(handle, failed_before):
                await self._media.remove_handle(handle)
                gone += 1
        return gone

    async def _delete(self, handle: Handle, failed_before: Collection[str]) -> bool:
        """Return whether the service no longer has the file. A failure is logged once, however often it is retried."""
        model = next((model for model in self._models if model.account == handle.account), None)
        if model is None:
            if handle.account not in self._unknown:
                self._unknown.add(handle.account)
                log.warning("files stay at a service until they expire: no model has the key of %s", handle.account)
            return False
        try:
            with foreign_code("delete_file of a model"):
                async with asyncio.timeout(TIMEOUT):
                    await model.delete_file(handle.name)
        except HandleGone:
            return True
        except Exception as error:  # noqa: BLE001 (the model may be the user's)
            if handle.name not in failed_before:
                log.warning("%s is deleted at its service later: %s", handle.name, log_text(error))
            self._failed.add(handle.name)
            return False
        return True

    async def delete_caches(self) -> None:
        """Delete the caches that nothing wants. The list of each service is read once, or until all of them are gone.

        A service is asked only where a model caches prompts, or did so before.
        """
        services = {model.account: model for model in self._all_models if isinstance(model, HasCaches)}
        for account, service in services.items():
            caching = {
                model for model in self._all_models if isinstance(model, CachesPrompts) and model.account == account
            }
            if self._caches is None or not account or not (caching or await self._caches.find(account)):
                continue
            names = {model.name for model in caching}
            try:
                with foreign_code("delete_cache of a model"):
                    async with asyncio.timeout(TIMEOUT):
                        done = await delete_unwanted(
                            service, self._caches, at=self._now(), models=names, look=account not in self._read
                        )
            except StoreTrouble:
                raise
            except Exception as error:  # noqa: BLE001 (the model may be the user's)
                log.warning("caches at a service are deleted later: %s", log_text(error))
                done = False
            self._read = self._read | {account} if done else self._read - {account}
