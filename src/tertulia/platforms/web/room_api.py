"""Endpoints of rooms: opened and ended by their owner, entered by a link, and looked at from inside."""

import logging
from functools import partial
from secrets import token_hex
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.responses import Response

from tertulia.characters import is_blank, one_line
from tertulia.engine.inspection import Named
from tertulia.engine.rooms import MAX_NAME, Guest, Room, digest
from tertulia.engine.view import MOST, ViewChange, whole
from tertulia.engine.view_reader import ViewReader
from tertulia.inspector import agents
from tertulia.inspector.views import shown_change
from tertulia.media.content_types import PICTURES, STREAMS
from tertulia.messages import Place
from tertulia.platforms.web.endpoints import EVENTS, JSON, Asked, Endpoint, Number, write
from tertulia.platforms.web.event_api import Beside, Streams, after_of, place_events, sent
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import ENDED, EVERYBODY, IN_ROOM, OWNERS, Access, Refused, refused
from tertulia.platforms.web.room_links import RoomTerms, change_link, link_of, open_room
from tertulia.platforms.web.room_members import OfRoom, Presence, find_room, member, open_room_of, platform_of
from tertulia.platforms.web.room_messages import MAX_TEXT
from tertulia.platforms.web.room_platform import OWNER
from tertulia.platforms.web.room_view import (
    AgentShown,
    Link,
    Me,
    People,
    RoomChange,
    RoomInside,
    RoomOpened,
    RoomPage,
    RoomShown,
    Upload,
    in_room,
    page_of_change,
    people_shown,
    room_shown,
)
from tertulia.platforms.web.session_api import SessionShown, shown_session
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.visitors import Visitors

log = logging.getLogger(__name__)

INLINE = tuple(sorted(PICTURES | STREAMS))
JOINERS = EVERYBODY - {"reader"}


class Joining(Struct, frozen=True, kw_only=True):
    name: Annotated[str, Meta(max_length=MAX_NAME)]
    key: Annotated[str, Meta(max_length=200)] = ""  # of the link; the owner needs none


class Paged(OfRoom, frozen=True, kw_only=True):
    before: Number | None = None


class Followed(OfRoom, frozen=True, kw_only=True):
    after: Number | None = None  # the number of the last event that was seen; `Last-Event-ID` goes before it


