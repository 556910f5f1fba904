"""Handle removal: files and caches that a service has, and that nothing here wants any longer, are deleted there."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol

from tertulia.engine.background import Sleep, foreign_code, log_text
from tertulia.errors import HandleGone, StoreBroken, StoreTrouble
from tertulia.media.values import Handle
from tertulia.models.base import Model, UploadsFiles
from tertulia.models.gemini.cache_store import delete_unwanted
from tertulia.models.gemini.cache_values import CachesPrompts, CacheStore, HasCaches

log = logging.getLogger(__name__)

INTERVAL = 300.0  # seconds from one pass to the next
TIMEOUT = 30.0  # seconds of one deletion


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
        while True:
            try:
                await self.delete_unwanted()
                await self.delete_caches()
            except StoreBroken:
                raise
            except StoreTrouble as trouble:
                log.error("files and caches at services are deleted later: %s", trouble)
            await self._sleep(INTERVAL)

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
