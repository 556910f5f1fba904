"""A bot with rooms and its page, and browsers that look at it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from engine.engines import AT_ONCE
from platforms.web.pages import NOW, SAME_ORIGIN, Served, a_page
from tertulia.context.values import Persona
from tertulia.engine.engine import Engine
from tertulia.engine.memory import Memory
from tertulia.messages import Place
from tertulia.models.base import Model
from tertulia.platforms.web.roles import Role
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.platforms.web.site import RoomLimits, StreamLimits
from tertulia.store import Store

QUICK = RoomLimits(writes=1000)
TICKS = StreamLimits(tick=0.02)


class Clock:
    """The time of the page and of its rooms."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> datetime:
        return self.time

    def pass_(self, time: timedelta) -> None:
        self.time += time


class Browser:
    """One context of a browser, with cookies of its own."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.AsyncClient(base_url=url, headers=SAME_ORIGIN, timeout=30)
        self.room = ""
        self.me: Any = None

    async def join(self, link: str, name: str, **changes: Any) -> httpx2.Response:
        room, _, key = link.rpartition("/r/")[2].partition("#")
        joined = await self.client.post(f"/api/rooms/{room}/join", json={"name": name, "key": key} | changes)
        self.room, self.me = f"/api/rooms/{room}", joined.json()
        return joined

    @property
    def place(self) -> Place:
        return Place(platform="web", id=self.room.rpartition("/")[2], kind="group")

    @property
    def cookies(self) -> dict[str, str]:
        """The head of a request with the cookies of the browser."""
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())}

    async def post(self, text: str, key: str = "", **fields: Any) -> str:
        """Post a message; return its id."""
        body = {"id": key or text, "text": text, **fields}
        posted = await self.client.post(f"{self.room}/messages", json=body)
        assert posted.status_code == 200, posted.text
        return str(posted.json()["message"])

    async def read(self, path: str = "/messages") -> Any:
        found = await self.client.get(f"{self.room}{path}")
        assert found.status_code == 200, found.text
        return found.json()

    async def said(self) -> list[tuple[str, str]]:
        """Return who says what."""
        page = await self.read()
        return [(one["message"]["author"]["name"], text_of(one["message"])) for one in page["messages"]]

    async def upload(self, data: bytes) -> httpx2.Response:
        return await self.client.post(f"{self.room}/files", content=data)


class RoomBot:
    """A bot that runs, with its page."""

    def __init__(
        self, served: Served, engine: Engine, rooms: RoomPlatform, clock: Clock, opened: AsyncExitStack
    ) -> None:
        self.served, self.engine, self.clock, self.store, self.rooms = served, engine, clock, served.store, rooms
        self._opened = opened

    async def browser(self) -> Browser:
        made = Browser(str(self.served.client.base_url))
        await self._opened.enter_async_context(made.client)
        return made

    async def looking(self, role: Role) -> Browser:
        """Return a browser with a session."""
        made = await self.browser()
        assert (await made.client.post("/api/session", json={"token": self.served.token(role)})).status_code == 200
        return made

    async def open_room(self, **terms: Any) -> str:
        """Open a room as its owner; return its link."""
        owner = await self.looking("owner")
        opened = await owner.client.post("/api/rooms", json=terms)
        assert opened.status_code == 201, opened.text
        return str(opened.json()["link"])

    async def guest(self, link: str, name: str) -> Browser:
        made = await self.browser()
        assert (await made.join(link, name)).status_code == 200
        return made


@asynccontextmanager
async def a_room_bot(
    folder: Path,
    model: Model,
    *,
    limits: RoomLimits = QUICK,
    clock: Clock | None = None,
    remembers: bool = False,
    **options: Any,
) -> AsyncIterator[RoomBot]:
    """Run a bot on the store of a folder."""
    clock = clock or Clock()
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(Store.open(folder / "bot.db"))
        rooms = RoomPlatform(store.rooms, store.media, now=clock, name="Gryag", largest=100_000)
        given: dict[str, Any] = {"behavior": AT_ONCE, "persona": Persona(name="Gryag")} | options
        if remembers:
            given["memory"] = Memory(store)
        engine = await opened.enter_async_context(Engine(store, model, [rooms], **given))
        running = asyncio.create_task(rooms.run(engine.inbox(rooms.name)))
        opened.push_async_callback(_cancel, running)
        page = a_page(folder, store=store, engine=engine, rooms=rooms, room_limits=limits, streams=TICKS, now=clock)
        yield RoomBot(await opened.enter_async_context(page), engine, rooms, clock, opened)


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


def text_of(message: Any) -> str:
    return " ".join(part["text"] for part in message.get("parts", ()) if part["kind"] == "text")
