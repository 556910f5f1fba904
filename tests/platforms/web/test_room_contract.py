"""The rooms of the page pass the contract of platforms; their people are browsers over real sockets."""

import asyncio
import socket
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from platforms.web.room_people import RoomPeople
from tertulia.config import WebConfig
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.messages import Author, Place
from tertulia.platform import Platform
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.platforms.web.site import RoomLimits, Site
from tertulia.store import Store
from tertulia.testing.platform_contract import PlatformContract, PlatformWorld, Shown

now = partial(datetime.now, UTC)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


class RoomWorld(PlatformWorld):
    """A page at one address, served by one process after another."""

    timeout = 30.0  # the machine of the tests may be busy

    async def open(self) -> None:
        self._opened = AsyncExitStack()
        self._folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory()))
        self._none: StoreProtocol = await self._opened.enter_async_context(Store.open(self._folder / "none.db"))
        self._store = self._none  # of the process that runs
        self._port = free_port()
        self.people = RoomPeople(self._port)
        self._opened.push_async_callback(self.people.close)
        self._seen: dict[str, Sequence[Shown]] = {}

    async def close(self) -> None:
        await self._opened.aclose()

    def platform(self) -> Platform:
        return RoomPlatform(self._store.rooms, self._store.media, now=now, name="Gryag")

    def platform_on(self, store: StoreProtocol) -> Platform:
        self._store = store
        platform, ended = RoomPlatform(store.rooms, store.media, now=now, name="Gryag"), asyncio.Event()
        serving, close = asyncio.create_task(self._serve(store, platform, ended)), platform.close

        async def close_both() -> None:
            self._store = self._none
            ended.set()
            await serving
            await close()

        platform.close = close_both  # type: ignore[method-assign]
        return platform

    async def _serve(self, store: StoreProtocol, platform: RoomPlatform, ended: asyncio.Event) -> None:
        await self.people.settle(store)
        site = Site(store=store, now=now, rooms=platform, room_limits=RoomLimits(writes=1000))
        config, tokens = WebConfig(port=self._port), str(self._folder / "page")
        async with serve_page(site, config, store=tokens, folder=self._folder) as page:
            self.people.token = page.links["owner"].partition("#token=")[2]
            await ended.wait()

    async def direct(self, author: Author) -> Place:
        place = self.people.open_room(1)
        self.people.seat(place, author)
        return await self._settled(place)

    async def group(self) -> Place:
        return await self._settled(self.people.open_room(50))

    async def _settled(self, place: Place) -> Place:
        await self.people.settle(self._store)
        return place

    async def _seated(self, place: Place, author: Author) -> Author:
        self.people.seat(place, author)
        await self.people.settle(self._store)
        return author

    async def post(self, place: Place, author: Author, text: str) -> str:
        return self.people.post(place, await self._seated(place, author), text)

    async def shown(self, place: Place) -> Sequence[Shown]:
        found = await self.people.shown(place)
        if found is not None:
            self._seen[place.id] = found
        return self._seen.get(place.id, ())

    async def post_photo(self, place: Place, author: Author, data: bytes) -> str:
        return self.people.post_file(place, author, data)

    async def reply(self, place: Place, author: Author, text: str, message_id: str) -> str:
        return self.people.post(place, await self._seated(place, author), text, reply_to=message_id)

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        self.people.do(place, self._one(place), "POST", f"messages/{message_id}/edit", {"text": text})

    async def delete(self, place: Place, message_id: str) -> None:
        self.people.do(place, self._one(place), "DELETE", f"messages/{message_id}")

    async def react(self, place: Place, message_id: str, author: Author, emojis: Sequence[str]) -> None:
        self.people.do(place, author, "POST", f"messages/{message_id}/reactions", {"emojis": [*emojis]})

    async def command(self, place: Place, author: Author, line: str) -> None:
        await self.post(place, author, line)

    async def leave(self, place: Place) -> None:
        await self.people.revoke(place)

    async def stop(self, place: Place, author: Author) -> None:
        self.people.do(place, author, "POST", "stop")

    async def disconnect(self) -> None:
        await self.people.disconnect()

    async def deliver_again(self) -> None:
        """Post all messages again: nothing else has a key, or is done twice by a browser."""
        self.people.post_again()

    def _one(self, place: Place) -> Author:
        """Return the one person of a direct chat."""
        return next(guest.author for guest in self.people.guests.values() if guest.room == place.id)


class TestRooms(PlatformContract):
    def world(self) -> PlatformWorld:
        return RoomWorld()
