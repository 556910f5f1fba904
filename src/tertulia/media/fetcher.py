"""Media fetcher: the bytes of media become stored files, each fetched once.

Bytes come with the media, from their platform, or from a web address. They are checked by content, so that media are
what their kind says, and stored by hash. What could not be had is remembered: it is tried again after a minute, then
twice as long each time up to a day, or never, where it never can be had.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol
from weakref import WeakValueDictionary

from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.characters import one_line
from tertulia.errors import MediaUnavailable, MediaUnreadable, StoreBroken, StoreTrouble, TertuliaError, reason_of
from tertulia.media.address_rules import is_youtube
from tertulia.media.addresses import AddressFetcher
from tertulia.media.content_types import TGS, content_type
from tertulia.media.decoding import FileFacts, missing_decoders
from tertulia.media.image_metadata import has_metadata
from tertulia.media.sent_forms import with_facts
from tertulia.media.values import FetchFailure, MediaOptions, MediaStore, StoredFile, file_key
from tertulia.messages import Place, PlaceKey
from tertulia.parts import MAX_FILE, Media
from tertulia.platform import Platform

log = logging.getLogger(__name__)

AT_ONCE = 6  # fetches under way
AT_ONCE_OF_A_PLACE = 2  # of these; who sends many files that take long does not hold up others
TIMEOUT = 60.0  # seconds of one fetch
PATIENCE = 20.0  # seconds that a run waits for all its media
FIRST_RETRY, LONGEST_RETRY = 60.0, 86_400.0  # seconds until media that could not be had are tried again

_TYPES = {  # what media of a kind are, by their content; all other kinds may be anything
    "photo": r"image/",
    "image": r"image/",
    "sticker": rf"image/|video/|{re.escape(TGS)}",
    "voice": r"audio/|application/ogg|video/(?:mp4|webm|ogg)",
    "audio": r"audio/|application/ogg|video/(?:mp4|webm|ogg)",
    "music": r"audio/|application/ogg|video/(?:mp4|webm|ogg)",
    "video": r"video/|image/gif",
    "video_note": r"video/",
    "animation": r"video/|image/",
    "gif": r"video/|image/",
}
UNKNOWN_TYPE = "application/octet-stream"
TOO_SLOW = "it did not come within {:g} seconds"


class FactsReader(Protocol):
    """Reads what a file is by decoding it: `media.decoding.Decoder`."""

    async def facts(self, data: bytes) -> FileFacts: ...


def has_service_address(media: Media) -> bool:
    """Return whether media have no bytes but an address that services take: a video of YouTube."""
    return not (media.data or media.file_id or media.sha256) and is_youtube(media.uri or "")


def is_web_address(media: Media) -> bool:
    """Return whether media are at an address that we fetch: not YouTube's."""
    uri = media.uri or ""
    return uri.lower().startswith(("http://", "https://")) and not is_youtube(uri)


def is_fetchable(media: Media) -> bool:
    """Return whether the bytes of media are fetched; a video of YouTube is not. Other addresses than those of the web
    fail, which is logged and remembered.
    """
    return bool(media.data or media.file_id or media.uri) and not has_service_address(media)


def with_file(media: Media, file: StoredFile) -> Media:
    """Return media without bytes, with the hash of their stored file and what is known of it."""
    known = with_facts(media, file)
    return replace(
        known,
        sha256=file.sha256,
        data=None,
        raw=None,
        uri=None if is_web_address(media) else media.uri,
        mime=file.mime if file.mime != UNKNOWN_TYPE else media.mime or file.mime,
    )


def fits_kind(media_kind: str, mime: str) -> bool:
    """Return whether media of a kind may have such a content."""
    expected = _TYPES.get(media_kind)
    return not expected or re.match(expected, mime) is not None


async def checked_file(media: Media, data: bytes, decoder: FactsReader) -> StoredFile:
    """Return what is known of a file by its content; raise `MediaUnavailable` if it is not of the kind of its media."""
    if not data:
        raise MediaUnavailable("it is empty")
    mime = content_type(data) or UNKNOWN_TYPE
    if not fits_kind(media.media_kind, mime):
        raise MediaUnavailable(f"it is no {media.kind_word}: its content is {mime}")
    facts = await _facts(data, mime, decoder)
    return StoredFile(
        sha256=sha256(data).hexdigest(),
        size=len(data),
        mime=mime,
        width=facts.width,
        height=facts.height,
        seconds=facts.seconds,
        pages=facts.pages,
        frames=facts.frames,
        has_metadata=has_metadata(data, mime),
    )


