"""Allowance: how much each may do at once, and how fast it comes back."""

from collections.abc import Callable

from tertulia.platforms.web.roles import Refusal, Refused

MOST_KNOWN = 10_000  # of whom it is known what they have left


class Allowance:
    """Counts what each has left of *most*; it comes back at a rate per second."""

    def __init__(self, most: float, per_second: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._per_second = per_second
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def take(self, who: str, amount: float = 1.0) -> None:
        """Take an amount; raise `Refused` where it is not left."""
        now = self._clock()
        if len(self._left) >= MOST_KNOWN:
            self._left = {name: one for name, one in self._left.items() if self._now_left(one, now) < self._most}
        left = self._now_left(self._left.get(who, (self._most, now)), now) - amount
        if left < 0:
            wait = min(-left / self._per_second, 86_400.0)
            raise Refused(Refusal(status=429, why="this is too fast: wait a while", retry_after=int(wait) + 1))
        self._left[who] = (left, now)

    def _now_left(self, one: tuple[float, float], now: float) -> float:
        left, at = one
        return min(self._most, left + (now - at) * self._per_second)
