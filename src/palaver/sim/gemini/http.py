"""The simulator's HTTP: paths, keys, envelopes and streams."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import orjson
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response as HttpResponse
from starlette.types import Receive, Scope, Send

from palaver.sim.gemini.errors import AuthError, ServiceError, bad_key, no_key
from palaver.sim.gemini.faults import Hang

Wire = dict[str, Any]

BAD_KEYS = frozenset({"bad-key", "invalid", "invalid-key"})
"""Keys that are refused where no list of good ones is given."""

JSON = "application/json; charset=UTF-8"
EVENTS = "text/event-stream"
_PATH = re.compile(r"(?P<prefix>.*?)/(?P<upload>upload/)?(?P<version>v1|v1beta|v1alpha)/(?P<resource>[^?]+)")
_SECRET = frozenset({"x-goog-api-key", "authorization"})


class Received(Struct, kw_only=True):
    """A request as it came, and how it was answered: *status* is 0 until it is, *rule* says why it was refused."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int = 0
    rule: str = ""


class Call(Struct, frozen=True, kw_only=True):
    """A request on its way through the simulator."""

    method: str
    resource: str
    version: str
    base: str
    upload: bool
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> object:
        """The body as JSON; raises the service's error."""
        try:
            return orjson.loads(self.data) if self.data else {}
        except orjson.JSONDecodeError as error:
            raise ServiceError(400, f"Invalid JSON payload received. {error}", rule="json") from error

    @property
    def streams(self) -> bool:
        return self.resource.endswith(":streamGenerateContent")

    @property
    def as_events(self) -> bool:
        return self.streams and self.query.get("alt") == "sse"

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset({self.headers.get("host", "")})


class Frames:
    """A response in pieces; *cut* leaves it without its end, which drops the connection."""

    status_code = 200

    def __init__(self, frames: list[bytes], content_type: str, *, cut: bool) -> None:
        self._frames = frames
        self._headers = [(b"content-type", content_type.encode()), (b"content-disposition", b"attachment")]
        self._cut = cut

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            await asyncio.sleep(0)
        if not self._cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class Dropped:
    """No response: the caller has gone, or the simulator stops."""

    status_code = 499

    async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        return


Responding = HttpResponse | Frames | Dropped
Answering = Callable[[Call], Hang | Responding]


def json_response(body: Wire, *, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(orjson.dumps(body, option=orjson.OPT_INDENT_2), media_type=JSON, headers=headers)


def stream_response(call: Call, chunks: list[Wire], *, cut: bool) -> Frames:
    """*chunks* as events, or as the entries of a JSON list where events were not asked for."""
    if call.as_events:
        return Frames([b"data: " + orjson.dumps(chunk) + b"\r\n\r\n" for chunk in chunks], EVENTS, cut=cut)
    entries = [(b",\r\n" if place else b"[") + orjson.dumps(chunk) for place, chunk in enumerate(chunks)]
    return Frames(entries if cut else [*entries, b"]"], JSON, cut=cut)


def error_response(call: Call | None, error: ServiceError) -> HttpResponse:
    """*error* as the endpoint sends it: streams keep their content type, unless the caller is unknown."""
    if call is None or not call.streams or isinstance(error, AuthError):
        return HttpResponse(error.body, status_code=error.status, media_type=JSON)
    if call.as_events:
        return HttpResponse(error.body, status_code=error.status, headers={"content-type": EVENTS})
    return HttpResponse(b"[" + error.body + b"]", status_code=error.status, media_type=JSON)


class Endpoint:
    """The ASGI application: hands calls to *answering* and keeps what was received."""

    def __init__(
        self, answering: Answering, keys: frozenset[str] | None, told: Callable[[Received], None] | None = None
    ) -> None:
        self._told = told
        self._answering = answering
        self._keys = keys
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()
        self.requests: list[Received] = []

    def stop(self) -> None:
        """Let go of callers who wait."""
        self._stopping.set()

    async def until(self, ready: Callable[[list[Received]], bool]) -> None:
        """Wait until *ready* holds of the requests."""
        while not ready(self.requests):
            await self._news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        data = await request.body()
        received = _received(request, data)
        self.requests.append(received)
        self._tell()
        call = _call(request, data)
        try:
            response = await self._answer(call, request)
        except ServiceError as error:
            received.rule = error.rule
            response = error_response(call, error)
        received.status = response.status_code
        self._tell()
        if self._told is not None:
            self._told(received)
        await response(scope, receive, send)

    async def _answer(self, call: Call | None, request: Request) -> Responding:
        if call is None:
            raise ServiceError(404, "Requested entity was not found.", rule="path")
        self._admit(call)
        answer = self._answering(call)
        if not isinstance(answer, Hang):
            return answer
        if await self._hung(request, answer.seconds):
            return Dropped()
        return await self._answer(call, request)

    def _admit(self, call: Call) -> None:
        if call.upload and "upload_id" in call.query:
            return
        if not call.key:
            raise no_key()
        if call.key in BAD_KEYS if self._keys is None else call.key not in self._keys:
            raise bad_key()

    async def _hung(self, request: Request, seconds: float) -> bool:
        """Wait, and say whether the caller left or the simulator stopped before the time was over."""
        waits = {asyncio.ensure_future(request.receive()), asyncio.ensure_future(self._stopping.wait())}
        done, pending = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in pending:
            wait.cancel()
        return bool(done)


def _received(request: Request, data: bytes) -> Received:
    try:
        body: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = data
    return Received(
        method=request.method,
        path=request.url.path,
        query={name: value for name, value in request.query_params.items() if name != "key"},
        headers={name: value for name, value in request.headers.items() if name not in _SECRET},
        body=body,
    )


def _call(request: Request, data: bytes) -> Call | None:
    found = _PATH.fullmatch(request.url.path)
    if found is None:
        return None
    return Call(
        method=request.method,
        resource=found["resource"],
        version=found["version"],
        base=f"{request.url.scheme}://{request.headers.get('host', '')}{found['prefix']}",
        upload=found["upload"] is not None,
        key=request.headers.get("x-goog-api-key") or request.query_params.get("key") or "",
        query=dict(request.query_params),
        headers=dict(request.headers),
        data=data,
    )
