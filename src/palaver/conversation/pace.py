"""How often each author was answered lately, and who was told that it is too often."""

from collections import OrderedDict, deque

from palaver.conversation.triggers import Limit

_MOST = 10_000  # authors that are remembered


class Pace:
    """Times are seconds of any clock that only goes forward."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._answered: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._told: set[tuple[str, str]] = set()

    def ago(self, author: tuple[str, str], now: float) -> list[float]:
        """How many seconds ago the author was answered, as far as it matters."""
        return [now - then for then in self._lately(author, now)]

    def answered(self, author: tuple[str, str], now: float) -> None:
        times = self._lately(author, now)
        times.append(now)
        self._answered[author] = times
        self._answered.move_to_end(author)
        self._told.discard(author)
        if len(self._answered) > _MOST:
            self._told.discard(self._answered.popitem(last=False)[0])

    def is_full(self, author: tuple[str, str], now: float) -> bool:
        """Whether the author was answered as often as may be."""
        return len(self._lately(author, now)) >= self._limit.messages

    def take_back(self, author: tuple[str, str]) -> None:
        """The last answer to the author came to nothing."""
        if self._answered.get(author):
            self._answered[author].pop()

    def tell(self, author: tuple[str, str]) -> bool:
        """Whether the author is to be told that it is too much: once, until answered again."""
        told = author in self._told
        self._told.add(author)
        return not told

    def untell(self, author: tuple[str, str]) -> None:
        """What the author was to be told came to nothing."""
        self._told.discard(author)

    def _lately(self, author: tuple[str, str], now: float) -> deque[float]:
        times = self._answered.get(author, deque())
        while times and now - times[0] >= self._limit.seconds:
            times.popleft()
        return times
