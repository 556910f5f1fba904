"""A simulator as an HTTP server: it records requests, injects faults and asks a service for the responses."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, Generic, Protocol, Self, TypeVar

import orjson
import uvicorn
from msgspec import Struct
from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope, Send

from tertulia.errors import InvalidValue
from tertulia.sim.errors import FAULT, ServiceError, Wire
from tertulia.sim.faults import AnyFault, FaultQueue, Hang, Kinds, Rejection

F = TypeVar("F", bound=AnyFault)

START = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
KEEP_ALIVE = 75  # seconds that an idle connection stays open: longer than clients keep theirs, so that none is cut off
GRACE = 1  # seconds that answers under way have left when the server stops
CLIENT_LEFT = 499  # recorded when nobody waits for the response any more


class Clock:
    """A clock that stands still unless *source* runs, and that can be advanced."""

    def __init__(self, source: Callable[[], float] | None = None) -> None:
        self._source = source or (lambda: START)
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._source() + self._ahead

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self._ahead += seconds


class HttpRequest(Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    path: str
    url: str  # the scheme and the host
    query: dict[str, str]
    headers: dict[str, str]
    data: bytes


class HttpResponse(Struct, frozen=True, kw_only=True):
    """An HTTP response in frames. If *cut*, it does not end, so the server drops the connection."""

    status: int
    headers: Mapping[str, str]
    frames: tuple[bytes, ...]
    cut: bool = False

    async def send(self, send: Send, headers: Mapping[str, str]) -> None:
        fields = [(name.lower().encode(), value.encode()) for name, value in {**headers, **self.headers}.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": fields})
        for frame in self.frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            await asyncio.sleep(0)
        if not self.cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def whole_response(body: bytes, *, status: int = 200, headers: Mapping[str, str], cut: bool = False) -> HttpResponse:
    """Return a response with a content length. With *cut*, only half of the body is sent: a fault."""
    fields = {"content-length": str(len(body)), **headers}
    return HttpResponse(status=status, headers=fields, frames=(body[: len(body) // 2] if cut else body,), cut=cut)


def stream(frames: Iterable[bytes], *, headers: Mapping[str, str], cut: bool = False) -> HttpResponse:
    """Return a response in chunks."""
    return HttpResponse(status=200, headers=headers, frames=tuple(frames), cut=cut)


class Received(Struct, kw_only=True):
    """A recorded request, without its key."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any  # the JSON value, or the text that is none
    status: int = 0  # until it is answered
    rule: str = ""  # the rule that refused it


class Route(Struct, frozen=True):
    """The handler of a request: *respond* answers it, unless a fault of *faults* is queued."""

    respond: Callable[[Any], HttpResponse]
    faults: Kinds = ()
    model: str = ""


class ServiceBackend(Protocol):
    """A service behind a simulator; it raises `ServiceError` for what it refuses."""

    secrets: frozenset[str]  # names of headers and parameters that are not recorded
    faults: Kinds  # those it has a form for

    def route(self, request: HttpRequest) -> Route:
        """Check path, key and model."""
        ...

    def rejection(self, fault: Rejection, model: str) -> ServiceError:
        """Return the error that *fault* stands for."""
        ...

    def error_response(self, request: HttpRequest, error: ServiceError) -> HttpResponse: ...

    def headers(self) -> Wire:
        """Return the headers of the next response, whatever it is."""
        ...


