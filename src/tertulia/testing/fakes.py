"""Fakes: a platform that records deliveries, a model that waits, and a clock that is advanced."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tertulia.messages import Author, Place, Reply
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Part
from tertulia.platform import ALL_MEDIA, Capabilities, Change, Delivery, Inbox, PlaceRole, Platform
from tertulia.turns import Prompt

ROUNDS = 50  # of the event loop, for the sleepers that were woken


class RecordedPlatform(Platform):
    """`RecordedPlatform(TimeoutError(), updates=[[Received(message=…)]])`.

    Each of *errors*, and of `fail_after`, is raised by a `send` after its message is shown; each of `fail_before` by
    one whose message is not. `run` applies *updates* in order, under the keys `u0`, `u1` …, and waits.
    """

    name = "recorded"
    me = Author(id="bot", name="Gryag", username="gryag_bot")
    capabilities = Capabilities(media=ALL_MEDIA)

    def __init__(
        self,
        *errors: Exception,
        capabilities: Capabilities | None = None,
        updates: Sequence[Sequence[Change]] = (),
        name: str | None = None,
        me: Author | None = None,
    ) -> None:
        self.name = name or self.name
        self.me = me or self.me
        self.capabilities = capabilities or self.capabilities
        self.updates = updates
        self.shown: dict[str, Reply] = {}  # what people see, by the id of the message
        self.deliveries: list[Delivery] = []  # all that was shown, in order
        self.previews: list[tuple[Place, str]] = []
        self.administrators: set[str] = set()  # of all groups, by their ids
        self.sent = asyncio.Event()  # at least once
        self.fail_before: list[Exception] = []
        self.fail_after = list(errors)

    @property
    def texts(self) -> list[str]:
        """The texts that people see."""
        return [reply.text for reply in self.shown.values()]

    @property
    def keys(self) -> list[str]:
        """The ids of the deliveries that were shown, repeated ones too."""
        return [delivery.id for delivery in self.deliveries]

    async def role(self, place: Place, author: Author) -> PlaceRole:
        return "administrator" if author.id in self.administrators else await super().role(place, author)

    async def run(self, inbox: Inbox) -> None:
        for number, changes in enumerate(self.updates):
            await inbox.apply(changes, key=f"u{number}")
        await asyncio.Event().wait()

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        self.previews.append((place, text))

    async def send(self, delivery: Delivery) -> str:
        if self.fail_before:
            raise self.fail_before.pop(0)
        message_id = delivery.edits or self._new_id(delivery)
        self.shown[message_id] = delivery.reply
        self.deliveries.append(delivery)
        self.sent.set()
        if self.fail_after:
            raise self.fail_after.pop(0)
        return message_id

    def _new_id(self, delivery: Delivery) -> str:
        """Return the id of a new message; the same for the same delivery if the platform has an idempotency window."""
        return f"s-{delivery.id if self.capabilities.idempotency_window else len(self.deliveries)}"


class HeldModel(Scripted):
    """A scripted model whose first *held* answers wait for `release`; `asked` is set by every request.

    With *pieces* an answer that is streamed waits after so many of its words, else before the first.
    """

    def __init__(self, *script: Any, held: int = 1, pieces: int = 0, name: str = "scripted") -> None:
        super().__init__(*script, name=name)
        self.asked = asyncio.Event()
        self._released = asyncio.Event()
        self._held = held
        self._pieces = pieces

    def release(self) -> None:
        """Let all answers continue."""
        self._released.set()

    async def respond(self, prompt: Prompt) -> Response:
        self.asked.set()
        if not self._pieces:
            await self._wait()
        return await super().respond(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        left = self._pieces
        async for piece in super().stream(prompt):
            if self._pieces and left == 0:
                await self._wait()
            left -= 1
            yield piece

    async def _wait(self) -> None:
        if self._held:
            self._held -= 1
            await self._released.wait()


class Clock:
    """`Engine(…, clock=clock)`, and then `await clock.advance(60)`.

    `advance` wakes each sleeping task at its time, in order; nothing really waits.
    """

    def __init__(self, start: datetime = datetime(2025, 1, 15, 12, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._order = count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Sleep until the clock was advanced by so many seconds."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Advance the time, and wake each sleeping task at its time."""
        end = self._now + timedelta(seconds=seconds)
        await _run_others()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, woken = heapq.heappop(self._sleepers)
            if woken.done():  # the sleeper was cancelled
                continue
            self._now = max(self._now, due)
            woken.set_result(None)
            await _run_others()
        self._now = end


async def _run_others() -> None:
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
