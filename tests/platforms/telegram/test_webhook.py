"""Updates that Telegram posts to us."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from tertulia.errors import InvalidValue
from tertulia.platforms.telegram.webhook import MAX_BODY, WebhookApp, secret_of, serve
from tertulia.sim.server import Served

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


@pytest.mark.parametrize("listen", ["8443", "127.0.0.1:99999", "127.0.0.1:http", ":8443"])
async def test_an_odd_address_is_refused(listen: str) -> None:
    with pytest.raises(InvalidValue, match="host:port"):
        await serve(WebhookApp(SECRET, Stored()), listen)


async def test_where_it_cannot_listen_is_an_error_of_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidValue, match=f"the webhook cannot listen at {listen}: "):
            await serve(WebhookApp(SECRET, Stored()), listen)


async def test_a_post_that_does_not_end_does_not_keep_it_from_stopping() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = asyncio.create_task(serve(WebhookApp(SECRET, Stored()), f"127.0.0.1:{port}"))
    await asyncio.sleep(0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST / HTTP/1.1\r\nHost: x\r\nX-Telegram-Bot-Api-Secret-Token: {SECRET}\r\nExpect: 100-continue\r\n"
    writer.write(f"{head}Content-Length: 9\r\n\r\n".encode())
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")  # it waits for the body

    serving.cancel()
    await asyncio.wait([serving], timeout=30)
    writer.close()

    assert serving.cancelled()


@asynccontextmanager
async def served_at(app: WebhookApp, **limits: Any) -> AsyncIterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = asyncio.create_task(serve(app, f"127.0.0.1:{port}", **limits))
    await asyncio.sleep(0)
    yield port
    serving.cancel()
    await asyncio.wait([serving])


HALF_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
HALF_BODY = f"{HALF_HEAD.decode()}X-Telegram-Bot-Api-Secret-Token: {SECRET}\r\nContent-Length: 9\r\n\r\n{{".encode()


@pytest.mark.parametrize("half", [b"", HALF_HEAD, HALF_BODY])
async def test_half_requests_lock_nobody_out(half: bytes) -> None:
    stored = Stored()
    async with served_at(WebhookApp(SECRET, stored), connections=5) as port, httpx2.AsyncClient() as client:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in opened:
            writer.write(half)
        headers = {"x-telegram-bot-api-secret-token": SECRET}
        answer = await client.post(f"http://127.0.0.1:{port}", content=b'{"update_id":1}', headers=headers)
        closed = await asyncio.gather(*(_is_closed(reader) for reader, _ in opened[:15]))
        for _, writer in opened:
            writer.close()

    assert (answer.status_code, len(stored.updates), all(closed)) == (200, 1, True)


@pytest.mark.parametrize(("half", "status"), [(b"", b""), (HALF_HEAD, b""), (HALF_BODY, b"HTTP/1.1 408")])
async def test_a_request_has_deadlines_for_its_head_and_its_body(half: bytes, status: bytes) -> None:
    async with served_at(WebhookApp(SECRET, Stored(), body_deadline=0.05), head_deadline=0.05) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(half)
        try:
            answer = await asyncio.wait_for(reader.read(12), 30)
        except ConnectionError:
            answer = b""
        writer.close()

    assert answer == status


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 30) == b""
    except ConnectionError:
        return True


async def test_two_posts_of_one_connection_are_stored() -> None:
    stored = Stored()
    async with Served(WebhookApp(SECRET, stored)) as served, httpx2.AsyncClient() as client:
        headers = {"x-telegram-bot-api-secret-token": SECRET}
        for number in (1, 2):
            body = b'{"update_id":%d,"x":"\\ud800"}' % number
            assert (await client.post(served.url, content=body, headers=headers)).status_code == 200

    assert [number for number, _ in stored.updates] == [1, 2]
