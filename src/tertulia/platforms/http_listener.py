"""HTTP listener: a socket that listens, a server that leaves signals to the program, connections within bounds."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar

from tertulia.errors import InvalidValue

TICK = 1.0  # seconds between two looks of the server at its clock


def listening(host: str, port: int, what: str) -> socket.socket:
    """Return a socket that listens; *what* it is for is named in the error. uvicorn would end the process instead."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = "the port is in use; name another" if error.errno == errno.EADDRINUSE else error.strerror or error
        raise InvalidValue(f"{what} cannot listen at {host}:{port}: {why}") from None


@asynccontextmanager
async def serving(
    app: Any, listener: socket.socket, *, connections: int, head_deadline: float, grace: float, **options: Any
) -> AsyncIterator["asyncio.Task[None]"]:
    """Serve an ASGI application on a socket until the block ends; yield the task of the server.

    A connection has *head_deadline* seconds for the head of a request. For one more than *connections*, the oldest
    whose request is not complete, or who does not read the answer, is closed: strangers who open many and send nothing
    lock nobody out. Requests under way have *grace* seconds at the end. Nothing is logged: neither addresses with what
    they hold nor odd requests.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave signals to the program."""
            yield

        async def main_loop(self) -> None:
            """Tick as the parent does, but once a second, and leave at once."""
            while not self.should_exit and not await self.on_tick(0):
                try:
                    async with asyncio.timeout(TICK):
                        await leaves.wait()
                except TimeoutError:
                    continue

    leaves = asyncio.Event()
    config = uvicorn.Config(
        app, http=_bounded_protocol(connections, head_deadline), interface="asgi3", lifespan="off", ws="none",
        backlog=connections, log_config=None, log_level="critical", access_log=False, proxy_headers=False,
        server_header=False, timeout_graceful_shutdown=int(grace), **options,
    )  # fmt: skip
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield task
    finally:
        server.should_exit = True
        leaves.set()
        await asyncio.wait([task])


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
                oldest = next((one for one in self.opened if one.is_idle), self)
                del self.opened[oldest]  # it is lost only in the next round of the event loop
                oldest.transport.abort()

        @property
        def is_idle(self) -> bool:
            return self.conn.their_state is not DONE or self.flow.write_paused

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
