"""Endpoints of sessions: a token becomes a cookie, which ends with a logout."""

from importlib.metadata import version
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from tertulia.platforms.web.endpoints import JSON, Asked, Endpoint, Id
from tertulia.platforms.web.roles import EVERYBODY, IN_ROOM, NOBODY, OWNERS, Access, Role
from tertulia.platforms.web.sessions import Sessions
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.visitors import Visitors


class Login(Struct, frozen=True, kw_only=True):
    token: Annotated[str, Meta(max_length=200)]


class SessionShown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who looks at the page, and at what."""

    role: Role
    who: str  # as writes are recorded
    can_write: bool
    agent: str  # its name
    version: str
    language: str
    room: str | None = None  # of a guest, with who they are there
    person: str | None = None
    name: str | None = None


class OfRoom(Struct, frozen=True, kw_only=True):
    room: Id | None = None  # a guest of several asks for one


def shown_session(site: Site, access: Access) -> SessionShown:
    """Return a session as its browser is told."""
    guest = access.guest
    return SessionShown(
        role=access.role,
        who=access.who,
        can_write=access.role in OWNERS,
        agent=site.agent,
        version=version("tertulia"),
        language=site.language,
        room=guest.room if guest else None,
        person=guest.id if guest else None,
        name=guest.name if guest else None,
    )


def session_endpoints(site: Site, sessions: Sessions, visitors: Visitors, cookie: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of sessions; *cookie* is the name of theirs."""

    async def read(asked: Asked) -> SessionShown:
        assert asked.access is not None  # noqa: S101 (its roles)
        return shown_session(site, asked.access)

    async def begin(asked: Asked) -> Response:
        begun = sessions.begin(asked.body.token)
        if begun is None:
            return Response(msgspec.json.encode({"error": NOBODY.why}), status_code=NOBODY.status, media_type=JSON)
        value, access = begun
        return visitors.set_session(Response(msgspec.json.encode(shown_session(site, access)), media_type=JSON), value)

    async def end(asked: Asked) -> Response:
        http: Request = asked.http
        sessions.end(http.cookies.get(cookie, ""))
        return visitors.set_session(Response(status_code=204), "")

    path = "/api/session"
    return (
        Endpoint(
            path=path,
            summary="Who looks at the page",
            handle=read,
            roles=IN_ROOM,
            arguments=OfRoom,
            answers=SessionShown,
        ),
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
