"""People who look at a page in a browser. What must never happen there is noted, and fails the walk."""

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from msgspec import Struct
from PIL import Image
from playwright.async_api import Browser, ConsoleMessage, Dialog, Error, Page, Request, expect

from tertulia.config import WebConfig
from tertulia.platforms.web import page_server
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.roles import Role
from tertulia.platforms.web.site import Site
from tertulia.store import Store

PICTURES = Path(__file__).parent.parent.parent / "docs" / "pictures"
END = datetime(2026, 11, 19, 18, tzinfo=UTC)  # of what is told, for the bot and in the browser
PATIENCE = 15_000  # milliseconds, for what comes at once on a machine that does nothing else
expect.set_options(timeout=PATIENCE)
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Shown(Struct, frozen=True):
    """The page of a bot, and a browser to look at it."""

    browser: Browser
    page: page_server.Page
    now: Callable[[], datetime]


class Visit(Struct, frozen=True):
    """A tab of somebody."""

    page: Page
    url: str
    faults: list[str]  # what must not happen, as it happened

    async def open(self, path: str) -> None:
        """Open a view, and wait until it shows what it has."""
        await self.page.goto(self.url + path)
        await self.settled()

    async def settled(self) -> None:
        """Wait until the view that is open shows what it has."""
        await expect(self.page.locator("main").locator("h1, .log").first).to_be_attached()
        await expect(self.page.locator("main [aria-busy=true], main .skeleton")).to_have_count(0)

    async def ask(self, path: str) -> Any:
        """Ask the JSON API, as the page does."""
        return await self.page.evaluate("async (path) => (await fetch(path)).json()", f"{self.url}/api{path}")


@asynccontextmanager
async def shown_page(browser: Browser, store: Store, path: Path, **site: Any) -> AsyncIterator[Shown]:
    """Serve the page of a store until the block ends."""
    options: dict[str, Any] = {"now": lambda: END, "agent": "Гряг"} | site
    async with serve_page(Site(store=store, **options), WebConfig(port=0), store=str(path)) as page:
        yield Shown(browser, page, options["now"])


@asynccontextmanager
async def visit(
    shown: Shown, path: str = "/", *, role: Role | None = "owner", link: str | None = None, **options: Any
) -> AsyncIterator[Visit]:
    """Open a page in a browser of its own: with the link of a role, or with *link*."""
    settings: dict[str, Any] = {"viewport": DESK, "locale": "en-US", "timezone_id": "UTC", "reduced_motion": "reduce"}
    context = await shown.browser.new_context(**settings | options)
    context.set_default_timeout(PATIENCE)
    await context.clock.install(time=shown.now())
    tab = await context.new_page()
    url = shown.page.url
    visited = Visit(tab, url, noted(tab, url))
    try:
        if role:
            await tab.goto(shown.page.links[role])
            await expect(tab.locator("main")).to_be_attached()
            if path != "/":
                await visited.open(path)
            await visited.settled()
        elif link:
            await tab.goto(link)
        yield visited
        assert visited.faults == []
    finally:
        await context.close()


async def picture(page: Page, name: str) -> None:
    """Take a picture of what is seen for the pages of docs/, where they are asked for."""
    if "TERTULIA_PICTURES" in os.environ:
        image = Image.open(BytesIO(await page.screenshot())).convert("RGB")
        image.quantize(256, Image.Quantize.MAXCOVERAGE).save(PICTURES / f"{name}.png", optimize=True)


def noted(tab: Page, url: str) -> list[str]:
    """Return the list in which what must not happen in a tab is noted: the policy of the page refuses by an error."""
    faults: list[str] = []

    async def on_dialog(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            faults.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def on_request(request: Request) -> None:
        if not re.match(rf"{re.escape(url)}/|data:|blob:|about:", request.url):
            faults.append(f"request: {request.url}")

    def on_error(error: Error) -> None:
        faults.append(f"error: {error.message}")

    tab.on("dialog", on_dialog)
    tab.on("console", on_console)
    tab.on("request", on_request)
    tab.on("pageerror", on_error)
    tab.on("popup", lambda opened: faults.append(f"popup: {opened.url}"))
    return faults
