"""A small web on loopback: a public host and an internal one, the names of both, and a record of every connection.

The fetcher under test is the real one, with its real checks. Only what lies behind a checked public address is moved:
the transport leads from there to the public server. A connection to any other address is made where it leads to
loopback, so that the internal server sees it, and refused where it would leave the machine.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Self

import httpx2

from tertulia.media.addresses import AddressFetcher

PUBLIC = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822")
UNREACHABLE = "93.184.216.35"
NAME = "photos.example"
FILE = b"\x89PNG a public file"
SECRET = b"an internal file"

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = FILE, *, status: str = "200 OK", length: bool = True, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if length:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body


def redirect(location: str, status: int = 302) -> bytes:
    return answer(b"", status=f"{status} Moved", location=location)


class Server:
    """An HTTP server of one answer per connection; it records what it is asked."""

    def __init__(self, default: bytes) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[list[str]] = []  # the lines of each head
        self.connections = 0
        self.port = 0
        self._default = default

    async def start(self, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
            self.requests.append(head)
            found = self.answers.get(head[0].split(" ")[1], answer(self._default))
            if isinstance(found, bytes):
                writer.write(found)
                await writer.drain()
            else:
                await found(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class Web:
    """The servers, the name servers, and the transport between the fetcher and them."""

    def __init__(self, *, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None) -> None:
        self.public, self.internal = Server(FILE), Server(SECRET)
        self.names: dict[str, Sequence[Sequence[str]]] = {NAME: [PUBLIC[:1]], "localhost": [("127.0.0.1",)]}
        self.resolved: list[str] = []
        self.connected: list[str] = []  # the addresses of all connections that were tried
        self._tls = tls

    async def __aenter__(self) -> Self:
        server, self._client = self._tls or (None, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._servers = [await self.public.start(server), await self.internal.start()]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    def fetcher(self, *, allowed: Sequence[str] = (), timeout: float = 30) -> AddressFetcher:
        return AddressFetcher(
            allowed=allowed, timeout=timeout, resolve=self.resolve, transport=lambda: Transport(self, self._client)
        )

    async def resolve(self, host: str, port: int) -> list[str]:
        """Resolve a name of this web, each time with its next answer, and numbers as the system does."""
        self.resolved.append(host)
        if answers := self.names.get(host):
            return list(answers[min(self.resolved.count(host), len(answers)) - 1])
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        return [str(address[0]) for *_, address in found]


class Transport(httpx2.AsyncBaseTransport):
    """Connects as the real transport does, to the public server for a public address."""

    def __init__(self, web: Web, tls: ssl.SSLContext) -> None:
        self._web = web
        self._real = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        self._web.connected.append(host)
        if host in PUBLIC:
            request.url = request.url.copy_with(host="127.0.0.1", port=self._web.public.port)
        elif not ip_address(host).is_loopback:
            raise httpx2.ConnectError("it would leave the machine")
        return await self._real.handle_async_request(request)

    async def aclose(self) -> None:
        await self._real.aclose()
