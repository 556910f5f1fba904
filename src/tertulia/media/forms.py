"""Forms: what a stored file becomes for a model that does not take it as it is. Each is made once, and stored.

A form is a smaller image, a still of an animation, a sound in another format, or the beginning of a text. A file that
cannot be decoded has no such form, and that is stored too.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from math import inf
from typing import Literal, Protocol
from weakref import WeakValueDictionary

from msgspec import Struct

from tertulia.errors import MediaUnreadable, StoreBroken, StoreTrouble
from tertulia.media.content_types import text_of
from tertulia.media.sent_forms import (
    DOCUMENT_CHARACTERS,
    SOUND_SECONDS,
    STILL_SIDE,
    is_beside_words,
    is_text,
    sent_as,
    with_facts,
)
from tertulia.media.stream_metadata import without_metadata
from tertulia.media.values import FileForm, MediaStore, StoredFile
from tertulia.parts import Media
from tertulia.turns import Role
from tertulia.wire.media_limits import PDF, MediaTaken, spelled

log = logging.getLogger(__name__)

SAVED = 0.3  # of the bytes; an image is made smaller only if that saves as much
LONGEST_SIDE = 2048  # pixels of an image whose type or size a model does not take
STICKER_SIDE = 512  # pixels
PAGES = 20  # of a PDF, as text
PAUSE = timedelta(minutes=10)  # after a form could not be made for a reason that may pass


class FormsDecoder(Protocol):
    """The part of `Decoder` that makes forms. Each method raises `MediaUnreadable`."""

    async def image(self, data: bytes, *, longest: int, mime: str = "image/jpeg") -> bytes: ...

    async def still(self, data: bytes, *, longest: int = 1024, mime: str = "image/jpeg") -> bytes: ...

    async def pages(self, data: bytes, *, most: int, characters: int) -> str: ...

    async def sound(self, data: bytes, *, seconds: int, mime: str = "audio/wav") -> bytes: ...


class Form(Struct, frozen=True, kw_only=True):
    """A form that a file may have."""

    how: Literal["itself", "image", "still", "sound", "text"]
    mime: str = "text/plain"
    longest: int = 0  # pixels of a side
    saves: bool = False  # it is used only if it saves enough
    beside_words: bool = False  # the words for it go too

    @property
    def name(self) -> str:
        """The name under which it is stored."""
        return " ".join(filter(None, (self.how, self.mime, str(self.longest or ""))))


TEXT = Form(how="text")


def candidates(media: Media, file: StoredFile, taken: MediaTaken, role: Role = "user") -> Iterator[Form]:
    """Yield the forms that a model may get, the best first. They depend on the file and the model alone."""
    kind = spelled(file.mime)
    itself = Form(how="itself", mime=kind)
    known = with_facts(media, file)
    form = sent_as(known, taken, role)
    if form == "words":
        return
    if role == "model":  # its signature is for these bytes, and it tells of nobody
        yield itself
    elif form == "picture" and kind.startswith("image/"):
        yield from _images(media, file, taken)
    elif form == "picture" and is_beside_words(known, form):
        yield Form(how="still", mime="image/jpeg", longest=STILL_SIDE, beside_words=True)
    elif form == "picture":
        yield Form(how="still", mime="image/png", longest=STICKER_SIDE)
    elif form == "sound":
        yield itself if taken.takes(kind) else Form(how="sound", mime="audio/mpeg")
    else:
        yield from [] if form == "text" else [itself]
        yield from [TEXT] if form in ("text", "document") else []


def _images(media: Media, file: StoredFile, taken: MediaTaken) -> Iterator[Form]:
    kind = spelled(file.mime)
    output = "image/jpeg" if kind in ("image/jpeg", "image/heic", "image/heif") else "image/png"
    moves = (file.frames or 1) > 1
    if kind == "image/gif" or moves:  # services look at its first picture, or refuse one that moves
        yield Form(how="still", mime="image/png", longest=LONGEST_SIDE)
    elif file.width and file.height:
        side = taken.seen_side(file.width, file.height)
        if side < max(file.width, file.height) or file.has_metadata:
            yield Form(how="image", mime=output, longest=side, saves=not file.has_metadata)
    if taken.takes(kind) and not file.has_metadata:  # where somebody lives is for no service
        yield Form(how="itself", mime=kind)  # one that moves too, where it cannot be decoded
    side = STICKER_SIDE if media.media_kind == "sticker" else LONGEST_SIDE
    yield Form(how="image", mime="image/jpeg", longest=side)


def is_useful(made: StoredFile, source: StoredFile, form: Form) -> bool:
    """Return whether a form is sent: it saves enough, if that is all that it is for."""
    return not form.saves or made.size <= source.size * (1 - SAVED)


class Forms:
    """Makes the forms of stored files, each once."""

    def __init__(self, store: MediaStore, decoder: FormsDecoder, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._decoder = decoder
        self._now = now
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._paused: dict[tuple[str, str], datetime] = {}  # forms that could not be made, until when

    async def read(self, sha256: str) -> bytes | None:
        """Return the bytes of a file; None if it is gone, or cannot be read now: no run waits for a file."""
        try:
            return await self._store.read(sha256, at=self._now())
        except StoreBroken:
            raise
        except StoreTrouble as trouble:
            log.error("a file goes in words: %s", trouble)
            return None

    async def content(self, file: StoredFile) -> bytes | None:
        """Return the bytes of a file as they are sent; None where they cannot be read.

        A text is sent in UTF-8, and a sound or video without what it says of itself.
        """
        data = await self.read(file.sha256)
        if data is None or not is_text(file.mime):
            return data and without_metadata(data, file.mime)
        return (text_of(data) or "").encode()

    async def file(self, source: StoredFile, form: Form, *, deadline: float = inf) -> StoredFile | None:
        """Return the file of a form; None if it cannot be made, or does not save enough.

        None is made that is not begun before the *deadline*, by the loop's clock: an answer waits.
        """
        if form.how == "itself":
            return source
        made = (await self._get(source, form, deadline)).file
        return made if made and is_useful(made, source, form) else None

    async def text(self, source: StoredFile, *, deadline: float = inf) -> str:
        """Return the beginning of a document; nothing if it has no text that can be read."""
        if spelled(source.mime) == PDF:
            return (await self._get(source, TEXT, deadline)).text
        return text_of(await self.read(source.sha256) or b"", DOCUMENT_CHARACTERS) or ""

    async def _get(self, source: StoredFile, form: Form, deadline: float) -> FileForm:
        key = source.sha256, form.name
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            known = await self._store.form(*key)
            if known is not None:
                return known
            until = self._paused.get(key)
            if until is not None and self._now() < until:
                return FileForm(failure="it failed a while ago")
            if asyncio.get_running_loop().time() > deadline:
                log.info("no %s of a file of %s yet: the answer waits no longer", form.name, source.mime)
                return FileForm(failure="there is no time for it now")
            data = await self.read(source.sha256)
            return FileForm(failure="the file is gone") if data is None else await self._make(data, source, form)

    async def _make(self, data: bytes, source: StoredFile, form: Form) -> FileForm:
        made: bytes | None = None
        try:
            if form.how == "text":
                text = await self._decoder.pages(data, most=PAGES, characters=DOCUMENT_CHARACTERS)
                result = FileForm(text=text)
            else:
                made = await self._decode(data, form)
                result = FileForm(file=StoredFile(sha256=sha256(made).hexdigest(), size=len(made), mime=form.mime))
        except MediaUnreadable as error:
            log.info("no %s of a file of %s: %s", form.name, source.mime, error)
            result = FileForm(failure=str(error))
            if error.for_now:
                self._pause(source, form)
                return result
        try:
            await self._store.add_form(source.sha256, form.name, result, data=made, at=self._now())
        except StoreBroken:
            raise
        except StoreTrouble as error:
            log.warning("a form of a file was not stored: %s", error)
            self._pause(source, form)
            return FileForm(text=result.text, failure=str(error))
        return result

    async def _decode(self, data: bytes, form: Form) -> bytes:
        match form.how:
            case "image":
                return await self._decoder.image(data, longest=form.longest, mime=form.mime)
            case "still":
                return await self._decoder.still(data, longest=form.longest, mime=form.mime)
            case _:
                return await self._decoder.sound(data, seconds=SOUND_SECONDS, mime=form.mime)

    def _pause(self, source: StoredFile, form: Form) -> None:
        now = self._now()
        self._paused = {key: until for key, until in self._paused.items() if now < until}
        self._paused[source.sha256, form.name] = now + PAUSE
