"""An engine with everything in memory, and people who talk to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from palaver.conversation.conduct import Conduct
from palaver.conversation.engine import Engine
from palaver.messages import Author, Message, Place, Reply
from palaver.models.base import Model
from palaver.parts import Text
from palaver.platform import Capabilities, Delivery, Inbox, Platform, Role
from palaver.store import Store

ME = Author(id="bot", name="Gryag", username="gryag_bot")
DIRECT = Place(platform="recorded", id="7", kind="direct")
GROUP = Place(platform="recorded", id="-100", kind="group", title="Friends")
ALICE, BOB = Author(id="1", name="Alice"), Author(id="2", name="Bob")
AT_ONCE = Conduct(burst=0.0)


NO_KEYS = timedelta(0)


class Recorded(Platform):
    """A platform that shows what is sent, and fails as it is told: an error is raised after or before it was shown."""

    name = "recorded"
    me = ME

    def __init__(self, *errors: Exception, remembers: timedelta = NO_KEYS) -> None:
        self.capabilities = Capabilities(idempotency_window=remembers)
        self.shown: dict[str, Reply] = {}  # by the id of the message that people see
        self.keys: list[str] = []
        self.administrators: set[str] = set()  # of all groups, by their ids
        self.sent = asyncio.Event()  # at least once
        self.fail_before: list[Exception] = []
        self.fail_after = list(errors)

    @property
    def texts(self) -> list[str]:
        return [reply.text for reply in self.shown.values()]

    async def role(self, place: Place, author: Author) -> Role:
        return "administrator" if author.id in self.administrators else await super().role(place, author)

    async def run(self, inbox: Inbox) -> None:
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> str:
        if self.fail_before:
            raise self.fail_before.pop(0)
        message_id = f"s-{delivery.id}" if self.capabilities.idempotency_window else f"s-{len(self.keys)}"
        self.shown[message_id] = delivery.reply
        self.keys.append(delivery.id)
        self.sent.set()
        if self.fail_after:
            raise self.fail_after.pop(0)
        return message_id


async def nobody(_: Place, __: Author) -> bool:
    """Who administers a place."""
    return False


def said(text: str, number: int | str = 1, **changes: Any) -> Message:
    fields: dict[str, Any] = {"id": str(number), "place": DIRECT, "author": ALICE, "parts": (Text(text=text),)}
    return Message(**fields | changes)


@asynccontextmanager
async def engine_with(
    model: Model, platform: Recorded | None = None, *, store: Store | None = None, **changes: Any
) -> AsyncIterator[Engine]:
    """A running engine; the store is its own unless one is given."""
    named: dict[str, Any] = {"conduct": AT_ONCE} | changes
    if store is not None:
        async with Engine(store, model, [platform or Recorded()], **named) as engine:
            yield engine
        return
    async with Store.open(":memory:") as own, Engine(own, model, [platform or Recorded()], **named) as engine:
        yield engine


async def talked(engine: Engine, *messages: Message) -> None:
    """The messages received one after another, each answered before the next comes."""
    for message in messages:
        await engine.receive(message)
        await engine.settled()


def texts_of(turns: Sequence[Any]) -> list[str]:
    return [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what tells nobody when it is so."""
    while not await condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
