"""Addresses of services that were seen to refuse audio."""

import time
from collections.abc import Callable

MOST = 1_000  # addresses; beyond them the oldest is asked again
ASKED_AGAIN = 24 * 3600.0  # seconds: a server may have got a model that hears


class AudioRefusals:
    """Remembers for a day which addresses refuse audio; clients that share it ask an address once.

    Clients share `REFUSALS` unless they are given one of their own.
    """

    def __init__(self, *, most: int = MOST, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._seen: dict[str, float] = {}  # address → when it refused, in that order

    def add(self, address: str) -> None:
        self._seen.pop(address, None)
        self._seen[address] = self._now()
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]

    def __contains__(self, address: str) -> bool:
        refused_at = self._seen.get(address)
        return refused_at is not None and self._now() - refused_at < ASKED_AGAIN

    def clear(self) -> None:
        self._seen.clear()


REFUSALS = AudioRefusals()