async def _facts(data: bytes, mime: str, decoder: FactsReader) -> FileFacts:
    """Return what the decoder reads; nothing where it is not installed. Raise `MediaUnavailable` if it cannot."""
    if mime == UNKNOWN_TYPE:
        return FileFacts(mime=mime)
    try:
        return await decoder.facts(data)
    except MediaUnreadable as error:
        if error.for_now and missing_decoders():
            return FileFacts(mime=mime)
        raise MediaUnavailable(str(error), for_now=error.for_now) from error


class MediaFetcher:
    """Fetches media of all platforms: `fetch` one of them, `fetch_all` those of a run."""

    def __init__(
        self,
        store: MediaStore,
        platforms: Mapping[str, Platform],
        *,
        addresses: AddressFetcher,
        decoder: FactsReader,
        now: Callable[[], datetime],
        largest: int = MediaOptions().largest,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._platforms = platforms
        self._addresses = addresses
        self._decoder = decoder
        self._now = now
        self.largest = largest  # bytes
        self._timeout = timeout
        self._patience = patience
        self._free = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[PlaceKey | None, asyncio.Semaphore] = WeakValueDictionary()
        self._fetching: dict[str, asyncio.Task[StoredFile | None]] = {}
        self._has_logged_trouble = False

    async def fetch(self, media: Media, platform: str, *, place: Place | None = None) -> StoredFile | None:
        """Return the stored file of media, fetched if it is not there yet; None if it cannot be had now."""
        if not is_fetchable(media):
            return None
        return await asyncio.shield(self._start(media, platform, place))

    async def fetch_all(
        self, wanted: Iterable[Media], platform: str, *, place: Place | None = None
    ) -> dict[str, StoredFile]:
        """Return the files of media by `file_key`. What takes too long is fetched on, for the next run."""
        tasks = {file_key(media): self._start(media, platform, place) for media in wanted if is_fetchable(media)}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._patience)
        ended = {key: task.result() for key, task in tasks.items() if task.done() and not task.cancelled()}
        if late := len(tasks) - len(ended):
            log.info("%d media are not here within %g seconds, and go in words", late, self._patience)
        return {key: file for key, file in ended.items() if file is not None}

    async def known_files(self, unique_ids: Collection[str]) -> dict[str, StoredFile | FetchFailure]:
        """Return the stored files by the unique ids of their media, and why others are not tried now."""
        found = await self._store.find(unique_ids)
        return {name: one for name, one in found.items() if isinstance(one, StoredFile) or not self._is_due(one)}

    @property
    def busy(self) -> bool:
        return bool(self._fetching)

    async def done(self) -> None:
        """Wait until no fetch is under way."""
        while self._fetching:
            await asyncio.wait(self._fetching.values())

    async def close(self) -> None:
        """Stop all fetches; the next run that wants them begins again."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)  # foreign code may ignore it

    def _start(self, media: Media, platform: str, place: Place | None) -> "asyncio.Task[StoredFile | None]":
        """Return the task that fetches media: the one under way, or a new one."""
        key = file_key(media)
        if key not in self._fetching:
            task = self._fetching[key] = asyncio.create_task(self._fetch_once(key, media, platform, place))
            task.add_done_callback(lambda ended: self._end(key, ended))
        return self._fetching[key]

    def _end(self, key: str, task: "asyncio.Task[StoredFile | None]") -> None:
        del self._fetching[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("media %s: %s", one_line(key), reason_of(error))

    async def _fetch_once(self, key: str, media: Media, platform: str, place: Place | None) -> StoredFile | None:
        known = (await self._store.find([key], at=self._now())).get(key)
        if isinstance(known, StoredFile):
            return known
        if known and not media.data and not self._is_due(known):
            return None
        if (media.size or 0) > self.largest and not media.data:
            log.debug("media %s are not fetched: they have %s bytes", one_line(key), media.size)
            return None
        try:
            async with self._turn(place), self._free:
                data = await self._bytes(media, platform)
                file = await checked_file(media, data, self._decoder)
        except MediaUnavailable as error:
            await self._remember(key, media, error, known)
            return None
        return await self._keep(key, data, file)

    def _is_due(self, failure: FetchFailure) -> bool:
        """Return whether media are tried again; later than a day from now is the time of a clock that was wrong."""
        if failure.retry_at is None:
            return False
        return not timedelta() < failure.retry_at - self._now() <= timedelta(seconds=LONGEST_RETRY)

    def _turn(self, place: Place | None) -> asyncio.Semaphore:
        """Return what limits the fetches for a place: it is there as long as somebody waits for it."""
        key = place.key if place else None
        return self._turns.setdefault(key, asyncio.Semaphore(AT_ONCE_OF_A_PLACE if place else AT_ONCE))

    async def _bytes(self, media: Media, platform: str) -> bytes:
        """Return the bytes of media; a fetch that takes too long is abandoned, also if it ignores that."""
        if media.data:
            if len(media.data) > MAX_FILE:
                raise MediaUnavailable(f"it has more than {MAX_FILE:,} bytes")
            return media.data
        fetching = asyncio.ensure_future(self._guarded_bytes(media, platform))
        try:
            await asyncio.wait([fetching], timeout=self._timeout)
        finally:
            fetching.cancel()
        data = fetching.result() if fetching.done() else MediaUnavailable(TOO_SLOW.format(self._timeout), for_now=True)
        if isinstance(data, MediaUnavailable):
            raise data
        if not isinstance(data, bytes):
            raise MediaUnavailable(f"the platform returned a {type(data).__name__}, not bytes", for_now=True)
        if len(data) > self.largest:
            raise MediaUnavailable(f"it has more than {self.largest:,} bytes")
        return data

    async def _guarded_bytes(self, media: Media, platform: str) -> object:
        """Return what foreign code returns; whatever it raises is a `MediaUnavailable`, which is returned."""
        try:
            return await self._foreign_bytes(media, platform)
        except MediaUnavailable as error:
            return error
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return MediaUnavailable("the platform cancelled it", for_now=True)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
            for_now = bool(getattr(error, "for_now", not isinstance(error, TertuliaError)))
            return MediaUnavailable(reason_of(error), for_now=for_now)

    async def _foreign_bytes(self, media: Media, platform: str) -> object:
        if media.file_id:
            platform = media.account or platform
            if platform not in self._platforms:
                raise MediaUnavailable(f"there is no platform {platform!r}", for_now=True)
            return await self._platforms[platform].fetch(media, limit=self.largest)
        found = await self._addresses.fetch(media.uri or "", limit=self.largest)
        return found.data

    async def _keep(self, key: str, data: bytes, file: StoredFile) -> StoredFile | None:
        """Store a file; where that fails its media go in words, and one line is logged until it works again."""
        try:
            stored = await self._store.add(key, data, file, at=self._now())
        except StoreBroken:
            raise
        except StoreTrouble as trouble:
            self._log_trouble(trouble)
            return None
        self._has_logged_trouble = False
        return stored

    async def _remember(
        self, key: str, media: Media, error: MediaUnavailable, before: StoredFile | FetchFailure | None
    ) -> None:
        failures = before.failures + 1 if isinstance(before, FetchFailure) else 1
        wait = backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
        retry_at = self._now() + timedelta(seconds=wait) if error.for_now else None
        again = f"; tried again in {wait:g} s" if error.for_now else ""
        log.info("%s %s goes in words: %s%s", media.kind_word, one_line(key), error, again)
        try:
            failure = FetchFailure(why=reason_of(error)[:500], failures=failures, retry_at=retry_at)
            await self._store.fail(key, failure, at=self._now())
        except StoreBroken:
            raise
        except StoreTrouble as trouble:
            self._log_trouble(trouble)

    def _log_trouble(self, trouble: StoreTrouble) -> None:
        if not self._has_logged_trouble:
            log.error("media go in words: %s", trouble)
        self._has_logged_trouble = True
