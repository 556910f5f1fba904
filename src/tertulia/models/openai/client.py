"""An OpenAI-compatible service as a model: chat completions over HTTP, or through the user's own SDK client."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from tertulia import errors
from tertulia.models.base import Response
from tertulia.models.calls import note_request
from tertulia.models.http import DONE, Http, ServiceClient
from tertulia.models.key_mask import Mask
from tertulia.models.notes import Notes
from tertulia.models.openai.decode import decode_error, decode_response, in_band_error, merge_chunks
from tertulia.models.openai.encode import as_stream, audio_types, encode_request, media_itself, media_receipts
from tertulia.models.openai.settings import sent_settings
from tertulia.models.openai.vendors import Audio, Vendor, for_model, vendor_named, vendor_of
from tertulia.models.stream import CallUnreadable, decode_stream
from tertulia.parts import Media, Part
from tertulia.turns import Prompt, Role, Turn
from tertulia.wire.repair import Receipt, repair_with_receipts

MAX_ADDRESSES = 1_000  # that `AudioForms` remembers; beyond them the oldest is asked again
FORM_SECONDS = 24 * 3600.0  # then it is asked as if nothing were known: a server may have loaded another model

Receipts = tuple[Receipt, ...]
Ask = Callable[[Prompt, Vendor, Receipts], AsyncGenerator[Part | Response, None]]


class AudioForms:
    """In which form addresses take audio that refused another, for a day; `none` if they took neither.

    Clients share `AUDIO_FORMS` unless they are given another.
    """

    def __init__(self, *, most: int = MAX_ADDRESSES, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._seen: dict[str, tuple[Audio, float]] = {}  # by address, and since when, in that order

    def add(self, address: str, form: Audio) -> None:
        self._seen.pop(address, None)
        self._seen[address] = form, self._now()
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]

    def get(self, address: str) -> Audio | None:
        """Return the form that is known of an address."""
        form, since = self._seen.get(address, (None, 0.0))
        return form if self._now() - since < FORM_SECONDS else None

    def clear(self) -> None:
        self._seen.clear()


AUDIO_FORMS = AudioForms()


class OpenAI(ServiceClient):
    """`OpenAI("gpt-5.6")`, or any service that speaks the format, by `base_url=` or `vendor="groq"`."""

    def __init__(
        self,
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        vendor: str | Vendor | None = None,
        timeout: float | None = None,
        client: Any = None,
        audio_forms: AudioForms = AUDIO_FORMS,
    ) -> None:
        self.name = model
        self._audio_forms = audio_forms
        self._key = key
        given = base_url or str(getattr(client, "base_url", "")) or os.environ.get("TERTULIA_OPENAI_BASE_URL") or ""
        named = vendor_named(vendor) if isinstance(vendor, str) else vendor
        self.vendor = for_model(named or vendor_of(model, given), model)
        address = given or self.vendor.base_url
        if not address and client is None:
            raise errors.InvalidValue(
                f"no address for {model!r}: pass base_url= or vendor=, or set TERTULIA_OPENAI_BASE_URL"
            )
        self._http = Http(address, headers=self._headers, decode_error=_decode_error, timeout=timeout)
        self._notes = Notes(f"{model} at {self._http.public_url}")
        self._sdk = None
        if client is not None:
            from tertulia.models.openai.sdk import OpenAISdkClient

            self._sdk = OpenAISdkClient(client)

    def takes(self, media: Media, role: Role) -> bool:
        return role == "user" and media_itself(media, self._current_vendor()) is not None

    async def respond(self, prompt: Prompt) -> Response:
        [response] = [piece async for piece in self._answer(prompt, self._whole)]
        assert isinstance(response, Response)  # noqa: S101 (`_whole` yields nothing else)
        return response

    def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield text and thoughts as they arrive, then the calls, then the Response."""
        return self._answer(prompt, self._stream)

    async def _answer(self, prompt: Prompt, ask: Ask) -> AsyncGenerator[Part | Response, None]:
        """Yield the answer. If an unknown service refuses a request with audio, send it in the other form, then as
        words.

        What works is remembered, for all models at the address.
        """
        sent, receipts = repair_with_receipts(prompt, self.name, wire="openai")
        vendor, started = self._current_vendor(), False
        others: list[Vendor] | None = None  # that are left to try
        while True:
            try:
                async with aclosing(ask(sent, vendor, receipts)) as pieces:
                    async for piece in pieces:
                        if not started and others is not None:
                            self._audio_forms.add(self._http.base_url, vendor.audio)
                        started = True
                        yield piece
                return
            except (errors.RequestRefused, errors.ServiceFault) as error:
                others = self._other_forms(sent, vendor) if others is None else others
                if started or not others or not _may_be_audio(error):
                    raise
            vendor = others.pop(0)

    def _other_forms(self, prompt: Prompt, first: Vendor) -> list[Vendor]:
        """Return in which other forms the audio of a prompt can go to an unknown service, words last."""
        tried = audio_types(prompt, first)
        if self.vendor.audio != "unknown" or not tried:
            return []
        forms: tuple[Audio, ...] = ("audio_url", "input_audio", "none")
        found = {tried: first}
        for vendor in (replace(self.vendor, audio=form) for form in forms):
            found.setdefault(audio_types(prompt, vendor), vendor)
        return [vendor for types, vendor in found.items() if types != tried]

    def _current_vendor(self) -> Vendor:
        """Return the vendor, with the form of audio that is known to work at its address."""
        known = self._audio_forms.get(self._http.base_url) if self.vendor.audio == "unknown" else None
        return replace(self.vendor, audio=known) if known else self.vendor

    async def _whole(self, prompt: Prompt, vendor: Vendor, receipts: Receipts) -> AsyncGenerator[Part | Response, None]:
        body = self._encode(prompt, vendor)
        note_request(body, wire="openai", receipts=receipts, vendor=vendor)
        try:
            if self._sdk:
                answer = await self._sdk.complete(body)
            else:
                answer = await self._http.json("POST", "/chat/completions", body=body, about=self.name)
            yield decode_response(self._read(answer), model=self.name)
        except CallUnreadable as error:
            yield Response(turn=Turn(role="model", parts=(), model=self.name), finish=error.finish)

    async def _stream(
        self, prompt: Prompt, vendor: Vendor, receipts: Receipts
    ) -> AsyncGenerator[Part | Response, None]:
        body = as_stream(self._encode(prompt, vendor), vendor)
        note_request(body, wire="openai", receipts=receipts, vendor=vendor, streamed=True)
        http = self._http.events("/chat/completions", body=body, about=self.name)
        events = self._sdk.stream(body) if self._sdk else http
        async for piece in decode_stream(
            events, read=self._read, respond=self._response, ended=_is_complete, mask=self._mask
        ):
            yield piece

    def _free_path(self) -> str:
        return "/key" if self.vendor.name == "openrouter" else "/models"  # whose list of models needs no key

    def _encode(self, prompt: Prompt, vendor: Vendor) -> bytes:
        self._notes.tell(receipt.action for receipt in media_receipts(prompt, vendor))
        self._notes.tell(sent_settings(prompt, self.name, vendor).notes)
        return encode_request(prompt, model=self.name, vendor=vendor)

    def _read(self, answer: Any) -> dict[str, Any]:
        """Return the object of an answer; raise an error that came with status 200."""
        if not isinstance(answer, dict):
            raise errors.ResponseUnreadable(f"{self.name} answered with no object")
        if answer.get("error"):
            raise in_band_error(answer, about=self.name)
        return answer

    def _response(self, chunks: list[dict[str, Any]]) -> Response:
        return decode_response(merge_chunks(chunks), model=self.name)

    def _mask(self) -> Mask:
        return (self._sdk or self._http).mask

    def _headers(self) -> dict[str, str]:
        names = self.vendor.key_names
        key = self._key or next((os.environ[name] for name in names if os.environ.get(name)), None)
        if key:
            return {"authorization": f"Bearer {key}"}
        if names and urlsplit(self._http.base_url).hostname not in {"127.0.0.1", "localhost", "::1"}:
            raise errors.KeyMissing(f"no key for {self.name}: set {' or '.join(names)}, or pass key= to OpenAI")
        return {}


def _may_be_audio(error: errors.TertuliaError) -> bool:
    """Return whether a service may have refused a request because of the audio in it."""
    if isinstance(error, errors.ContextTooLong):
        return False
    return isinstance(error, errors.RequestRefused) or "audio" in str(error) or "content" in str(error)


def _is_complete(chunks: list[dict[str, Any]]) -> bool:
    """Return whether a stream without a finish reason is complete: usage came after all choices, or `[DONE]` after
    usage.

    `[DONE]` alone proves nothing: proxies send it when the service broke off. SDKs do not show it.
    """
    last = chunks[-1]
    if last is DONE:
        return any(chunk.get("usage") for chunk in chunks)
    return bool(last.get("usage")) and not last.get("choices")


def _decode_error(status: int, body: bytes, headers: Mapping[str, str], about: str) -> errors.TertuliaError:
    return decode_error(status, body, headers, about=about)
