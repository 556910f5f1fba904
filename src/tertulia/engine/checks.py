"""Checks around an answer, in order: a yes that was waited for, the rate limit, the spend caps.

Each is a context manager around the whole answer. It gives the batch on, or tells the author why it is not answered
and raises `NotAnswered`; what it has counted, it uncounts where the run is not stored.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from tertulia.decisions import Decision
from tertulia.engine.batches import Batch
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.run_completion import RunCompletion
from tertulia.engine.shared import Shared
from tertulia.engine.speaker import Speaker
from tertulia.engine.spend_caps import SpendTracker
from tertulia.engine.store_protocols import PromptOutdated
from tertulia.errors import StoreTrouble
from tertulia.messages import Message

log = logging.getLogger(__name__)

SPENT = "a spend cap is reached"
RATE_LIMITED = "the rate limit of the author is reached"


class NotAnswered(Exception):
    """No run answers a batch."""


class Check(Protocol):
    def around(self, batch: Batch, speaker: Speaker) -> AbstractAsyncContextManager[Batch]:
        """Enter with what is to be answered of a batch; raise `NotAnswered` where nothing is."""
        ...


class Confirmed:
    """A plain yes forgets the facts that it confirms; the other messages of its batch are answered."""

    def __init__(self, shared: Shared, confirmations: Confirmations, completion: RunCompletion) -> None:
        self._shared = shared
        self._confirmations = confirmations
        self._completion = completion

    @asynccontextmanager
    async def around(self, batch: Batch, speaker: Speaker) -> AsyncIterator[Batch]:
        while facts := await self._confirmations.find_facts(first := batch.messages[0]):
            run = speaker.new_run([first], first, batch.decided("answered"))
            await self._completion.complete_with_forgetting(run, first, facts)
            others = batch.subset(batch.messages[1:])  # in a group they may not be addressed to us by themselves
            if others is None:
                raise NotAnswered
            ids = [fact.id for fact in facts]
            await self._shared.store.facts.forget(ids, at=self._shared.now())  # before they are answered
            batch = others
        yield batch


class AuthorRate:
    """An author is answered so often, and is told once when that is reached."""

    def __init__(self, shared: Shared, limiter: RateLimiter, completion: RunCompletion) -> None:
        self._shared = shared
        self._limiter = limiter
        self._completion = completion

    @asynccontextmanager
    async def around(self, batch: Batch, speaker: Speaker) -> AsyncIterator[Batch]:
        target = batch.target
        if not await self._limiter.count_answer(target):  # used up in other places meanwhile
            decisions = batch.decided("rate limit")
            await self.tell(target, decisions[target.id], speaker)
            await self._shared.store.inbox.skip(target.place, decisions, at=self._shared.now())
            raise NotAnswered
        async with self.uncounted_unless_stored(target):
            yield batch

    @asynccontextmanager
    async def uncounted_unless_stored(self, target: Message) -> AsyncIterator[None]:
        """Uncount the answer to a message where its run is not stored."""
        try:
            yield
        except (StoreTrouble, PromptOutdated, NotAnswered):
            await self._limiter.uncount_answer(target)
            raise

    async def count_resumed(self, target: Message) -> None:
        """Count an answer that an earlier process has begun."""
        await self._limiter.count_answer(target)

    async def tell(self, message: Message, decision: Decision, speaker: Speaker) -> None:
        """Send an author the notice that the rate limit is reached, once until they are answered again."""
        log.info("message %s is over the rate limit", message.id, extra={"place": message.place})
        if message.agent is not None or not await self._limiter.claim_notice(message):
            return  # agents are told nothing
        run = speaker.new_run([message], message, {message.id: decision})
        try:  # in one transaction, so that a crash does not lead to an answer as well
            await self._completion.complete_with_notice(run, message, lambda lines: lines.too_many, why=RATE_LIMITED)
        except StoreTrouble:
            await self._limiter.release_notice(message)
            raise


class SpendCaps:
    """Nobody is answered where a cap of the day is reached; an author is told once a day."""

    def __init__(self, shared: Shared, spending: SpendTracker, completion: RunCompletion) -> None:
        self._shared = shared
        self._spending = spending
        self._completion = completion

    @asynccontextmanager
    async def around(self, batch: Batch, speaker: Speaker) -> AsyncIterator[Batch]:
        target, decisions = batch.target, batch.decided("spend cap")
        own = speaker.agent.limits
        if not await self._spending.is_reached(target.place, target.author, agent=speaker.name, own=own):
            yield batch
            return
        if await self._spending.has_notice(target):  # today
            await self._shared.store.inbox.skip(target.place, decisions, at=self._shared.now())
        else:
            run = speaker.new_run(batch.messages, target, decisions)
            await self._completion.complete_with_notice(run, target, lambda lines: lines.spent, why=SPENT)
            await self._spending.add_notice(target)
        raise NotAnswered
