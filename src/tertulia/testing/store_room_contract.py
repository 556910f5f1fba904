"""RoomContract: the tests of rooms, which people enter by a link."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tertulia.engine.limits import Cap
from tertulia.engine.rooms import Guest
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
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


async def refused(store: StoreProtocol, guest: Guest, *, key: str | None) -> str:
    with pytest.raises(InvalidValue) as found:
        await store.rooms.join(guest, key=key, cookie="another")
    return str(found.value)


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
        wrong = [await refused(store, a_guest(), key="other"), await refused(store, a_guest(room="no"), key=None)]
        late = await refused(store, a_guest(joined_at=NOON + WEEK), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")
        full = await refused(store, LEO, key="k")

        assert {*wrong} == {"this link opens no room"}
        assert (late, full) == ("this room has ended", "this room is full: it is for 1")
        assert [one.id for one in await store.rooms.guests("room-1")] == ["guest-1"]

    @check
    async def test_a_new_link_replaces_the_old_one_and_guests_stay(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")

        changed = [await store.rooms.change_key(room, "new") for room in ("room-1", "room-2")]

        assert changed == [True, False]
        assert await refused(store, LEO, key="k") == "this link opens no room"
        await store.rooms.join(LEO, key="new", cookie="c2")
        assert await store.rooms.guest("c1") == a_guest()

    @check
    async def test_a_room_is_revoked_once(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")

        revoked = [await store.rooms.revoke("room-1", at=at) for at in (NOON, LATER)]

        assert revoked == [True, False]
        assert await store.rooms.get("room-1") == replace(a_room(), revoked_at=NOON)
        assert await refused(store, a_guest(joined_at=LATER), key="k") == "this room has ended"

    @check
    async def test_the_plan_of_forgetting_a_guest_has_their_place_in_the_room(self, store: StoreProtocol) -> None:
        await store.rooms.add(a_room(), key="k")
        await store.rooms.join(a_guest(), key="k", cookie="c1")
        await receive(store, a_message("I bring the wine", place=a_room().place, author=a_guest().author))

        plan = await store.plan_forget(platform="web", author_id="guest-1")

        assert (len(plan.rows["rooms"]), len(plan.rows["messages"])) == (1, 1)
