"""Handles: files at a service, uploaded once for each account, and again when they expire or are gone.

A file is uploaded under a name that follows from its hash and the account. If a process ends between the upload and the
moment at which the handle is stored, the next one finds the file by that name. A file that cannot be uploaded is not
tried again for a while; who asked sends it in another form.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol
from weakref import WeakValueDictionary

from palaver.errors import FileGone, PalaverError, StoreTrouble
from palaver.media.values import Handle, StoredFile
from palaver.models.base import File, Model, UploadsFiles
from palaver.turns import Prompt
from palaver.wire.media_limits import spelled
from palaver.wire.part_forms import file_uris, is_file, media_of

log = logging.getLogger(__name__)

MARGIN = timedelta(hours=1)  # before its expiry, in which a handle is not used: an answer may take long
AHEAD = timedelta(hours=12)  # for which a new handle is used that has expired already by our clock, which is wrong
PAUSE = timedelta(minutes=1)  # after an upload that failed
LONG_PAUSE = timedelta(hours=12)  # after the service could not read a file, or lost it again and again
RENEWALS = 3  # within an hour, of one file
TIMEOUT = 180.0  # seconds, for an upload and until the file can be used

Key = tuple[str, str]  # hash and account
Read = Callable[[], Awaitable[bytes | None]]


class HandleStore(Protocol):
    """The part of `MediaStore` that has handles."""

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None: ...

    async def add_handle(self, handle: Handle, *, at: datetime) -> None: ...

    async def drop_handle(self, account: str, name: str) -> bool: ...


class InMemoryHandles:
    """Implements `HandleStore` without a disk."""

    def __init__(self) -> None:
        self._handles: dict[Key, Handle] = {}

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None:
        return self._handles.get((sha256, account))

    async def add_handle(self, handle: Handle, *, at: datetime) -> None:
        self._handles[handle.sha256, handle.account] = handle

    async def drop_handle(self, account: str, name: str) -> bool:
        found = [key for key, one in self._handles.items() if one.account == account and name in (one.name, one.uri)]
        for key in found:
            del self._handles[key]
        return bool(found)


class Handles:
    """Gets the handles of files, and uploads those that have none."""

    def __init__(self, store: HandleStore, *, now: Callable[[], datetime], timeout: float = TIMEOUT) -> None:
        self._store = store
        self._now = now
        self._timeout = timeout
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._paused: dict[Key, datetime] = {}  # until when
        self._losses: dict[Key, list[datetime]] = {}  # within the last hour

    async def get(self, file: StoredFile, model: UploadsFiles, *, read: Read) -> Handle | None:
        """Return the handle of a file; upload it if there is none. None if that fails."""
        key = file.sha256, model.account
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            handle = await self._store.handle(*key, at=self._now())
            if handle is not None and self._is_usable(handle):
                return handle
            if not key[1] or self._is_paused(key):
                return None
            data = await read()
            return None if data is None else await self._upload(key, model, data, spelled(file.mime))

    async def renew(self, error: FileGone, prompt: Prompt, model: Model) -> bool:
        """Forget the handles that the service lost; return whether any of them was ours.

        *prompt* is the one that was sent. If the service names no file, all handles of the prompt count as lost. A file
        that is lost again and again is not uploaded for a while.
        """
        if error.for_now or not isinstance(model, UploadsFiles):
            return False
        uris = file_uris(prompt.turns)
        gone = set([uri for uri in uris if is_file(uri, error.file)] or uris)
        media = (one for turn in prompt.turns for part in turn.parts for one in media_of(part))
        lost = {(one.sha256, one.uri) for one in media if one.sha256 and one.uri and one.uri in gone}
        for file, uri in lost:
            await self._store.drop_handle(model.account, uri)
            self._note_loss((file, model.account))
        return bool(lost)

    def _note_loss(self, key: Key) -> None:
        now = self._now()
        within = {one: [at for at in times if now - at < timedelta(hours=1)] for one, times in self._losses.items()}
        self._losses = {one: times for one, times in within.items() if times}
        losses = self._losses.setdefault(key, [])
        losses.append(now)
        if len(losses) >= RENEWALS:
            self._pause(key, LONG_PAUSE)

    def _is_usable(self, handle: Handle | File) -> bool:
        return handle.expires_at is None or self._now() < handle.expires_at - MARGIN

    async def _upload(self, key: Key, model: UploadsFiles, data: bytes, mime: str) -> Handle | None:
        file, account = key
        try:
            async with asyncio.timeout(self._timeout):
                uploaded = await model.upload(data, mime=mime, name=upload_name(file, account))
                if not self._is_usable(uploaded):  # it was there before, and expires soon
                    uploaded = await model.upload(data, mime=mime)
        except FileGone as error:
            self._pause(key, LONG_PAUSE)
            log.warning("a file of %s is not sent as such: %s", mime, error)
            if error.file:
                with suppress(PalaverError):
                    await model.delete_file(error.file)  # else it is there until it expires
            return None
        except (PalaverError, TimeoutError) as error:
            self._pause(key, PAUSE)
            log.warning("a file of %s was not uploaded: %s", mime, error or f"not within {self._timeout:g} seconds")
            return None
        handle = Handle(
            sha256=file,
            account=account,
            name=uploaded.name,
            uri=uploaded.uri,
            mime=uploaded.mime or mime,
            expires_at=uploaded.expires_at if self._is_usable(uploaded) else self._now() + AHEAD,
        )
        try:
            await self._store.add_handle(handle, at=self._now())
        except StoreTrouble as error:
            log.warning("the handle of a file was not stored; it will be found by its name: %s", error)
        return handle

    def _is_paused(self, key: Key) -> bool:
        until = self._paused.get(key)
        return until is not None and self._now() < until

    def _pause(self, key: Key, how_long: timedelta) -> None:
        now = self._now()
        self._paused = {one: until for one, until in self._paused.items() if now < until}
        self._paused[key] = now + how_long


def upload_name(file: str, account: str) -> str:
    """Return the name of a file at a service, by its hash and the account."""
    return f"files/p-{sha256(f'{file} {account}'.encode()).hexdigest()[:36]}"
