"""Rooms of the page and their guests."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.limits import Cap
from tertulia.engine.rooms import PLATFORM, Guest, JoinResult, Room
from tertulia.messages import Place
from tertulia.store.database import Database, insert_row
from tertulia.store.encoding import Columns, clean, format_time
from tertulia.store.identities import upsert_author
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc

_ROOM = Columns(Room, "id=room_id title people made_at ends_at revoked_at cap")
_GUEST = Columns(Guest, "name joined_at")
_ROOMS = f"""SELECT (SELECT count(*) FROM room_guests g WHERE g.room = r.id), {_ROOM} FROM rooms r"""
_GUESTS = f"""SELECT r.room_id, a.author_id, {_GUEST.of("g")}
    FROM room_guests g JOIN rooms r ON r.id = g.room JOIN authors a ON a.id = g.author"""


class SqlRooms(Repository):
    """Implements `engine.rooms.RoomStore`."""

    @writing
    def add(self, database: Database, room: Room, *, key: str) -> None:
        values = _ROOM.encode(room)
        insert_row(database, "rooms", **{**values, "title": clean(room.title), "key_digest": key})

    @reading
    def get(self, database: Database, room_id: str) -> Room | None:
        return _get(database, room_id)

    @reading
    def listed(self, database: Database) -> Sequence[Room]:
        return [_ROOM.decode(row, joined=joined) for joined, *row in database.all(f"{_ROOMS} ORDER BY r.id DESC")]

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
        select = f"""{_ROOMS} JOIN places p ON p.platform = :platform AND p.place_id = r.room_id
            WHERE p.left_at IS NULL ORDER BY r.id"""
        rooms = [_ROOM.decode(row, joined=joined) for joined, *row in database.all(select, platform=PLATFORM)]
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
        values = {**_GUEST.encode(guest), "name": clean(guest.name), "cookie_digest": cookie}
        insert_row(database, "room_guests", room=row, author=author, **values)
        return "joined"

    @reading
    def guest(self, database: Database, cookie: str) -> Guest | None:
        row = database.one(f"{_GUESTS} WHERE g.cookie_digest = :cookie", cookie=cookie)
        return None if row is None else _GUEST.decode(row[2:], room=row[0], id=row[1])

    @reading
    def guests(self, database: Database, room_id: str) -> Sequence[Guest]:
        rows = database.all(f"{_GUESTS} WHERE r.room_id = :room_id ORDER BY g.id", room_id=clean(room_id))
        return [_GUEST.decode(row, room=room, id=guest) for room, guest, *row in rows]

    async def cap(self, place: Place) -> Cap:
        room = await self.get(place.id) if place.platform == PLATFORM else None
        return room.cap if room else Cap()


def _get(database: Database, room_id: str) -> Room | None:
    row = database.one(f"{_ROOMS} WHERE r.room_id = :room_id", room_id=clean(room_id))
    return None if row is None else _ROOM.decode(row[1:], joined=row[0])
