"""Gemini as a model: answers, token counts, embeddings, caches and files, over HTTP or the user's SDK client."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from tertulia import errors
from tertulia.jsonio import dumps, object_or_empty
from tertulia.models.base import File, Response
from tertulia.models.calls import note_request
from tertulia.models.gemini.cache_values import Cache
from tertulia.models.gemini.decode import (
    decode_cache,
    decode_caches,
    decode_count,
    decode_error,
    decode_file,
    decode_response,
    decode_vectors,
    merge_chunks,
    unreadable_without,
)
from tertulia.models.gemini.encode import encode_cache, encode_request, setting_notes
from tertulia.models.http import Http, ServiceClient
from tertulia.models.key_mask import Mask
from tertulia.models.notes import Notes
from tertulia.models.stream import decode_stream
from tertulia.parts import Media, Part
from tertulia.turns import Prompt, Role
from tertulia.wire.part_forms import is_sent_to_gemini
from tertulia.wire.repair import repair_with_receipts

BASE_URL = "https://generativelanguage.googleapis.com"
_UPLOAD_CHUNK = 8 * 1024 * 1024
_EMBED_BATCH = 100
_LISTED = 1000  # caches of a page


class Gemini(ServiceClient):
    """`Gemini("gemini-3.8-flash")`; the key comes from GEMINI_API_KEY or GOOGLE_API_KEY unless given."""

    def __init__(
        self,
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        api_version: str = "v1beta",
        timeout: float | None = None,
        client: Any = None,
    ) -> None:
        self.name = model.removeprefix("models/")
        self._key = key
        self._version = api_version
        self._http = Http(
            base_url or os.environ.get("TERTULIA_GEMINI_BASE_URL") or BASE_URL,
            headers=self._headers,
            decode_error=_decode_error,
            timeout=timeout,
        )
        self._notes = Notes(self.name)
        self._sdk = None
        if client is not None:
            from tertulia.models.gemini.sdk import GeminiSdkClient

            self._sdk = GeminiSdkClient(client)

    def takes(self, media: Media, _: Role) -> bool:
        return is_sent_to_gemini(media)

    async def respond(self, prompt: Prompt) -> Response:
        body = self._encode(prompt, streamed=False)
        if self._sdk:
            return decode_response(await self._sdk.generate(self.name, body), model=self.name)
        answer = await self._http.json("POST", self._method("generateContent"), body=body, about=self.name)
        return decode_response(self._read(answer), model=self.name)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        """Yield text, thoughts and media as they arrive, then the calls, then the Response."""
        body = self._encode(prompt, streamed=True)
        path = f"{self._method('streamGenerateContent')}?alt=sse"
        events = self._sdk.stream(self.name, body) if self._sdk else self._http.events(path, body=body, about=self.name)
        async for piece in decode_stream(events, read=self._read, respond=self._response, mask=self._mask):
            yield piece

    async def count_tokens(self, prompt: Prompt) -> int:
        """Let the service count the tokens of a prompt, with its instruction and tools."""
        request = b'{"model":%b,%b' % (dumps(f"models/{self.name}"), self._encode(prompt, streamed=False)[1:])
        body = b'{"generateContentRequest":%b}' % request
        answer = await self._http.json("POST", self._method("countTokens"), body=body, about=self.name)
        return decode_count(answer)

    async def embed(
        self, texts: Sequence[str], *, task: str | None = None, dimensions: int | None = None
    ) -> list[list[float]]:
        """Return the vector of each text, in order."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _EMBED_BATCH):
            batch = [self._embed_request(text, task, dimensions) for text in texts[start : start + _EMBED_BATCH]]
            body = dumps({"requests": batch})
            note_request(body)
            answer = await self._http.json("POST", self._method("batchEmbedContents"), body=body, about=self.name)
            vectors.extend(decode_vectors(answer, len(batch)))
        return vectors

    async def create_cache(self, prompt: Prompt, *, ttl: int = 3600, label: str = "") -> Cache:
        """Create a cache of the instruction, tools and turns of a prompt; it expires after *ttl* seconds.

        The *label* is its display name, of at most 128 characters.
        """
        body = encode_cache(prompt, model=self.name, ttl=ttl, label=label)
        return decode_cache(
            await self._http.json("POST", f"/{self._version}/cachedContents", body=body, about=self.name)
        )

    async def list_caches(self) -> list[Cache]:
        """Return the caches of the account."""
        caches: list[Cache] = []
        token = ""
        while True:
            path = f"/{self._version}/cachedContents?pageSize={_LISTED}{f'&pageToken={quote(token)}' if token else ''}"
            page, following = decode_caches(await self._http.json("GET", path, about="cachedContents"))
            caches += page
            if not page or following in ("", token):
                return caches
            token = following

    async def delete_cache(self, name: str) -> None:
        await self._http.send("DELETE", f"/{self._version}/{name}", about=name)

    @property
    def account(self) -> str:
        """The host and a digest of the key; empty without a key, and with an SDK client, whose key is not known."""
        key = self._find_key()
        if self._sdk or not key:
            return ""
        return f"gemini:{urlsplit(self._http.public_url).netloc}:{sha256(f'account {key}'.encode()).hexdigest()[:16]}"

    async def upload(self, data: bytes, *, mime: str, title: str = "", name: str = "", wait: float = 300.0) -> File:
        """Upload a file, and wait at most *wait* seconds until the service has processed it.

        With a *name* (`files/…`, at most 40 letters, digits and dashes) it is uploaded once: if the account has a file
        of this name, type and size, that is returned. Another file of this name raises `FileExists`.
        """
        try:
            file = await self._upload(data, mime=mime, title=title, name=name)
        except (errors.FileExists, errors.FileGone, errors.KeyRefused) as error:
            if not name:
                raise
            same = await self._existing_file(name, mime, len(data))  # the name may be another account's
            if same is None and isinstance(error, errors.KeyRefused):
                raise
            if same is None:
                raise errors.FileExists(f"another file has the name {name}") from error
            file = same
        file = await self._wait_until_processed(file, wait)
        if file.state == "FAILED":
            raise errors.FileGone(f"{file.name}: the service could not read the file", file=file.name)
        return file

    async def _existing_file(self, name: str, mime: str, size: int) -> File | None:
        """Return the file of this name if it is ours and the same."""
        try:
            file = await self.get_file(name)
        except (errors.FileGone, errors.KeyRefused):
            return None
        return file if (file.mime, file.size) == (mime, size) and file.state != "FAILED" else None

    async def _upload(self, data: bytes, *, mime: str, title: str, name: str = "") -> File:
        start = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": mime,
        }
        wanted = {"name": name, "displayName": title}
        body = dumps({"file": {field: value for field, value in wanted.items() if value}})
        opened = await self._http.send("POST", f"/upload/{self._version}/files", body=body, headers=start)
        return await self._upload_chunks(_upload_url(opened), data)

    def is_own_file(self, uri: str) -> bool:
        """Return whether *uri* is that of a file here; a proxy gives those of Google."""
        return any(
            re.fullmatch(rf"{re.escape(base)}/v\d\w*/files/[\w-]+", uri) for base in (self._http.public_url, BASE_URL)
        )

    async def get_file(self, name: str) -> File:
        return decode_file(await self._http.json("GET", f"/{self._version}/{name}", about=name))

    async def delete_file(self, name: str) -> None:
        await self._http.send("DELETE", f"/{self._version}/{name}", about=name)

    async def _wait_until_processed(self, file: File, wait: float) -> File:
        try:
            async with asyncio.timeout(wait):
                while file.state == "PROCESSING":
                    await asyncio.sleep(1.0)
                    file = await self.get_file(file.name)
        except TimeoutError as error:
            raise errors.TimedOut(f"{file.name} was not ready after {wait:g} s") from error
        return file

    async def _upload_chunks(self, url: str, data: bytes) -> File:
        answer = httpx2.Response(200)
        for offset in range(0, max(len(data), 1), _UPLOAD_CHUNK):
            chunk = data[offset : offset + _UPLOAD_CHUNK]
            last = offset + len(chunk) >= len(data)
            headers = {
                "x-goog-upload-command": "upload, finalize" if last else "upload",
                "x-goog-upload-offset": str(offset),
                "content-type": "application/octet-stream",
            }
            answer = await self._http.send("POST", url, body=chunk, headers=headers)
        return _uploaded_file(answer)

    async def check_model(self) -> None:
        await self._http.json("GET", f"/{self._version}/models/{self.name}", about=self.name)

    def _free_path(self) -> str:
        return f"/{self._version}/models?pageSize=1"

    def _encode(self, prompt: Prompt, *, streamed: bool) -> bytes:
        self._notes.tell(setting_notes(prompt, model=self.name))
        legal, receipts = repair_with_receipts(prompt, self.name, wire="gemini")
        body = encode_request(legal, model=self.name)
        note_request(body, wire="gemini", receipts=receipts, streamed=streamed, cached=prompt.cached)
        return body

    def _method(self, name: str) -> str:
        path = self.name if "/" in self.name else f"models/{self.name}"
        return f"/{self._version}/{path}:{name}"

    def _embed_request(self, text: str, task: str | None, dimensions: int | None) -> dict[str, Any]:
        request: dict[str, Any] = {"model": f"models/{self.name}", "content": {"parts": [{"text": text}]}}
        if task:
            request["taskType"] = task
        if dimensions:
            request["outputDimensionality"] = dimensions
        return request

    def _read(self, answer: Any) -> dict[str, Any]:
        """Return the object of an answer, also from a list of one; raise an error that came with status 200."""
        found = answer[0] if isinstance(answer, list) and answer else answer
        if not isinstance(found, dict):
            raise errors.ResponseUnreadable(f"{self.name} answered with no object")
        if found.get("error"):
            code = object_or_empty(found["error"]).get("code")
            raise decode_error(code if isinstance(code, int) else 500, dumps(found), about=self.name)
        return found

    def _response(self, chunks: list[dict[str, Any]]) -> Response:
        return decode_response(merge_chunks(chunks), model=self.name)

    def _mask(self) -> Mask:
        return (self._sdk or self._http).mask

    def _find_key(self) -> str | None:
        return self._key or os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")

    def _headers(self) -> dict[str, str]:
        key = self._find_key()
        if not key:
            raise errors.KeyMissing(f"no key for {self.name}: set GEMINI_API_KEY, or pass key= to Gemini")
        return {"x-goog-api-key": key}


def _decode_error(status: int, body: bytes, _: Mapping[str, str], about: str) -> errors.TertuliaError:
    return decode_error(status, body, about=about)


@unreadable_without("address to upload to")
def _upload_url(response: httpx2.Response) -> str:
    return response.headers["x-goog-upload-url"]


@unreadable_without("file")
def _uploaded_file(response: httpx2.Response) -> File:
    return decode_file(response.json()["file"])
