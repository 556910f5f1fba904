"""Guard of the page: what stands before every request, and the headers of every response.

A request is refused before anything is done for it

- by another client than the named proxies, where there are any;
- for a host that is not ours: a foreign name may have been pointed at this address (DNS rebinding);
- that writes, and that a browser did not send for our own page: `Origin` and `Sec-Fetch-Site` say so;
- that reads the API for a foreign page.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from tertulia.jsonio import dumps
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import Refusal

Scope = MutableMapping[str, Any]

POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
))  # fmt: skip
WITH_MICROPHONE = "camera=(), geolocation=(), microphone=(self)"  # of a room, where people record what they say
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
READS = ("GET", "HEAD")
HEALTH = "/health"  # one word, for whoever asks: balancers know no name of ours

FOREIGN_CLIENT = Refusal(status=403, why="this page is reached by its proxy alone")
FOREIGN_HOST = Refusal(status=421, why="this page has another name: web.hosts lists those it answers to")
FOREIGN_PAGE = Refusal(status=403, why="this was not sent by the page itself: Origin or Sec-Fetch-Site must say so")


class Guard:
    """An ASGI application around the page's own."""

    def __init__(self, app: Callable[..., Any], address: PageAddress) -> None:
        self._app = app
        self._address = address

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        async def send_with_headers(event: MutableMapping[str, Any]) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": _with_defaults(event["headers"])}
            await send(event)

        if refused := _refusal(scope, self._address):
            await respond_with_error(send_with_headers, refused)
        else:
            await self._app(scope, receive, send_with_headers)


async def respond_with_error(send: Any, refused: Refusal) -> None:
    """Send an error as JSON."""
    body = dumps({"error": refused.why})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _refusal(scope: Scope, address: PageAddress) -> Refusal | None:
    """Return why nothing is done for a request."""
    if scope["path"] == f"{address.path}{HEALTH}":
        return None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "").lower()
    client, _ = scope["client"] or ("", 0)
    if not address.forwards(client):
        return FOREIGN_CLIENT
    if _without_port(host) not in address.names:
        return FOREIGN_HOST
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if scope["method"] in READS:
        is_api = scope["path"].startswith((f"{address.path}/api", f"{address.path}/metrics"))
        return FOREIGN_PAGE if is_api and site not in (None, "same-origin", "none") else None
    if origin is None and site is None:
        return FOREIGN_PAGE
    is_ours = origin is None or origin.lower() == f"{address.scheme}://{host}"
    return None if is_ours and site in (None, "same-origin") else FOREIGN_PAGE


def _without_port(host: str) -> str:
    """`127.0.0.1:8765` is at 127.0.0.1."""
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def _with_defaults(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with those that it has not set itself."""
    given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
    known = {name for name, _ in given}
    return [*given, *((name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known)]
