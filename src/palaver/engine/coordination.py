"""Coordination of the workers that share a store: protocols for ownership of places and stop requests. Pure."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from palaver.messages import Place


class Ownership(Protocol):
    """Locks of places: one worker at a time answers in a place, of all processes that share the store."""

    def hold(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Hold a place until the block ends; wait while another worker holds it."""
        ...


class StopRequests(Protocol):
    """Requests to stop the run of a place, for whichever worker holds the place."""

    def request(self, place: Place) -> None:
        """Request a stop; return at once."""
        ...

    def listen(self, place: Place, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call *stop* for each request until the block ends."""
        ...
