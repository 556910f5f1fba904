"""A room by a link: three people, each with a browser, and the agent."""

from contextlib import AsyncExitStack

import pytest
from playwright.async_api import FilePayload, Page, expect

from browser.kitchen import Told, a_menu, calls
from browser.test_access import grave_violations
from browser.test_hostile import FOREIGN, MARKDOWN, MARKUP
from browser.visits import DESK, PHONE, Shown, picture, visit

STATUSES = "(paths) => Promise.all(paths.map(async (path) => (await fetch(path)).status))"
LONG = " ".join(f"Рядок {number} довгої історії про борщ." for number in range(1, 60))


async def opened_room(shown: Shown) -> str:
    """Open a room as the owner does, and return its link."""
    async with visit(shown, "/places") as visited:
        page = visited.page
        await page.get_by_role("button", name="Open a room").click()
        await page.get_by_label("Title").fill("Dinner plans")
        await page.get_by_role("button", name="Open a room").click()
        link = await page.locator(".opened .link").text_content()
    assert link is not None
    return link


async def enter(page: Page, name: str) -> Page:
    await page.get_by_label("Your name").fill(name)
    await page.get_by_role("button", name="Enter").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Dinner plans")
    return page


async def write(page: Page, text: str) -> None:
    await page.get_by_role("textbox").fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_three_people_talk_with_the_agent_in_a_room(kitchen: Shown, told: Told) -> None:
    link = await opened_room(kitchen)
    async with AsyncExitStack() as opened:
        visits = [
            await opened.enter_async_context(visit(kitchen, role=None, link=link, **options))
            for options in ({}, {"color_scheme": "dark"}, {"viewport": PHONE})
        ]
        names = ("Maya", "Taras", "Olena")
        maya, taras, olena = [await enter(one.page, name) for one, name in zip(visits, names, strict=True)]
        noted = visits[0].faults
        everybody = (maya, taras, olena)
        for one in visits:  # before they entered they were nobody
            assert all("401 (Unauthorized)" in fault for fault in one.faults)
            one.faults.clear()
        for page in everybody:
            await expect(page.locator(".people-list bdi")).to_have_text(["Maya", "Taras", "Olena", "Гряг"])

        # An image, a tool, and an answer that is read while it is written
        told.teller.prepare(calls("calculate", expression="145+160+150"), "Борщ, деруни й вареники: 455 грн.")
        file: FilePayload = {"name": "menu.png", "mimeType": "image/png", "buffer": a_menu()}
        await maya.locator("input[type=file]").set_input_files([file])
        await write(maya, "Гряже, що тут візьмемо на трьох?")
        for page in everybody:
            photo = page.locator("article.message", has_text="що тут візьмемо").get_by_role("img")
            await expect(photo).to_have_js_property("complete", True)
            assert await photo.evaluate("(one) => one.naturalWidth") == 480
            answer = page.locator("article.message", has_text="455 грн.")
            await expect(answer.locator("details summary", has_text="calculate")).to_contain_text("145+160+150")
        await expect(olena.locator(".live")).to_have_count(0)

        told.teller.prepare(LONG)
        await write(taras, "Гряже, розкажи довгу історію")
        await expect(olena.locator(".live")).to_contain_text("Рядок 3 довгої")
        await expect(olena.get_by_role("button", name="Stop")).to_have_count(0)  # who asked stops it, and the owner
        await taras.get_by_role("button", name="Stop").click()
        for page in everybody:
            await expect(page.locator(".live")).to_have_count(0)
            await expect(page.get_by_role("log")).not_to_contain_text("Рядок 59")

        # A reply, which the others see as one, and an edit
        asked = olena.locator("article.message", has_text="що тут візьмемо")
        await asked.focus()
        await asked.get_by_role("button", name="Reply").click()
        await write(olena, "Мені дерун")
        reply = maya.locator("article.message", has_text="Мені дерун")
        await expect(reply.locator(".quote")).to_have_text("Maya: [menu.png] Гряже, що тут візьмемо на трьох?")
        await olena.get_by_role("textbox").press("ArrowUp")
        await olena.get_by_role("textbox").fill("Мені деруни")
        await olena.get_by_role("button", name="Save").click()
        for page in everybody:
            await expect(page.locator("article.message", has_text="Мені деруни")).to_contain_text("edited")

        await picture(maya, "room")
        # A guest sees nothing but the room.
        assert await maya.evaluate(STATUSES, ["/api/home", "/api/people", "/api/search?q=valve"]) == [404, 404, 404]
        noted.clear()  # of the browser, about these


