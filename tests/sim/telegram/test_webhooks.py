"""Webhooks: deliveries to a loopback address, the secret, retries, answers that are calls, and conflicts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sim.telegram.api import Api
from tertulia.sim.server import Served
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim


class Bot:
    """A bot's web server: it answers with *answers*, then with success."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.taken: list[tuple[str | None, Any]] = []
        self.news = asyncio.Event()

    async def update(self, request: Request) -> Response:
        secret = request.headers.get("x-telegram-bot-api-secret-token")
        self.taken.append((secret, orjson.loads(await request.body())["message"]["text"]))
        self.news.set()
        return self.answers.pop(0) if self.answers else Response()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        async with Served(Starlette(routes=[Route("/hook", self.update, methods=["POST"])])) as served:
            yield f"{served.url}/hook"


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSim]:
    async with TelegramSim(webhook_retry=0.001) as sim:
        yield sim


@pytest.fixture
def alice(sim: TelegramSim) -> SimUser:
    return sim.user("Alice")


@pytest.fixture
def chat(sim: TelegramSim, alice: SimUser) -> SimChat:
    return sim.private(alice)


async def test_updates_are_posted_in_order_until_they_are_taken(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    alice.send(chat, "before")
    bot = Bot(Response(status_code=500), Response(status_code=500))

    async with bot.served() as url:
        assert await api("setWebhook", url=url, secret_token="s-1") == {
            "ok": True,
            "result": True,
            "description": "Webhook was set",
        }
        alice.send(chat, "after")
        while len(bot.taken) < 4:
            await bot.news.wait()
            bot.news.clear()

    assert bot.taken == [("s-1", text) for text in ("before", "before", "before", "after")]
    info = await api.result("getWebhookInfo")
    assert info["last_error_message"] == "Wrong response from the webhook: 500 Internal Server Error"
    assert (info["url"], info["max_connections"], info["has_custom_certificate"]) == (url, 40, False)


async def test_an_answer_may_be_a_call(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    bot = Bot(JSONResponse({"method": "sendMessage", "chat_id": chat.id, "text": "answered"}))

    async with bot.served() as url:
        await api.result("setWebhook", url=url)
        alice.send(chat, "hello")
        await sim.until(lambda: len(chat.messages) == 2)

    assert chat.texts == ["hello", "answered"]


async def test_polling_and_a_webhook_exclude_each_other(sim: TelegramSim, api: Api) -> None:
    poll = asyncio.create_task(api.refusal("getUpdates", timeout=50))
    await sim.until(lambda: len(sim.calls) == 1)
    await api.result("setWebhook", url="http://127.0.0.1:1/hook")

    assert await poll == "409 Conflict: terminated by setWebhook request"
    assert await api.refusal("getUpdates") == (
        "409 Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook "
        "first"
    )
    for description in ("Webhook was deleted", "Webhook is already deleted"):
        assert (await api("deleteWebhook"))["description"] == description
    assert await api.result("getUpdates", offset=1) == []


async def test_pending_updates_can_be_dropped(api: Api, alice: SimUser, chat: SimChat) -> None:
    alice.send(chat, "old")
    assert (await api.result("getWebhookInfo"))["pending_update_count"] == 1

    await api.result("deleteWebhook", drop_pending_updates=True)

    assert await api.result("getWebhookInfo") == {"url": "", "has_custom_certificate": False, "pending_update_count": 0}


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"url": "http://example.com"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        (
            {"url": "https://example.com:8080"},
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        ({"url": "https://a.b"}, "bad webhook: Failed to resolve host: Name or service not known"),
        ({"url": "http://127.0.0.1:x"}, "invalid webhook URL specified"),
        ({"url": "http://127.0.0.1", "secret_token": "a b"}, "secret token contains unallowed characters"),
        ({"url": "http://127.0.0.1", "secret_token": "a" * 257}, "secret token is too long"),
    ],
)
async def test_what_is_refused(api: Api, params: dict[str, str], refusal: str) -> None:
    assert await api.refusal("setWebhook", **params) == f"400 Bad Request: {refusal}"


async def test_a_webhook_is_set_once_a_second(sim: TelegramSim, api: Api) -> None:
    await api.result("setWebhook", url="http://127.0.0.1:1/a", allowed_updates=["message"])
    assert await api.refusal("setWebhook", url="http://127.0.0.1:1/b") == "429 Too Many Requests: retry after 1"

    sim.clock.advance(1)

    same = await api("setWebhook", url="http://127.0.0.1:1/a")
    assert same["description"] == "Webhook is already set"
    assert (await api.result("getWebhookInfo"))["allowed_updates"] == ["message"]
