"""People in rooms of a page: browsers that send each message with a key, again and again until it is taken."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from secrets import token_hex
from typing import Any

import httpx2

from platforms.web.pages import SAME_ORIGIN
from tertulia.engine.rooms import Guest, Room, digest
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.messages import Author, Place
from tertulia.platforms.web.room_platform import AGENT, message_id
from tertulia.testing.platform_world import Shown

PAUSE = 0.02  # seconds between two attempts
TAKEN = range(200, 300)
NOT_NOW = (401, 429, 500, 503)  # 401: the room is not made yet

Request = Callable[[], Awaitable[httpx2.Response]]


class RoomPeople:
    """What people do in the rooms of a page at a fixed address; it may be down meanwhile."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.token = ""  # of the owner, once the page is there
        self.rooms: dict[str, Room] = {}
        self.guests: dict[tuple[str, str], Guest] = {}  # by room and person
        self.refused: list[str] = []
        self._cookies: dict[tuple[str, str], str] = {}
        self._cookie = f"tertulia-{port}-room-"
        self._settling = asyncio.Lock()
        self._keys = count(1)
        self._posts: list[Request] = []
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self._client = self._new_client()
        self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        self._sending.cancel()
        await asyncio.wait([self._sending])
        await self._client.aclose()
        assert self.refused == []

    async def settle(self, store: StoreProtocol) -> None:
        """Make the rooms and seat the people that a store does not have yet."""
        async with self._settling:
            for room in self.rooms.values():
                if await store.rooms.get(room.id) is None:
                    await store.rooms.add(room, key=digest("key"))
            for key, guest in self.guests.items():
                assert await store.rooms.join(guest, key=None, cookie=digest(self._cookies[key])) == "joined"

    def open_room(self, people: int) -> Place:
        now = datetime.now(UTC)
        room = Room(id=token_hex(5), people=people, made_at=now, ends_at=now + timedelta(days=1))
        self.rooms[room.id] = room
        return room.place

    def seat(self, place: Place, author: Author) -> Guest:
        key = place.id, author.id
        if key not in self.guests:
            self.guests[key] = Guest(room=place.id, id=author.id, name=author.name, joined_at=datetime.now(UTC))
            self._cookies[key] = token_hex(16)
        return self.guests[key]

    def post(self, place: Place, author: Author, text: str, **fields: Any) -> str:
        """Post a message; return its id."""
        key = f"k{next(self._keys)}"
        self._posts.append(self.request(place, author, "POST", "messages", {"id": key, "text": text, **fields}))
        self._requests.put_nowait(self._posts[-1])
        return message_id(self.guests[place.id, author.id], key)

    def post_file(self, place: Place, author: Author, data: bytes) -> str:
        """Post a message with a file; return its id."""
        key, guest = f"k{next(self._keys)}", self.seat(place, author)

        async def both() -> httpx2.Response:
            uploaded = await self._upload(guest, data)
            if uploaded.status_code not in TAKEN:
                return uploaded
            body = {"id": key, "media": [{"file": uploaded.json()["file"], "name": "dot.png"}]}
            return await self.request(place, author, "POST", "messages", body)()

        self._requests.put_nowait(both)
        return message_id(guest, key)

    def do(self, place: Place, author: Author, method: str, path: str, body: Any = None) -> None:
        """Do something else in a room."""
        self._requests.put_nowait(self.request(place, author, method, path, body))

    def request(self, place: Place, author: Author, method: str, path: str, body: Any = None) -> Request:
        headers = self._headers(self.seat(place, author))
        url = f"{self.url}/api/rooms/{place.id}/{path}"

        async def send() -> httpx2.Response:
            return await self._client.request(method, url, json=body, headers=headers)

        return send

    def _headers(self, guest: Guest) -> Mapping[str, str]:
        return {**SAME_ORIGIN, "cookie": f"{self._cookie}{guest.room}={self._cookies[guest.room, guest.id]}"}

    async def _upload(self, guest: Guest, data: bytes) -> httpx2.Response:
        url = f"{self.url}/api/rooms/{guest.room}/files"
        return await self._client.post(url, content=data, headers=self._headers(guest))

    def post_again(self) -> None:
        """Post everything again, as browsers do whose answers were lost."""
        for one in self._posts:
            self._requests.put_nowait(one)

    async def revoke(self, place: Place) -> None:
        headers = {**SAME_ORIGIN, "authorization": f"Bearer {self.token}"}
        ended = await self._client.delete(f"{self.url}/api/rooms/{place.id}", headers=headers)
        assert ended.status_code == 204

    async def disconnect(self) -> None:
        """End every connection."""
        before, self._client = self._client, self._new_client()
        await before.aclose()

    @asynccontextmanager
    async def listening(self, place: Place, author: Author, after: int) -> AsyncIterator[httpx2.Response]:
        """Open the stream of a room behind an event, as the browser of somebody does that comes back."""
        headers = {**self._headers(self.seat(place, author)), "last-event-id": str(after)}
        async with self._client.stream("GET", f"{self.url}/api/rooms/{place.id}/events", headers=headers) as response:
            yield response

    async def shown(self, place: Place) -> list[Shown] | None:
        """Return what people see of the agent in a room; None where the page does not answer."""
        headers = {"authorization": f"Bearer {self.token}"}
        try:
            found = await self._client.get(f"{self.url}/api/rooms/{place.id}/messages", headers=headers)
        except httpx2.TransportError:
            return None
        return seen_in(found.json()) if found.status_code == 200 else None

    async def _send(self) -> None:
        """Send requests in their order, each until it is taken."""
        while True:
            request = await self._requests.get()
            while True:
                with suppress(httpx2.TransportError, RuntimeError):  # RuntimeError: `disconnect` has closed the client
                    answer = await request()
                    if answer.status_code in TAKEN:
                        break
                    if answer.status_code not in NOT_NOW:
                        self.refused.append(f"{answer.request.method} {answer.request.url}: {answer.text}")
                        break
                await asyncio.sleep(PAUSE)

    def _new_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(timeout=30)


def seen_in(page: Any) -> list[Shown]:
    """Return what people see of the agent on a page of a room: its messages, and lines that are none."""
    messages = {one["message"]["id"]: one["message"] for one in page["messages"]}
    seen = []
    for delivery in page["deliveries"]:
        if delivery["status"] == "sent":
            message = messages.get(delivery["message_id"], {"author": {"id": AGENT}})
            assert message["author"]["id"] == AGENT
            parts = message.get("parts", [{"kind": "text", "text": delivery.get("text", "")}])
            seen.append(
                Shown(
                    id=delivery["message_id"],
                    text="\n".join(part["text"] for part in parts if part["kind"] == "text"),
                    reply_to=message.get("reply_to", {}).get("message_id"),
                    media=sum(part["kind"] == "media" for part in parts),
                )
            )
    return seen
