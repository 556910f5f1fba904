"""The ASGI application of the page: endpoints behind one check of roles, and the static files."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tertulia.engine.background import log_text
from tertulia.errors import CallerMustAct, TertuliaError
from tertulia.jsonio import dumps
from tertulia.platforms.web.endpoints import JSON, Asked, Endpoint
from tertulia.platforms.web.guard import READS, WITH_MICROPHONE, Guard
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import NOWHERE, READERS, Access, Refusal, Refused, refusal
from tertulia.platforms.web.visitors import ROOM, Visitors

log = logging.getLogger(__name__)

STATIC = Path(str(files("tertulia.platforms.web").joinpath("static")))
MAX_BODY = 64 * 2**10  # bytes
BASE = "{{base}}"  # in index.html: the path of the page
SHELL = "no-cache"  # the files of the page itself: asked for again, and answered "not modified"

NO_BODY = Refusal(status=415, why="the body must be JSON, with content-type: application/json")
TOO_LARGE = Refusal(status=413, why=f"the body has more than {MAX_BODY:,} bytes")
UNWELL = Refusal(status=503, why="this does not work now: try again in a while")
FAILED = Refusal(status=500, why="the page failed; the log of its process says why")


def make_app(endpoints: Iterable[Endpoint], visitors: Visitors, address: PageAddress) -> Guard:
    """Return the application: the guard around the endpoints, the static files, and the shell at every other path."""
    routes: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        routes.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    shell = (STATIC / "index.html").read_text(encoding="utf-8").replace(BASE, address.path)

    async def page(request: Request) -> Response:
        return HTMLResponse(shell, headers={"cache-control": SHELL})

    async def room(request: Request) -> Response:
        return HTMLResponse(shell, headers={"cache-control": SHELL, "permissions-policy": WITH_MICROPHONE})

    async def nowhere(request: Request) -> Response:
        return refuse(NOWHERE)

    table = [
        *(Route(path, _answering(methods, visitors), methods=_methods(methods)) for path, methods in routes.items()),
        Route("/api/{rest:path}", nowhere, methods=["GET", "POST", "DELETE"]),
        Mount("/static", _Static(directory=STATIC)),
        Route("/r/{room}", room),
        Route("/{rest:path}", page),
    ]
    app = Starlette(routes=[Mount(address.path, routes=table)] if address.path else table)
    return Guard(app, address)


class _Static(StaticFiles):
    """The files of the page, which browsers ask for again whenever they are used."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        response = super().file_response(*args, **named)
        response.headers["cache-control"] = SHELL
        return response


def _methods(endpoints: Mapping[str, Endpoint]) -> list[str]:
    return list(endpoints)


def _answering(endpoints: Mapping[str, Endpoint], visitors: Visitors) -> Callable[[Request], Any]:
    """Return what answers the requests for one path."""

    async def check(endpoint: Endpoint, request: Request) -> tuple[Access | None, Refusal | None]:
        """Return who asks, and why they may not: the one check of all requests, streams and files."""
        access = await visitors.access(request)
        return access, refusal(endpoint.roles, access, room=request.path_params.get(ROOM))

    async def answer(request: Request) -> Response:
        endpoint = endpoints["GET" if request.method in READS else request.method]

        async def is_allowed() -> bool:
            return (await check(endpoint, request))[1] is None

        access: Access | None = None
        try:
            access, refused = await check(endpoint, request)
            if refused:
                return refuse(refused)
            return await _respond(endpoint, access, request, is_allowed=is_allowed)
        except Refused as error:
            return refuse(error.refusal)
        except CallerMustAct as error:
            return refuse(Refusal(status=404 if endpoint.method == "GET" else 409, why=str(error)))
        except TertuliaError as error:  # the store, the model or the operator must be waited for
            is_told = access is not None and access.role in READERS  # where the store is, is not for guests
            return refuse(Refusal(status=503, why=str(error)) if is_told else UNWELL)
        except ClientDisconnect:
            return refuse(NOWHERE)
        except Exception as error:  # noqa: BLE001 (a bug of ours: the others are answered on)
            log.error("%s %s failed: %s", endpoint.method, endpoint.path, log_text(error))
            return refuse(FAILED)

    return answer


async def _respond(
    endpoint: Endpoint, access: Access | None, request: Request, *, is_allowed: Callable[[], Awaitable[bool]]
) -> Response:
    body = None
    try:
        arguments = msgspec.convert({**request.query_params, **request.path_params}, endpoint.arguments, strict=False)
        if endpoint.body:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                return refuse(NO_BODY)
            if (data := await _read(request)) is None:
                return refuse(TOO_LARGE)
            body = msgspec.json.decode(data, type=endpoint.body)
    except (ValueError, RecursionError) as error:  # msgspec's errors are
        return refuse(Refusal(status=400, why=str(error) or "the request cannot be read"))
    asked = Asked(access=access, arguments=arguments, body=body, http=request, is_allowed=is_allowed)
    value = await endpoint.handle(asked)
    if isinstance(value, Response):
        return value
    return Response(encode(value), status_code=endpoint.status, media_type=endpoint.media_type)


async def _read(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BODY:
            return None
    return data


def encode(value: Any) -> bytes:
    """Return a value as JSON; a text as it is."""
    if isinstance(value, str):
        return value.encode(errors="replace")
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate in what a model wrote
        return dumps(msgspec.to_builtins(value))


def refuse(refused: Refusal) -> Response:
    """Return the response that says why not."""
    headers = {} if refused.retry_after is None else {"retry-after": str(refused.retry_after)}
    return Response(dumps({"error": refused.why}), status_code=refused.status, media_type=JSON, headers=headers)
