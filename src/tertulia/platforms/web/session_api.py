"""Endpoints of sessions: a token becomes a cookie, which ends with a logout."""

from importlib.metadata import version
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from tertulia.platforms.web.endpoints import JSON, Asked, Endpoint
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import EVERYBODY, NOBODY, OWNERS, Access, Role
from tertulia.platforms.web.sessions import LIFE, Sessions
from tertulia.platforms.web.site import Site


class Login(Struct, frozen=True, kw_only=True):
    token: Annotated[str, Meta(max_length=200)]


class SessionShown(Struct, frozen=True, kw_only=True):
    """Who looks at the page, and at what."""

    role: Role
    who: str  # as writes are recorded
    can_write: bool
    agent: str  # its name
    version: str
    language: str


def session_endpoints(site: Site, sessions: Sessions, address: PageAddress) -> tuple[Endpoint, ...]:
    """Return the endpoints of sessions."""

    def shown(access: Access) -> SessionShown:
        return SessionShown(
            role=access.role,
            who=access.who,
            can_write=access.role in OWNERS,
            agent=site.agent,
            version=version("tertulia"),
            language=site.language,
        )

    def with_cookie(response: Response, value: str, life: float) -> Response:
        response.set_cookie(
            address.cookie,
            value,
            max_age=int(life),
            path=address.path or "/",
            secure=address.is_secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def read(asked: Asked) -> SessionShown:
        assert asked.access is not None  # noqa: S101 (its roles)
        return shown(asked.access)

    async def begin(asked: Asked) -> Response:
        begun = sessions.begin(asked.body.token)
        if begun is None:
            return Response(msgspec.json.encode({"error": NOBODY.why}), status_code=NOBODY.status, media_type=JSON)
        cookie, access = begun
        return with_cookie(Response(msgspec.json.encode(shown(access)), media_type=JSON), cookie, LIFE)

    async def end(asked: Asked) -> Response:
        http: Request = asked.http
        sessions.end(http.cookies.get(address.cookie, ""))
        return with_cookie(Response(status_code=204), "", 0)

    path = "/api/session"
    return (
        Endpoint(path=path, summary="Who looks at the page", handle=read, answers=SessionShown),
        Endpoint(
            method="POST",
            path=path,
            summary="Begin a session with a token; it is a cookie from then on",
            handle=begin,
            roles=EVERYBODY,
            body=Login,
            answers=SessionShown,
        ),
        Endpoint(method="DELETE", path=path, summary="End the session", handle=end, roles=EVERYBODY, status=204),
    )
