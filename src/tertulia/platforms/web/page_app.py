"""The ASGI application of the page: endpoints behind one check of roles, and the static files."""

import logging
from collections.abc import Callable, Iterable, Mapping
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
from tertulia.errors import InvalidValue, OperatorMustAct, PromptRemoved, StoreTrouble
from tertulia.jsonio import dumps
from tertulia.platforms.web.endpoints import JSON, Asked, Endpoint
from tertulia.platforms.web.guard import READS, Guard
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import Access, Refusal, refusal
from tertulia.platforms.web.sessions import Sessions

log = logging.getLogger(__name__)

STATIC = Path(str(files("tertulia.platforms.web").joinpath("static")))
MAX_BODY = 64 * 2**10  # bytes
BASE = "{{base}}"  # in index.html: the path of the page
SHELL = "no-cache"  # the files of the page itself: asked for again, and answered "not modified"
BEARER = "bearer "

NO_BODY = Refusal(status=415, why="the body must be JSON, with content-type: application/json")
TOO_LARGE = Refusal(status=413, why=f"the body has more than {MAX_BODY:,} bytes")
FAILED = Refusal(status=500, why="the page failed; the log of its process says why")
NOWHERE = Refusal(status=404, why="there is nothing here")


def make_app(endpoints: Iterable[Endpoint], sessions: Sessions, address: PageAddress) -> Guard:
    """Return the application: the guard around the endpoints, the static files, and the shell at every other path."""
    routes: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        routes.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    shell = (STATIC / "index.html").read_text(encoding="utf-8").replace(BASE, address.path)

    async def page(request: Request) -> Response:
        return HTMLResponse(shell, headers={"cache-control": SHELL})

    async def nowhere(request: Request) -> Response:
        return refuse(NOWHERE)

    table = [
        *(
            Route(path, _answering(methods, sessions, address), methods=_methods(methods))
            for path, methods in routes.items()
        ),
        Route("/api/{rest:path}", nowhere, methods=["GET", "POST", "DELETE"]),
        Mount("/static", _Static(directory=STATIC)),
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


def _answering(endpoints: Mapping[str, Endpoint], sessions: Sessions, address: PageAddress) -> Callable[[Request], Any]:
    """Return what answers the requests for one path."""

    def may_ask(endpoint: Endpoint, request: Request) -> bool:
        return refusal(endpoint.roles, access_of(request, sessions, address)) is None

    async def answer(request: Request) -> Response:
        endpoint = endpoints["GET" if request.method in READS else request.method]
        access = access_of(request, sessions, address)
        if refused := refusal(endpoint.roles, access):
            return refuse(refused)
        try:
            return await _respond(endpoint, access, request, is_allowed=lambda: may_ask(endpoint, request))
        except (InvalidValue, PromptRemoved) as error:
            return refuse(Refusal(status=404 if endpoint.method == "GET" else 409, why=str(error)))
        except (StoreTrouble, OperatorMustAct) as error:
            return refuse(Refusal(status=503, why=str(error)))
        except ClientDisconnect:
            return refuse(NOWHERE)
        except Exception as error:  # noqa: BLE001 (a bug of ours: the others are answered on)
            log.error("%s %s failed: %s", endpoint.method, endpoint.path, log_text(error))
            return refuse(FAILED)

    return answer


def access_of(request: Request, sessions: Sessions, address: PageAddress) -> Access | None:
    """Return what the cookie of a request, or the token in its head, gives access to."""
    given = request.headers.get("authorization", "")
    if given.lower().startswith(BEARER):
        return sessions.bearer(given[len(BEARER) :].strip())
    cookie = request.cookies.get(address.cookie, "")
    return sessions.access(cookie) if cookie else None


async def _respond(
    endpoint: Endpoint, access: Access | None, request: Request, *, is_allowed: Callable[[], bool]
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
    return Response(dumps({"error": refused.why}), status_code=refused.status, media_type=JSON)
