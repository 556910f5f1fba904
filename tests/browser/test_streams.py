"""Nothing is lost where the network fails, and a long history costs what is shown of it."""

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from playwright.async_api import Browser, expect

from browser.cables import cable_to
from browser.kitchen import MAYA, WITH_MAYA, Told
from browser.visits import END, Shown, shown_page, visit
from tertulia.formats.imported import ImportedMessage
from tertulia.inspector.places import place_key
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text
from tertulia.store import Store

PLACE = place_key(WITH_MAYA)
# A reader of the stream beside the view: the numbers of its events, and the newest text of each message
READER = """([url, after]) => {
  self.seen = {ids: [], texts: {}};
  let opened = 0;
  const source = new EventSource(`${url}?after=${after}`);
  self.cameBack = new Promise((done) => (source.onopen = () => ++opened === 2 && done()));
  source.addEventListener("change", (event) => {
    self.seen.ids.push(Number(event.lastEventId));
    for (const one of JSON.parse(event.data).messages || [])
      self.seen.texts[one.number] = one.message.parts.map((part) => part.text || "").join("");
  });
}"""
CROWD = Place(platform="telegram", id="-1", kind="group", title="Crowd")
MANY, MOST_ROWS = 50_000, 400


async def test_a_stream_that_was_cut_off_resumes_without_a_gap_or_a_double(kitchen: Shown, told: Told) -> None:
    say = told.teller.say
    async with cable_to(kitchen.page.port) as cable:
        url = f"http://127.0.0.1:{cable.port}"
        link = kitchen.page.links["owner"].replace(kitchen.page.url, url)
        async with visit(replace(kitchen, page=replace(kitchen.page, url=url)), role=None, link=link) as visited:
            page = visited.page
            await expect(page.get_by_role("heading", level=1)).to_contain_text("Гряг")
            await visited.open(f"/p/{PLACE}")
            log = page.get_by_role("log")
            await expect(log).to_contain_text("About 500 grams.")
            before = await visited.ask(f"/places/{PLACE}")
            await page.evaluate(READER, [f"{url}/api/places/{PLACE}/events", before["event"]])
            await say(MAYA, "Before the cut?", "It is whole.", place=WITH_MAYA)
            await expect(log).to_contain_text("It is whole.")

            cable.cut()
            await say(MAYA, "While it is cut?", "You will see this later.", place=WITH_MAYA)
            await say(MAYA, "Still cut?", "And this.", place=WITH_MAYA)
            await expect(log).not_to_contain_text("Still cut?")
            await told.teller.post(MAYA, "Mended?", "Yes, while these words are written.", place=WITH_MAYA)
            cable.mend()
            await page.evaluate("self.cameBack")
            await told.engine.settled()
            await say(MAYA, "After all?", "All of it.", place=WITH_MAYA)

            await expect(log).to_contain_text("All of it.")
            stored = [text_of(row["message"]) for row in (await visited.ask(f"/places/{PLACE}"))["messages"]]
            await expect(log.locator("article.message div.text")).to_have_text(stored)
            seen = await page.evaluate("self.seen")
            refused = [fault for fault in visited.faults if "net::ERR_" in fault]
            assert visited.faults == refused != []
            visited.faults.clear()

    assert seen["ids"] == sorted(set(seen["ids"]))
    assert list(seen["texts"].values()) == stored[len(before["messages"]) :]


async def test_of_50_000_messages_the_newest_are_there_at_once_and_few_rows_ever(
    browser: Browser, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    people = [Author(id=str(number), name=f"Person {number}") for number in range(400)]
    async with Store.open(tmp_path / "bot.db") as store:
        for first in range(0, MANY, 2_000):
            await store.imports.add([
                ImportedMessage(message=Message(
                    id=f"m{number}", place=CROWD, author=people[number % 400], parts=(Text(text=f"Message {number}"),),
                    sent_at=END - timedelta(seconds=60 * (MANY - number)),
                ))
                for number in range(first, first + 2_000)
            ])  # fmt: skip
        await store.imports.finish(CROWD, learn=False)
        async with shown_page(browser, store, tmp_path / "bot.db") as shown, visit(shown) as visited:
            page, rows = visited.page, visited.page.locator("article.message")
            asked: list[str] = []
            page.on(
                "request", lambda one: asked.append(one.url) if f"/api/places/{place_key(CROWD)}" in one.url else None
            )
            began = time.perf_counter()
            await page.goto(f"{visited.url}/p/{place_key(CROWD)}")
            await expect(rows.last).to_contain_text(f"Message {MANY - 1}")
            first_screen = time.perf_counter() - began
            assert len([one for one in asked if not one.startswith("/events")]) <= 4
            assert await rows.count() <= 4 * 60

            shown_rows: list[int] = []
            waits: list[float] = []
            while await rows.filter(has_text=f"Message {MANY - 600}").count() == 0:
                oldest = await rows.first.text_content() or ""
                began = time.perf_counter()
                await page.get_by_role("button", name="Earlier messages").click()
                await expect(rows.first).not_to_have_text(oldest)
                waits.append(time.perf_counter() - began)
                shown_rows.append(await rows.count())

    record_property("first screen, seconds", round(first_screen, 2))
    record_property("60 earlier messages, seconds", round(statistics.median(waits), 2))
    assert max(shown_rows) == MOST_ROWS


def text_of(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"])
