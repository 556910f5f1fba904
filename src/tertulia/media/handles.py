"""Handles: files at a service, uploaded once for each account, and again when they expire or are gone.

A file is uploaded under a name that follows from its hash and the account, and the name is stored before the upload
begins. If a process ends while it uploads, the next one finds the file by that name, or deletes it there.

An upload is a task of its own, shared by all who want the file. Who asked waits for a while, and then sends the file in
another form; the upload goes on, so that the next request finds the handle. A file that cannot be uploaded is not tried
again for a while.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from math import inf
from typing import Protocol

from tertulia.errors import (
    FileExists,
    FileGone,
    ResponseUnreadable,
    StoreBroken,
    StoreTrouble,
    reason_of,
)
from tertulia.media.values import Handle, StoredFile
from tertulia.models.base import File, Model, UploadsFiles
from tertulia.turns import Prompt
from tertulia.type_checks import type_fault
from tertulia.wire.media_limits import spelled
from tertulia.wire.part_forms import file_uris, is_file, media_of

log = logging.getLogger(__name__)

MARGIN = timedelta(hours=1)  # before its expiry, in which a handle is not used: an answer may take long
AHEAD = timedelta(hours=12)  # for which a new handle is used that has expired already by our clock, which is wrong
PAUSE = timedelta(minutes=1)  # after an upload that failed
LONG_PAUSE = timedelta(hours=12)  # after the service could not read a file, or lost it again and again
RENEWALS = 3  # within an hour, of one file
TIMEOUT = 180.0  # seconds, for an upload and until the file can be used
PATIENCE = 20.0  # seconds from the beginning of an upload in which answers wait for it
AT_ONCE = 4  # uploads under way
UNKNOWN = timedelta(days=7)  # for which a service may have a file whose upload did not end

Key = tuple[str, str]  # hash and account
Read = Callable[[], Awaitable[bytes | None]]


class HandleStore(Protocol):
    """The part of `MediaStore` that has handles."""

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None: ...

    async def begin_handle(self, handle: Handle, *, at: datetime) -> None: ...

    async def add_handle(self, handle: Handle, *, at: datetime) -> None: ...

    async def drop_handle(self, account: str, name: str) -> bool: ...


class InMemoryHandles:
    """Implements `HandleStore` without a disk."""

    def __init__(self) -> None:
        self._handles: dict[Key, Handle] = {}

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None:
        return self._handles.get((sha256, account))

    async def begin_handle(self, handle: Handle, *, at: datetime) -> None: ...

    async def add_handle(self, handle: Handle, *, at: datetime) -> None:
        self._handles[handle.sha256, handle.account] = handle

    async def drop_handle(self, account: str, name: str) -> bool:
        found = [key for key, one in self._handles.items() if one.account == account and name in (one.name, one.uri)]
        for key in found:
            del self._handles[key]
        return bool(found)


class Handles:
    """Gets the handles of files, and uploads those that have none.

    Answers wait *patience* seconds for an upload, which may take *timeout*.
    """

    def __init__(
        self,
        store: HandleStore,
        *,
        now: Callable[[], datetime],
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._now = now
        self._timeout = timeout
        self._patience = patience
        self._free = asyncio.Semaphore(AT_ONCE)
        self._uploads: dict[Key, tuple[asyncio.Task[Handle | None], float]] = {}  # and until when they are waited for
        self._paused: dict[Key, datetime] = {}  # until when
        self._losses: dict[Key, list[datetime]] = {}  # within the last hour

    async def get(self, file: StoredFile, model: UploadsFiles, *, read: Read, deadline: float = inf) -> Handle | None:
        """Return the handle of a file; upload it if there is none. None if that fails, or takes too long for now.

        It is not waited for after *deadline*, by the loop's clock.
        """
        key = file.sha256, model.account
        if key not in self._uploads:
            if handle := await self._stored(key):
                return handle
            if not key[1] or self._is_paused(key):
                return None
        clock = asyncio.get_running_loop().time
        if key not in self._uploads:
            task = asyncio.create_task(self._upload(key, model, read, spelled(file.mime)))
            task.add_done_callback(lambda ended: self._end(key, ended))
            self._uploads[key] = task, clock() + self._patience
        task, until = self._uploads[key]
        await asyncio.wait([task], timeout=max(0.0, min(until, deadline) - clock()))
        if task.done():
            return None if task.cancelled() else task.result()
        log.info("a file of %s is not uploaded yet, and goes in another form", file.mime)
        return None

    async def _stored(self, key: Key) -> Handle | None:
        """Return the stored handle of a file, if it can be used."""
        handle = await self._store.handle(*key, at=self._now())
        return handle if handle is not None and self._is_usable(handle) else None

    async def close(self) -> None:
        """Stop all uploads; the next process finds by their names what the services have of them."""
        tasks = [task for task, _ in self._uploads.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)  # foreign code may ignore it

    def _end(self, key: Key, task: "asyncio.Task[Handle | None]") -> None:
        del self._uploads[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a file was not uploaded: %s", reason_of(error))

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

    async def _upload(self, key: Key, model: UploadsFiles, read: Read, mime: str) -> Handle | None:
        """Upload a file in its turn; whatever goes wrong is one warning, and None."""
        async with self._free:
            if handle := await self._stored(key):  # another upload has just ended
                return handle
            data = await read()
            if data is None:
                return None
            try:
                async with asyncio.timeout(self._timeout):
                    uploaded = await self._upload_named(key, model, data, mime)
            except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, StoreBroken):
                raise
            except BaseException as error:  # noqa: BLE001 (the model may be the user's, and raise anything)
                self._note_failure(key, mime, error)
                return None
        file, account = key
        expires_at = uploaded.expires_at if self._is_usable(uploaded) else self._now() + AHEAD
        name, mime = uploaded.name, uploaded.mime or mime
        handle = Handle(sha256=file, account=account, name=name, uri=uploaded.uri, mime=mime, expires_at=expires_at)
        try:
            await self._store.add_handle(handle, at=self._now())
        except StoreBroken:
            raise
        except StoreTrouble as error:
            log.warning("the handle of a file was not stored; it will be found by its name: %s", error)
        return handle

    async def _upload_named(self, key: Key, model: UploadsFiles, data: bytes, mime: str) -> File:
        """Upload a file under its first name, or under its second where the first is another's or expires soon."""
        file, account = key
        uploaded: File | None = None
        for name in upload_names(file, account):
            now = self._now()
            begun = Handle(sha256=file, account=account, name=name, uri="", mime=mime, expires_at=now + UNKNOWN)
            await self._store.begin_handle(begun, at=now)
            try:
                uploaded = checked_file(await model.upload(data, mime=mime, name=name), model)
            except FileExists:
                continue
            except FileGone:
                with suppress(Exception):
                    await model.delete_file(name)  # else it is there until it expires, or until our file goes
                raise
            if self._is_usable(uploaded):
                break
        if uploaded is None:
            raise ResponseUnreadable("other files have its names at the service")
        return uploaded

    def _note_failure(self, key: Key, mime: str, error: BaseException) -> None:
        self._pause(key, LONG_PAUSE if isinstance(error, FileGone) else PAUSE)
        late = f"not within {self._timeout:g} seconds"
        why = late if isinstance(error, TimeoutError) else reason_of(error)
        log.warning("a file of %s was not uploaded, and goes in another form: %s", mime, why)

    def _is_paused(self, key: Key) -> bool:
        until = self._paused.get(key)
        return until is not None and self._now() < until

    def _pause(self, key: Key, how_long: timedelta) -> None:
        now = self._now()
        self._paused = {one: until for one, until in self._paused.items() if now < until}
        self._paused[key] = now + how_long


def upload_names(file: str, account: str) -> tuple[str, str]:
    """Return the two names that a file may have at a service, by its hash and the account."""
    digests = [sha256(f"{file} {account}{again}".encode()).hexdigest()[:36] for again in ("", " again")]
    return f"files/p-{digests[0]}", f"files/p-{digests[1]}"


def checked_file(file: File, model: UploadsFiles) -> File:
    """Return the file that a service says it has; raise `ResponseUnreadable` if that cannot be used."""
    if fault := type_fault(file, File):
        raise ResponseUnreadable(fault)
    if file.state != "ACTIVE" or not file.name:
        raise ResponseUnreadable(f"the service has it as {file.name!r} in state {file.state!r}")
    if not model.is_own_file(file.uri):
        raise ResponseUnreadable(f"its address is none of the service: {file.uri[:200]!r}")
    if file.expires_at is not None and file.expires_at.tzinfo is None:
        raise ResponseUnreadable("it expires at a time without a zone")
    return file
