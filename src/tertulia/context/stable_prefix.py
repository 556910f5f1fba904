"""Cuts of the history that keep the prefix of a request stable. Pure.

A provider charges less for the part of a request that repeats the start of the previous one. A window of the newest N
messages would begin elsewhere with each message. So every cut here falls on fixed message numbers, and is a function of
numbers alone: the same history is always cut at the same place, in every process, with no state to store.

By count (`Marks`): the window grows up to the high mark. The next message cuts it to the low mark in one step. With the
default marks (125 and 500) the prefix changes once in 376 messages.

By both (`BufferMarks`): the buffer of `layered` is cut by the number of its messages as above, and by their tokens. For
tokens one goes through the messages as they came: what is over the high mark moves the cut in one step, so far that the
low mark is behind it. The cut goes forward only. One need not begin with the first message of the window: a cut by
messages leaves no trace of those by tokens before it if what it leaves is within the low mark.

By tokens (`stable_cut`): a window over its budget is cut at the first multiple of a step from which all fits. While the
cut would leave less than a quarter of the budget in use, the step is halved. So a cut moves rarely, and few large
messages do not empty the window.

Why the prefix stays: a deleted message keeps its number, an edit is shown as a notice at the end (`context.edits`), and
the turns behind a message move with it. No cut separates a tool result from its call.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.messages import Message
from tertulia.parts import ToolResult

HISTORY_SIZE = 500


class Marks(Struct, frozen=True, kw_only=True):
    """The high mark is the most messages of a window; the message after it cuts the window to the low mark."""

    low: int = HISTORY_SIZE // 4
    high: int = HISTORY_SIZE

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise InvalidValue(f"the marks of a window go from 0 up, the low one first, not {self.low}..{self.high}")

    def start(self, count: int) -> int:
        """Return how many of *count* messages lie before the cut."""
        if count <= self.high:
            return 0
        step = self.high - self.low + 1
        return -(-(count - self.high) // step) * step

    def last_cut(self, count: int) -> int:
        """Return the count of messages at which the cut for *count* was made: the prefix is stable since then."""
        start = self.start(count)
        return start + self.low if start else 0

    @classmethod
    def up_to(cls, size: int) -> "Marks":
        """Return the marks of a history of *size* messages: the high mark is *size*, the low one a quarter of it."""
        if size < 0:
            raise InvalidValue(f"history_size is a number of messages, 0 for none, not {size}")
        return cls(low=min(size, max(1, size // 4)), high=size)


class BufferMarks(Marks, frozen=True, kw_only=True):
    """The marks of a buffer, in messages and in tokens. The newest message stays in it, however large it is."""

    low: int = 4
    high: int = 16
    low_tokens: int = 2_000
    high_tokens: int = 8_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low_tokens <= self.high_tokens:
            marks = f"{self.low_tokens}..{self.high_tokens}"
            raise InvalidValue(f"the marks in tokens go from 0 up, the low one first, not {marks}")

    def cut(self, first: int, count: int, tokens: Callable[[int], int]) -> tuple[int, int]:
        """Return the number of the first message in the buffer, and the count of messages when it became that.

        *first* is the number of the first message that is shown, *count* that of all; *tokens* returns the tokens of
        the message with a number.
        """
        start, behind = self.start(count), max(0, self.low - 1)
        if start >= first:  # mostly the cut by messages is the last one
            sizes = [*map(tokens, range(start, count))]
            if sum(sizes) <= self.high_tokens and (start == first or sum(sizes[:behind]) <= self.low_tokens):
                return start, self.last_cut(count)
        start, known = self._settled(first, count, tokens)
        held, moved_at = sum(map(tokens, range(start, known))), 0
        for newest in range(known, count):
            end = max(start, self.start(newest + 1))
            held += tokens(newest) - sum(map(tokens, range(start, end)))
            if held > self.high_tokens:
                while held > self.low_tokens and end < newest:
                    held -= tokens(end)
                    end += 1
            if end > start:
                start, moved_at = end, newest + 1
        return start, max(moved_at, self.last_cut(count))

    def _settled(self, first: int, count: int, tokens: Callable[[int], int]) -> tuple[int, int]:
        """Return a cut that no earlier one has an effect on, and the count of messages just before it was made."""
        start, behind = self.start(count), max(0, self.low - 1)
        while start > first:
            if sum(map(tokens, range(start, start + behind))) <= self.low_tokens:
                return start, start + behind
            start -= self.high - self.low + 1
        return first, first


BUFFER = BufferMarks()


def keep_results_with_calls(messages: Sequence[Message], start: int) -> int:
    """Return *start*, moved back as far as needed so that no result is separated from its call."""
    while 0 < start < len(messages) and holds_results(messages[start]):
        start -= 1
    return start


def holds_results(message: Message) -> bool:
    """Return whether a message holds tool results: it stays with the messages before it."""
    return any(isinstance(part, ToolResult) for part in message.parts)


def stable_cut(counts: Sequence[int], start: int, budget: int, step: int) -> int:
    """Return how many messages to cut, so that the *counts* of the others are within *budget*.

    *start* is the number of the first message in its place. Cuts are at most *step* messages apart.
    """
    rest = list(accumulate(reversed(counts), initial=0))[::-1]  # the sum from each message on
    if rest[0] <= budget:
        return 0
    step = max(1, step)
    while True:
        cuts = range(-start % step, len(counts) + 1, step)
        cut = next((cut for cut in cuts if rest[cut] <= budget), len(counts))
        if step == 1 or rest[cut] * 4 >= budget:
            return cut
        step = step // 2
