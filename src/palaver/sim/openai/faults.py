"""What can go wrong on purpose: each fault spoils the next answers of a simulator."""

from msgspec import Struct


class RateLimited(Struct, frozen=True):
    """429: too many requests; with the seconds to wait if the server tells them."""

    retry_after: float | None = 1.0


class Quota(Struct, frozen=True):
    """429: the account has no money left."""


class Internal(Struct, frozen=True):
    """500."""


class Overloaded(Struct, frozen=True):
    """503."""


class ContextTooLong(Struct, frozen=True):
    """400: more tokens than the model can read."""

    limit: int = 128_000


class Hang(Struct, frozen=True):
    """Nothing for so many seconds, then the usual answer; or until the client leaves or the simulator stops."""

    seconds: float = 3600


class CutStream(Struct, frozen=True):
    """The connection drops after so many chunks; without a stream, in the middle of the body."""

    after: int = 1


class ErrorFrame(Struct, frozen=True):
    """An error object as a frame of the stream after so many chunks; without a stream, a 500."""

    after: int = 1


class Empty(Struct, frozen=True):
    """A message that says nothing, though the model stopped as usual."""

    content: str | None = None


class ContentFilter(Struct, frozen=True):
    """No text, since the filter withheld it."""


class Length(Struct, frozen=True):
    """No text, since the limit was reached before any."""


class Refusal(Struct, frozen=True):
    """The model declines, in words of its own."""

    text: str = "I'm sorry, I can't assist with that request."


class MalformedArguments(Struct, frozen=True):
    """A tool call whose arguments are broken JSON."""

    arguments: str = '{"query": "unfinis'


Rejection = RateLimited | Quota | Internal | Overloaded | ContextTooLong
Spoiling = CutStream | ErrorFrame | Empty | ContentFilter | Length | Refusal | MalformedArguments
Fault = Rejection | Hang | Spoiling
