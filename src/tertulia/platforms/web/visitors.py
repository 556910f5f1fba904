"""Visitors: who sends a request, by its token, the cookie of its session, or that of a guest."""

from secrets import token_urlsafe

from starlette.requests import Request
from starlette.responses import Response

from tertulia.engine.rooms import Guest, Room, digest
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import Access
from tertulia.platforms.web.sessions import LIFE, Sessions
from tertulia.platforms.web.site import Site

BEARER = "bearer "
ROOM = "room"  # in addresses, the name of the room that is asked for
MOST_ROOMS = 20  # that one browser is asked about


class Visitors:
    """Knows who asks. A browser has one session, and a cookie for each room that its person is a guest of."""

    def __init__(self, site: Site, sessions: Sessions, address: PageAddress) -> None:
        self._site = site
        self._sessions = sessions
        self._address = address

    async def access(self, request: Request) -> Access | None:
        """Return what a request may ask for. A session, and a token in the head, go before the cookies of guests."""
        given = request.headers.get("authorization", "")
        if given.lower().startswith(BEARER):
            return self._sessions.bearer(given[len(BEARER) :].strip())
        cookie = request.cookies.get(self._address.cookie, "")
        if cookie and (access := self._sessions.access(cookie)):
            return access
        return await self._guest(request) if self._site.rooms else None

    async def _guest(self, request: Request) -> Access | None:
        """Return the access of a guest: to the room that is asked for, else to another one of theirs."""
        wanted = self._cookie_of(request.path_params.get(ROOM) or request.query_params.get(ROOM) or "")
        names = [name for name in request.cookies if name.startswith(self._cookie_of(""))][:MOST_ROOMS]
        if wanted in request.cookies:
            names.insert(0, wanted)
        for name in names:
            guest = await self._site.store.rooms.guest(digest(request.cookies[name]))
            if guest:
                return await self.access_of(guest)
        return None

    async def access_of(self, guest: Guest) -> Access:
        """Return the access of a guest to their room."""
        room = await self._site.store.rooms.get(guest.room)
        has_ended = room is None or not room.is_open(self._site.now())
        return Access(role="guest", who=f"guest {guest.id}", guest=guest, has_ended=has_ended)

    def new_cookie(self) -> str:
        return token_urlsafe(32)

    def set_session(self, response: Response, cookie: str) -> Response:
        """Give a browser the cookie of its session; an empty one takes it away."""
        return self._set(response, self._address.cookie, cookie, LIFE if cookie else 0)

    def set_guest(self, response: Response, room: Room, cookie: str) -> Response:
        """Give a browser the cookie of a guest, until the room ends."""
        life = (room.ends_at - self._site.now()).total_seconds()
        return self._set(response, self._cookie_of(room.id), cookie, life)

    def _cookie_of(self, room: str) -> str:
        return f"{self._address.cookie}-room-{room}"

    def _set(self, response: Response, name: str, value: str, life: float) -> Response:
        response.set_cookie(
            name,
            value,
            max_age=int(life),
            path=self._address.path or "/",
            secure=self._address.is_secure,
            httponly=True,
            samesite="strict",
        )
        return response
