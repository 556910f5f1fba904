"""Debounce: waits until a burst of messages is complete, then returns it as a batch."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.admission import Admission, DecisionCache
from tertulia.engine.background import wait_for_event
from tertulia.engine.batches import Batch, album_of, burst_at, follow_ups, open_albums, time_left
from tertulia.engine.checks import AuthorRate
from tertulia.engine.shared import Shared
from tertulia.engine.speaker import Speakers
from tertulia.engine.store_protocols import PlaceSnapshot, WaitingMessage
from tertulia.messages import Message, Place

MAX_WAITING = 500  # waiting messages that are read at once


class Debounce:
    """Makes batches of the messages that wait in one place; messages that are not answered are skipped.

    Authors over the rate limit are told by *rate*. A burst that may still grow cancels the tasks of older plans.
    """

    def __init__(
        self, place: Place, shared: Shared, admission: Admission, rate: AuthorRate, speakers: Speakers
    ) -> None:
        self.changed = asyncio.Event()  # set when a message came in, or was edited or deleted
        self._place = place
        self._shared = shared
        self._inbox = shared.store.inbox
        self._now = shared.now
        self._gap = timedelta(seconds=shared.behavior.debounce)
        self._longest = timedelta(seconds=shared.behavior.max_debounce)
        self._admission = admission
        self._rate = rate
        self._speakers = speakers
        self._decisions = DecisionCache(admission)

    def move(self, place: Place) -> None:
        """Continue in the place that this one has migrated to."""
        self._place = place
        self.changed.set()

    async def next_batch(self) -> Batch | None:
        """Wait until a batch is complete, and return it; None where no message is left to answer.

        Each round reads what waits, finds the first message to answer, and sleeps for as long as its burst, or an album
        that nobody has addressed to us yet, may still grow. A new message, an edit or a deletion ends the sleep early.
        """
        has_waited = False
        while True:
            snapshot = await self._inbox.snapshot(self._place, most=MAX_WAITING)
            waiting = snapshot.waiting
            self._decisions.retain(one.message for one in waiting)
            if after := next((one.agent for one in waiting if one.agent), ""):
                if self._speakers.has(after):
                    return _batch_after(after, snapshot)
                await self._shared.store.agents.drop_waiting(after, at=self._now())
                continue
            first, left = await self._find_first(snapshot)
            if first is not None:
                burst = burst_at(first, waiting, self._gap, self._longest)
                left = time_left(burst, self._now(), self._gap, self._longest)
                if left <= timedelta(0):
                    return await self._make_batch(burst, waiting[first], snapshot)
                if not has_waited:
                    await self._shared.store.tasks.cancel_superseded(self._place, self._shared.behavior.policy)
                has_waited = True
            elif left <= timedelta(0):
                if len(waiting) < MAX_WAITING:
                    return None
                continue
            await wait_for_event(self.changed, left.total_seconds(), sleep=self._shared.sleep)
            self.changed.clear()

    async def refresh(self, batch: Batch) -> Batch | None:
        """Read a batch again, with its edits and without its deletions; None where no message of it waits."""
        snapshot = await self._inbox.snapshot(self._place, most=MAX_WAITING)
        skipped = await self._read_skipped(batch.messages)
        now = replace(batch, snapshot=snapshot, skipped=skipped)
        waits = {one.message.id: one for one in snapshot.waiting if one.agent in ("", batch.agent)}
        still = now.subset([waits[name].message for name in batch.ids if name in waits])
        if still is None or batch.follows:
            return still
        return await self._add_follow_ups(still)

    async def _find_first(self, snapshot: PlaceSnapshot) -> tuple[int | None, timedelta]:
        """Return the number of the first message to answer, and how long incomplete albums need.

        The messages before it are skipped, except those of an incomplete album or of the album that is answered. If one
        may have been edited meanwhile, none is, and all are read again.
        """
        waiting = snapshot.waiting
        passed: list[tuple[Message, Decision]] = []
        found = None
        for number, one in enumerate(waiting):
            meant = self._still_meant(one, await self._decisions.decide(one))
            decision = await self._admission.apply_limits(one.message, meant[0])
            if decision.reason == "answered":
                found = number
                break
            if decision.reason == "rate limit":
                await self._rate.tell(one.message, decision, self._speakers.named(decision.agent))
            passed.append((one.message, decision))
        albums = open_albums(waiting, self._now(), self._gap, self._longest)
        left = min(albums.values(), default=timedelta(0))
        if found is not None and (answered := album_of(waiting[found].message)):
            albums[answered] = left
        gone = {message.id: decision for message, decision in passed if album_of(message) not in albums}
        if gone and not await self._inbox.skip(self._place, gone, at=self._now(), changes=snapshot.changes):
            self.changed.set()
        return found, left

    async def _make_batch(
        self, burst: Sequence[WaitingMessage], first: WaitingMessage, snapshot: PlaceSnapshot
    ) -> Batch:
        """Make a batch of a burst; its target is the last message that is addressed to us."""
        target = first
        for one in reversed(burst):
            if one is first or (await self._decisions.decide(one))[0].reason == "answered":
                target = one
                break
        messages = tuple([one.message for one in burst])
        skipped = await self._read_skipped(messages)
        batch = Batch(messages=messages, target=target.message, snapshot=snapshot, skipped=skipped)
        return await self._add_follow_ups(batch)

    async def _add_follow_ups(self, batch: Batch) -> Batch:
        """Add the follow-ups: no other run would answer them, since they are not addressed to us."""
        if self._place.kind == "direct":  # where every message is addressed to us
            return await self._with_decisions(batch)
        waiting = batch.snapshot.waiting
        more = [
            one.message.id
            for one in follow_ups(batch.ids, waiting, self._longest)
            if (await self._decisions.decide(one))[0].reason == "not addressed"
        ]
        wanted = {*batch.ids, *more}
        return await self._with_decisions(
            batch.subset([one.message for one in waiting if one.message.id in wanted]) or batch
        )

    async def _with_decisions(self, batch: Batch) -> Batch:
        """Return the batch with what was decided about its messages: who answers it, and who does so afterwards.

        All agents that one of the messages means answer all of them, in the order in which they were called.
        """
        waiting = {one.message.id: one for one in batch.snapshot.waiting}
        decided = {
            one.id: self._still_meant(waiting[one.id], await self._decisions.decide(waiting[one.id]))
            for one in batch.messages
        }
        called = {one.agent: one for found in decided.values() for one in found if one.reason == "answered"}
        if len(called) < 2:  # mostly
            agent = next(iter(called), "")
            return replace(batch, decisions={name: found[0] for name, found in decided.items()}, agent=agent)
        agent, *later = called
        meant = {one.id: tuple([called[name] for name in later]) for one in batch.messages}
        first = {name: next((one for one in found if one.agent == agent), found[0]) for name, found in decided.items()}
        return replace(batch, decisions=first, agent=agent, meant=meant)

    @staticmethod
    def _still_meant(waiting: WaitingMessage, decided: Sequence[Decision]) -> Sequence[Decision]:
        """Return the decisions about a message without those of agents that have answered it before its edit."""
        left = [one for one in decided if not one.agent or one.agent not in waiting.acted]
        return left or (replace(decided[0], reason="not addressed"),)

    async def _read_skipped(self, burst: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages of the albums in a burst that were skipped before."""
        albums = dict.fromkeys(album for message in burst if (album := album_of(message)))
        found = [one for album in albums for one in await self._inbox.album(self._place, *album)]
        taken = {message.id for message in burst}
        taken |= {one.id for one, decision in found if decision.run_id is not None or decision.reason == "waiting"}
        return tuple({one.id: one for one, _ in found if one.id not in taken}.values())


def _batch_after(agent: str, snapshot: PlaceSnapshot) -> Batch:
    """Return what an agent answers of the messages that another has answered before it."""
    mine = [one for one in snapshot.waiting if one.agent == agent]
    return Batch(
        messages=tuple([one.message for one in mine]),
        target=mine[-1].message,
        snapshot=snapshot,
        decisions={one.message.id: Decision(reason="answered", address=one.address) for one in mine},
        agent=agent,
        follows=True,
    )