def room_endpoints(site: Site, visitors: Visitors, address: PageAddress, streams: Streams) -> tuple[Endpoint, ...]:
    """Return the endpoints of rooms, but those that write in them."""
    store, presence = site.store, Presence()

    async def listed(_: Asked) -> tuple[RoomShown, ...]:
        return tuple(room_shown(room, site.now()) for room in await store.rooms.listed())

    async def opened(asked: Asked) -> RoomOpened:
        platform_of(site)
        room, key = await open_room(store.rooms, asked.body, at=site.now())
        _record(asked.access, "opened", room.id)
        return RoomOpened(room=room_shown(room, site.now()), link=link_of(address.url, room.id, key))

    async def relinked(asked: Asked) -> Link:
        room = await find_room(site, asked)
        key = await change_link(store.rooms, room.id)
        _record(asked.access, "gave another link to", room.id)
        return Link(link=link_of(address.url, room.id, key or ""))

    async def revoked(asked: Asked) -> Response:
        room = await find_room(site, asked)
        await store.rooms.revoke(room.id, at=site.now())
        _record(asked.access, "revoked", room.id)
        if site.rooms:
            site.rooms.look()
        return Response(status_code=204)

    async def joined(asked: Asked) -> Response:
        platform_of(site)
        access, given, room_id = asked.access, asked.body, asked.arguments.room
        if access and access.guest and access.guest.room == room_id:
            if access.has_ended:
                raise Refused(ENDED)
            return _session(access)
        if is_blank(given.name):
            raise refused(400, "give a name by which others know you")
        is_owner = access is not None and access.role in OWNERS
        guest = Guest(
            room=room_id,
            id=OWNER if is_owner else token_hex(6),
            name=" ".join(one_line(given.name).split()),
            joined_at=site.now(),
        )
        cookie = visitors.new_cookie()
        key = None if is_owner else digest(given.key)
        match await store.rooms.join(guest, key=key, cookie=digest(cookie)):
            case "no such link":
                raise refused(404, "this link opens no room")
            case "ended":
                raise Refused(ENDED)
            case "full":
                raise refused(409, "this room is full")
        presence.change(room_id)
        if access and is_owner:
            return _session(replace(access, guest=await member(site, asked)))
        room = await find_room(site, asked)
        return visitors.set_guest(_session(await visitors.access_of(guest)), room, cookie)

    def _session(access: Access) -> Response:
        return Response(msgspec.json.encode(shown_session(site, access)), media_type=JSON)

    async def inside(asked: Asked) -> RoomInside:
        platform, room = platform_of(site), await find_room(site, asked)
        guests, me = await store.rooms.guests(room.id), await member(site, asked)
        known = await site.agents()
        here = {one.name for one in await agents.present(store, known, room.place) if one.here}
        return RoomInside(
            id=room.id,
            title=room.title,
            kind=room.place.kind,
            agent=AgentShown(id=platform.me.id, name=platform.me.name),
            agents=tuple(one for one in agents.briefs(known) if one.name in here),
            people=people_shown(guests, presence.here(room.id)),
            seats=room.people,
            joined=len(guests),
            ends_at=room.ends_at,
            may_upload=Upload(bytes=platform.largest, per_message=site.room_limits.files, inline=INLINE),
            text=MAX_TEXT,
            me=Me(id=me.id, name=me.name, role=await platform.role(room.place, me.author)) if me else None,
        )

    async def messages(asked: Asked) -> RoomPage:
        place = (await find_room(site, asked)).place
        change = await _page(place, asked.arguments.before)
        first = change.messages[0].number if len(change.messages) == MOST else 0
        return page_of_change(await _shown(place, change), first or None)

    async def _page(place: Place, before: int | None) -> ViewChange:
        reader = ViewReader(store, place)
        if before is None:
            return whole(await reader.read())
        found = await store.inspection.messages(place, before=before, most=MOST)
        sent_by = [one.delivery for one in found if one.delivery]
        named = Named(
            messages=tuple(one.message.id for one in found),
            runs=tuple({one.run: None for one in sent_by if one.run}),
            replies=tuple(one.id for one in sent_by),
        )
        return await reader.load(named)

    async def _shown(place: Place, change: ViewChange) -> RoomChange:
        is_said = change.messages or change.runs or change.deliveries
        found = in_room(await shown_change(store, place, change) if is_said else change)
        told = site.rooms.told if site.rooms else lambda _: ""
        deliveries = (one if one.text else replace(one, text=told(one.id)) for one in found.deliveries)
        return replace(found, deliveries=tuple(deliveries))

    async def follow(asked: Asked) -> Response:
        room, me = await open_room_of(site, asked), await member(site, asked)

        async def is_allowed() -> bool:
            return await asked.is_allowed() and await _is_open(site, room)

        events = place_events(site, room.place, after_of(asked), partial(_shown, room.place))
        beside = _RoomNews(site, room, me, presence)
        return streams.respond(site, replace(asked, is_allowed=is_allowed), events, beside)

    one = "/api/rooms/{room}"
    return (
        Endpoint(path="/api/rooms", summary="Rooms, the newest first", handle=listed, answers=tuple[RoomShown, ...]),
        write("POST", "/api/rooms", "Open a room", handle=opened, body=RoomTerms, answers=RoomOpened, status=201),
        write(
            "POST",
            f"{one}/link",
            "Replace the link of a room; who has joined stays",
            handle=relinked,
            arguments=OfRoom,
            answers=Link,
        ),
        write("DELETE", one, "End a room for everybody", handle=revoked, arguments=OfRoom, status=204),
        Endpoint(
            method="POST",
            path=f"{one}/join",
            summary="Join a room with the key of its link; a cookie from then on",
            handle=joined,
            roles=JOINERS,
            arguments=OfRoom,
            body=Joining,
            answers=SessionShown,
        ),
        Endpoint(
            path=one, summary="A room from inside", handle=inside, roles=IN_ROOM, arguments=OfRoom, answers=RoomInside
        ),
        Endpoint(
            path=f"{one}/messages",
            summary="Messages of a room",
            handle=messages,
            roles=IN_ROOM,
            arguments=Paged,
            answers=RoomPage,
        ),
        Endpoint(
            path=f"{one}/events",
            summary="What changes in a room, as server-sent events: change, live, delta, people and ended",
            handle=follow,
            roles=IN_ROOM,
            arguments=Followed,
            media_type=EVENTS,
        ),
    )


class _RoomNews(Beside):
    """Who is in a room now, and that it has ended."""

    def __init__(self, site: Site, room: Room, me: Guest | None, presence: Presence) -> None:
        self._site = site
        self._room = room
        self._person = me.id if me else None
        self._presence = presence
        self._told = -1

    def begin(self) -> None:
        if self._person:
            self._presence.change(self._room.id, self._person, 1)

    def end(self) -> None:
        if self._person:
            self._presence.change(self._room.id, self._person, -1)

    async def news(self) -> bytes:
        changes = self._presence.changes(self._room.id)
        if changes == self._told:
            return b""
        self._told = changes
        guests = await self._site.store.rooms.guests(self._room.id)
        return sent("people", People(people=people_shown(guests, self._presence.here(self._room.id))))

    async def farewell(self) -> bytes:
        return b"" if await _is_open(self._site, self._room) else b"event: ended\ndata: {}\n\n"


async def _is_open(site: Site, room: Room) -> bool:
    now = await site.store.rooms.get(room.id)
    return now is not None and now.is_open(site.now())


def _record(access: Access | None, did: str, room: str) -> None:
    log.info("%s %s room %s", access.who if access else "nobody", did, room)
