"""Inbox of a platform: attributes changes, stores them in one transaction, then acts on them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from msgspec.structs import replace

from palaver.engine.background import Sleep, retry_forever
from palaver.engine.identity import Identity
from palaver.engine.store_protocols import UpdateStore
from palaver.errors import InvalidValue
from palaver.messages import Message, Place
from palaver.platform import (
    Change,
    Commanded,
    Deleted,
    Edited,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    Update,
    places_of,
    type_fault,
)

log = logging.getLogger(__name__)

T = TypeVar("T")


class PlatformInbox:
    """The inbox of one platform: `palaver.platform.Inbox`."""

    def __init__(
        self,
        platform: str,
        updates: UpdateStore,
        identity: Identity,
        *,
        keep: timedelta,
        applied: Callable[[Sequence[Change]], None],
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._platform = platform
        self._updates = updates
        self._identity = identity
        self._keep = keep
        self._applied = applied  # called with stored changes
        self._now = now
        self._sleep = sleep  # between retries of a write

    async def apply(self, changes: Sequence[Change], *, key: str, raw: bytes | None = None) -> bool:
        if not isinstance(changes, Sequence) or isinstance(changes, str | bytes):
            raise InvalidValue(f"changes must be a list, not {type(changes).__name__}")
        if raw is not None and not isinstance(raw, bytes):
            raise InvalidValue(f"raw must be the bytes of the update, not {raw!r:.200}")
        fault = next(filter(None, (type_fault(change, Change) for change in changes)), "")
        made = [] if fault else [self._attribute(change) for change in changes]
        applying = asyncio.ensure_future(self._apply(made, key, raw, fault))
        return await asyncio.shield(applying)  # it continues where the caller is cancelled

    async def _apply(self, changes: Sequence[Change], key: str, raw: bytes | None, fault: str) -> bool:
        at, updates = self._now(), self._updates
        outcome = await self._retry(
            lambda: updates.apply(self._platform, changes, key=key, raw=raw, at=at, keep=self._keep)
        )
        if refused := fault or outcome.refused:
            log.error("update %s of %s is stored unread: %s", key, self._platform, refused)
        elif outcome.new:
            self._applied(changes)
        return outcome.new

    async def last(self, place: Place) -> Message | None:
        return await self._retry(lambda: self._updates.last(place))

    async def unread(self) -> Sequence[Update]:
        return await self._retry(lambda: self._updates.unread(self._platform))

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry while the store is full or locked: a platform can do nothing about that."""
        return await retry_forever(work, sleep=self._sleep)

    def _attribute(self, change: Change) -> Change:
        """Return the change with our persona on our own messages, and with the service of its place."""
        identity, others = self._identity, {place.platform for place in places_of(change)} - {self._platform}
        if others:
            raise InvalidValue(f"a change by {self._platform!r} has a place of platform {others.pop()!r}")
        match change:
            case Received(message=message) | Edited(message=message) | Commanded(message=message):
                return replace(change, message=identity.attribute(message))
            case PlaceMigrated(old=old, new=new):
                return PlaceMigrated(old=identity.with_service(old), new=identity.with_service(new))
            case Deleted() | Reacted() | PlaceLeft() | Stopped():
                return replace(change, place=identity.with_service(change.place))
            case _:
                assert_never(change)
