"""An engine with everything in memory, and people who talk to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from people import NOON
from tertulia.engine.background import RealClock, Sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.engine.shared import Shared, make_shared
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Model
from tertulia.parts import Text
from tertulia.platform import Platform
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

ME = RecordedPlatform.me
DIRECT = Place(platform="recorded", id="7", kind="direct")
GROUP = Place(platform="recorded", id="-100", kind="group", title="Friends")
ALICE, BOB = Author(id="1", name="Alice"), Author(id="2", name="Bob")
AT_ONCE = Behavior(debounce=0.0)


def shared_by(
    store: Any,
    platform: Platform | None = None,
    *,
    now: Callable[[], datetime] = lambda: NOON,
    sleep: Sleep = asyncio.sleep,
    **changes: Any,
) -> Shared:
    """What the parts of an engine are given. Without a clock it is noon."""
    return make_shared(store, [platform or RecordedPlatform()], **{"clock": RealClock(now=now, sleep=sleep)} | changes)


def store_with(store: Store, **members: Any) -> Any:
    """The store with other members."""
    return SimpleNamespace(**vars(store) | members)


def said(text: str, number: int | str = 1, **changes: Any) -> Message:
    fields: dict[str, Any] = {"id": str(number), "place": DIRECT, "author": ALICE, "parts": (Text(text=text),)}
    return Message(**fields | changes)


def with_clock(changes: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an engine, with `now` and `sleep` as its clock."""
    times = {name: changes[name] for name in ("now", "sleep") if name in changes}
    rest = {name: value for name, value in changes.items() if name not in times}
    return {**rest, "clock": RealClock(**times)} if times else rest


@asynccontextmanager
async def engine_with(
    model: Model | Sequence[Model], platform: Platform | None = None, *, store: Store | None = None, **changes: Any
) -> AsyncIterator[Engine]:
    """A running engine; the store is its own unless one is given."""
    named: dict[str, Any] = {"behavior": AT_ONCE} | with_clock(changes)
    if store is not None:
        async with Engine(store, model, [platform or RecordedPlatform()], **named) as engine:
            yield engine
        return
    async with Store.open(":memory:") as own, Engine(own, model, [platform or RecordedPlatform()], **named) as engine:
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
