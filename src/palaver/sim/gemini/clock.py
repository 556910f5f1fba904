"""Time under a test's control."""

from collections.abc import Callable
from datetime import UTC, datetime

START = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()


class Clock:
    """A clock that stands still unless *source* runs, and that can be advanced."""

    def __init__(self, source: Callable[[], float] | None = None) -> None:
        self._source = source or (lambda: START)
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._source() + self._ahead

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self._ahead += seconds


def stamp(moment: float) -> str:
    """*moment* as the service writes it, to the nanosecond."""
    whole = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{int(moment % 1 * 1_000_000):06d}000Z"


def moment(text: str) -> float:
    """The moment an RFC 3339 *text* names; raises ValueError."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
