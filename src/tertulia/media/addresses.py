"""Addresses of files: a URL from a message, a model or a tool is fetched only where that cannot harm us.

How it works: the name of the host is resolved once, and every address it resolves to is checked. The connection goes
to a checked address, never to the name, so no second answer of a name server matters. The `Host` header and the check
of the certificate stay with the name. Each redirect is a new address and goes the same way.

If one of several addresses is refused, the host is: who mixes public and private ones wants us to try the private one.
From https no redirect leads to http: what was asked for encrypted does not come unencrypted.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import cache
from ipaddress import IPv6Address
from ssl import SSLContext
from typing import Any
from urllib.parse import unquote

import httpx2
from msgspec import Struct

from tertulia.errors import MediaUnavailable
from tertulia.media.address_rules import AllowedAddress, is_public, is_web_port
from tertulia.media.file_names import safe_name

log = logging.getLogger(__name__)

TIMEOUT = 60.0  # seconds for everything: names, redirects, the whole body
FIRST_BYTE = 15.0  # seconds until the headers of an answer are there
MAX_REDIRECTS = 5
MAX_URL = 4_000  # characters
MAX_HEADERS = 32_768  # bytes of an answer's headers, which the client reads up to 160 KB of
MAX_TRIES = 4  # addresses of one host that are tried
USER_AGENT = "Mozilla/5.0 (compatible; Tertulia)"

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?|[0-9a-f]*:[0-9a-f:.]+")
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}")
_NAME_ENCODED = re.compile(r"filename\*\s*=\s*utf-8'[^']*'([^;\s]+)", re.IGNORECASE)
_NAME_PLAIN = re.compile(r'filename\s*=\s*(?:"([^"]+)"|([^";\s]+))', re.IGNORECASE)
_REDIRECTS = {301, 302, 303, 307, 308}
_RETRIED = {408, 425, 429}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TIMEOUTS = {"connect": 5.0, "read": FIRST_BYTE, "write": FIRST_BYTE, "pool": FIRST_BYTE}
_RESOLVERS = ThreadPoolExecutor(4, "tertulia-resolver")  # of its own: slow name servers block nobody else's threads

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Fetched(Struct, frozen=True, kw_only=True):
    data: bytes
    mime: str | None = None  # as the server says; the content may be something else
    name: str | None = None  # a safe one


class _Address(Struct, frozen=True, kw_only=True):
    """A URL in the parts that matter here."""

    scheme: str
    host: str
    port: int
    target: bytes  # path and query, as they are sent

    @property
    def path(self) -> str:
        return self.target.decode("ascii").partition("?")[0]

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> httpx2.URL:
        return httpx2.URL(f"{self.scheme}://{self.authority}").copy_with(raw_path=self.target)


class AddressFetcher:
    """Fetches files by URL. Raises `MediaUnavailable`, whose text may be shown to people.

    *allowed* are addresses that the owner configured: see `AllowedAddress`. They may be private; size and time are
    limited all the same.
    """

    def __init__(
        self,
        *,
        allowed: Collection[str] = (),
        timeout: float = TIMEOUT,
        resolve: Resolve | None = None,
        transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
    ) -> None:
        self._allowed = [AllowedAddress.of(one) for one in allowed]
        self._timeout = timeout
        self._resolve = resolve or resolve_host
        self._transport = transport or _direct_transport

    async def fetch(self, url: str, *, limit: int) -> Fetched:
        """Fetch a file of at most *limit* bytes."""
        address = _parse(url)
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(MAX_REDIRECTS + 1):
                    found = await self._fetch_one(address, limit)
                    if isinstance(found, Fetched):
                        return found
                    address = found
        except TimeoutError as error:
            raise MediaUnavailable(f"{address.host} did not send the file in time", for_now=True) from error
        raise MediaUnavailable(f"{address.host} redirects more than {MAX_REDIRECTS} times")

    async def _fetch_one(self, address: _Address, limit: int) -> "Fetched | _Address":
        """Fetch a file, or return the address that the server redirects to."""
        pinned = await self._checked(address)
        async with self._transport() as transport:
            try:
                async with asyncio.timeout(FIRST_BYTE):
                    response = await _first_answer(transport, address, pinned)
                async with aclosing(response):
                    if response.status_code in _REDIRECTS and "location" in response.headers:
                        return _redirect(address, response.headers["location"])
                    _check_headers(address, response, limit)
                    data = await _read(address, response, limit)
            except httpx2.TimeoutException as error:
                raise TimeoutError from error
            except httpx2.TransportError as error:
                log.info("%s not fetched from %s: %r", address.host, pinned, error)
                raise MediaUnavailable(f"{address.host} cannot be reached, or broke off", for_now=True) from error
        return Fetched(data=data, mime=_mime(response), name=_name(response, address))

    async def _checked(self, address: _Address) -> list[str]:
        """Resolve a host and return its addresses; raise MediaUnavailable unless all of them may be connected to.

        A host that does not exist and one that is private get the same answer: the names of a private network are
        nobody's business.
        """
        exempt = any(one.covers(address.scheme, address.host, address.port, address.path) for one in self._allowed)
        if not exempt and not is_web_port(address.port):
            raise MediaUnavailable(f"files are not fetched from port {address.port}")
        refusal = f"{address.host} is not the name of a public host"
        try:
            resolved = list(dict.fromkeys(await self._resolve(address.host, address.port)))
        except (OSError, UnicodeError) as error:
            log.info("%s not resolved: %s", address.host, error)
            raise MediaUnavailable(refusal, for_now=getattr(error, "errno", 0) == socket.EAI_AGAIN) from error
        if not resolved or not (exempt or all(is_public(one) and not is_own_address(one) for one in resolved)):
            log.info("%s not fetched: it resolves to %s", address.host, ", ".join(resolved) or "nothing")
            raise MediaUnavailable(refusal)
        return resolved


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host, as the system resolves it: also `127.1`, `0x7f.1` and other spellings."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(_RESOLVERS, socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_own_address(address: str) -> bool:
    """Return whether an address is one of this machine: what we would send from there is what we would send to.

    A public address of ours leads to services that a firewall hides from everybody else. Nothing is sent.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return bool(probe.getsockname()[0] == address)
    except OSError:  # there is no way to it
        return False


