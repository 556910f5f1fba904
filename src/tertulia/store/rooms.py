"""Rooms of the page and their guests."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.limits import Cap
from tertulia.engine.rooms import PLATFORM, Guest, JoinResult, Room
from tertulia.messages import Place
from tertulia.store.database import Database
from tertulia.store.encoding import clean, format_time
from tertulia.store.identities import upsert_author
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc

_ROOMS = Rows(
    Room,
    "rooms r",
    "id=room_id title people made_at ends_at revoked_at cap",
    joined="(SELECT count(*) FROM room_guests g WHERE g.room = r.id)",
)
_GUESTS = Rows(Guest, "room_guests g", "name joined_at", room="r.room_id", id="a.author_id")
_OF_ROOMS = "JOIN rooms r ON r.id = g.room JOIN authors a ON a.id = g.author"


class SqlRooms(Repository):
    """Implements `engine.rooms.RoomStore`."""

    @writing
    def add(self, database: Database, room: Room, *, key: str) -> None:
        _ROOMS.insert(database, room, key_digest=key)

    @reading
    def get(self, database: Database, room_id: str) -> Room | None:
        return _get(database, room_id)

    @reading
    def listed(self, database: Database) -> Sequence[Room]:
        return _ROOMS.all(database, "ORDER BY r.id DESC")

    @writing
    def change_key(self, database: Database, room_id: str, key: str) -> bool:
        update = "UPDATE rooms SET key_digest = :key WHERE room_id = :room_id"
        return database.run(update, room_id=clean(room_id), key=key) > 0

    @writing
    def revoke(self, database: Database, room_id: str, *, at: datetime) -> bool:
        update = "UPDATE rooms SET revoked_at = :at WHERE room_id = :room_id AND revoked_at IS NULL"
        return database.run(update, room_id=clean(room_id), at=format_time(utc(at))) > 0

    @reading
    def over(self, database: Database, *, at: datetime) -> Sequence[Room]:
        which = """JOIN places p ON p.platform = :platform AND p.place_id = r.room_id
            WHERE p.left_at IS NULL ORDER BY r.id"""
        rooms = _ROOMS.all(database, which, platform=PLATFORM)
        return [room for room in rooms if not room.is_open(at)]

    @writing
    def join(self, database: Database, guest: Guest, *, key: str | None, cookie: str) -> JoinResult:
        select = "SELECT id, key_digest FROM rooms WHERE room_id = :room_id"
        row, expected = database.one(select, room_id=clean(guest.room)) or (0, "")
        room = _get(database, guest.room)
        if room is None or key not in (expected, None):
            return "no such link"
        if not room.is_open(guest.joined_at):
            return "ended"
        author = upsert_author(database, PLATFORM, guest.id)
        if database.one("SELECT 1 FROM room_guests WHERE room = :room AND author = :author", room=row, author=author):
            return "joined"
        if room.joined >= room.people:
            return "full"
        _GUESTS.insert(database, guest, room=row, author=author, cookie_digest=cookie)
        return "joined"

    @reading
    def guest(self, database: Database, cookie: str) -> Guest | None:
        return _GUESTS.one(database, f"{_OF_ROOMS} WHERE g.cookie_digest = :cookie", cookie=cookie)

    @reading
    def guests(self, database: Database, room_id: str) -> Sequence[Guest]:
        which = f"{_OF_ROOMS} WHERE r.room_id = :room_id ORDER BY g.id"
        return _GUESTS.all(database, which, room_id=clean(room_id))

    async def cap(self, place: Place) -> Cap:
        room = await self.get(place.id) if place.platform == PLATFORM else None
        return room.cap if room else Cap()


def _get(database: Database, room_id: str) -> Room | None:
    return _ROOMS.one(database, "WHERE r.room_id = :room_id", room_id=clean(room_id))
