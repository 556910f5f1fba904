"""What guests can use up: their streams, texts and files take little from the bot and from others."""

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engine.engines import until
from platforms.web import room_bots
from platforms.web.room_bots import Browser, RoomBot, a_room_bot
from platforms.web.test_roles import PNG
from tertulia.media.values import StoredFile
from tertulia.models import Scripted
from tertulia.platforms.http_listener import listening, serving
from tertulia.platforms.web.room_files import file_response
from tertulia.platforms.web.site import RoomLimits, StreamLimits

FEW = StreamLimits(most=6, of_guests=4, of_guest=3, tick=0.02)


async def opened(bot: RoomBot, browser: Browser, streams: AsyncExitStack, *, times: int) -> list[int]:
    """Open so many streams of a room at once; return the statuses."""
    connections = [await asyncio.open_connection("127.0.0.1", bot.served.page.port) for _ in range(times)]
    for _, writer in connections:
        streams.callback(writer.close)
        cookie = browser.cookies["cookie"]
        writer.write(f"GET {browser.room}/events HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n".encode())
    return sorted([int((await reader.readline()).split()[1]) for reader, _ in connections])


async def test_guests_leave_streams_to_each_other_and_to_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_bots, "TICKS", FEW)
    async with a_room_bot(tmp_path, Scripted()) as bot, AsyncExitStack() as streams:
        link = await bot.open_room()
        eve, maya, leo = [await bot.guest(link, name) for name in ("Eve", "Maya", "Leo")]
        owner = await bot.looking("owner")
        owner.room = eve.room
        found = [await opened(bot, one, streams, times=4) for one in (eve, maya, leo)]
        by_owner = await opened(bot, owner, streams, times=3)
        await streams.aclose()

        async def is_free() -> bool:
            return (await eve.client.head(f"{eve.room}/events")).status_code == 200

        await until(is_free)

    assert found == [[200, 200, 200, 503], [200, 503, 503, 503], [503] * 4]
    assert by_owner == [200, 200, 503]


async def test_texts_of_a_guest_are_parsed_beside_the_bot_and_only_so_many(tmp_path: Path) -> None:
    hard = {"texts": ["![" * 20_000]}
    async with a_room_bot(tmp_path, Scripted(), limits=RoomLimits(texts=100_000, texts_per_second=0.01)) as bot:
        link = await bot.open_room()
        eve, maya = await bot.guest(link, "Eve"), await bot.guest(link, "Maya")
        asked = [asyncio.ensure_future(eve.client.post("/api/texts", json=hard)) for _ in range(3)]
        rounds = 0
        while not all(one.done() for one in asked):
            await asyncio.sleep(0)
            rounds += 1
        others = await maya.client.post("/api/texts", json={"texts": ["a *text*"]})

    assert sorted(one.result().status_code for one in asked) == [200, 200, 429]
    assert others.status_code == 200
    assert rounds > 1000  # the event loop went on meanwhile


async def test_no_more_than_a_piece_of_a_file_is_held_for_who_does_not_read_it(tmp_path: Path) -> None:
    path, sent, coming = tmp_path / "file", list[int](), asyncio.Event()
    path.write_bytes(bytes(1_000_000))
    file = StoredFile(sha256="0" * 64, mime="video/mp4", size=1_000_000)

    async def send(message: Any) -> None:
        sent.append(len(message.get("body", b"")))

    async def receive() -> Any:
        await coming.wait()

    scope = {"type": "http", "method": "GET", "headers": []}
    await file_response(str(path), file)(scope, receive, send)

    assert (sum(sent), max(sent)) == (1_000_000, 65_536)


def test_a_file_is_saved_under_a_name_that_ends_as_it_is_read() -> None:
    file = StoredFile(sha256="0" * 64, mime="text/plain", size=1)
    names = ("photo \u202egnp.exe", 'a"\r\nb', "борщ.txt", "\u202e")
    saved = [file_response("file", file, name=name).headers["content-disposition"] for name in names]

    assert saved == [
        "attachment; filename*=UTF-8''photo%20gnp.exe",
        "attachment; filename*=UTF-8''a%22%0D%0Ab",
        "attachment; filename*=UTF-8''%D0%B1%D0%BE%D1%80%D1%89.txt",
        "attachment",
    ]


