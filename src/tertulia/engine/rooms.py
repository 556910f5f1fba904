"""Rooms: places of the page that people enter by a link, and the protocol of the store that has them. Pure.

A link has 128 random bits behind `#`, so that no server and no log is told them; the store has their digest alone. Who
has the link joins as a guest: a name, and a cookie whose digest is stored. A room of one person is a direct chat.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from tertulia.engine.limits import Cap
from tertulia.messages import Author, Place

PLATFORM = "web"  # whose places are rooms
MAX_PEOPLE = 50
MAX_NAME = 60  # characters
JoinResult = Literal["joined", "no such link", "ended", "full"]
CAP = Cap(tokens=500_000)  # of a room on a day, where its owner sets no other


class Room(Struct, frozen=True, kw_only=True):
    """A room and who may enter it."""

    id: str  # of its place
    title: str = ""
    people: int  # at most
    joined: int = 0  # how many have joined
    made_at: datetime
    ends_at: datetime
    revoked_at: datetime | None = None
    cap: Cap = CAP  # on its spend of a day

    @property
    def place(self) -> Place:
        kind = "direct" if self.people == 1 else "group"
        return Place(platform=PLATFORM, id=self.id, kind=kind, title=self.title)  # type: ignore[arg-type]

    def is_open(self, at: datetime) -> bool:
        return self.revoked_at is None and at < self.ends_at


class Guest(Struct, frozen=True, kw_only=True):
    """Somebody who has joined a room. Their id is of this room alone."""

    room: str
    id: str
    name: str
    joined_at: datetime

    @property
    def author(self) -> Author:
        return Author(id=self.id, name=self.name)


def digest(secret: str) -> str:
    """Return what is stored of the key of a link, and of a cookie."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class RoomStore(Protocol):
    """Rooms and their guests. Keys and cookies are given as digests."""

    async def add(self, room: Room, *, key: str) -> None: ...

    async def get(self, room_id: str) -> Room | None: ...

    async def listed(self) -> Sequence[Room]:
        """Return all rooms, the newest first."""
        ...

    async def change_key(self, room_id: str, key: str) -> bool:
        """Replace the link of a room; who has joined stays. Return whether there is such a room."""
        ...

    async def revoke(self, room_id: str, *, at: datetime) -> bool:
        """End a room: nobody enters, reads or writes any more. Return whether it was open."""
        ...

    async def over(self, *, at: datetime) -> Sequence[Room]:
        """Return the rooms that have ended or were revoked, and whose places do not know it yet."""
        ...

    async def join(self, guest: Guest, *, key: str | None, cookie: str) -> JoinResult:
        """Store a guest, or say why not. Who has joined already stays as they were, with the cookie that they had.

        None is the key of the owner, who needs no link.
        """
        ...

    async def guest(self, cookie: str) -> Guest | None:
        """Return whose cookie it is; the room may have ended."""
        ...

    async def guests(self, room_id: str) -> Sequence[Guest]:
        """Return the guests of a room, the first first."""
        ...

    async def cap(self, place: Place) -> Cap:
        """Return the cap on what a place may spend on a day; none where it is no room."""
        ...
