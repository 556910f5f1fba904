"""What people and models write does nothing in the page: it is text, wherever it comes from."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, expect

from browser.views import all_views
from browser.visits import END, Shown, shown_page, visit
from fakes import Files
from tertulia.context.values import Persona
from tertulia.engine.background import RealClock
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.memory import Memory
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, ToolCall
from tertulia.store import Store

MARKUP = (
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "<svg/onload=alert(1)>",
    '<iframe src="javascript:alert(1)"></iframe>',
    "<style>body{display:none}</style>",
    '<base href="http://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=http://evil.example/">',
    '<form action="http://evil.example/"><button>go</button></form>',
    "{{constructor.constructor('alert(1)')()}} ${alert(1)}",
)
MARKDOWN = (
    "[click](javascript:alert(1)) ![pixel](http://evil.example/p.png) <javascript:alert(1)>",
    '[data](data:text/html,<script>alert(1)</script>) ![x](x" onerror="alert(1))',
    "```html\n</pre><script>alert(1)</script>\n```",
    "| <b>a</b> | b |\n|---|---|\n| <img src=x onerror=alert(1)> | c |",
)
# JSON in the shape of an element of the page's own library
ELEMENT = {"type": "img", "props": {"src": "x", "onerror": "alert(1)"}, "key": None, "ref": None, "__v": 1}
MALLORY = Author(id='7"><img src=x onerror=alert(1)>', name=f"Mallory {MARKUP[0]}", username="m'><b>", language='"><x')
PLACE = Place(platform="recorded", id="-1/../<img src=x onerror=alert(1)>", kind="group", title=f"Title {MARKUP[1]}")
AGENT = f"Gryag {MARKUP[2]}"
FOREIGN = """[...document.documentElement.querySelectorAll("*")].filter((one) =>
  ["IFRAME", "OBJECT", "EMBED", "BASE", "FORM", "STYLE", "SCRIPT", "META", "LINK"].includes(one.tagName)
    && !(one.closest("head") && (one.src || one.href || one.name || one.getAttribute("charset")))
  || [...one.attributes].some(({name, value}) => name.startsWith("on") || /^\\s*(javascript|data):/i.test(value))
  || one.matches("img:not([src*='/api/files/'])")).map((one) => one.outerHTML.slice(0, 200))"""


async def bad_tool(text: str, element: dict[str, Any]) -> dict[str, Any]:
    """Return what it was given."""
    return {"html": text, "element": element, "list": [element, text]}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def hostile(browser: Browser, tmp_path_factory: Any) -> AsyncIterator[Shown]:
    """The page of a bot whose people, places, model and tools are hostile."""
    path: Path = tmp_path_factory.mktemp("hostile") / "bot.db"
    answers = [*MARKUP, *MARKDOWN]
    model = Scripted([ToolCall(id="1", name="bad_tool", args={"text": MARKUP[1], "element": ELEMENT})], *answers)
    platform = Files(lambda media: f"<html><script>alert(1)</script>{media.label}</html>".encode())
    clock = RealClock(now=lambda: END)
    async with Store.open(path) as store:
        engine = Engine(
            store,
            model,
            [platform],
            persona=Persona(name=AGENT, name_pattern="gryag"),
            tools=[bad_tool],
            memory=Memory(store, clock=clock),
            behavior=Behavior(debounce=0.0),
            clock=clock,
        )
        async with engine:
            for number, text in enumerate(answers):
                files = [
                    Media(
                        media_kind=kind,
                        unique_id=f"{kind}{number}",
                        file_id=kind,
                        mime=mime,
                        label=f"{text[:40]}.{end}",
                    )
                    for kind, mime, end in (("document", "text/html", "html"), ("photo", "image/svg+xml", "svg"))
                ]
                before = Quote(message_id=f"{number - 1}<b>/#", author=MALLORY, parts=(Text(text=text),))
                said = Message(
                    id=f"{number}<b>/#",
                    place=PLACE,
                    author=MALLORY,
                    sent_at=END,
                    parts=(*files, Text(text=f"Gryag, I live in {text} and I love {text}")),
                    reply_to=before if number else None,
                )
                await engine.receive(said)
                await engine.settled()
            platform.fail_after.append(TimeoutError(MARKUP[0]))
            await engine.receive(
                Message(id="last", place=PLACE, author=MALLORY, sent_at=END, parts=(Text(text="gryag"),))
            )
            await engine.settled()
            async with shown_page(browser, store, path, engine=engine, agent=AGENT) as shown:
                yield shown


async def test_hostile_texts_are_texts_in_every_view(hostile: Shown) -> None:
    found: dict[str, list[str]] = {}
    async with visit(hostile) as visited:
        views = await all_views(visited)
        for name, path in views.items():
            await visited.open(path)
            for details in await visited.page.locator("details:not([open]) summary").all():
                await details.click()
            found[name] = await visited.page.evaluate(FOREIGN)

        await visited.open(views["place"])
        for text in MARKUP:
            await expect(visited.page.locator(".log")).to_contain_text(f"I live in {text} and I love {text}")
        await expect(visited.page.locator("article bdi.name").first).to_have_text(MALLORY.name)
        await expect(visited.page.locator(".crumbs")).to_contain_text(str(PLACE.title))

    assert {name: elements for name, elements in found.items() if elements} == {}
