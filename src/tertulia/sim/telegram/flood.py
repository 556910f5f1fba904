"""Flood control: how many messages a bot may send, by the published limits."""

from collections import deque
from collections.abc import Callable
from math import ceil

from tertulia.sim.telegram.refusals import flood

PER_CHAT, PER_GROUP, OVERALL = (1, 1.0), (20, 60.0), (30, 1.0)  # messages in seconds


class FloodControl:
    """Counts what bots send and refuses what is too much; a refused message does not count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: dict[tuple[int, int | None], deque[float]] = {}

    def admit(self, bot: int, chat: int) -> None:
        """Count a message, or refuse it with the time to wait."""
        now = self._clock()
        limits = [((bot, chat), *(PER_GROUP if chat < 0 else PER_CHAT)), ((bot, None), *OVERALL)]
        if chat < 0:
            limits.append(((bot, chat), *PER_CHAT))
        wait = max(self._wait(key, most, seconds, now) for key, most, seconds in limits)
        if wait > 0:
            raise flood(max(1, ceil(wait)))
        for key in ((bot, chat), (bot, None)):
            self._sent.setdefault(key, deque(maxlen=100)).append(now)

    def _wait(self, key: tuple[int, int | None], most: int, seconds: float, now: float) -> float:
        recent = [time for time in self._sent.get(key, ()) if time > now - seconds]
        return recent[-most] + seconds - now if len(recent) >= most else 0.0
