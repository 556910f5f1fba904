"""Rate limit: how often one author is answered. The protocol of its store, and the limiter of an engine."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.messages import Message

AuthorKey = tuple[str, str]  # `Place.author_namespace` and the author's id


class RateLimitStore(Protocol):
    """Counts the answers to each author, in all places together. `at` is the time of the engine's clock."""

    async def allows(self, author: AuthorKey, limits: Limits, *, at: datetime) -> bool:
        """Return whether the author may be answered once more. Count nothing."""
        ...

    async def count_answer(self, author: AuthorKey, limits: Limits, *, at: datetime) -> bool:
        """Count one more answer to the author; return False, and count nothing, where that is over the limit."""
        ...

    async def uncount_answer(self, author: AuthorKey) -> None:
        """Uncount the last answer to the author: it was not stored."""
        ...

    async def claim_notice(self, author: AuthorKey) -> bool:
        """Return True once for an author over the limit, until they are answered again."""
        ...

    async def release_notice(self, author: AuthorKey) -> None:
        """Undo `claim_notice`: the notice was not stored."""
        ...


class RateLimiter:
    """The rate limit of an engine, for the authors of messages."""

    def __init__(self, store: RateLimitStore, limits: CurrentLimits, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._limits = limits
        self._now = now

    async def allows(self, message: Message) -> bool:
        """Return whether the author may be answered once more. Count nothing."""
        return await self._store.allows(_author(message), self._limits.value, at=self._now())

    async def count_answer(self, message: Message) -> bool:
        """Count one more answer to the author; return False where that is over the limit."""
        return await self._store.count_answer(_author(message), self._limits.value, at=self._now())

    async def uncount_answer(self, message: Message) -> None:
        """Uncount an answer that was not stored: it is retried."""
        await self._store.uncount_answer(_author(message))

    async def claim_notice(self, message: Message) -> bool:
        """Return whether to send the author the notice about the limit: once, until they are answered again."""
        return await self._store.claim_notice(_author(message))

    async def release_notice(self, message: Message) -> None:
        """Undo `claim_notice`: the notice was not stored."""
        await self._store.release_notice(_author(message))


def _author(message: Message) -> AuthorKey:
    return message.place.author_namespace, message.author.id
