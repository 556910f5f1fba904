"""Faults that a simulator injects on demand: errors, silence, broken streams and useless answers.

The faults are the same for every service. Each service words them as its own errors and answers, and names those it
knows in its `Fault`.
"""

from typing import Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType

F = TypeVar("F")


class RateLimited(Struct, frozen=True):
    """429: too many requests. With *retry_after* None the error names no waiting time; without it, the usual one.

    *daily* makes it the quota of a day, where the service has one.
    """

    retry_after: float | UnsetType | None = UNSET
    daily: bool = False

    def wait(self, usual: float | None) -> float | None:
        """Return the seconds to wait, or *usual* where the fault leaves it to the service."""
        return usual if self.retry_after is UNSET else self.retry_after


class Quota(Struct, frozen=True):
    """429: the account has no money left."""


class Internal(Struct, frozen=True):
    """500."""


class Overloaded(Struct, frozen=True):
    """503."""


class Deadline(Struct, frozen=True):
    """504."""


class ContextTooLong(Struct, frozen=True):
    """400: more tokens than the model reads."""

    limit: int = 128_000


class Hang(Struct, frozen=True):
    """No response for some seconds, then the usual one. It ends when the client leaves or the simulator stops."""

    seconds: float = 3600.0


class CutStream(Struct, frozen=True):
    """The connection is dropped after some chunks of a stream."""

    after: int = 1


class ErrorFrame(Struct, frozen=True):
    """An error in place of a chunk, after some chunks of a stream."""

    after: int = 1


class UsageOnlyLast(Struct, frozen=True):
    """A stream with one more chunk at its end that has usage and no content."""


class Empty(Struct, frozen=True):
    """An answer without text, or with *content* as its text, and with the usual finish reason."""

    content: str | None = None


class EmptyCandidates(Struct, frozen=True):
    """A response without any candidate."""


class MaxTokens(Struct, frozen=True):
    """The token limit is reached before any text."""


class ContentFilter(Struct, frozen=True):
    """The answer is withheld by the content filter."""


class BlockedPrompt(Struct, frozen=True):
    """The prompt is blocked, for this reason."""

    reason: str = "PROHIBITED_CONTENT"


class MalformedCall(Struct, frozen=True):
    """A function call that cannot be parsed. *arguments* is sent where the service forwards them as text."""

    arguments: str = '{"query": "unfinis'


class ModelRefusal(Struct, frozen=True):
    """The model declines in words of its own."""

    text: str = "I'm sorry, I can't assist with that request."


class Finish(Struct, frozen=True):
    """The usual answer with this finish reason."""

    reason: str


Rejection = RateLimited | Quota | Internal | Overloaded | Deadline | ContextTooLong
BrokenStream = CutStream | ErrorFrame | UsageOnlyLast
UselessAnswer = Empty | EmptyCandidates | MaxTokens | ContentFilter | BlockedPrompt | MalformedCall | ModelRefusal
AnyFault = Rejection | Hang | BrokenStream | UselessAnswer | Finish
Kinds = tuple[type[AnyFault], ...]

REJECTIONS: Kinds = (RateLimited, Quota, Internal, Overloaded, Deadline, ContextTooLong)
BEFORE_ANSWER: Kinds = (*REJECTIONS, Hang)
BROKEN_STREAMS: Kinds = (CutStream, ErrorFrame, UsageOnlyLast)
ANSWERS: Kinds = (
    *(Empty, EmptyCandidates, MaxTokens, ContentFilter, BlockedPrompt, MalformedCall, ModelRefusal),
    Finish,
)


class FaultQueue(Generic[F]):
    """The faults to inject, in order. A fault stays until a request comes in which it can happen."""

    def __init__(self) -> None:
        self._faults: list[F] = []

    def add(self, fault: F, times: int) -> None:
        self._faults += [fault] * times

    def take(self, kinds: Kinds) -> F | None:
        """Remove and return the first fault of one of *kinds*."""
        for index, fault in enumerate(self._faults):
            if isinstance(fault, kinds):
                return self._faults.pop(index)
        return None

    def put_back(self, fault: F) -> None:
        """Return a fault that its request had no use for: the next request gets it."""
        self._faults.insert(0, fault)