async def test_what_the_bot_says_by_itself_is_read_where_it_was_said(kitchen: Shown) -> None:
    refusal = "Почати цю розмову спочатку може лише адміністратор."
    async with visit(kitchen, role=None, link=await opened_room(kitchen)) as visited:
        page = await enter(visited.page, "Maya")
        visited.faults.clear()
        texts = page.locator("article.message:not(.pending) div.text")
        for text in ("Перше", "/clear", "Друге"):  # a guest is no administrator
            await write(page, text)
            await expect(texts.last).to_have_text(refusal if text == "/clear" else text)
        await expect(page.locator("[aria-live=polite]")).to_contain_text(f"Гряг: {refusal}")
        await page.reload()
        await expect(texts).to_have_text(["Перше", refusal, "Друге"])


async def test_a_room_needs_no_mouse(kitchen: Shown, told: Told) -> None:
    async with visit(kitchen, role=None, link=await opened_room(kitchen)) as visited:
        page, press, type_ = visited.page, visited.page.keyboard.press, visited.page.keyboard.type
        messages = page.locator("article.message:not(.pending, .flat)")

        async def tab_to(name: str) -> None:
            while name not in await page.evaluate(
                "document.activeElement.ariaLabel || document.activeElement.innerText"
            ):
                await press("Tab")

        async def post(text: str) -> None:
            await type_(text)
            await press("Enter")

        await expect(page.get_by_label("Your name")).to_be_visible()
        visited.faults.clear()
        await press("Tab")
        while await page.evaluate("document.activeElement.tagName") != "INPUT":
            await press("Tab")
        await post("Maya")
        await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
        for text in ("Перше", "Друге"):
            await post(text)
            await expect(messages.last).to_contain_text(text)
        await press("ArrowUp")
        await expect(page.get_by_role("button", name="Save")).to_be_visible()
        await post(" й третє")
        await expect(messages.last).to_contain_text("Друге й третє")

        await press("Shift+Tab")
        await press("j")
        for _ in range(2):
            await press("k")
        await expect(messages.first).to_be_focused()
        await press("r")
        await post("Відповідь")
        await expect(messages.last.locator(".quote")).to_have_text("Maya: Перше")
        await press("Shift+Tab")
        await press("j")
        await tab_to("React")
        await press("Enter")
        await press("Shift+Tab")
        await tab_to("React with 🎉")
        await press("Enter")
        await expect(page.locator(".reactions")).to_have_text("🎉 1")

        told.teller.prepare(calls("calculate", expression="2*3"), "Шість.", LONG)
        await page.get_by_role("textbox").focus()
        await post("Гряже, порахуй")
        await expect(messages.last).to_contain_text("Шість.")
        await press("Shift+Tab")
        for _ in range(5):
            await press("j")
        await tab_to("calculate")
        await press("Enter")
        await expect(page.locator("details[open] pre").first).to_contain_text('"2*3"')
        await page.get_by_role("textbox").focus()
        await post("Гряже, розкажи довгу історію")
        await expect(page.locator(".live")).to_contain_text("Рядок 3 довгої")
        await press("Shift+Tab")
        await press("s")
        await expect(page.locator(".live")).to_have_count(0)
        await expect(page.get_by_role("log")).not_to_contain_text("Рядок 59")


@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", PHONE)])
async def test_axe_finds_nothing_serious_in_a_room_nor_at_its_door_and_hostile_texts_do_nothing(
    kitchen: Shown, told: Told, scheme: str, size: dict[str, int]
) -> None:
    link = await opened_room(kitchen)
    async with visit(kitchen, role=None, link=link, viewport=size, color_scheme=scheme) as visited:
        page = visited.page
        await expect(page.get_by_label("Your name")).to_be_visible()
        visited.faults.clear()
        found = {"door": await grave_violations(page)}
        await enter(page, MARKUP[0])
        texts = [*MARKUP, *MARKDOWN]
        for number, text in enumerate(texts):
            await write(page, text)
            await expect(page.locator("article.message:not(.pending)")).to_have_count(number + 1)
        told.teller.prepare(calls("calculate", expression="1+1"), "\n\n".join(texts))
        await write(page, f"Гряже, {MARKUP[1]}")
        await expect(page.locator("article.message").last.locator("details")).to_have_count(1)
        found["room"] = await grave_violations(page)
        foreign = [one for one in await page.evaluate(FOREIGN) if 'class="composer"' not in one]
        is_wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        host = await page.locator(".people-list bdi").first.text_content()

    assert found == {"door": [], "room": []}
    assert (foreign, is_wide, host) == ([], False, MARKUP[0])
