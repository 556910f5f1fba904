"""Endpoints: what can be asked of the page, by whom, with what, and what is answered. The document is made of them."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tertulia.platforms.web.roles import OWNERS, READERS, Access, Role

JSON, TEXT, EVENTS, BYTES = "application/json", "text/plain", "text/event-stream", "application/octet-stream"
MAX_NUMBER = 2**53  # whole numbers that JSON readers have

Id = Annotated[str, Meta(min_length=1, max_length=400)]
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]


class NoArguments(Struct, frozen=True, kw_only=True):
    pass


class Asked(Struct, frozen=True, kw_only=True):
    """A request that may be answered: who asks, with which values in the address and in the body."""

    access: Access | None
    arguments: Any
    body: Any
    http: Any  # the request, for what is no JSON
    is_allowed: Callable[[], Awaitable[bool]]  # whether who asks still may: sessions end while a stream goes on


class Endpoint(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    path: str
    summary: str
    handle: Callable[[Asked], Awaitable[Any]]
    method: Literal["GET", "POST", "DELETE"] = "GET"
    roles: frozenset[Role | None] = READERS
    arguments: type[Struct] = NoArguments  # of the path and of the query
    body: type[Struct] | None = None
    answers: Any = None  # the type of the JSON
    media_type: str = JSON
    status: int = 200


def write(method: Literal["POST", "DELETE"], path: str, summary: str, **fields: Any) -> Endpoint:
    """Return an endpoint of the owner that changes something."""
    return Endpoint(method=method, path=path, summary=summary, **{"roles": OWNERS, **fields})
