"""Members of rooms: who asks from inside, and who looks at a room now."""

from collections import Counter, defaultdict

from msgspec import Struct

from tertulia.engine.rooms import Guest, Room
from tertulia.platforms.web.endpoints import Asked, Id
from tertulia.platforms.web.roles import ENDED, OWNERS, Refused, refused
from tertulia.platforms.web.room_links import ELSEWHERE
from tertulia.platforms.web.room_platform import OWNER, RoomPlatform
from tertulia.platforms.web.site import Site


class OfRoom(Struct, frozen=True, kw_only=True):
    room: Id


class Presence:
    """Who looks at each room now, with a number that grows with each change."""

    def __init__(self) -> None:
        self._streams: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._changes: Counter[str] = Counter()

    def here(self, room: str) -> set[str]:
        return set(+self._streams[room])

    def changes(self, room: str) -> int:
        return self._changes[room]

    def change(self, room: str, person: str | None = None, streams: int = 0) -> None:
        """Count a change: somebody has joined, or *person* has so many streams more."""
        if person is not None:
            self._streams[room][person] += streams
        self._changes[room] += 1


def platform_of(site: Site) -> RoomPlatform:
    """Return the platform of the rooms; raise `Refused` where they are those of another process."""
    if site.rooms is None:
        raise refused(503, ELSEWHERE)
    return site.rooms


async def find_room(site: Site, asked: Asked) -> Room:
    """Return the room that is asked for; raise `Refused` where there is none."""
    room = await site.store.rooms.get(asked.arguments.room)
    if room is None:
        raise refused(404, "there is no such room")
    return room


async def open_room_of(site: Site, asked: Asked) -> Room:
    """Return the room that is asked for; raise `Refused` where it has ended."""
    room = await find_room(site, asked)
    if not room.is_open(site.now()):
        raise Refused(ENDED)
    return room


async def member(site: Site, asked: Asked) -> Guest | None:
    """Return who asks as somebody in the room; None for who only looks."""
    if asked.access is None or asked.access.role not in OWNERS:
        return asked.access.guest if asked.access else None
    guests = await site.store.rooms.guests(asked.arguments.room)
    return next((one for one in guests if one.id == OWNER), None)


async def talker(site: Site, asked: Asked) -> tuple[Room, Guest]:
    """Return an open room, and who writes in it; raise `Refused` for an owner who has not joined."""
    platform_of(site)
    room, guest = await open_room_of(site, asked), await member(site, asked)
    if guest is None:
        raise refused(409, "join the room first")
    return room, guest