class Simulator(Generic[F]):
    """Serves one service at `url` while the `async with` block runs."""

    def __init__(
        self, service: ServiceBackend, *, clock: Clock, host: str, port: int, tell: Callable[[Received], None] | None
    ) -> None:
        self.clock = clock
        self.requests: list[Received] = []
        self._service = service
        self._served = Served(self._serve, host=host, port=port)
        self._tell = tell
        self._faults = FaultQueue[F]()
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._served.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await self._served.__aexit__()

    @property
    def url(self) -> str:
        """The base URL to give to clients."""
        return self._served.url

    def fail(self, fault: F, times: int = 1) -> None:
        """Inject *fault* into the next *times* requests that it fits."""
        if not isinstance(fault, self._service.faults):
            raise InvalidValue(f"{type(self).__name__} has no fault {type(fault).__name__}")
        self._faults.add(fault, times)

    async def until(self, ready: Callable[[list[Received]], bool]) -> None:
        """Wait until *ready* is true of `requests`; it is asked when a request arrives and when it is answered."""
        while not ready(self.requests):
            await self._news.wait()

    def stop(self) -> None:
        """End `forever`."""
        self._served.stop()

    async def forever(self) -> None:
        """Serve until the server is stopped."""
        await self._served.forever()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = StarletteRequest(scope, receive)
        request = HttpRequest(
            method=http.method,
            path=http.url.path,
            url=f"{http.url.scheme}://{http.headers.get('host', '')}",
            query=dict(http.query_params),
            headers=dict(http.headers),
            data=await http.body(),
        )
        received = self._record(request)
        try:
            response = await self._respond(request, receive)
        except ServiceError as error:
            received.rule = error.rule
            response = self._service.error_response(request, error)
        received.status = response.status if response else CLIENT_LEFT
        self._notify()
        if self._tell is not None:
            self._tell(received)
        if response is not None:
            await response.send(send, self._service.headers())

    def _record(self, request: HttpRequest) -> Received:
        try:
            body = orjson.loads(request.data) if request.data else None
        except orjson.JSONDecodeError:
            body = request.data.decode(errors="replace")
        secrets = self._service.secrets
        received = Received(
            method=request.method,
            path=request.path,
            query={name: value for name, value in request.query.items() if name not in secrets},
            headers={name: value for name, value in request.headers.items() if name not in secrets},
            body=body,
        )
        self.requests.append(received)
        self._notify()
        return received

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _respond(self, request: HttpRequest, receive: Receive) -> HttpResponse | None:
        """Return the response, or None if nobody waits for it any more. A request has one fault at most."""
        route = self._service.route(request)
        fault = self._faults.take(route.faults)
        if isinstance(fault, Hang):
            return None if await self._hang(fault.seconds, receive) else route.respond(None)
        if isinstance(fault, Rejection):
            raise self._service.rejection(fault, route.model)
        try:
            return route.respond(fault)
        except ServiceError as error:
            if fault is not None and error.rule != FAULT:
                self._faults.put_back(fault)
            raise

    async def _hang(self, seconds: float, receive: Receive) -> bool:
        """Wait; True if the client left or the simulator stopped before the time was over."""
        ends = {asyncio.ensure_future(receive()), asyncio.ensure_future(self._stopping.wait())}
        done, waiting = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return bool(done)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self.leave = asyncio.Event()

    async def main_loop(self) -> None:
        """Tick as the parent does, but leave at once when told."""
        for counter in count():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.leave.wait(), 0.1)
            if await self.on_tick(counter):
                return

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests under way finish or cancel them, as the parent does, but without its pause of 0.1 s."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 (uvicorn sets no event)
                    await asyncio.sleep(0.005)
        for task in self.server_state.tasks:
            task.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program we run in."""
        yield


class Served:
    """`async with Served(app) as served:` serves an ASGI application at `served.url` until the block ends."""

    def __init__(self, app: Any, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._app = app
        self._host = host
        self._port = port

    async def __aenter__(self) -> Self:
        self._socket = socket.create_server((self._host, self._port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for an ACK
        config = uvicorn.Config(
            self._app, interface="asgi3", log_level="critical", lifespan="off", ws="none", timeout_keep_alive=KEEP_ALIVE
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        await self._server.up.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self._task
        self._socket.close()

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://{host}:{port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._server.leave.set()

    def disconnect(self) -> None:
        """End every connection at once."""
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    async def forever(self) -> None:
        """Wait until the server is stopped."""
        await self._task
