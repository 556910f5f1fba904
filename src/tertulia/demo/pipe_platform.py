"""PipePlatform: a chat service over the standard streams of the bot's process; what the two sides say, as values."""

import asyncio
import sys
from itertools import count

from msgspec import Struct, json

from tertulia.errors import NotSent
from tertulia.messages import Author, Message, Place
from tertulia.platform import Capabilities, Delivery, Inbox, Platform, Received

BOT = Author(id="gryag", name="Gryag")
GROUP = Place(platform="demo", id="dinner", kind="group", title="Friday dinner")
PREVIEW_INTERVAL = 0.1  # seconds between two edits of a draft


class Post(Struct, frozen=True, kw_only=True, tag="post"):
    """A message of a person, for the bot. It is delivered again until it is `Applied`."""

    number: int
    message: Message


class SendReceipt(Struct, frozen=True, kw_only=True, tag="receipt"):
    """The id that the service gave to what the bot sent."""

    number: int
    message_id: str


class Ready(Struct, frozen=True, kw_only=True, tag="ready"):
    """The engine of the bot runs."""


class Applied(Struct, frozen=True, kw_only=True, tag="applied"):
    """A post is on the disk of the bot."""

    number: int


class Sent(Struct, frozen=True, kw_only=True, tag="sent"):
    """A message of the bot, which waits for its receipt."""

    number: int
    delivery: Delivery


ToBot = Post | SendReceipt
FromBot = Ready | Applied | Sent


class PipePlatform(Platform):
    """The bot's side. It ends when nobody writes to its standard input any more."""

    name = GROUP.platform
    me = BOT
    capabilities = Capabilities(edits=True, drafts=True, preview_interval=PREVIEW_INTERVAL)

    def __init__(self) -> None:
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[str]] = {}

    async def run(self, inbox: Inbox) -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        _write(Ready())
        async for line in reader:
            match json.decode(line, type=ToBot):
                case Post(number=number, message=message):
                    await inbox.apply([Received(message=message)], key=str(number))
                    _write(Applied(number=number))
                case SendReceipt(number=number, message_id=message_id):
                    self._waiting.pop(number).set_result(message_id)
        for waiting in self._waiting.values():
            waiting.set_exception(ConnectionError("nobody reads any more"))

    async def send(self, delivery: Delivery) -> str:
        number = next(self._numbers)
        receipt: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = receipt
        try:
            _write(Sent(number=number, delivery=delivery))
        except OSError as error:
            raise NotSent("nobody reads any more") from error
        return await receipt


def _write(value: FromBot) -> None:
    sys.stdout.buffer.write(json.encode(value) + b"\n")
    sys.stdout.buffer.flush()
