"""Sessions: a token is exchanged for a cookie that ends by itself, by a logout, and with the token."""

import hashlib
from collections.abc import Callable
from secrets import token_urlsafe

from msgspec import Struct

from tertulia.platforms.web.roles import Access, Role
from tertulia.platforms.web.tokens import TokenFile

LIFE = 7 * 86_400.0  # seconds
MOST = 1_000  # sessions; the oldest is ended for one more


class Session(Struct, frozen=True, kw_only=True):
    access: Access
    token: str  # that it began with
    ends_at: float


class Sessions:
    """The sessions of one process, by the digests of their cookies."""

    def __init__(self, tokens: TokenFile, clock: Callable[[], float], *, most: int = MOST) -> None:
        self._most = most
        self._tokens = tokens
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def begin(self, given: str) -> tuple[str, Access] | None:
        """Return a new cookie for a token, and what it gives access to; None for a token that is none."""
        role = self._tokens.role_of(given)
        if role is None:
            return None
        cookie = token_urlsafe(32)
        name = _name(cookie)
        access = Access(role=role, who=f"{role} {name[:8]}")
        while len(self._sessions) >= self._most:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[name] = Session(access=access, token=self._tokens.tokens[role], ends_at=self._clock() + LIFE)
        return cookie, access

    def access(self, cookie: str) -> Access | None:
        """Return what a cookie gives access to; None if its session has ended."""
        name = _name(cookie)
        session = self._sessions.get(name)
        if session is None:
            return None
        if session.ends_at <= self._clock() or self._tokens.tokens.get(session.access.role) != session.token:
            del self._sessions[name]
            return None
        return session.access

    def bearer(self, token: str) -> Access | None:
        """Return what a token itself gives access to, for programs that have no cookies."""
        role: Role | None = self._tokens.role_of(token)
        return Access(role=role, who=f"{role} by token") if role else None

    def end(self, cookie: str) -> None:
        """End the session of a cookie."""
        self._sessions.pop(_name(cookie), None)


def _name(cookie: str) -> str:
    return hashlib.sha256(cookie.encode(errors="surrogatepass")).hexdigest()
