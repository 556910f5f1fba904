"""Debounce: waits until no more messages of a batch come, then hands the batch over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from palaver.engine.admission import Admission, DecisionCache
from palaver.engine.background import Sleep, wait_for_event
from palaver.engine.batches import Batch, album_of, burst_from, follow_ups, open_albums, time_left
from palaver.engine.behavior import Behavior
from palaver.engine.rate_limit import RateLimiter
from palaver.engine.store_protocols import InboxStore, PlaceSnapshot, WaitingMessage
from palaver.messages import Message, Place

AT_ONCE = 500  # messages that wait and are looked at


class Debounce:
    """Reads what waits in one place and makes batches of it.

    Messages that are not for us are passed over. *rate_limited* is called with each message whose author has had enough
    answers, *waiting* once when a batch is found of which more may come.
    """

    def __init__(
        self,
        place: Place,
        admission: Admission,
        rate_limiter: RateLimiter,
        inbox: InboxStore,
        behavior: Behavior,
        *,
        rate_limited: Callable[[Message], Awaitable[None]],
        waiting: Callable[[], Awaitable[None]],
        now: Callable[[], datetime],
        sleep: Sleep,
    ) -> None:
        self.changed = asyncio.Event()  # something came in, or was edited or deleted
        self._place = place
        self._rate_limiter = rate_limiter
        self._inbox = inbox
        self._gap = timedelta(seconds=behavior.burst)
        self._longest = timedelta(seconds=behavior.longest_burst)
        self._rate_limited = rate_limited
        self._waiting = waiting
        self._now = now
        self._sleep = sleep
        self._decisions = DecisionCache(admission)

    def move(self, place: Place) -> None:
        """Go on in the place that this one has become."""
        self._place = place
        self.changed.set()

    async def next_batch(self) -> Batch | None:
        """Wait until a batch is complete, and return it; None where nothing waits that is for us."""
        has_waited = False
        while True:
            snapshot = await self._inbox.snapshot(self._place, most=AT_ONCE)
            waiting = snapshot.waiting
            self._decisions.retain(one.message for one in waiting)
            first, left = await self._first(waiting)
            if first is not None:
                burst = burst_from(first, waiting, self._gap, self._longest)
                left = time_left(burst, self._now(), self._gap, self._longest)
                if left <= timedelta(0):
                    return await self._batch_of([one.message for one in burst], waiting[first].message, snapshot)
                if not has_waited:
                    await self._waiting()
                has_waited = True
            elif left <= timedelta(0):
                if len(waiting) < AT_ONCE:
                    return None
                continue
            await wait_for_event(self.changed, left.total_seconds(), sleep=self._sleep)
            self.changed.clear()

    async def refreshed(self, batch: Batch) -> Batch | None:
        """Read a batch again; None where nothing of it waits any more."""
        snapshot = await self._inbox.snapshot(self._place, most=AT_ONCE)
        passed = await self._passed(batch.messages)
        now = Batch(messages=batch.messages, target=batch.target, snapshot=snapshot, passed=passed)
        still = now.only([one.message for one in snapshot.waiting if one.message.id in batch.ids])
        return still and await self._with_follow_ups(still)

    async def _first(self, waiting: Sequence[WaitingMessage]) -> tuple[int | None, timedelta]:
        """Find the first message to answer; where there is none yet, how long to wait.

        Those before it are passed over, except for an album of which more may come, or whose other message is answered.
        """
        passed: list[Message] = []
        found = None
        for number, one in enumerate(waiting):
            decision = await self._decisions.decide(one.message)
            if decision == "answer" and not await self._is_late(one.message):
                if await self._rate_limiter.allows(one.message):
                    found = number
                    break
                await self._rate_limited(one.message)
            passed.append(one.message)
        albums = open_albums(waiting, self._now(), self._gap, self._longest)
        left = min(albums.values(), default=timedelta(0))
        if found is not None and (answered := album_of(waiting[found].message)):
            albums[answered] = left
        if gone := [message.id for message in passed if album_of(message) not in albums]:
            await self._inbox.pass_over(self._place, gone)
        return found, left

    async def _batch_of(self, burst: Sequence[Message], first: Message, snapshot: PlaceSnapshot) -> Batch:
        """Make a batch of a burst; its target is the last message that speaks to us."""
        target = first
        for message in reversed(burst):
            if message is first or await self._decisions.decide(message) == "answer":
                target = message
                break
        passed = await self._passed(burst)
        batch = Batch(messages=tuple(burst), target=target, snapshot=snapshot, passed=passed)
        return await self._with_follow_ups(batch)

    async def _with_follow_ups(self, batch: Batch) -> Batch:
        """Add what its author wrote when the burst was over, where that speaks to nobody by itself.

        No other run would answer it: the author goes on with what is being answered.
        """
        if self._place.kind == "direct":  # where everything speaks to us
            return batch
        waiting = batch.snapshot.waiting
        more = [
            one.message.id
            for one in follow_ups(batch.ids, waiting, self._longest)
            if await self._decisions.decide(one.message) == "not addressed"
        ]
        wanted = {*batch.ids, *more}
        return batch.only([one.message for one in waiting if one.message.id in wanted]) or batch

    async def _passed(self, burst: Sequence[Message]) -> tuple[Message, ...]:
        """The messages of the albums in a burst that were passed over before."""
        albums = dict.fromkeys(album for message in burst if (album := album_of(message)))
        found = [await self._inbox.album(self._place, *album) for album in albums]
        return tuple(message for members in found for message, state in members if state == "passed")

    async def _is_late(self, message: Message) -> bool:
        """Whether the album of a message has been answered already: then the message is context."""
        album = album_of(message)
        if album is None:
            return False
        return any(state == "taken" for _, state in await self._inbox.album(self._place, *album))
