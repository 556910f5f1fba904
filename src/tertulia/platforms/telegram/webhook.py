"""Webhook: Telegram posts each update to an address of ours. It gets its 200 once the update is stored."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from tertulia.errors import InvalidValue, NotInstalled
from tertulia.platforms.http_listener import listening, serving
from tertulia.platforms.telegram.batches import update_number

log = logging.getLogger(__name__)

GRACE = 1  # seconds that a post under way may take when we stop; Telegram posts it again
LAST_PORT = 65_535
MAX_BODY = 4 * 2**20  # bytes of an update
MAX_CONNECTIONS = 100  # Telegram opens 40; far fewer than the descriptors of a process
HEAD_DEADLINE, BODY_DEADLINE = 10.0, 10.0  # seconds
_SECRET_HEADER = b"x-telegram-bot-api-secret-token"

Store = Callable[[int, bytes], Awaitable[None]]  # stores an update: its number and raw form


def secret_of(token: str) -> str:
    """Return the secret that Telegram sends with each update, the same in every process; it does not tell the token."""
    return hmac.new(token.encode(), b"tertulia webhook", hashlib.sha256).hexdigest()


class WebhookApp:
    """An ASGI application that takes updates at any path."""

    def __init__(self, secret: str, store: Store, *, body_deadline: float = BODY_DEADLINE) -> None:
        self._secret = secret.encode()
        self._store = store
        self._body_deadline = body_deadline

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status = await self._status(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: Any, receive: Any) -> int:
        """Store the update of a request; return the status of the response."""
        if scope["method"] != "POST":
            return 405
        given = next((value for name, value in scope["headers"] if name == _SECRET_HEADER), b"")
        if not hmac.compare_digest(given, self._secret):
            return 401
        try:
            async with asyncio.timeout(self._body_deadline):
                body = await _read_body(receive)
        except TimeoutError:
            return 408
        if body is None:
            return 413
        if (number := update_number(body)) is None:
            return 400
        try:
            await self._store(number, body)
        except Exception as error:  # noqa: BLE001 (Telegram posts it again)
            log.error("update %d is not stored, and comes again: %s", number, error)
            return 500
        return 200


async def serve(
    app: WebhookApp, listen: str, *, connections: int = MAX_CONNECTIONS, head_deadline: float = HEAD_DEADLINE
) -> None:
    """Serve *app* at "host:port" until cancelled."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > LAST_PORT:
        raise InvalidValue(f'listen must be "host:port", as "127.0.0.1:8443", not {listen!r}')
    try:
        import uvicorn  # noqa: F401 (asked for before it listens)
    except ModuleNotFoundError as error:
        raise NotInstalled("a webhook needs a web server: pip install 'tertulia[webhook]'") from error
    with listening(host.strip("[]"), int(port), "the webhook") as listener:
        async with serving(app, listener, connections=connections, head_deadline=head_deadline, grace=GRACE) as server:
            await asyncio.shield(server)


async def _read_body(receive: Any) -> bytes | None:
    """Return the body of a request; None for one that is too large, or that broke off."""
    body: bytes = b""
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        body += event.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not event.get("more_body"):
            return body
