"""StoreWorld: where a store under test is; builders of what the contract stores in it."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from tertulia.engine.rooms import Guest, Room
from tertulia.engine.store_protocols import OutboxItem, StoreProtocol
from tertulia.messages import Author, Message, Place, Reply
from tertulia.parts import Text, ToolCall
from tertulia.platform import Change
from tertulia.run.journal import Run, ToolRun
from tertulia.tasks.task import Task
from tertulia.turns import Prompt, Record, model

NOON = datetime(2025, 1, 15, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
WEEK = timedelta(days=7)
GROUP = Place(platform="telegram", id="-100123", kind="group", title="Friends")
DIRECT = Place(platform="telegram", id="7", kind="direct")
ALICE = Author(id="u123", name="Alice", username="alice_ua")
BOB = Author(id="u456", name="Bob")
ME = Author(id="42", name="gryag", persona="gryag")
PROMPT = Prompt.of("What was said.", system="Be kind.")

Opened = AbstractAsyncContextManager[StoreProtocol]


class HasStores(Protocol):
    def stores(self, folder: Path) -> Callable[[], Opened]: ...


def check(test: Callable[[Any, StoreProtocol], Awaitable[None]]) -> Callable[[HasStores, Path], None]:
    """Run a test on a new store, in an event loop of its own; at its end the store finds no fault in itself."""

    @functools.wraps(test)
    def run(self: HasStores, tmp_path: Path) -> None:
        async def session() -> None:
            async with self.stores(tmp_path)() as store:
                await test(self, store)
                assert await store.check() == []

        asyncio.run(session())

    del run.__wrapped__  # else pytest reads the fixtures of the wrapped function
    return run


def check_restarts(test: Callable[[Any, Callable[[], Opened]], Awaitable[None]]) -> Callable[[HasStores, Path], None]:
    """Run a test that opens its store several times, one after another."""

    @functools.wraps(test)
    def run(self: HasStores, tmp_path: Path) -> None:
        async def session() -> None:
            await test(self, self.stores(tmp_path))

        asyncio.run(session())

    del run.__wrapped__
    return run


def a_room(**changes: Any) -> Room:
    fields: dict[str, Any] = {"id": "room-1", "title": "Dinner", "people": 2, "made_at": NOON, "ends_at": NOON + WEEK}
    return Room(**fields | changes)


def a_guest(**changes: Any) -> Guest:
    fields: dict[str, Any] = {"room": "room-1", "id": "guest-1", "name": "Maya", "joined_at": NOON}
    return Guest(**fields | changes)


def a_message(text: str = "hello", **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "id": "m1", "place": GROUP, "author": ALICE, "sent_at": NOON, "parts": (Text(text=text),) if text else (),
    }  # fmt: skip
    return Message(**fields | changes)


def a_talk(count: int) -> list[Message]:
    """Return messages of two people in turn, a minute apart, with their numbers as ids."""
    return [
        a_message(f"number {n}", id=str(n), author=(ALICE, BOB)[n % 2], sent_at=NOON - timedelta(minutes=count - n))
        for n in range(count)
    ]


def a_run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "id": "r1", "place": GROUP, "target": "m1", "taken": ("m1",), "began_at": NOON, "horizon": 1,
    }  # fmt: skip
    return Run(**fields | changes)


def a_record(**changes: Any) -> Record:
    fields: dict[str, Any] = {"turn": model("Yes?", by="gemini-3.8-flash"), "at": NOON, "raw": {"candidates": []}}
    return Record(**fields | changes)


def a_tool_run(**changes: Any) -> ToolRun:
    fields: dict[str, Any] = {"step": 0, "number": 0, "call": ToolCall(name="look", id="a"), "began_at": NOON}
    return ToolRun(**fields | changes)


def a_reply(text: str = "Yes?", **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"id": "o1", "reply": Reply(place=GROUP, text=text), "made_at": NOON}
    return OutboxItem(**fields | changes)


def a_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {"id": "t1", "kind": "send", "place": GROUP, "due_at": NOON, "args": {"text": "hi"}}
    return Task(**fields | changes)


async def receive(store: StoreProtocol, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def apply(store: StoreProtocol, *changes: Change, key: str = "u1", **named: Any) -> Any:
    """Apply an update of the platform of `GROUP`."""
    given: dict[str, Any] = {"at": NOON, "keep": WEEK, "raw": None} | named
    return await store.updates.apply(GROUP.platform, changes, key=key, **given)


async def say(store: StoreProtocol, text: str, *, as_id: str, **changes: Any) -> None:
    """Send a reply of the agent: it is a message of the place then."""
    reply = a_reply(text, id=f"o-{as_id}", author=ME, **changes)
    await store.outbox.put(reply)
    await store.outbox.put(a_reply(text, id=f"o-{as_id}", author=ME, status="sent", message_id=as_id, **changes))


async def log_of(store: StoreProtocol, place: Place = GROUP) -> list[Message]:
    return list(await store.log.read(place, 0, 10_000))


async def waiting(store: StoreProtocol, place: Place = GROUP) -> list[str]:
    return [one.message.id for one in await store.inbox.waiting(place)]
