"""A page of somebody else, opened in the browser of the owner, gets nothing done and sees nothing."""

from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from browser.visits import Shown, Visit, visit
from tertulia.sim.server import Served

ATTACKS = """async ({url, order}) => {
  const tried = {};
  const attempt = async (name, act) => {
    try { tried[name] = await act(); }
    catch (failure) { tried[name] = "refused"; }
  };
  const loads = (tag, fields) => new Promise((done, failed) => {
    const one = Object.assign(document.createElement(tag), fields, {onload: () => done("loaded"), onerror: failed});
    document.body.append(one);
  });
  const send = (path, options) => async () => (await fetch(url + path, {credentials: "include", ...options})).type;
  const body = JSON.stringify(order);
  await attempt("blind POST", send("/api/orders", {method: "POST", mode: "no-cors", body}));
  const headers = {"content-type": "application/json"};
  await attempt("POST of JSON", send("/api/orders", {method: "POST", headers, body}));
  await attempt("beacon", async () => navigator.sendBeacon(url + "/api/orders", body) ? "sent" : "not sent");
  await attempt("DELETE", send("/api/session", {method: "DELETE"}));
  await attempt("GET", send("/api/home"));
  await attempt("blind GET", send("/api/home", {mode: "no-cors"}));
  await attempt("img", () => loads("img", {src: url + "/static/icon.svg"}));
  await attempt("script", () => loads("script", {src: url + "/api/home"}));
  await attempt("module", () => loads("script", {type: "module", src: url + "/static/app.js"}));
  await attempt("style", () => loads("link", {rel: "stylesheet", href: url + "/static/app.css"}));
  await attempt("stream", () => new Promise((done, failed) => {
    const source = new EventSource(url + "/api/places/x/events", {withCredentials: true});
    Object.assign(source, {onopen: () => done("opened"), onerror: failed});
  }));
  return tried;
}"""
FRAME = """(url) => new Promise((done) => {
  const frame = Object.assign(document.createElement("iframe"), {src: url, onload: () => done("loaded")});
  document.body.append(frame);
  self.framed = frame.contentWindow;
})"""
READ = """(name) => { try { return self[name].document.title; } catch { return "nothing"; } }"""
FORM = """({url, order}) => {
  const fields = {method: "POST", action: url + "/api/orders", enctype: "text/plain"};
  const form = Object.assign(document.createElement("form"), fields);
  const [start, end] = JSON.stringify({...order, x: "="}).split("=");
  form.append(Object.assign(document.createElement("input"), {name: start, value: end}));
  document.body.append(form);
  form.submit();
}"""


async def nothing(request: Request) -> HTMLResponse:
    return HTMLResponse("<!doctype html><title>A game</title><body>")


async def foreign_page(visited: Visit, url: str) -> Page:
    page = await visited.page.context.new_page()
    await page.goto(url)
    return page


async def test_a_foreign_page_gets_nothing_done_whether_it_is_of_the_same_site_or_not(
    kitchen: Shown,
) -> None:
    async with Served(Starlette(routes=[Route("/", nothing)])) as server, visit(kitchen) as visited:
        before = [await visited.ask(path) for path in ("/outbox", "/orders", "/session")]
        given = {"url": kitchen.page.url, "order": {"kind": "stop place", "place": "telegram.-100200"}}
        # Another port of 127.0.0.1 is the same site, to which browsers send even strict cookies; localhost is not.
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            page = await foreign_page(visited, url)
            tried = await page.evaluate(ATTACKS, given)
            async with page.expect_popup() as popup:
                await page.evaluate("(url) => { self.opened = open(url); }", kitchen.page.url)
            await (await popup.value).wait_for_load_state()
            framed = await page.evaluate(FRAME, kitchen.page.url)
            assert tried == {**dict.fromkeys(tried, "refused"), "beacon": "sent"}
            assert await page.evaluate(READ, "opened") == await page.evaluate(READ, "framed") == "nothing"
            assert framed == "loaded"  # an error of the browser
            assert "Tertulia" not in await page.frames[1].content()

            await page.evaluate(FORM, given)
            await page.wait_for_url(f"{kitchen.page.url}/api/orders")
            await expect(page.locator("body")).to_contain_text("this was not sent by the page itself")
        after = [await visited.ask(path) for path in ("/outbox", "/orders", "/session")]

    assert after == before