async def test_who_does_not_read_the_answer_keeps_nobody_out() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200 if scope["path"] == "/much" else 1):
            await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with listening("127.0.0.1", 0, "the test") as listener:
        port = listener.getsockname()[1]
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(serving(app, listener, connections=3, head_deadline=5.0, grace=0.0))
            for _ in range(3):
                await unread(port, b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n", opened)
            client = await opened.enter_async_context(httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}"))
            answers = [(await client.get("/little")).status_code for _ in range(5)]

    assert answers == [200] * 5


async def unread(port: int, head: bytes, opened: AsyncExitStack) -> None:
    """Ask for something, and read the beginning of it."""
    loop, made = asyncio.get_running_loop(), opened.enter_context(socket.socket())
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await loop.sock_connect(made, ("127.0.0.1", port))
    await loop.sock_sendall(made, head)
    await loop.sock_recv(made, 1)


async def test_who_writes_while_the_store_has_no_room_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = RoomLimits(write_seconds=0.1, writing=1)
    async with a_room_bot(tmp_path, Scripted("Hello."), limits=limits) as bot:
        eve = await bot.guest(await bot.open_room(), "Eve")
        has_room, apply = asyncio.Event(), type(bot.store.updates).apply

        async def apply_later(*given: Any, **named: Any) -> Any:
            await has_room.wait()
            return await apply(*given, **named)

        monkeypatch.setattr(type(bot.store.updates), "apply", apply_later)
        body = {"id": "k", "text": "Gryag, hello"}
        refused = [await eve.client.post(f"{eve.room}/messages", json=body) for _ in range(2)]
        has_room.set()

        async def is_answered() -> bool:
            await bot.engine.settled()
            return len(await eve.said()) == 2

        await until(is_answered)
        await eve.post("Gryag, hello", key="k")
        said = await eve.said()

    assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(503, "1")] * 2
    assert said == [("Eve", "Gryag, hello"), ("Gryag", "Hello.")]


async def test_many_small_files_of_a_guest_are_too_many(tmp_path: Path) -> None:
    async with a_room_bot(tmp_path, Scripted(), limits=RoomLimits(bytes=120_000)) as bot:
        link = await bot.open_room()
        eve, maya = await bot.guest(link, "Eve"), await bot.guest(link, "Maya")
        statuses = [(await eve.upload(f"file {number}".encode())).status_code for number in range(4)]
        other = await maya.upload(b"a file")

    assert statuses == [200, 200, 429, 429]
    assert other.status_code == 200


async def test_a_file_is_sent_whole_or_in_ranges_and_does_nothing(tmp_path: Path) -> None:
    page = b"<!doctype html><script>alert(1)</script>"
    async with a_room_bot(tmp_path, Scripted()) as bot:
        eve = await bot.guest(await bot.open_room(), "Eve")
        photo, other = [(await eve.upload(data)).json() for data in (PNG, page)]

        async def get(file: Any, **headers: str) -> httpx2.Response:
            return await eve.client.get(f"{eve.room}/files/{file['file']}", headers=headers)

        shown, saved = await get(photo), await get(other)
        ranges = {asked: await get(other, range=asked) for asked in ("bytes=2-5", "bytes=-3", "bytes=38-", "bytes=99-")}

    assert (photo["kind"], photo["inline"], other["kind"], other["inline"]) == ("photo", True, "document", False)
    assert (shown.content, saved.content) == (PNG, page)
    assert [[one.headers[name] for name in ("content-type", "content-disposition")] for one in (shown, saved)] == [
        ["image/png", "inline"],
        ["application/octet-stream", "attachment"],
    ]
    for one in (shown, saved, *ranges.values()):
        assert one.headers["x-content-type-options"] == "nosniff"
    assert {one.headers["content-security-policy"] for one in (shown, saved)} == {"sandbox"}
    assert {asked: (one.status_code, one.content) for asked, one in ranges.items()} == {
        "bytes=2-5": (206, page[2:6]),
        "bytes=-3": (206, page[-3:]),
        "bytes=38-": (206, page[38:]),
        "bytes=99-": (416, b""),
    }
    assert ranges["bytes=2-5"].headers["content-range"] == "bytes 2-5/40"
