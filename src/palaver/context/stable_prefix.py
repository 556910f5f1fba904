"""Where the history is cut, so that what is sent keeps its beginning as long as it can. Pure."""

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.messages import Message
from palaver.parts import ToolResult

HISTORY_SIZE = 500


class Marks(Struct, frozen=True, kw_only=True):
    """A run of messages grows to the high mark; the next one cuts it to the low mark in one step."""

    low: int = HISTORY_SIZE // 4
    high: int = HISTORY_SIZE

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise InvalidValue(f"the marks of a window go from 0 up, the low one first, not {self.low}..{self.high}")

    def start(self, count: int) -> int:
        """How many of *count* messages lie before the cut: a function of the number alone."""
        if count <= self.high:
            return 0
        step = self.high - self.low + 1
        return -(-(count - self.high) // step) * step

    def last_cut(self, count: int) -> int:
        """The smallest number of messages with the same cut as *count*: since then nothing before it has moved."""
        start = self.start(count)
        return start + self.low if start else 0

    @classmethod
    def up_to(cls, size: int) -> "Marks":
        """The marks of a history of *size* messages: it is the high one, and a quarter of it the low one."""
        if size < 0:
            raise InvalidValue(f"history_size is a number of messages, 0 for none, not {size}")
        return cls(low=min(size, max(1, size // 4)), high=size)


BUFFER = Marks(low=4, high=16)


def keep_results_with_calls(messages: Sequence[Message], start: int) -> int:
    """*start*, or the nearest place before it at which no result is parted from its call."""
    while 0 < start < len(messages) and holds_results(messages[start]):
        start -= 1
    return start


def holds_results(message: Message) -> bool:
    """Whether a message holds results, and so must not be parted from what came before it."""
    return any(isinstance(part, ToolResult) for part in message.parts)


def stable_cut(counts: Sequence[int], start: int, budget: int, step: int) -> int:
    """How many messages come before those that fit.

    *start* is the number of the first one in its place. The cut falls on fixed numbers, at most *step* apart and as far
    apart as leaves at least a quarter of the budget in use, so that it does not move with every message.
    """
    rest = list(accumulate(reversed(counts), initial=0))[::-1]  # the tokens from each message on
    if rest[0] <= budget:
        return 0
    step = max(1, step)
    while True:
        cuts = range(-start % step, len(counts) + 1, step)
        cut = next((cut for cut in cuts if rest[cut] <= budget), len(counts))
        if step == 1 or rest[cut] * 4 >= budget:
            return cut
        step = step // 2
