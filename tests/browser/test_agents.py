"""Walks through the page of a bot with three agents: who is where, who answered what, and naming one in a room."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec import Struct
from playwright.async_api import Browser, expect

from browser.kitchen import KEY, MODEL
from browser.test_access import grave_violations
from browser.visits import DESK, PHONE, Shown, shown_page, visit
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.rooms import Guest
from tertulia.messages import Author, Message, Place
from tertulia.models import Gemini
from tertulia.parts import Text
from tertulia.platforms.web.room_links import RoomTerms, link_of, open_room
from tertulia.platforms.web.room_platform import RoomPlatform
from tertulia.sim import GeminiSim
from tertulia.sim.behaviours import Answer, Ask
from tertulia.store import Store

SAYS = {"Socrates": "I know nothing. Plato?", "Plato": "I do.", "<b>Hypatia</b>": "The stars do."}


class Philosophers:
    """Answers as the one who is asked."""

    def answer(self, ask: Ask) -> Answer:
        asked = json.dumps(ask.request, ensure_ascii=False)
        return Answer(text=next(says for name, says in SAYS.items() if f"You are {name}." in asked), thoughts="")


class Agora(Struct, frozen=True):
    shown: Shown
    engine: Engine
    place: Place
    link: str


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agora(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agora]:
    path: Path = tmp_path_factory.mktemp("agora") / "agora.db"
    agents = [
        Agent(name=name, persona=Persona(text=f"You are {name}."), names=("Hypatia",) if "Hypatia" in name else ())
        for name in SAYS
    ]

    def now() -> datetime:
        return datetime.now(UTC)

    async with AsyncExitStack() as opened:
        sim = await opened.enter_async_context(GeminiSim(behaviour=Philosophers()))
        model = await opened.enter_async_context(Gemini(MODEL, key=KEY, base_url=sim.url))
        store = await opened.enter_async_context(Store.open(path))
        rooms = RoomPlatform(store.rooms, store.media, now=now, name="Socrates")
        engine = await opened.enter_async_context(
            Engine(store, model, [rooms], agents=agents, behavior=Behavior(debounce=0.0))
        )
        opened.callback(asyncio.create_task(rooms.run(engine.inbox(rooms.name))).cancel)
        room, key = await open_room(store.rooms, RoomTerms(title="Agora"), at=now())
        ann = Guest(room=room.id, id="a1", name="Ann", joined_at=now())
        await store.rooms.join(ann, key=None, cookie="c")
        for number, text in enumerate(("Socrates, is bread good?", "Nice weather.", "Hypatia, what shines?")):
            author = Author(id=ann.id, name=ann.name)
            message = Message(id=f"m{number}", place=room.place, author=author, sent_at=now(), parts=(Text(text=text),))
            await engine.receive(message)
            await engine.settled()
        site = {"engine": engine, "rooms": rooms, "now": now, "agent": "Socrates"}
        shown = await opened.enter_async_context(shown_page(browser, store, path, **site))
        yield Agora(shown, engine, room.place, link_of(shown.page.url, room.id, key))


async def test_each_agent_has_a_cell_for_each_message(agora: Agora) -> None:
    async with visit(agora.shown, f"/p/web.{agora.place.id}/decisions") as visited:
        page = visited.page
        rows = page.locator("table.decisions tbody tr")
        cells = [
            (await row.locator("td.main").inner_text(), await row.locator("td.cell").all_inner_texts())
            for row in await rows.all()
        ]
        heads = await page.locator("table.decisions th").all_inner_texts()

        assert heads[3:] == ["Socrates", "Plato", "<b>Hypatia</b>"]
        assert [(text, [" ".join(cell.split()) for cell in found]) for text, found in cells] == [
            ("The stars do.", ["not addressed", "not addressed", "wrote it"]),
            ("Hypatia, what shines?", ["not addressed", "not addressed", "answered named"]),
            ("Nice weather.", ["not addressed", "not addressed", "not addressed"]),
            ("I know nothing. Plato?", ["wrote it", "agents in a row reply to it", "not addressed"]),
            ("I do.", ["answered reply to it", "wrote it", "not addressed"]),
            ("I know nothing. Plato?", ["wrote it", "answered named", "not addressed"]),
            ("Socrates, is bread good?", ["answered named", "not addressed", "not addressed"]),
        ]
        await rows.filter(has_text="Socrates, is bread good?").locator("td.cell a").click()
        await expect(page.locator(".heading .chip").first).to_have_text("Socrates")


async def test_agents_are_named_where_they_are_and_where_they_speak(agora: Agora) -> None:
    async with visit(agora.shown, f"/p/web.{agora.place.id}") as visited:
        page = visited.page
        await expect(page.locator(".aside .people-list li")).to_have_count(3)
        await expect(page.locator(".aside .people-list li").first).to_contain_text("answers by default, here since")
        await expect(page.locator("article.message", has_text="is bread good").locator(".chip")).to_have_text(
            "Socrates: named"
        )
        await page.get_by_role("link", name="Agents").click()
        await expect(page.locator("table.agents tbody tr")).to_have_count(3)
        await visited.open("/usage?by=agent")
        await expect(page.locator("table.usage tbody tr")).to_have_count(3)
        await visited.open("/runs")
        await expect(page.locator("table.runs td.agent").first).to_have_text("<b>Hypatia</b>")


async def test_on_a_phone_in_ukrainian_only_those_who_were_meant_have_a_cell(agora: Agora) -> None:
    async with visit(agora.shown, f"/p/web.{agora.place.id}/decisions", viewport=PHONE) as visited:
        await visited.page.get_by_role("button", name="More").click()
        await visited.page.get_by_role("dialog").get_by_role("button", name="Українською").click()
        await visited.page.keyboard.press("Escape")
        row = visited.page.locator("tr", has_text="Socrates, is bread good?")
        await expect(row.locator("td.cell:visible")).to_have_count(1)
        assert await visited.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await visited.open("/agents")
        await expect(visited.page.get_by_role("heading", level=1)).to_have_text("Агенти")
        assert await visited.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", PHONE)])
async def test_everybody_can_use_the_views_of_several_agents(agora: Agora, scheme: str, size: dict[str, int]) -> None:
    place, room = f"/p/web.{agora.place.id}", f"/r/{agora.place.id}"
    async with visit(agora.shown, viewport=size, color_scheme=scheme) as visited:
        for path in ("/agents", "/runs", "/usage?by=agent", place, f"{place}/decisions", f"{place}/strata", room):
            await visited.open(path)
            assert (path, await grave_violations(visited.page)) == (path, [])
            assert await visited.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_guest_names_an_agent_and_sees_who_answers(agora: Agora) -> None:
    async with visit(agora.shown, role=None, link=agora.link) as visited:
        page = visited.page
        await page.get_by_label("name").fill("Ben")
        visited.faults.clear()  # nobody had joined yet: 401
        await page.get_by_role("button", name="Enter").click()
        await page.get_by_role("group", name="Whom you speak to").get_by_role("button", name="Plato").click()
        await page.keyboard.type("are you there?")
        await page.keyboard.press("Enter")

        answer = page.locator("article.message", has_text="I do.").last
        await expect(answer.locator(".name")).to_have_text("Plato")
        await expect(answer).to_contain_text("agent")
        await expect(page.locator(".people-list li")).to_have_count(5)
