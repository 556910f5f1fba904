"""Transcriber: what is said in a sound, by a service with OpenAI's `/audio/transcriptions`."""

import os
import re
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from tertulia import errors
from tertulia.models.calls import note_request
from tertulia.models.http import Http, ServiceClient
from tertulia.models.openai.decode import decode_error
from tertulia.models.openai.vendors import OPENAI, Vendor, vendor_named, vendor_of
from tertulia.parts import USUAL_MIME, Media

MAX_FORM = 25 * 2**20  # bytes of a request
SUFFIXES = {
    "audio/flac": "flac",
    "audio/x-flac": "flac",
    "audio/m4a": "m4a",
    "audio/x-m4a": "m4a",
    "audio/mp4": "m4a",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "application/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/webm": "webm",
    "video/mp4": "mp4",
    "video/mpeg": "mpeg",
    "video/webm": "webm",
}  # by which services tell the format: they read the name of a file, not its type


class Transcriber(ServiceClient):
    """`await Transcriber("whisper-1")(media)` returns what is said in a sound that has its bytes.

    Any service that speaks the format is called by `base_url=` or `vendor="groq"`.
    """

    def __init__(
        self,
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        vendor: str | Vendor | None = None,
        timeout: float | None = None,
    ) -> None:
        self.name = model
        self._key = key
        named = vendor_named(vendor) if isinstance(vendor, str) else vendor
        given = base_url or ("" if named else os.environ.get("TERTULIA_OPENAI_BASE_URL", ""))
        self.vendor = named or (vendor_of(model, given) if given else OPENAI)
        self._http = Http(
            given or self.vendor.base_url, headers=self._headers, decode_error=_decode_error, timeout=timeout
        )

    async def __call__(self, media: Media, *, language: str = "") -> str:
        """Return the words in a sound; *language* is a hint, as the tag of a language such as uk.

        Raise `InvalidValue` for what no service takes.
        """
        boundary = secrets.token_hex(16)
        body = _form(media, self.name, language, boundary)
        note_request(body)
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        answer = await self._http.json("POST", "/audio/transcriptions", body=body, headers=headers, about=self.name)
        text = answer.get("text") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise errors.ResponseUnreadable(f"{self.name} answered without a text")
        return text.strip()

    def _headers(self) -> dict[str, str]:
        names = self.vendor.key_names
        key = self._key or next((os.environ[name] for name in names if os.environ.get(name)), None)
        if key:
            return {"authorization": f"Bearer {key}"}
        if names and urlsplit(self._http.base_url).hostname not in {"127.0.0.1", "localhost", "::1"}:
            raise errors.KeyMissing(f"no key for {self.name}: set {' or '.join(names)}, or pass key= to Transcriber")
        return {}


def sound_type(media: Media) -> str:
    """Return the MIME type of a sound, without parameters; empty if no service transcribes it."""
    mime = (media.mime or USUAL_MIME.get(media.media_kind, "")).partition(";")[0].strip().lower()
    return mime if mime in SUFFIXES else ""


def _form(media: Media, model: str, language: str, boundary: str) -> bytes:
    mime = sound_type(media)
    if not mime:
        raise errors.InvalidValue(f"{media.mime or media.media_kind} is no sound that a service transcribes")
    if not media.data:
        raise errors.InvalidValue("the sound has no bytes: fetch it first")
    fields = {"model": model, "response_format": "json"}
    if re.fullmatch(r"[a-z]{2}", tag := language.lower().replace("_", "-").partition("-")[0]):
        fields["language"] = tag
    name = f"sound.{SUFFIXES[mime]}"
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {mime}\r\n\r\n'
    pieces = [
        *(f'Content-Disposition: form-data; name="{name}"\r\n\r\n{text}'.encode() for name, text in fields.items()),
        head.encode() + media.data,
    ]
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + piece + b"\r\n" for piece in pieces) + mark + b"--\r\n"
    if len(body) > MAX_FORM:
        raise errors.InvalidValue(f"the sound has {len(media.data):,} bytes; services take {MAX_FORM // 2**20} MB")
    return body


def _decode_error(status: int, body: bytes, headers: Mapping[str, str], about: str) -> errors.TertuliaError:
    return decode_error(status, body, headers, about=about)
