"""What the owner changes from the page, with its effect on the bot."""

from playwright.async_api import expect

from browser.kitchen import KITCHEN, MAYA, Told
from browser.visits import Shown, picture, visit
from tertulia.inspector.people import person
from tertulia.inspector.places import place_key

PLACE = place_key(KITCHEN)


async def facts_of_maya(told: Told) -> list[str]:
    return [one.fact.text for one in (await person(told.store, f"telegram.{MAYA.id}")).facts]


async def test_a_fact_is_forgotten_once_its_plan_was_shown_and_agreed_to(kitchen: Shown, told: Told) -> None:
    async with visit(kitchen, "/people") as visited:
        page = visited.page
        await page.locator(f"a[href$='/people/telegram.{MAYA.id}']").click()  # rooms may have a Maya too
        fact = page.get_by_role("button", name="Works as a translator.")
        await fact.click()
        card = page.get_by_role("complementary", name="Fact")
        await expect(card.locator("blockquote")).to_contain_text("I work as a translator.")

        await card.get_by_role("button", name="Forget").click()
        await expect(card.locator(".plan li").first).to_contain_text("fact")
        known = await facts_of_maya(told)
        await card.get_by_role("button", name="Forget it").click()
        await expect(fact).to_have_count(0)

        await visited.open(f"/p/{PLACE}?before=20")
        await expect(page.locator("article.message").first).to_be_visible()
        await expect(page.locator(".log")).not_to_contain_text("I work as a translator.")

    assert "Works as a translator." in known
    assert "Works as a translator." not in await facts_of_maya(told)


async def test_a_doubtful_reply_is_sent_again_from_home(kitchen: Shown, told: Told) -> None:
    sent = list(told.platform.deliveries)
    async with visit(kitchen) as visited:
        page = visited.page
        await expect(page.get_by_role("heading", level=1)).to_have_text("Гряг answers. One delivery waits for you.")
        await picture(page, "home")

        await page.locator("article.decide").get_by_role("button", name="Send again").click()
        await page.locator("article.decide .confirm").get_by_role("button", name="Send again").click()

        await expect(page.get_by_role("heading", level=1)).not_to_contain_text("delivery")
    again = [delivery.reply.text for delivery in told.platform.deliveries[len(sent) :]]
    assert again == ["Є: 041 о 22:05, 480 грн. Але ти в поїздах не спиш."]