def _parse(url: str) -> _Address:
    """Return the parts of a URL; raise MediaUnavailable if it is none that is fetched."""
    try:
        parsed = httpx2.URL(url if len(url) <= MAX_URL else "")
        host = parsed.raw_host.decode("ascii").removesuffix(".")
        host = str(IPv6Address(host)) if ":" in host else host
    except (httpx2.InvalidURL, ValueError) as error:
        raise MediaUnavailable("this is no http or https address") from error
    if parsed.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(host):
        raise MediaUnavailable("this is no http or https address")
    if parsed.userinfo:
        raise MediaUnavailable("an address with a user name or a password is not fetched")
    port = _DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 0 < port < 65536:
        raise MediaUnavailable(f"files are not fetched from port {port}")
    return _Address(scheme=parsed.scheme, host=host, port=port, target=parsed.raw_path)


def _redirect(address: _Address, location: str) -> _Address:
    try:
        target = _parse(str(address.url.join(location)))
    except (httpx2.InvalidURL, ValueError) as error:
        raise MediaUnavailable(f"{address.host} redirects to no address") from error
    if address.scheme == "https" and target.scheme == "http":
        raise MediaUnavailable(f"{address.host} redirects to an unencrypted address")
    return target


async def _first_answer(
    transport: httpx2.AsyncBaseTransport, address: _Address, pinned: Sequence[str]
) -> httpx2.Response:
    """Ask the addresses of a host, one after another, until one can be connected to."""
    *others, last = pinned[:MAX_TRIES]
    for one in others:
        with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
            return await transport.handle_async_request(_request(address, one))
    return await transport.handle_async_request(_request(address, last))


def _request(address: _Address, pinned: str) -> httpx2.Request:
    """Make a request without anything of ours: no cookie, no key, no proxy; compressed files are not asked for."""
    headers = {
        "host": address.authority,
        "user-agent": USER_AGENT,
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
    }
    extensions: dict[str, Any] = {"sni_hostname": address.host, "timeout": _TIMEOUTS}
    return httpx2.Request("GET", address.url.copy_with(host=pinned), headers=headers, extensions=extensions)


def _check_headers(address: _Address, response: httpx2.Response, limit: int) -> None:
    """Raise MediaUnavailable if the answer is no file, is too large, or is compressed, which was not asked for."""
    status, length = response.status_code, response.headers.get("content-length", "")
    if status not in (200, 203):
        raise MediaUnavailable(f"{address.host} answered {status}", for_now=status >= 500 or status in _RETRIED)
    if sum(len(name) + len(value) for name, value in response.headers.raw) > MAX_HEADERS:
        raise MediaUnavailable(f"{address.host} sent headers of more than {MAX_HEADERS:,} bytes")
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise MediaUnavailable(f"{address.host} sent a compressed file, which was not asked for")
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(address, limit)


async def _read(address: _Address, response: httpx2.Response, limit: int) -> bytes:
    data = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > limit:
                raise _too_large(address, limit)
    return bytes(data)


def _too_large(address: _Address, limit: int) -> MediaUnavailable:
    return MediaUnavailable(f"the file at {address.host} has more than {limit:,} bytes")


def _mime(response: httpx2.Response) -> str | None:
    found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return found if _MIME.fullmatch(found) else None


def _name(response: httpx2.Response, address: _Address) -> str | None:
    """Return the name of a file: as the server says, else the end of the path."""
    said = response.headers.get("content-disposition", "")[:1_000]
    if found := _NAME_ENCODED.search(said):
        return safe_name(unquote(found[1]))
    if found := _NAME_PLAIN.search(said):
        return safe_name(found[1] or found[2])
    name = unquote(address.path.rpartition("/")[2])
    return safe_name(name) if name else None


def _direct_transport() -> httpx2.AsyncHTTPTransport:
    """Make the connections of one request: no proxy is used, no connection serves two names."""
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(verify=_certificates(), trust_env=False, limits=limits)


@cache
def _certificates() -> SSLContext:
    return httpx2.create_ssl_context()
