"""A JSON service on a loopback socket that answers as it is told, and keeps what it was asked."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tertulia.sim.server import Served


class Canned:
    """What a path answers: a body (JSON, or bytes as they are), a status, headers; or nothing, ever."""

    def __init__(
        self,
        body: Any = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        stalls: bool = False,
    ) -> None:
        self.body = body if isinstance(body, bytes) else orjson.dumps(body)
        self.status = status
        self.headers = headers
        self.stalls = stalls


class Service:
    def __init__(self, answers: Mapping[str, Canned]) -> None:
        self.url = ""
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.over = asyncio.Event()
        self._answers = answers
        self.app = Starlette(routes=[Route(path, self._answer) for path in answers])

    async def _answer(self, request: Request) -> Response:
        self.asked.append((request.url.path, dict(request.query_params)))
        canned = self._answers[request.url.path]
        if canned.stalls:
            await self.over.wait()
        return Response(canned.body, canned.status, canned.headers, media_type="application/json")


@asynccontextmanager
async def serving(answers: Mapping[str, Canned]) -> AsyncIterator[Service]:
    service = Service(answers)
    async with Served(service.app) as served:
        service.url = served.url
        try:
            yield service
        finally:
            service.over.set()


def a_dead_url() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"
