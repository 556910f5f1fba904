"""Who may do what among the workers of a store: protocols for ownership, rate limits and requests to stop. Pure."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from palaver.engine.triggers import RateLimit
from palaver.messages import Place

AuthorKey = tuple[str, str]  # `Place.author_namespace` and the author's id


class Ownership(Protocol):
    """Who answers in a place: one worker at a time, of all processes that share the store."""

    def hold(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Hold a place until the block ends; wait while another worker holds it."""
        ...


class RateLimitStore(Protocol):
    """How often each author was answered lately, in all places together."""

    async def allows(self, author: AuthorKey, limit: RateLimit) -> bool:
        """Whether the author may be answered once more. Nothing is counted."""
        ...

    async def take(self, author: AuthorKey, limit: RateLimit) -> bool:
        """Count one more answer to the author; False, and nothing is counted, where that is over the limit."""
        ...

    async def give_back(self, author: AuthorKey) -> None:
        """Uncount the last answer to the author: it came to nothing."""
        ...

    async def warn(self, author: AuthorKey) -> bool:
        """Whether the author is to be told that they are over the limit: once, until they are answered again."""
        ...

    async def unwarn(self, author: AuthorKey) -> None:
        """Tell the author again: the warning came to nothing."""
        ...


class StopRequests(Protocol):
    """Requests to stop the run of a place, for whichever worker holds the place."""

    def request(self, place: Place) -> None:
        """Ask for a stop; it returns at once."""
        ...

    def listen(self, place: Place, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call *stop* for each request that comes until the block ends."""
        ...
