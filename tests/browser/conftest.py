"""What the walks share: a browser, and the page of a kitchen whose bot runs. `make browser` runs them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

pytest.register_assert_rewrite("browser.visits")

from browser.kitchen import Told, a_kitchen  # noqa: E402 (what it asserts is told)
from browser.visits import END, Shown, shown_page  # noqa: E402

CHROMIUM = "/usr/bin/chromium"  # Debian's


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # the browser and the kitchen live in one event loop, and so do all walks
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # Without its own sandbox, which needs more rights than a container has: it opens our pages alone.
        yield await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    async with a_kitchen(tmp_path_factory.mktemp("kitchen") / "kitchen.db", end=END) as told:
        yield told


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kitchen(browser: Browser, told: Told, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shown]:
    path = tmp_path_factory.mktemp("page") / "kitchen.db"  # of its tokens
    site = {"engine": told.engine, "rooms": told.rooms, "now": told.clock.now}
    async with shown_page(browser, told.store, path, **site) as shown:
        yield shown


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
