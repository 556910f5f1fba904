"""One place: what waits there is sorted and answered, one run at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from palaver.conversation.bursts import Batch, album_of, burst_from, follow_ups, open_albums, quiet_in
from palaver.conversation.conduct import Conduct
from palaver.conversation.crew import Sleep, is_cancelled, pauses
from palaver.conversation.journal import Inbox, Snapshot, Waiting
from palaver.conversation.judging import Judge, Verdicts
from palaver.errors import StoreBroken, StoreTrouble
from palaver.messages import Message, Place
from palaver.run.journal import Run

log = logging.getLogger(__name__)

AT_ONCE = 500  # messages that wait and are looked at


class Clerk(Protocol):
    """What a desk leaves to the engine."""

    async def answer(self, batch: Batch) -> None: ...

    async def call_off(self, place: Place) -> None:
        """A message is to be answered: what an older plan has not begun is off."""
        ...

    async def resume(self, run: Run) -> None: ...

    async def unfinished(self, place: Place) -> Sequence[Run]:
        """The runs of a place that were begun and not ended."""
        ...

    async def too_many(self, message: Message) -> None:
        """Tell an author, once, that this was more than is answered."""
        ...


class Desk:
    def __init__(
        self,
        place: Place,
        clerk: Clerk,
        judge: Judge,
        inbox: Inbox,
        conduct: Conduct,
        *,
        now: Callable[[], datetime],
        sleep: Sleep,
        runs: Sequence[Run] = (),
    ) -> None:
        self.place = place
        self.stopping = False  # somebody wants the run that is under way to end without an answer
        self._clerk = clerk
        self._judge = judge
        self._inbox = inbox
        self._now = now
        self._sleep = sleep
        self._gap = timedelta(seconds=conduct.burst)
        self._longest = timedelta(seconds=conduct.longest_burst)
        self._news = asyncio.Event()
        self._runs = list(runs)  # to be taken up again
        self._sure = True  # whether these are all that were begun and not ended
        self._verdicts = Verdicts(judge)
        self._answering: asyncio.Future[None] | None = None

    def heard(self) -> None:
        """Something came in, or was edited or deleted."""
        self._news.set()

    def stop(self) -> None:
        """End the run that is under way, or was when the store failed."""
        self.stopping = self._answering is not None or not self._sure
        if self._answering is not None:
            self._answering.cancel()

    async def attend(self) -> None:
        """Answer until nothing waits. `StoreBroken` is raised; any other trouble of the store is waited for."""
        troubles = pauses(1.0, 60.0)
        while True:
            self._news.clear()
            try:
                if not self._sure:
                    self._runs = list(await self._clerk.unfinished(self.place))
                    self._sure = True
                if not await self._next() and not self._news.is_set():
                    return
                troubles = pauses(1.0, 60.0)
            except StoreBroken:
                self._sure = False
                raise
            except StoreTrouble as trouble:
                self._sure = False
                pause = next(troubles)
                log.error("%s; tried again in %g s", trouble, pause)
                await self._sleep(pause)

    async def _next(self) -> bool:
        """Do what comes next; whether there was anything."""
        if self._runs:
            await self._do(self._clerk.resume(self._runs.pop(0)))
            return True
        self.stopping = False
        batch = await self._batch()
        if batch is None:
            return False
        await self._do(self._clerk.answer(batch))
        return True

    async def _batch(self) -> Batch | None:
        """The messages to answer now: those of one author that belong together, once no more of them come."""
        waited = False
        while True:
            snapshot = await self._inbox.snapshot(self.place, most=AT_ONCE)
            waiting = snapshot.waiting
            self._verdicts.retain(one.message for one in waiting)
            first, left = await self._first(waiting)
            if first is not None:
                burst = burst_from(first, waiting, self._gap, self._longest)
                left = quiet_in(burst, self._now(), self._gap, self._longest)
                if left <= timedelta(0):
                    return await self._batch_of([one.message for one in burst], waiting[first].message, snapshot)
                if not waited:
                    await self._clerk.call_off(self.place)
                waited = True
            elif left <= timedelta(0):
                if len(waiting) < AT_ONCE:
                    return None
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(left.total_seconds()):  # wait_for may lose a cancel
                    await self._news.wait()
            self._news.clear()

    async def refreshed(self, batch: Batch) -> Batch | None:
        """The batch as it is now; None where nothing of it waits any more."""
        snapshot = await self._inbox.snapshot(self.place, most=AT_ONCE)
        passed = await self._passed(batch.messages)
        now = Batch(messages=batch.messages, target=batch.target, snapshot=snapshot, passed=passed)
        still = now.only([one.message for one in snapshot.waiting if one.message.id in batch.ids])
        return still and await self._with_follow_ups(still)

    async def _batch_of(self, burst: Sequence[Message], first: Message, snapshot: Snapshot) -> Batch:
        """The batch of a burst; its target is the last message that speaks to us."""
        target = first
        for message in reversed(burst):
            if message is first or await self._verdicts.of(message) == "answer":
                target = message
                break
        passed = await self._passed(burst)
        batch = Batch(messages=tuple(burst), target=target, snapshot=snapshot, passed=passed)
        return await self._with_follow_ups(batch)

    async def _passed(self, burst: Sequence[Message]) -> tuple[Message, ...]:
        """The messages of the albums in a burst that were passed over before."""
        albums = dict.fromkeys(album for message in burst if (album := album_of(message)))
        found = [await self._inbox.album(self.place, *album) for album in albums]
        return tuple(message for members in found for message, state in members if state == "passed")

    async def _is_late(self, message: Message) -> bool:
        """Whether the album of a message has been answered already: then the message is context."""
        album = album_of(message)
        if album is None:
            return False
        return any(state == "taken" for _, state in await self._inbox.album(self.place, *album))

    async def _with_follow_ups(self, batch: Batch) -> Batch:
        """The batch with what its author wrote when the burst was over, where that speaks to nobody by itself.

        No other run would answer it: the author goes on with what is being answered.
        """
        if self.place.kind == "direct":  # where everything speaks to us
            return batch
        waiting = batch.snapshot.waiting
        more = [
            one.message.id
            for one in follow_ups(batch.ids, waiting, self._longest)
            if await self._verdicts.of(one.message) == "not addressed"
        ]
        wanted = {*batch.ids, *more}
        return batch.only([one.message for one in waiting if one.message.id in wanted]) or batch

    async def _first(self, waiting: Sequence[Waiting]) -> tuple[int | None, timedelta]:
        """Where the first message stands that is to be answered, and how long to wait where none does yet.

        Those before it, which are not, wait no longer; but for an album of which more may come, or that is answered.
        """
        passed: list[Message] = []
        found = None
        for number, one in enumerate(waiting):
            verdict = await self._verdicts.of(one.message)
            if verdict == "answer" and not await self._is_late(one.message):
                if await self._judge.allows(one.message):
                    found = number
                    break
                await self._clerk.too_many(one.message)
            passed.append(one.message)
        albums = open_albums(waiting, self._now(), self._gap, self._longest)
        left = min(albums.values(), default=timedelta(0))
        if found is not None and (answered := album_of(waiting[found].message)):
            albums[answered] = left
        if gone := [message.id for message in passed if album_of(message) not in albums]:
            await self._inbox.pass_over(self.place, gone)
        return found, left

    async def _do(self, work: Awaitable[None]) -> None:
        """One run, which somebody may stop."""
        self._answering = asyncio.ensure_future(work)
        try:
            await self._answering
        except asyncio.CancelledError:
            if not self.stopping or is_cancelled():
                raise
            self._sure = False  # its end may not have been kept
        finally:
            self._answering = None
