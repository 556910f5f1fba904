"""Ownership of places, rate limits and stop requests, held in memory: one process has the store open."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from weakref import WeakValueDictionary

from tertulia.engine.limits import Limits
from tertulia.engine.rate_limit import AuthorKey
from tertulia.messages import Place, PlaceKey

AUTHORS = 10_000  # whose answers are counted


class LocalOwnership:
    """Implements `engine.places.Ownership` for the engines of this process."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[PlaceKey, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, place: Place) -> AsyncIterator[None]:
        lock = self._locks.setdefault(place.key, asyncio.Lock())
        async with lock:
            yield


class LocalRateLimits:
    """Implements `engine.rate_limit.RateLimitStore` in memory. Times that a clock set back has not reached are dropped.

    Of more than so many *authors* the one answered longest ago is forgotten.
    """

    def __init__(self, *, authors: int = AUTHORS) -> None:
        self._authors = authors
        self._answered: OrderedDict[AuthorKey, deque[datetime]] = OrderedDict()  # when, the latest answered author last
        self._warned: set[AuthorKey] = set()

    async def allows(self, author: AuthorKey, limits: Limits, *, at: datetime) -> bool:
        return len(self._recent(author, limits, at)) < limits.messages

    async def count_answer(self, author: AuthorKey, limits: Limits, *, at: datetime) -> bool:
        times = self._recent(author, limits, at)
        if len(times) >= limits.messages:
            return False
        times.append(at)
        self._answered[author] = times
        self._answered.move_to_end(author)
        self._warned.discard(author)
        if len(self._answered) > self._authors:
            self._warned.discard(self._answered.popitem(last=False)[0])
        return True

    async def uncount_answer(self, author: AuthorKey) -> None:
        if self._answered.get(author):
            self._answered[author].pop()

    async def claim_notice(self, author: AuthorKey) -> bool:
        warned = author in self._warned
        self._warned.add(author)
        return not warned

    async def release_notice(self, author: AuthorKey) -> None:
        self._warned.discard(author)

    def _recent(self, author: AuthorKey, limits: Limits, at: datetime) -> deque[datetime]:
        times = self._answered.get(author, deque())
        while times and (at - times[0]).total_seconds() >= limits.seconds:
            times.popleft()
        while times and times[-1] > at:
            times.pop()
        return times


class LocalStopRequests:
    """Implements `engine.places.StopRequests`: each request is passed on at once."""

    def __init__(self) -> None:
        self._listening: dict[PlaceKey, list[Callable[[], None]]] = {}

    def request(self, place: Place) -> None:
        for stop in list(self._listening.get(place.key, ())):
            stop()

    @contextmanager
    def listen(self, place: Place, stop: Callable[[], None]) -> Iterator[None]:
        listening = self._listening.setdefault(place.key, [])
        listening.append(stop)
        try:
            yield
        finally:
            listening.remove(stop)
            if not listening:
                del self._listening[place.key]
