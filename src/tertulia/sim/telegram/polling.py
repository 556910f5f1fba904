"""`getUpdates`: long polling, and who is refused when two poll at once."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.queue import Update
from tertulia.sim.telegram.refusals import refused

LONGEST = 50  # seconds
HURRIED, REPEATED = 0.5, 3.0  # seconds in which the same offset again is slowed down


class Poll:
    """A request that waits for updates, until `end` says by which rule it is refused."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.rule = ""

    def end(self, rule: str) -> None:
        self.rule = rule
        self.ended.set()


class Poller:
    """The polls of one bot. Waiting is real time; the rest goes by the clock that is furthest."""

    def __init__(self, bot: BotAccount, clock: Callable[[], float]) -> None:
        self._bot = bot
        self._clock = clock
        self._poll: Poll | None = None
        self._offset = -1
        self._asked = (float("-inf"), float("-inf"))

    async def get(
        self, arguments: Arguments, news: Callable[[], asyncio.Event], gone: "asyncio.Future[None]"
    ) -> list[Update] | None:
        """Return updates; None if nobody waits for them any more."""
        offset = arguments.integer("offset")
        limit = arguments.integer("limit", 100, 1, 100)
        timeout = float(arguments.integer("timeout", 0, 0, LONGEST))
        self.allow(arguments)
        since = self._seconds_since()
        if offset == self._offset and timeout < REPEATED and since < REPEATED:
            timeout = REPEATED
        if offset == self._offset and since < HURRIED:
            limit = 1
        self._offset = offset
        updates = self._bot.updates.take(offset, limit)
        if updates or not timeout:
            return updates
        return await self._wait(offset, limit, timeout, news, gone)

    def allow(self, arguments: Arguments) -> None:
        """Remember the kinds of updates that a call asks for; without the argument they stay."""
        kinds = arguments.json("allowed_updates", "body") if "allowed_updates" in arguments.given else None
        if isinstance(kinds, list):
            self._bot.updates.allow(kinds)

    def end(self, rule: str) -> None:
        """End the request that waits, if one does."""
        if self._poll is not None:
            self._poll.end(rule)
            self._poll = None

    async def _wait(
        self, offset: int, limit: int, timeout: float, news: Callable[[], asyncio.Event], gone: "asyncio.Future[None]"
    ) -> list[Update] | None:
        self.end("poll-conflict")
        poll = self._poll = Poll()
        deadline = time.monotonic() + timeout
        try:
            while True:
                left = deadline - time.monotonic()
                woken: list[asyncio.Future[Any]] = [
                    asyncio.ensure_future(event.wait()) for event in (news(), poll.ended)
                ]
                await asyncio.wait([*woken, gone], timeout=max(0, left), return_when=asyncio.FIRST_COMPLETED)
                for one in woken:
                    one.cancel()
                if poll.rule:
                    raise refused(poll.rule)
                if gone.done():
                    return None
                updates = self._bot.updates.take(offset, limit)
                if updates or time.monotonic() >= deadline:
                    return updates
        finally:
            if self._poll is poll:
                self._poll = None

    def _seconds_since(self) -> float:
        """Return the seconds since the last call."""
        now = (time.monotonic(), self._clock())
        since = max(now[0] - self._asked[0], now[1] - self._asked[1])
        self._asked = now
        return since
