"""A past request in the browser: in another profile beside itself, and sent to a model once its cost is shown."""

from playwright.async_api import expect

from browser.kitchen import Told
from browser.visits import Shown, visit
from tertulia.engine.replay.past_runs import runs_to_replay

QUESTION = "Гряже, о котрій зустріч біля пекарні?"


async def test_a_request_is_shown_in_another_profile_and_sent_again(kitchen: Shown, told: Told) -> None:
    store = told.store
    place = next(one for one in await store.place_settings.listed() if one.title == "Кухня")
    run = (await runs_to_replay(store, place, most=50))[-1]
    count = await store.log.count(place)
    told.teller.prepare("О 19:30.")
    async with visit(kitchen, f"/run/{run}?tab=replay") as visited:
        page = visited.page
        await page.get_by_label("Profile").select_option("plain")
        before, after = page.locator(".replay pre.diff").first, page.locator(".replay pre.diff").last
        await expect(before.locator("del").first).to_be_visible()
        await expect(after).to_contain_text(QUESTION)
        await expect(after).not_to_contain_text("# Task Blocks")
        await page.locator("#replay-to").click()
        await expect(page.locator(".sending")).to_contain_text("for what is sent, without the answer")
        await page.locator("#replay-send").click()
        await expect(page.locator("#replay-now")).to_contain_text("О 19:30.")
        await expect(page.locator(".replay .checks .ok")).to_contain_text("rebuilt from the store, as it was sent")
    calls = await store.usage.calls(most=1)

    assert (await store.log.count(place), calls[0].call.purpose) == (count, "replay")


async def test_a_reader_may_look_and_not_send(kitchen: Shown, told: Told) -> None:
    place = next(one for one in await told.store.place_settings.listed() if one.title == "Кухня")
    run = (await runs_to_replay(told.store, place, most=50))[-1]
    async with visit(kitchen, f"/run/{run}?tab=replay&profile=plain", role="reader") as visited:
        await expect(visited.page.locator(".replay pre.diff")).to_have_count(2)
        await expect(visited.page.locator("#replay-to")).to_have_count(0)
