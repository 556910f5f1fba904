"""Roles of the page, and which of them may do what. Every request, stream and file asks `refusal`. Pure."""

from typing import Literal

from msgspec import Struct

from tertulia.engine.rooms import Guest

Role = Literal["owner", "reader", "guest"]  # a guest is one of one room
TOKEN_ROLES: tuple[Role, ...] = ("owner", "reader")  # those that have a token of their own

EVERYBODY: frozenset[Role | None] = frozenset({None, *TOKEN_ROLES, "guest"})  # None: no session
READERS: frozenset[Role | None] = frozenset({"owner", "reader"})
OWNERS: frozenset[Role | None] = frozenset({"owner"})
IN_ROOM: frozenset[Role | None] = frozenset({"owner", "reader", "guest"})  # who sees a room
TALKERS: frozenset[Role | None] = frozenset({"owner", "guest"})  # who writes in it


class Access(Struct, frozen=True, kw_only=True):
    """Who asks."""

    role: Role
    who: str  # as it is recorded: the role and the beginning of a session's name
    guest: Guest | None = None  # of which room they are a guest
    has_ended: bool = False  # that room


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is not answered."""

    status: int
    why: str
    retry_after: int | None = None  # seconds


class Refused(Exception):
    """A request is not answered."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


def refused(status: int, why: str) -> Refused:
    return Refused(Refusal(status=status, why=why))


NOBODY = Refusal(status=401, why="open the page by its link: this needs a token")
NOWHERE = Refusal(status=404, why="there is nothing here")
ENDED = Refusal(status=410, why="this room has ended")
READS_ONLY = Refusal(status=403, why="a reader sees everything and changes nothing")


def refusal(roles: frozenset[Role | None], access: Access | None, *, room: str | None = None) -> Refusal | None:
    """Return why somebody may not ask for what is for these roles, in a room if one is given; None if they may.

    For a guest there is nothing but their room, and what is for everybody.
    """
    if access and access.guest and None not in roles:
        if access.role not in roles or room not in (None, access.guest.room):
            return NOWHERE
        return ENDED if access.has_ended else None
    if (access.role if access else None) in roles:
        return None
    return NOBODY if access is None else READS_ONLY
