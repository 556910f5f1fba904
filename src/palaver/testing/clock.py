"""Clock: time for tests, which passes only when it is advanced."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

ROUNDS = 50  # of the event loop, for the sleepers that were woken


class Clock:
    """`Engine(…, now=clock.now, sleep=clock.sleep)`, and then `await clock.advance(60)`.

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
