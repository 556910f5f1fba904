"""HTTP client of a service: JSON out, JSON or server-sent events in, failures as our errors."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from tertulia import errors
from tertulia.jsonio import loads
from tertulia.models.key_mask import NO_MASK, Mask, mask_for, secrets_in

TIMEOUT = httpx2.Timeout(600.0, connect=10.0)  # models may think for minutes; an unreachable host is noticed soon

MAX_BODY_BYTES = 256 * 2**20  # of an answer, decompressed: it may hold media
MAX_REFUSAL_BYTES = 2**20  # of an error response
DONE: dict[str, Any] = {}  # the event that `[DONE]` becomes
_ENCODING_HEADERS = {
    "content-encoding",
    "content-length",
    "transfer-encoding",
}  # they describe the body before it was decompressed

DecodeError = Callable[[int, bytes, Mapping[str, str], str], errors.TertuliaError]


class ResponseTooLarge(errors.ResponseUnreadable):
    """An answer is larger than the limit."""


class Http:
    """Sends requests to one service: its base URL, the headers with our key, and the decoder of its errors."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Callable[[], dict[str, str]],
        decode_error: DecodeError,
        timeout: float | httpx2.Timeout | None = None,
        limit: int = MAX_BODY_BYTES,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.public_url = public_url(self.base_url)  # without user, password and query, for error texts
        self._headers = headers  # called for each request: a key may be set late, or change
        self._decode_error = decode_error
        self._timeout = TIMEOUT if timeout is None else timeout
        self._limit = limit
        self.mask = NO_MASK  # masks the keys of the last request
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_reached = False  # the service has answered before

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()  # a pool of another loop cannot be closed from here

    async def json(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        about: str = "",
    ) -> Any:
        """Send a request and decode its JSON answer; *about* names the model or the resource in an error."""
        response = await self.send(method, path, body=body, headers=headers, about=about)
        return loads(response.content) if response.content else {}

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        about: str = "",
    ) -> httpx2.Response:
        """Send a request and read its whole answer. A full URL as *path* goes to another host, without the key."""
        async with self._open(method, path, body, headers, about) as (response, mask):
            content = mask(b"".join([piece async for piece in self._read_body(response)]))
        unpacked = {name: value for name, value in response.headers.items() if name not in _ENCODING_HEADERS}
        return httpx2.Response(response.status_code, headers=unpacked, content=content)

    async def events(self, path: str, *, body: bytes, about: str = "") -> AsyncGenerator[dict[str, Any], None]:
        """Yield the objects of a stream of server-sent events, until its end or `[DONE]`, which becomes `DONE`."""
        async with self._open("POST", path, body, None, about) as (response, mask):
            async for event_data in read_events(self._read_body(response)):
                data = mask(event_data)
                if data == b"[DONE]":
                    yield DONE
                    return
                found = loads(data)
                for event in found if isinstance(found, list) else [found]:
                    if not isinstance(event, dict):
                        raise errors.ResponseUnreadable(f"an event of the stream is no object: {data[:200]!r}")
                    yield event

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None, about: str
    ) -> AsyncIterator[tuple[httpx2.Response, Mask]]:
        """Open a response with a good status, and the mask of our keys; raise any other as our error."""
        elsewhere = path.startswith(("http://", "https://"))
        url = path if elsewhere else f"{self.base_url}{path}"
        keys = {name: value.strip() for name, value in self._headers().items()}
        sent = {"content-type": "application/json", **({} if elsewhere else keys), **(headers or {})}
        for name, value in sent.items():
            if not (value.isascii() and value.isprintable()):
                raise errors.InvalidValue(f"the header {name} holds characters that no header can carry")
        mask = self.mask = mask_for(secrets_in(keys, self.base_url))
        try:
            async with self._connection().stream(method, url, content=body, headers=sent) as response:
                self._was_reached = True
                if response.status_code >= 300:
                    answer = mask(await _read_refusal(response))
                    raise self._decode_error(response.status_code, answer, response.headers, about)
                yield response, mask
        except httpx2.TimeoutException as error:
            raise errors.TimedOut(f"no answer in time from {self.public_url}") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise errors.InvalidValue(
                f"the base URL {self.public_url!r} is not one that can be called: {mask.error(error)}"
            ) from error
        except httpx2.DecodingError as error:
            raise errors.ResponseUnreadable(
                f"{self.public_url} sent what cannot be unpacked: {mask.error(error)}"
            ) from error
        except httpx2.TransportError as error:
            reason = str(mask.error(error)) or type(error).__name__
            if not self._was_reached and _is_unresolved(error):
                raise errors.HostUnknown(
                    f"{self.public_url} cannot be found ({reason}); is there a network, and is the address right?"
                ) from error
            raise errors.ConnectionLost(
                f"no connection to {self.public_url}, or it broke off ({reason}); "
                "is the service up, and the address right?"
            ) from error

    async def _read_body(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the decompressed body as it arrives; raise ResponseTooLarge beyond the limit."""
        taken = 0
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                taken += len(piece)
                if taken > self._limit:
                    raise ResponseTooLarge(f"{self.public_url} sent more than the {self._limit} bytes that are read")
                yield piece

    def _connection(self) -> httpx2.AsyncClient:
        """Return the connection pool of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = httpx2.AsyncClient(timeout=self._timeout)
            self._loop = loop
        return self._client


class ServiceClient:
    """A model with an HTTP client: `async with` it, or call `aclose` when done."""

    _http: Http

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def check_key(self) -> None:
        """Ask the service for something that costs nothing; raise `KeyRefused` if it does not accept the key."""
        await self._http.json("GET", self._free_path())

    async def check_model(self) -> None:
        """Raise `KeyRefused` for a refused key, and `ModelUnknown` where the service can say so; it costs nothing."""
        with suppress(errors.ModelUnknown):  # a server without a list of models
            await self.check_key()

    def _free_path(self) -> str:
        """Return the path of a request that costs nothing and needs a key."""
        return "/models"


def public_url(base_url: str) -> str:
    """Return the URL without user, password and query; raise InvalidValue if it is none."""
    try:
        parts = urlsplit(base_url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise errors.InvalidValue(f"the base URL is not one that can be called: {error}") from error
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}" if parts.scheme else base_url


def _is_unresolved(error: BaseException | None) -> bool:
    """Return whether the name of a host could not be resolved."""
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


async def _read_refusal(response: httpx2.Response) -> bytes:
    """Read the first megabyte of an error response."""
    read = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            read += piece
            if len(read) > MAX_REFUSAL_BYTES:
                break
    return bytes(read[:MAX_REFUSAL_BYTES])


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each server-sent event.

    By hand, because the reader of httpx drops a last event without its blank line, and refuses a body that a server
    sends as plain JSON although a stream was requested.
    """
    data: list[bytes] = []
    async for line in _lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            data.append(line)
        elif not line:
            if any(data):
                yield b"\n".join(data)
            data = []
    if any(data):
        yield b"\n".join(data)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream; the last one need not end."""
    rest: list[bytes] = []  # of an unfinished line, which may have megabytes
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for following in others:
            yield _strip_line(b"".join(rest))
            rest = [following]
    yield _strip_line(b"".join(rest))


def _strip_line(line: bytes) -> bytes:
    return line.rstrip(b"\r").removeprefix(b"\xef\xbb\xbf")
