"""Walks through the inspector: from what people read to what the model was sent, and back."""

import json
import re
from typing import Any

from playwright.async_api import Locator, expect

from browser.kitchen import KITCHEN, PERSONA, Told
from browser.visits import PHONE, Shown, picture, visit
from tertulia.inspector.places import place_key

PLACE = place_key(KITCHEN)
QUESTION = "Гряже, о котрій зустріч біля пекарні?"


def sent_to_the_service(told: Told, text: str) -> Any:
    """The request with a question as the simulator received it, without what the page does not show."""
    bodies = [request.body for request in told.sim.requests]
    body = next(one for one in bodies if text in json.dumps(one["contents"][-1], ensure_ascii=False))
    words = re.sub(r'"thoughtSignature": "[^"]*"', '"thoughtSignature": "•••"', json.dumps(body, ensure_ascii=False))
    (mark,) = set(re.findall(r"\[#(\w+)\]", words))
    return json.loads(words.replace(mark, "•••"))


async def test_from_an_answer_one_comes_to_its_request_as_it_went_over_the_wire(kitchen: Shown, told: Told) -> None:
    async with visit(kitchen, f"/p/{PLACE}", permissions=["clipboard-read", "clipboard-write"]) as visited:
        page = visited.page
        answer = page.locator("article.message", has_text="О 19:30: Мая перенесла з 19:00.")

        await answer.get_by_role("link", name="request").click()

        await expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
        await expect(page.locator(".text-pane")).to_contain_text(QUESTION)
        await expect(page.locator(".beside .checks .ok").first).to_contain_text(
            "rebuilt from the store, as it was sent"
        )
        await picture(page, "run")
        await page.get_by_role("button", name="Wire JSON").click()
        await expect(page.locator(".wire pre.json")).to_contain_text('"systemInstruction"')
        await page.get_by_role("button", name="JSON", exact=True).click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = json.loads(await page.evaluate("navigator.clipboard.readText()"))

    assert copied == sent_to_the_service(told, QUESTION)


async def test_a_prefix_that_was_broken_on_purpose_is_named_where_it_broke_and_its_change_is_shown(
    kitchen: Shown,
) -> None:
    async with visit(kitchen, f"/p/{PLACE}/strata") as visited:
        page = visited.page
        strips = page.locator(".strip:not(.head)")
        # From this request on the persona has a sentence more.
        changed = strips.filter(has_text="Гряже, що вдягнути у п’ятницю?")
        marks = await strips.locator(".break.bad").all_text_contents()

        assert (
            await changed.locator(".break.bad").text_content()
            == "broke here, in “instruction”: its instruction changed"
        )
        assert marks.count("broke here, in “instruction”: its instruction changed") == 1
        assert await cells(changed) == ["0 %"]
        await picture(page, "strata")
        for strip in (strips.filter(has_text="Gryag, how much did the plumber take for the valve?"), changed):
            await strip.get_by_role("checkbox").check()

        difference = page.locator("#difference")
        await expect(difference).to_be_in_viewport()
        await expect(difference.locator("[aria-current]")).to_contain_text("instruction")
        await expect(difference.locator("[aria-current]")).to_contain_text("broke here")
        added = difference.locator("ins").first
        await expect(added).to_have_text(" On rainy days you are a little gentler.")
        assert PERSONA.text.endswith(await shown_before(added))
        await expect(difference.locator("del")).to_have_count(0)


async def test_what_is_chosen_in_a_view_is_in_its_address(kitchen: Shown) -> None:
    async with visit(kitchen, f"/p/{PLACE}/strata") as visited:
        page = visited.page
        for at in (0, 1):
            await page.locator(".strip:not(.head)").nth(at).get_by_role("checkbox").check()
        await page.locator("#difference").get_by_role("button", name="recent messages").click()
        await page.reload()
        chosen = page.locator("#difference [aria-current]")
        await expect(chosen).to_contain_text("recent messages")

        await visited.open("/outbox")
        await page.get_by_label("Search in this table").fill("перенесла")
        await page.reload()
        await expect(page.get_by_label("Search in this table")).to_have_value("перенесла")
        await expect(page.locator("article.decide")).to_have_count(1)


async def test_messages_that_scroll_on_while_they_are_left_do_no_harm(kitchen: Shown) -> None:
    async with visit(kitchen, f"/p/{PLACE}") as visited:
        log = await visited.page.query_selector(".log")
        assert log
        await visited.page.get_by_role("link", name="Runs").first.click()
        await expect(visited.page.get_by_role("heading", level=1)).to_have_text("Runs")

        await log.evaluate("(one) => one.dispatchEvent(new Event('scroll'))")


async def cells(strip: Locator) -> list[str]:
    """How much of a request the service had in its cache, as the row says."""
    return [text for text in await strip.get_by_role("cell").all_text_contents() if text.endswith(" %")]


async def shown_before(element: Locator) -> str:
    text: str = await element.evaluate("(one) => one.previousSibling.textContent.slice(-40)")
    return text


async def test_a_phone_reaches_what_the_bar_has_no_room_for(kitchen: Shown) -> None:
    async with visit(kitchen, "/", viewport=PHONE) as visited:
        page = visited.page
        await page.get_by_role("button", name="More").click()
        await page.get_by_role("dialog").get_by_role("link", name="Usage").click()

        await expect(page.get_by_role("heading", level=1)).to_have_text("Usage")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.get_by_role("button", name="More").click()
        await page.get_by_role("dialog").get_by_role("button", name="Українською").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Витрати")
