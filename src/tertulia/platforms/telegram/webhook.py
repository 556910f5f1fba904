"""Webhook: Telegram posts each update to an address of ours. It gets its 200 once the update is stored."""

import asyncio
import hashlib
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tertulia.errors import InvalidValue, NotInstalled
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
    """Serve *app* at "host:port" until cancelled.

    A connection has *head_deadline* seconds for the head of a request. For one more than *connections*, the oldest
    whose request is not complete is closed: strangers who open many and send nothing lock nobody out.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > LAST_PORT:
        raise InvalidValue(f'listen must be "host:port", as "127.0.0.1:8443", not {listen!r}')
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise NotInstalled("a webhook needs a web server: pip install 'tertulia[webhook]'") from error

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave signals to the engine."""
            yield

    config = uvicorn.Config(  # odd requests of strangers are not logged
        app, http=_bounded_protocol(connections, head_deadline), interface="asgi3", lifespan="off", ws="none",
        backlog=connections, log_config=None, log_level="critical",
        timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    server = Server(config)
    with _listening(host.strip("[]"), int(port)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await asyncio.wait([serving])


def _bounded_protocol(most: int, head_deadline: float) -> Any:
    """Return the class of a connection, of which there are at most so many."""
    from h11 import DONE, IDLE
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(H11Protocol):
        opened: ClassVar[dict["Bounded", None]] = {}  # the oldest first
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.opened[self] = None
            self.watch_head()
            if len(self.opened) > most:
                oldest = next((one for one in self.opened if one.conn.their_state is not DONE), self)
                del self.opened[oldest]  # it is lost only in the next round of the event loop
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.opened.pop(self, None)
            if self.timer is not None:
                self.timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch_head()

        def watch_head(self) -> None:
            """Let the time run while the head of a request is not complete."""
            if self.conn.their_state is IDLE and self.timer is None:
                self.timer = self.loop.call_later(head_deadline, self.transport.abort)
            elif self.conn.their_state is not IDLE and self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return Bounded


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; uvicorn would end the process where it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidValue(f"the webhook cannot listen at {host}:{port}: {error}") from None


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
