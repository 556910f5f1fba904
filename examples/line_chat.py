"""A chat of one line a message, over TCP: `palaver run -c examples/palaver.toml`, then `nc 127.0.0.1 7000`."""

import asyncio
from datetime import UTC, datetime
from itertools import count
from uuid import uuid4

from palaver import Author, Delivery, Inbox, Message, NotSent, Place, Platform, Received, Text


class LineChat(Platform):
    """Everybody who connects says their name in the first line, and has a direct chat with the bot."""

    name = "lines"
    me = Author(id="bot", name="Bot")

    def __init__(self, port: int = 7000) -> None:
        self._port = port
        self._people: dict[str, asyncio.StreamWriter] = {}
        self._sent = count(1)

    async def run(self, inbox: Inbox) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            name = (await reader.readline()).decode(errors="replace").strip() or "somebody"
            self._people[name] = writer
            while line := await reader.readline():
                text = line.decode(errors="replace").strip()
                message = Message(
                    id=uuid4().hex,
                    place=Place(platform=self.name, id=name, kind="direct"),
                    author=Author(id=name, name=name),
                    sent_at=datetime.now(UTC),
                    parts=(Text(text=text),),
                )
                await inbox.apply([Received(message=message)], key=message.id)

        async with await asyncio.start_server(talk, "127.0.0.1", self._port) as server:
            await server.serve_forever()

    async def send(self, delivery: Delivery) -> str:
        writer = self._people.get(delivery.reply.place.id)
        if writer is None or writer.is_closing():
            raise NotSent("they are not connected", retry_after=5)
        writer.write(delivery.reply.text.encode() + b"\n")
        await writer.drain()
        return str(next(self._sent))
