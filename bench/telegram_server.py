"""A Bot API server that does nothing but hand out ready updates, in a process of its own: its cost is not measured."""

import asyncio
import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from bench.common import WORDS

TOKEN = "4242:made-up"  # noqa: S105 (of this server)
BOT = {"id": 4242, "is_bot": True, "first_name": "Bot", "username": "bench_bot"}
CHATS, PEOPLE = 50, 40
DISK = "/var/tmp"  # noqa: S108 (for the files of stores; /tmp may be memory)
MOST = 100  # updates in an answer
START = 1_763_000_000

_OFFSET = re.compile(rb'"?offset"?[=:](\d+)')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def group_updates(count: int) -> list[bytes]:
    """Make updates of talk in groups: a quarter are replies, a tenth have a photo, a tenth an address."""
    chance = random.Random(1)
    return [_encode(number, _group_message(number, chance)) for number in range(1, count + 1)]


def direct_updates(count: int) -> list[bytes]:
    """Make updates of one person in a direct chat."""
    chance = random.Random(2)
    person = _person(0)
    chat = {"id": person["id"], "type": "private", "first_name": person["first_name"]}
    return [
        _encode(number, {**_head(number), "from": person, "chat": chat, "text": _words(number, chance)})
        for number in range(1, count + 1)
    ]


def _encode(number: int, message: dict[str, Any]) -> bytes:
    return json.dumps({"update_id": number, "message": message}, ensure_ascii=False).encode()


def _head(number: int) -> dict[str, Any]:
    return {"message_id": number, "date": START + number}


def _group_message(number: int, chance: random.Random) -> dict[str, Any]:
    chat = {"id": -1_000_000 - number % CHATS, "type": "supergroup", "title": f"Group {number % CHATS}"}
    where = {**_head(number), "from": _person(chance.randrange(PEOPLE)), "chat": chat}
    text = _words(number, chance)
    if number % 10 == 3:
        sizes = [{"file_id": f"p{number}-{w}", "file_unique_id": f"u{number}-{w}", "width": w} for w in (90, 320, 800)]
        return {**where, "photo": [{**size, "height": 60, "file_size": 9_000} for size in sizes], "caption": text}
    if number % 10 == 7:
        address = {"type": "url", "offset": len(text) + 1, "length": 25}
        return {**where, "text": f"{text} https://example.org/a/b/c", "entities": [address]}
    if number % 4 == 0 and number > CHATS:
        earlier = {**_head(number - CHATS), "from": _person(chance.randrange(PEOPLE)), "chat": chat}
        return {**where, "text": text, "reply_to_message": {**earlier, "text": _words(number - CHATS, chance)}}
    return {**where, "text": text}


def _person(number: int) -> dict[str, Any]:
    names = {"first_name": f"Person {number}", "username": f"person_{number}", "language_code": "uk"}
    return {"id": 1_000 + number, "is_bot": False, **names}


def _words(number: int, chance: random.Random) -> str:
    words = chance.choice(list(WORDS.values()))
    return f"{number}: " + " ".join(chance.choices(words, k=chance.randint(3, 30)))


class CannedServer:
    """Serves updates up to the number that was released, and knows up to which one they are confirmed."""

    def __init__(self, updates: list[bytes], released: int) -> None:
        self._updates = updates
        self._released = released
        self._confirmed = 0
        self._sent = 0
        self._changed = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection. `/release/N` hands out updates up to N and is not answered."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                name, _, argument = head.split(b" ")[1].decode().rpartition("/")
                if name == "/release":
                    await self._set(released=int(argument))
                    continue
                result = await self._result(name, argument, body)
                answer = b'{"ok":true,"result":%b}' % result
                kind = b"content-type: application/json\r\ncontent-length: %d" % len(answer)
                writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (kind, answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _result(self, name: str, argument: str, body: bytes) -> bytes:
        if name == "/confirmed":
            async with self._changed:
                await self._changed.wait_for(lambda: self._confirmed >= int(argument))
            return b"true"
        match argument:
            case "getMe":
                return json.dumps(BOT).encode()
            case "getUpdates":
                found = _OFFSET.search(body)
                return await self._next(int(found[1]) if found else 0)
            case "sendMessage":
                self._sent += 1
                chat = {"id": 1, "type": "private"}
                return json.dumps({**_head(10**6 + self._sent), "chat": chat, "from": BOT, "text": "Yes."}).encode()
            case _:
                return b"true"

    async def _next(self, offset: int) -> bytes:
        first = max(offset, 1)
        await self._set(confirmed=first - 1)
        async with self._changed:
            await self._changed.wait_for(lambda: self._released >= first)
        return b"[%b]" % b",".join(self._updates[first - 1 : min(self._released, first - 1 + MOST)])

    async def _set(self, *, released: int = 0, confirmed: int = 0) -> None:
        async with self._changed:
            self._released = max(self._released, released)
            self._confirmed = max(self._confirmed, confirmed)
            self._changed.notify_all()


async def _serve(updates: list[bytes], released: int, ready: Connection) -> None:
    server = await asyncio.start_server(CannedServer(updates, released).serve, "127.0.0.1", 0, limit=1 << 20)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_server(updates: list[bytes], released: int, ready: Connection) -> None:
    asyncio.run(_serve(updates, released, ready))


@contextmanager
def served(updates: list[bytes], *, released: int | None = None) -> Iterator[int]:
    """Serve updates in another process, all of them or the first *released*; yield the port."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    count = len(updates) if released is None else released
    process = context.Process(target=run_server, args=(updates, count, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


class Control:
    """Tells the server what to release, and waits until it has what it was asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Control":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def release(self, number: int) -> None:
        self._writer.write(b"GET /release/%d HTTP/1.1\r\n\r\n" % number)

    async def confirmed(self, number: int) -> None:
        """Wait until a bot has asked for the updates after *number*."""
        self._writer.write(b"GET /confirmed/%d HTTP/1.1\r\n\r\n" % number)
        await self._reader.readuntil(b"}")
