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
from tertulia.models.http import DONE, Http, ServiceClient
from tertulia.models.key_mask import Mask
from tertulia.models.notes import Notes
from tertulia.models.openai.decode import decode_error, decode_response, in_band_error, merge_chunks
from tertulia.models.openai.encode import encode_request, holds_audio, media_itself, media_receipts
from tertulia.models.openai.settings import sent_settings
from tertulia.models.openai.vendors import Vendor, for_model, vendor_named, vendor_of
from tertulia.models.stream import CallUnreadable, decode_stream
from tertulia.parts import Media, Part
from tertulia.turns import Prompt, Role, Turn
from tertulia.wire.repair import repair_prompt

MAX_ADDRESSES = 1_000  # that `AudioRefusals` remembers; beyond them the oldest is asked again
REFUSAL_SECONDS = 24 * 3600.0  # then it is asked again: a server may have loaded a model that takes audio

Ask = Callable[[Prompt, Vendor], AsyncGenerator[Part | Response, None]]


class AudioRefusals:
    """The addresses that refused audio, for a day; clients share `REFUSALS` unless they are given another."""

    def __init__(self, *, most: int = MAX_ADDRESSES, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._seen: dict[str, float] = {}  # address → when it refused, in that order

    def add(self, address: str) -> None:
        self._seen.pop(address, None)
        self._seen[address] = self._now()
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]

    def __contains__(self, address: str) -> bool:
        refused_at = self._seen.get(address)
        return refused_at is not None and self._now() - refused_at < REFUSAL_SECONDS

    def clear(self) -> None:
        self._seen.clear()


REFUSALS = AudioRefusals()


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
        refusals: AudioRefusals = REFUSALS,
    ) -> None:
        self.name = model
        self._refusals = refusals
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
        """Yield the answer. If an unknown service refuses a request with audio, send it again with words instead.

        If that works, the refusal is remembered for a day, for all models at the address.
        """
        sent = repair_prompt(prompt, self.name, wire="openai")
        vendor, started, refused = self._current_vendor(), False, False
        while True:
            try:
                async with aclosing(ask(sent, vendor)) as pieces:
                    async for piece in pieces:
                        started = True
                        if refused:
                            self._refusals.add(self._http.base_url)
                        yield piece
                return
            except (errors.RequestRefused, errors.ServiceFault) as error:
                if started or not _may_be_audio(error, sent, vendor):
                    raise
            vendor, refused = replace(vendor, audio="none"), True

    def _current_vendor(self) -> Vendor:
        """Return the vendor, without audio if its service has refused it."""
        known = self.vendor.audio == "unknown" and self._http.base_url in self._refusals
        return replace(self.vendor, audio="none") if known else self.vendor

    async def _whole(self, prompt: Prompt, vendor: Vendor) -> AsyncGenerator[Part | Response, None]:
        body = self._encode(prompt, vendor)
        try:
            if self._sdk:
                answer = await self._sdk.complete(body)
            else:
                answer = await self._http.json("POST", "/chat/completions", body=body, about=self.name)
            yield decode_response(self._read(answer), model=self.name)
        except CallUnreadable as error:
            yield Response(turn=Turn(role="model", parts=(), model=self.name), finish=error.finish)

    async def _stream(self, prompt: Prompt, vendor: Vendor) -> AsyncGenerator[Part | Response, None]:
        body = self._encode(prompt, vendor)[:-1] + b',"stream":true'
        body += b',"stream_options":{"include_usage":true}}' if self.vendor.usage_in_streams else b"}"
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


def _may_be_audio(error: errors.TertuliaError, prompt: Prompt, vendor: Vendor) -> bool:
    """Return whether a service may have refused a request because of the audio in it."""
    if isinstance(error, errors.ContextTooLong) or vendor.audio != "unknown" or not holds_audio(prompt, vendor):
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
