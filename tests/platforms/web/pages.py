"""Pages over real sockets, for the tests of the server."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from msgspec import Struct

from tertulia.config import WebConfig
from tertulia.engine.engine import Engine
from tertulia.platforms.web.page_server import Page, serve_page
from tertulia.platforms.web.roles import Role
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.platforms.web.site import Replays, RoomLimits, Site, StreamLimits
from tertulia.store import Store

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


class Served(Struct, frozen=True):
    """A page and a browser that looks at it."""

    page: Page
    client: httpx2.AsyncClient
    store: Store

    async def log_in(self, role: Role = "owner") -> httpx2.Response:
        """Exchange the token of a role for a cookie."""
        return await self.client.post("/api/session", json={"token": self.token(role)}, headers=SAME_ORIGIN)

    def token(self, role: Role = "owner") -> str:
        return self.page.links[role].partition("#token=")[2]

    def bearer(self, role: Role = "owner") -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.token(role)}"}


@asynccontextmanager
async def a_page(
    folder: Path,
    *,
    store: Store | None = None,
    engine: Engine | None = None,
    streams: StreamLimits | None = None,
    rooms: RoomPlatform | None = None,
    room_limits: RoomLimits | None = None,
    now: Callable[[], datetime] = lambda: NOW,
    replays: Replays | None = None,
    **config: Any,
) -> AsyncIterator[Served]:
    """Serve the page of a store in a folder, made if none is given."""
    opened = store or await Store.open(folder / "bot.db")
    site = Site(
        store=opened,
        now=now,
        engine=engine,
        rooms=rooms,
        agent="Gryag",
        streams=streams or StreamLimits(),
        room_limits=room_limits or RoomLimits(),
        replays=replays,
    )
    options = WebConfig(**{"port": 0, **config})
    try:
        async with (
            serve_page(site, options, store=str(folder / "bot.db"), folder=folder) as page,
            httpx2.AsyncClient(base_url=own_url(page, options), verify=False) as client,
        ):
            yield Served(page, client, opened)
    finally:
        if store is None:
            await opened.close()


def own_url(page: Page, config: WebConfig) -> str:
    """Return where the page listens, whatever people call it."""
    return f"{'https' if config.certificate else 'http'}://127.0.0.1:{page.port}{config.path.rstrip('/')}"
