"""Everybody can use every view: with a screen reader, on a phone, in the dark, without a mouse, in Ukrainian."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from browser.views import all_views
from browser.visits import DESK, PHONE, Shown, visit

GRAVE = ("serious", "critical")


async def grave_violations(page: Page) -> list[str]:
    """What axe finds serious in a page, with the first element that has it."""
    found = (await Axe().run(page)).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in GRAVE]


@pytest.mark.parametrize(
    ("scheme", "size", "language"), [("light", DESK, "en-US"), ("dark", DESK, "uk-UA"), ("dark", PHONE, "en-US")]
)
async def test_axe_finds_nothing_serious_in_any_view_and_none_is_wider_than_the_window(
    kitchen: Shown, scheme: str, size: dict[str, int], language: str
) -> None:
    found: dict[str, list[str]] = {}
    async with visit(kitchen, viewport=size, color_scheme=scheme, locale=language) as visited:
        for name, path in (await all_views(visited)).items():
            await visited.open(path)
            found[name] = await grave_violations(visited.page)
            if await visited.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found[name].append("it scrolls sideways")

    assert {name: faults for name, faults in found.items() if faults} == {}
    assert len(found) > 15


async def test_the_whole_way_from_home_to_a_request_needs_no_mouse(kitchen: Shown) -> None:
    async with visit(kitchen) as visited:
        page, press = visited.page, visited.page.keyboard.press
        await press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await press("Enter")
        await expect(page.locator("main")).to_be_focused()

        await press("/")
        await page.keyboard.type("valve")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Messages about “valve”")
        await expect(page.locator("tr.row").first).to_be_visible()
        await press("Escape")
        await press("j")
        await press("Enter")
        await expect(page.locator("article.message.chosen")).to_contain_text("valve")
        for key in "gr":
            await press(key)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
        await expect(page.locator("tr.row").first).to_be_visible()
        question = "Гряже, нічний поїзд теж ще є?"
        while question not in await page.evaluate("document.activeElement.textContent.slice(0, 200)"):
            await press("j")
        await press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text(question)
        await expect(
            page.get_by_role("group", name="Request", exact=True).get_by_role("button", name="Request 2")
        ).to_have_attribute("aria-pressed", "true")
        await press("[")
        await expect(
            page.get_by_role("group", name="Request", exact=True).get_by_role("button", name="Request 1")
        ).to_have_attribute("aria-pressed", "true")
        await press("w")
        await expect(page.locator(".wire pre.json")).to_contain_text('"systemInstruction"')
        await press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        await press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await press("t")
        await expect(page.locator("html")).to_have_attribute("data-theme", "light")
