"""A chat of one line a message, over TCP: `tertulia run -c examples/tertulia.toml`, then `nc 127.0.0.1 7000`."""

import asyncio
from functools import partial
from uuid import uuid4

from tertulia import Author, Delivery, Inbox, Message, NotSent, Place, Platform, Text


class LineChat(Platform):
    """Everybody who connects says their name in the first line, and has a direct chat with the bot."""

    name = "lines"
    me = Author(id="bot", name="Bot")

    def __init__(self, port: int = 7000) -> None:
        self.port = port
        self.people: dict[str, asyncio.StreamWriter] = {}

    async def run(self, inbox: Inbox) -> None:
        async with await asyncio.start_server(partial(self.listen, inbox), "127.0.0.1", self.port) as server:
            await server.serve_forever()

    async def listen(self, inbox: Inbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        person = (await reader.readline()).decode(errors="replace").strip() or "somebody"
        self.people[person] = writer
        place = Place(platform=self.name, id=person, kind="direct")
        async for line in reader:
            text = Text(text=line.decode(errors="replace").strip())
            message = Message(id=uuid4().hex, place=place, author=Author(id=person, name=person), parts=(text,))
            await inbox.apply([self.received(message)], key=message.id)
        writer.close()

    async def send(self, delivery: Delivery) -> str:
        writer = self.people.get(delivery.reply.place.id)
        if writer is None or writer.is_closing():
            raise NotSent("they are not connected", retry_after=5)
        writer.write(f"{delivery.reply.text}\n".encode())
        return delivery.id
