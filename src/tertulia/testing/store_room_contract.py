"""RoomContract: the tests of rooms, which people enter by a link."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from tertulia.engine.limits import Cap
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.testing.store_world import (
    GROUP,
    LATER,
    NOON,
    WEEK,
    Opened,
    a_guest,
    a_message,
    a_room,
    check,
    check_restarts,
    receive,
)

LEO = a_guest(id="guest-2", name="Leo", joined_at=LATER)


class RoomContract:
    """Who has the link of an open room joins it, until it is full."""

    @check_restarts
    async def test_rooms_and_their_guests_are_read_as_they_were_stored(self, opened: Callable[[], Opened]) -> None:
        other = a_room(id="room-2", title="", people=1, cap=Cap(money=0.5), made_at=LATER)
        async with opened() as store:
            await store.rooms.add(a_room(), key="k")
            await store.rooms.add(other, key="k")
            await store.rooms.join(a_guest(), key="k", cookie="c1")
            await store.rooms.join(LEO, key=None, cookie="c2")
        async with opened() as store:
            listed, guests = list(await store.rooms.listed()), list(await store.rooms.guests("room-1"))
            by_cookie = [await store.rooms.guest(cookie) for cookie in ("c1", "c2", "c3")]
            caps = [await store.rooms.cap(place) for place in (a_room().place, other.place, GROUP)]
            nowhere = await store.rooms.get("room-3")

        assert listed == [other, a_room(joined=2)]
        assert guests == [a_guest(), LEO]
        assert by_cookie == [a_guest(), LEO, None]
        assert caps == [Cap(tokens=500_000), Cap(money=0.5), Cap()]
        assert nowhere is None

    @check
    async def test_nobody_joins_without_the_key_or_when_it_is_full_or_has_ended(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(people=1), key="k")
        results = [
            await store.rooms.join(a_guest(), key="other", cookie="c1"),
            await store.rooms.join(a_guest(room="no"), key=None, cookie="c1"),
            await store.rooms.join(a_guest(joined_at=NOON + WEEK), key="k", cookie="c1"),
            await store.rooms.join(a_guest(), key="k", cookie="c1"),
            await store.rooms.join(LEO, key="k", cookie="c2"),
            await store.rooms.join(a_guest(name="Again"), key="k", cookie="c3"),
        ]

        assert results == ["no such link", "no such link", "ended", "joined", "full", "joined"]
        assert await store.rooms.guests("room-1") == [a_guest()]
        assert [await store.rooms.guest(cookie) for cookie in ("c1", "c2", "c3")] == [a_guest(), None, None]

    @check
    async def test_of_two_who_join_at_once_one_gets_the_last_place(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")

        joining = (store.rooms.join(replace(LEO, id=f"guest-{n}"), key="k", cookie=f"c{n}") for n in range(2, 6))
        results = await asyncio.gather(*joining)

        assert sorted(results) == ["full", "full", "full", "joined"]
        assert len(await store.rooms.guests("room-1")) == 2

    @check
    async def test_a_new_link_replaces_the_old_one_and_guests_stay(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")

        changed = [await store.rooms.change_key(room, "new") for room in ("room-1", "room-2")]

        assert changed == [True, False]
        assert await store.rooms.join(LEO, key="k", cookie="c2") == "no such link"
        await store.rooms.join(LEO, key="new", cookie="c2")
        assert await store.rooms.guest("c1") == a_guest()

    @check
    async def test_a_room_is_revoked_once(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")

        revoked = [await store.rooms.revoke("room-1", at=at) for at in (NOON, LATER)]

        assert revoked == [True, False]
        assert await store.rooms.get("room-1") == replace(a_room(), revoked_at=NOON)
        assert await store.rooms.join(a_guest(joined_at=LATER), key="k", cookie="c1") == "ended"

    @check
    async def test_a_room_is_over_until_its_place_was_left(self, store: StoreProtocol) -> None:
        ended, revoked = a_room(id="room-2", ends_at=LATER), a_room(id="room-3")
        for room in (a_room(), ended, revoked, a_room(id="silent", ends_at=LATER)):
            await store.rooms.add(room, key="k")
        for room in (a_room(), ended, revoked):
            await receive(store, a_message("hello", place=room.place, author=a_guest().author))
        before = await store.rooms.over(at=NOON)
        await store.rooms.revoke("room-3", at=NOON)
        over = await store.rooms.over(at=LATER)
        await store.updates.leave(ended.place, at=LATER)

        assert before == []
        assert [room.id for room in over] == ["room-2", "room-3"]
        assert [room.id for room in await store.rooms.over(at=LATER)] == ["room-3"]

    @check
    async def test_the_plan_of_forgetting_a_guest_has_their_place_in_the_room(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")
        await receive(store, a_message("I bring the wine", place=a_room().place, author=a_guest().author))

        plan = await store.plan_forget(platform="web", author_id="guest-1")

        assert (len(plan.rows["rooms"]), len(plan.rows["messages"])) == (1, 1)
