"""Rate limit: how often one author is answered. The value, the protocol of its store, and the limiter of an engine."""

from typing import Protocol

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.messages import Message

AuthorKey = tuple[str, str]  # `Place.author_namespace` and the author's id


class RateLimit(Struct, frozen=True, kw_only=True):
    """At most so many messages of one author are answered within so many seconds."""

    messages: int = 20
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.messages < 1 or not self.seconds >= 0:
            raise InvalidValue("RateLimit: messages must be at least 1 and seconds at least 0")


class RateLimitStore(Protocol):
    """Counts the answers to each author, in all places together."""

    async def allows(self, author: AuthorKey, limit: RateLimit) -> bool:
        """Return whether the author may be answered once more. Count nothing."""
        ...

    async def take(self, author: AuthorKey, limit: RateLimit) -> bool:
        """Count one more answer to the author; return False, and count nothing, where that is over the limit."""
        ...

    async def give_back(self, author: AuthorKey) -> None:
        """Uncount the last answer to the author: it was not stored."""
        ...

    async def warn(self, author: AuthorKey) -> bool:
        """Return True once for an author over the limit, until they are answered again."""
        ...

    async def unwarn(self, author: AuthorKey) -> None:
        """Undo `warn`: the notice was not stored."""
        ...


class RateLimiter:
    """The rate limit of an engine, for the authors of messages."""

    def __init__(self, store: RateLimitStore, limit: RateLimit) -> None:
        self._store = store
        self._limit = limit

    async def allows(self, message: Message) -> bool:
        """Return whether the author may be answered once more. Count nothing."""
        return await self._store.allows(_author(message), self._limit)

    async def take(self, message: Message) -> bool:
        """Count one more answer to the author; return False where that is over the limit."""
        return await self._store.take(_author(message), self._limit)

    async def give_back(self, message: Message) -> None:
        """Uncount an answer that was not stored: it is retried."""
        await self._store.give_back(_author(message))

    async def warn(self, message: Message) -> bool:
        """Return whether to send the author the notice about the limit: once, until they are answered again."""
        return await self._store.warn(_author(message))

    async def unwarn(self, message: Message) -> None:
        """Undo `warn`: the notice was not stored."""
        await self._store.unwarn(_author(message))


def _author(message: Message) -> AuthorKey:
    return message.place.author_namespace, message.author.id
