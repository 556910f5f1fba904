"""The client of the Bot API: turns, and what answers mean."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tertulia.errors import NotSent, ResponseUnreadable, TertuliaError, TimedOut
from tertulia.platforms.telegram.client import LONGEST_HOLD, LONGEST_WAIT, ApiError, BotClient, Pace, Pacer
from tertulia.sim.server import Served


class Time:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds

    def pacer(self) -> Pacer:
        return Pacer(Pace(), sleep=self.sleep, clock=lambda: self.now)


async def test_a_few_messages_go_at_once_and_the_next_ones_one_a_second() -> None:
    time = Time()
    pacer = time.pacer()

    for _ in range(8):
        await pacer.turn("7")

    assert time.slept == [1.0, 1.0, 1.0]


async def test_a_group_gets_twenty_a_minute() -> None:
    time = Time()
    pacer = time.pacer()

    for _ in range(25):
        await pacer.turn("-1")

    assert time.slept == [3.0] * 20


async def test_all_chats_together_get_thirty_a_second() -> None:
    time = Time()
    pacer = time.pacer()

    for number in range(91):
        await pacer.turn(str(number))

    assert 1.9 < sum(time.slept) < 2.1


@pytest.mark.parametrize(("chat", "other"), [("7", "8"), ("-7", "-8")])
async def test_a_chat_waits_as_long_as_the_service_asks_and_others_do_not(chat: str, other: str) -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold(chat, 5.0)

    await pacer.turn(other)
    before = list(time.slept)
    await pacer.turn(chat)

    assert (before, time.slept) == ([], [5.0])


async def test_a_long_wait_is_the_outbox_to_wait_for() -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold("7", LONGEST_WAIT + 60)

    with pytest.raises(NotSent) as caught:
        await pacer.turn("7")

    assert caught.value.retry_after == pytest.approx(LONGEST_WAIT + 60)
    assert time.slept == []


async def test_a_draft_is_edited_only_where_an_answer_would_still_have_its_turn() -> None:
    time = Time()
    pacer = time.pacer()

    free = []
    for _ in range(5):
        free.append(pacer.is_free("-1"))
        await pacer.turn("-1")

    assert free == [True, True, True, True, False]


async def test_a_shorter_wait_does_not_end_a_longer_one() -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold("7", 15.0)
    pacer.hold("7", 1.0)

    await pacer.turn("7")

    assert time.slept == [15.0]


class Answers:
    """A service that gives one answer to each call."""

    def __init__(self, status: int, body: bytes, **headers: str) -> None:
        self._status, self._body = status, body
        self._headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})


async def post_to(service: Answers) -> int | None:
    async with Served(service) as served:
        client = BotClient("42:secret", base_url=served.url)
        try:
            return await client.post("sendMessage", {"chat_id": 7, "text": "hello"})
        finally:
            await client.aclose()


async def test_a_message_is_sent_whatever_form_its_other_fields_have() -> None:
    body = b'{"ok":true,"result":{"message_id":5,"reply_to_message":{"message_id":"x","text":null},"photo":7}}'

    assert await post_to(Answers(200, body)) == 5


@pytest.mark.parametrize("status", [403, 413, 429, 502])
async def test_the_page_of_a_gateway_is_its_status(status: int) -> None:
    with pytest.raises(ApiError) as caught:
        await post_to(Answers(status, b"<html>no</html>"))

    assert caught.value.code == status


WAITS = {"7": 7.0, "-5": None, "1e15": None, '"soon"': None, "1e999": None, "null": None}


@pytest.mark.parametrize("given", WAITS)
async def test_an_odd_time_to_wait_counts_as_none(given: str) -> None:
    parameters = f'{{"retry_after":{given}}}'
    body = f'{{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{parameters}}}'

    with pytest.raises(ApiError) as caught:
        await post_to(Answers(429, body.encode()))

    assert (caught.value.code, caught.value.retry_after) == (429, WAITS[given])


ODD_ANSWERS = {
    "a page": Answers(200, b"<html>log in</html>"),
    "very deep": Answers(200, b'{"ok":true,"result":' + b"[" * 5000),
    "odd fields": Answers(200, b'{"ok":"yes"}'),
    "not compressed, as it says": Answers(200, b"x", content_encoding="gzip"),
}


@pytest.mark.parametrize("service", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
async def test_an_odd_answer_is_an_error_of_ours(service: Answers) -> None:
    with pytest.raises(TertuliaError):
        await post_to(service)


class Dripping:
    """A service that sends a byte of its answer now and then, and never all of it."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            self.sent += 1
            await asyncio.sleep(0.01)


CALLS: dict[str, Callable[[BotClient], Awaitable[object]]] = {
    "getUpdates": lambda client: client.updates(0, ()),
    "getMe": lambda client: client.me(),
    "sendMessage": lambda client: client.post("sendMessage", {"chat_id": 7, "text": "hello"}),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_has_a_total_deadline_however_the_answer_drips(name: str) -> None:
    service = Dripping()
    async with Served(service) as served:
        client = BotClient("42:secret", base_url=served.url, deadline=0.3)
        with pytest.raises(TimedOut, match=f"did not answer {name} within 0.3 seconds"):
            await asyncio.wait_for(CALLS[name](client), 20)
        await client.aclose()

    assert service.sent > 3


async def test_updates_that_cannot_be_confirmed_are_an_error_of_ours() -> None:
    async with Served(Answers(200, b'{"ok":true,"result":[{"message":{}}]}')) as served:
        client = BotClient("42:secret", base_url=served.url)
        with pytest.raises(ResponseUnreadable, match="no updates with numbers"):
            await client.updates(0, ())
        await client.aclose()


async def test_when_two_chats_are_asked_to_wait_at_once_all_wait_a_little() -> None:
    time = Time()
    pacer = time.pacer()
    pacer.hold("7", 3600.0)
    pacer.hold("7", 3600.0)
    await pacer.turn("8")
    alone = list(time.slept)

    pacer.hold("-1", 3600.0)
    await pacer.turn("9")

    assert (alone, time.slept) == ([], [LONGEST_HOLD])


UNREACHABLE = "://bot:hunter2@127.0.0.1:9"


@pytest.mark.parametrize("address", ["http" + UNREACHABLE, "gopher" + UNREACHABLE])
async def test_no_error_has_the_password_of_the_address(address: str, caplog: pytest.LogCaptureFixture) -> None:
    client = BotClient("42:secret", base_url=address)

    with caplog.at_level("DEBUG"), pytest.raises(TertuliaError) as caught:
        await client.post("sendMessage", {"chat_id": 7, "text": "hello"})
    await client.aclose()

    assert "hunter2" not in f"{caught.value}{caplog.text}"
    assert "127.0.0.1:9" in str(caught.value) or address.startswith("gopher")
