"""Updates that Telegram posts to us."""

import asyncio
from typing import Any

import httpx2
import pytest

from palaver.errors import InvalidValue
from palaver.platforms.telegram.webhook import MAX_BODY, WebhookApp, secret_of, serve
from palaver.sim.server import Served

SECRET = secret_of("42:secret")


class Stored:
    def __init__(self, error: Exception | None = None) -> None:
        self.updates: list[tuple[int, bytes]] = []
        self._error = error

    async def __call__(self, number: int, raw: bytes) -> None:
        if self._error:
            raise self._error
        self.updates.append((number, raw))


async def post(app: WebhookApp, body: bytes, *, secret: str = SECRET, method: str = "POST") -> int:
    async with Served(app) as served, httpx2.AsyncClient() as client:
        headers = {"x-telegram-bot-api-secret-token": secret}
        return (await client.request(method, f"{served.url}/hook", content=body, headers=headers)).status_code


async def test_an_update_is_stored_before_it_is_accepted() -> None:
    stored = Stored()

    assert await post(WebhookApp(SECRET, stored), b'{"update_id": 7, "odd": 1}') == 200
    assert stored.updates == [(7, b'{"update_id": 7, "odd": 1}')]


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "without the secret": ({"secret": ""}, 401),
    "with another secret": ({"secret": "a" * 64}, 401),
    "no update": ({"body": b"{}"}, 400),
    "no JSON": ({"body": b"x"}, 400),
    "too large": ({"body": b'{"update_id":1,"x":"' + b"x" * MAX_BODY + b'"}'}, 413),
    "another method": ({"method": "GET"}, 405),
}


@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=REFUSED)
async def test_what_is_no_update_of_telegram_is_refused(request_: dict[str, Any], status: int) -> None:
    stored = Stored()

    given = {"body": b'{"update_id": 7}', **request_}
    assert await post(WebhookApp(SECRET, stored), given.pop("body"), **given) == status
    assert stored.updates == []


async def test_an_update_that_is_not_stored_comes_again() -> None:
    assert await post(WebhookApp(SECRET, Stored(OSError("no room"))), b'{"update_id": 7}') == 500


def test_the_secret_is_the_same_in_every_process_and_does_not_tell_the_token() -> None:
    assert SECRET == secret_of("42:secret") != secret_of("42:other")
    assert "secret" not in SECRET


async def test_it_listens_where_it_is_told_until_it_is_cancelled() -> None:
    serving = asyncio.create_task(serve(WebhookApp(SECRET, Stored()), "127.0.0.1:0"))
    await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait([serving])

    assert serving.cancelled()


async def test_an_odd_address_is_refused() -> None:
    with pytest.raises(InvalidValue, match="host:port"):
        await serve(WebhookApp(SECRET, Stored()), "8443")
