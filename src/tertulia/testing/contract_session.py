"""Session: an engine on the platform under test, which a test of the contract starts, stops and crashes."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tertulia.engine.agents.agent import Agent
from tertulia.engine.background import RealClock
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.errors import NotSent
from tertulia.messages import Author, Message, Place, Reply
from tertulia.models.base import Model
from tertulia.models.scripted import Scripted
from tertulia.parts import joined_text
from tertulia.platform import Delivery, Inbox, Platform
from tertulia.store import Store
from tertulia.testing.platform_world import Missing, PlatformWorld, Shown

T = TypeVar("T")

MAX_SLEEP = 0.05  # seconds that the engine sleeps at most


class Session:
    """One service, and the processes that run a bot on it, one after another."""

    def __init__(self, world: PlatformWorld, folder: Path) -> None:
        self.world = world
        self._folder = folder
        self._file = folder / "bot.db"
        self._processes = AsyncExitStack()
        self._copies = 0
        self._crashed = False
        self.receipts = asyncio.Event()  # a platform gets them while it is set
        self.receipts.set()

    async def __aenter__(self) -> "Session":
        await self.world.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.stop()
        finally:
            await self.world.close()

    async def direct_chat(self) -> tuple[Author, Place]:
        """Return a person, and their direct chat with the bot."""
        alice = await self.world.person("Alice")
        return alice, await self.world.direct(alice)

    async def start(
        self, *script: Any, model: Model | None = None, inbox: Inbox | None = None, agents: Sequence[Agent] = ()
    ) -> Platform:
        """Start a process whose model answers with *script*; *inbox* may replace that of the engine."""
        await self.start_sending(*script, model=model, agents=agents)
        running = asyncio.create_task(self.platform.run(inbox or self.engine.inbox(self.platform.name)))
        self._processes.push_async_callback(_cancel, running)
        return self.platform

    async def start_sending(self, *script: Any, model: Model | None = None, agents: Sequence[Agent] = ()) -> None:
        """Start a process that only sends: `Platform.run` is not called."""
        self.model = model or Scripted(*script)
        self._crashed = False
        self.store = await self._processes.enter_async_context(Store.open(self._file))
        self.platform = self.world.platform_on(self.store)
        setattr(self.platform, "send", self._until_crash(self.platform.send))  # noqa: B010 (a method is replaced)
        behavior, clock = Behavior(debounce=0.0), RealClock(sleep=_short_sleep)
        engine = Engine(self.store, self.model, [self.platform], behavior=behavior, clock=clock, agents=agents)
        self.engine = await self._processes.enter_async_context(engine)

    async def stop(self) -> None:
        """End the process as SIGTERM does."""
        processes, self._processes = self._processes, AsyncExitStack()
        await processes.aclose()

    async def crash(self) -> None:
        """End the process as `kill -9` does: the next one continues with the files as they are now."""
        self._crashed = True  # nothing more is sent
        self._copies += 1
        copy = self._folder / f"bot-{self._copies}.db"
        await self.store.backup(copy)
        await self.stop()
        self._file = copy

    def parts(self, place: Place, text: str) -> list[str]:
        """Return the messages that a text is split into."""
        return [part.text for part in self.world.platform().split(Reply(place=place, text=text))]

    async def texts(self, place: Place) -> list[str]:
        """Return the texts of the bot that people see in a place."""
        return [message.text for message in await self.world.shown(place)]

    async def shows(self, place: Place, *texts: str) -> Sequence[Shown]:
        """Wait until people see exactly these texts, and the engine has nothing to do."""
        shown = [self.world.as_shown(text) for text in texts]
        await self.until(lambda: self._is_shown(place, shown), lambda: self._difference(place, shown))
        await self.engine.settled()
        assert await self.texts(place) == shown
        return await self.world.shown(place)

    async def log(self, place: Place) -> Sequence[Message]:
        """Return the messages of a place, as they are stored."""
        return await self.store.log.read(place, 0, 10_000)

    async def logged(self, place: Place, *texts: str) -> Sequence[Message]:
        """Wait until the last messages of a place have these texts; return the messages."""
        found: Sequence[Message] = ()

        async def there() -> bool:
            nonlocal found
            found = (await self.log(place))[-len(texts) :]
            return [text_of(message) for message in found] == list(texts)

        await self.until(there, lambda: f"the log ends with {[text_of(one) for one in found]}, not with {list(texts)}")
        return found

    async def outbox(self) -> dict[str, str]:
        """Return the status of each delivery, by its text."""
        return {outgoing.reply.text: outgoing.status for outgoing in await self.store.outbox.listed()}

    async def until(self, condition: Callable[[], Awaitable[bool]], words: Callable[[], Any]) -> None:
        """Wait until the condition holds; after the `timeout` of the world the test fails with *words*."""
        end = asyncio.get_running_loop().time() + self.world.timeout
        while not await condition():
            if asyncio.get_running_loop().time() > end:
                said = words()
                raise AssertionError(await said if isinstance(said, Awaitable) else said)
            await asyncio.sleep(0.005)

    def _until_crash(self, send: Callable[[Delivery], Awaitable[str]]) -> Callable[[Delivery], Awaitable[str]]:
        async def sent(delivery: Delivery) -> str:
            if self._crashed:
                raise NotSent("the process has crashed")
            receipt = await send(delivery)
            await self.receipts.wait()
            return receipt

        return sent

    async def _is_shown(self, place: Place, texts: Sequence[str]) -> bool:
        return await self.texts(place) == list(texts)

    async def _difference(self, place: Place, texts: Sequence[str]) -> str:
        return f"people see {await self.texts(place)}, not {list(texts)}; outbox: {await self.outbox()}"


class HasWorld(Protocol):
    def world(self) -> PlatformWorld: ...


def check(test: Callable[[Any, Session], Awaitable[None]]) -> Callable[[HasWorld, Path], None]:
    """Run a test in its own event loop; skip it if the service or its world cannot do what it needs."""

    @functools.wraps(test)
    def run(self: HasWorld, tmp_path: Path) -> None:
        async def session() -> None:
            async with Session(self.world(), tmp_path) as opened:
                await test(self, opened)

        try:
            asyncio.run(session())
        except Missing as missing:
            pytest.skip(f"neither the world nor the capabilities have `{missing}`")

    del run.__wrapped__  # else pytest reads the fixtures of the wrapped function
    return run


def require(capability: T | None, name: str) -> T:
    """Return a capability; skip the test under its name if the platform does not have it."""
    if not capability:
        raise Missing(name)
    return capability


def text_of(message: Message) -> str:
    """Return all texts of a message, joined."""
    return joined_text(message.parts, "")


async def _short_sleep(seconds: float) -> None:
    await asyncio.sleep(min(seconds, MAX_SLEEP))


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        raise error
