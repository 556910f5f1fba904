"""Where the history is cut, so that what is sent keeps its beginning as long as it can. Pure."""

from collections.abc import Sequence

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

    def began(self, count: int) -> int:
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


def whole_from(messages: Sequence[Message], start: int) -> int:
    """*start*, or the nearest place before it at which no result is parted from its call."""
    while 0 < start < len(messages) and answers(messages[start]):
        start -= 1
    return start


def answers(message: Message) -> bool:
    """Whether a message holds results, and so must not be parted from what came before it."""
    return any(isinstance(part, ToolResult) for part in message.parts)
