"""Rebuilt requests: the body of a call, made again of its stored prompt, its files and what the call remembers.

The same functions attach media, repair turns and encode as when it was sent. What they depended on besides the prompt
is stored with the call: how each medium went, how the service differs, whether it streamed, its cache. So the
body is the same, byte for byte, as long as the files are there and the program encodes as it did. The hash says so.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from functools import partial
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from tertulia.engine.limits import StoredCall
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import NothingToSend
from tertulia.media.attachments import WORDS, Attached, Escape, attached_turn
from tertulia.media.content_types import text_of
from tertulia.media.forms import TEXT, candidates
from tertulia.media.prompt_media import is_stored, media_in_turn, with_each_medium
from tertulia.media.sent_forms import DOCUMENT_CHARACTERS
from tertulia.media.stream_metadata import without_metadata
from tertulia.media.values import Handle, StoredFile
from tertulia.models.calls import SentMedia, SentRequest
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.parts import Media
from tertulia.prompt.escape import markup
from tertulia.run.journal import SentPrompt
from tertulia.turns import Prompt, Role, Turn
from tertulia.wire.media_limits import PDF, limits_of
from tertulia.wire.repair import repair_with_receipts

SAME = "as it was sent"


class RebuiltRequest(Struct, frozen=True, kw_only=True):
    """The body of a request, and whether it is the one that was sent."""

    body: bytes  # empty if it cannot be made
    is_same: bool
    why: str  # in words


async def rebuild_request(store: StoreProtocol, sent: SentPrompt, stored: StoredCall) -> RebuiltRequest:
    """Rebuild the request of a call of the step of *sent*."""
    call, request = stored.call, stored.call.request
    if request is None or not request.wire:
        return RebuiltRequest(body=b"", is_same=False, why="its client does not say what it sends")
    builder = _Builder(store, stored, sent.at)
    prompt = await builder.attach(sent.prompt)
    try:
        body = _encode(prompt, call.model, request)
    except NothingToSend as error:
        return RebuiltRequest(body=b"", is_same=False, why=str(error))
    if sha256(body).hexdigest() == request.sha256:
        return RebuiltRequest(body=body, is_same=True, why=SAME)
    why = builder.missing or "the program encodes otherwise since"
    return RebuiltRequest(body=body, is_same=False, why=f"not as it was sent: {why}")


def _encode(prompt: Prompt, model: str, request: SentRequest) -> bytes:
    if request.cached and request.cached != prompt.cached:
        rest = gemini.rest_of_prompt(prompt, model)
        prompt = replace(rest or prompt, cached=request.cached)
    if request.wire == "gemini":
        return gemini.encode_request(repair_with_receipts(prompt, model, wire="gemini")[0], model=model)
    legal, _ = repair_with_receipts(prompt, model, wire="openai")
    body = openai.encode_request(legal, model=model, vendor=request.vendor)
    return openai.as_stream(body, request.vendor) if request.streamed and request.vendor else body


class _Builder:
    """Attaches media to the prompt of one call in the forms in which they went."""

    def __init__(self, store: StoreProtocol, stored: StoredCall, at: datetime) -> None:
        self.missing = ""  # what is not there any more
        self._store = store
        self._stored = stored
        self._at = at

    async def attach(self, prompt: Prompt) -> Prompt:
        place = self._stored.place
        escape = partial(markup, delimiter=await self._store.place_settings.delimiter(place) if place else "")
        forms = iter(self._stored.call.media)
        prompt = with_each_medium(prompt, lambda media, _: _unless_words(media, next(forms, SentMedia())))
        forms = iter(self._stored.call.media)
        layers = []
        for layer in prompt.layers:
            turns = [await self._attach_turn(turn, forms, escape) for turn in layer.turns]
            layers.append(replace(layer, turns=tuple(turns)))
        return replace(prompt, layers=tuple(layers))

    async def _attach_turn(self, turn: Turn, forms: Iterator[SentMedia], escape: Escape) -> Turn:
        chosen: list[Attached] = []
        data: dict[str, bytes | None] = {}
        for media in media_in_turn(turn):
            form = next(forms, SentMedia())
            if is_stored(media):
                attached, content = await self._choice(media, form, turn.role)
                chosen.append(attached)
                if attached.inline:
                    data[attached.inline.sha256] = content
        return attached_turn(turn, chosen, data, escape) if chosen else turn

    async def _choice(self, media: Media, form: SentMedia, role: Role) -> tuple[Attached, bytes | None]:
        """Return what went for a stored medium, and the bytes of it."""
        if form.sha256:
            content = await self._content(media, form.sha256, role)
            if content is None:
                self.missing = f"the file of a {media.kind_word} is gone"
                return WORDS, None
            file = StoredFile(sha256=form.sha256, size=len(content), mime=form.mime or "")
            return Attached(inline=file, beside_words=form.beside_words), content
        if form.uri:
            mime, whose = form.mime or "", media.sha256 or ""
            handle = Handle(sha256=whose, account="", name="", uri=form.uri, mime=mime)
            return Attached(handle=handle, beside_words=form.beside_words), None
        if form.document is None:
            return WORDS, None
        return Attached(text=await self._text(media), is_whole=form.document == "whole"), None

    async def _content(self, media: Media, digest: str, role: Role) -> bytes | None:
        """Return the bytes with that hash: a file, or what is sent of one."""
        async for file in self._files(media, digest, role):
            data = await self._store.media.read(file.sha256, at=self._at)
            for content in _variants(data, file.mime) if data is not None else ():
                if sha256(content).hexdigest() == digest:
                    return content
        return None

    async def _files(self, media: Media, digest: str, role: Role) -> AsyncIterator[StoredFile]:
        """Yield the files of which a medium may have been sent."""
        known = await self._store.media.get({digest, media.sha256 or digest})
        for file in known.values():
            yield file
        source = known.get(media.sha256 or "")
        if source is None:
            return
        for form in candidates(media, source, limits_of(self._stored.call.model), role):
            made = await self._store.media.form(source.sha256, form.name)
            if made and made.file:
                yield made.file

    async def _text(self, media: Media) -> str:
        """Return the beginning of a document, as `Forms.text` does."""
        source = media.sha256 or ""
        made = await self._store.media.form(source, TEXT.name)
        known = await self._store.media.get({source})
        if made and known and known[source].mime == PDF:
            return made.text
        data = await self._store.media.read(source, at=self._at)
        if data is None:
            self.missing = "the file of a document is gone"
        return text_of(data or b"", DOCUMENT_CHARACTERS) or ""


def _unless_words(media: Media, form: SentMedia) -> Media:
    """Return media that went as a file, an address or the text of a document; others without their content."""
    return media if form.sha256 or form.uri or form.document else media.without_content()


def _variants(data: bytes, mime: str) -> Iterator[bytes]:
    """Yield in which forms the bytes of a file are sent."""
    yield data
    yield without_metadata(data, mime)
    if (text := text_of(data)) is not None:
        yield text.encode()
