"""Roles of the page, and which of them may do what. Every request, stream and file asks `refusal`. Pure."""

from typing import Literal

from msgspec import Struct

Role = Literal["owner", "reader"]
TOKEN_ROLES: tuple[Role, ...] = ("owner", "reader")  # those that have a token of their own

EVERYBODY: frozenset[Role | None] = frozenset({None, *TOKEN_ROLES})  # None: no session
READERS: frozenset[Role | None] = frozenset({"owner", "reader"})
OWNERS: frozenset[Role | None] = frozenset({"owner"})


class Access(Struct, frozen=True, kw_only=True):
    """Who asks."""

    role: Role
    who: str  # as it is recorded: the role and the beginning of a session's name


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is not answered."""

    status: int
    why: str


NOBODY = Refusal(status=401, why="open the page by its link: this needs a token")
READS_ONLY = Refusal(status=403, why="a reader sees everything and changes nothing")


def refusal(roles: frozenset[Role | None], access: Access | None) -> Refusal | None:
    """Return why somebody may not ask for what is for these roles; None if they may."""
    if (access.role if access else None) in roles:
        return None
    return NOBODY if access is None else READS_ONLY
