"""Rooms are opened here, by the page and by the command line: their terms, their keys and their links."""

from datetime import datetime, timedelta
from secrets import token_hex, token_urlsafe
from typing import Annotated

from msgspec import Meta, Struct

from tertulia.engine.limits import Cap
from tertulia.engine.rooms import CAP, MAX_PEOPLE, Room, RoomStore, digest

KEY_BYTES = 16
ELSEWHERE = "rooms are entered by the page that the bot serves itself: [web] in its tertulia.toml, and `tertulia run`"


class RoomTerms(Struct, frozen=True, kw_only=True):
    """What the owner says about a room."""

    title: Annotated[str, Meta(max_length=100)] = ""
    people: Annotated[int, Meta(ge=1, le=MAX_PEOPLE)] = 10  # at most; a room of one is a direct chat
    days: Annotated[float, Meta(gt=0, le=366)] = 7.0  # until it ends
    tokens: Annotated[int, Meta(ge=0, le=10**12)] | None = CAP.tokens  # a day; None: no cap
    money: Annotated[float, Meta(ge=0, le=10**6)] | None = None  # dollars a day, for models with a price


async def open_room(rooms: RoomStore, terms: RoomTerms, *, at: datetime) -> tuple[Room, str]:
    """Store a room; return it, and the key of its link, which is not stored."""
    room = Room(
        id=token_hex(5),
        title=" ".join(terms.title.split()),
        people=terms.people,
        made_at=at,
        ends_at=at + timedelta(days=terms.days),
        cap=Cap(tokens=terms.tokens, money=terms.money),
    )
    key = token_urlsafe(KEY_BYTES)
    await rooms.add(room, key=digest(key))
    return room, key


async def change_link(rooms: RoomStore, room_id: str) -> str | None:
    """Give a room another link; return its key, None if there is no such room."""
    key = token_urlsafe(KEY_BYTES)
    return key if await rooms.change_key(room_id, digest(key)) else None


def link_of(page: str, room_id: str, key: str) -> str:
    """Return a link as people are given it; what is behind `#` is sent to no server."""
    return f"{page}/r/{room_id}#{key}"
