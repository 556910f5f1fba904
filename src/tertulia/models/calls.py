"""Requests to services: what was sent, what became of it, and what it has cost.

A client notes each request body just before it sends it, with `note_request`. Whoever calls the client collects these
notes with `noted_requests`, so that they are known also of a request that failed or was given up. Without a collector
nothing is hashed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from hashlib import sha256
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.models.base import Usage
from tertulia.models.openai.vendors import Vendor
from tertulia.models.prices import Price, Prices, cost, price_of
from tertulia.wire.repair import Receipt

Purpose = Literal["answer", "description", "transcript", "facts", "summary", "episode", "embedding", "replay"]
CallStatus = Literal[
    "answered",  # with a response, also one that cannot be used
    "failed",  # with an error
    "stopped",  # by us, before it was answered
]


class SentMedia(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The form in which one medium of a prompt went: a file by its hash, an address, a document's text, else words."""

    sha256: str | None = None
    mime: str | None = None
    uri: str | None = None
    document: Literal["beginning", "whole"] | None = None  # how much of its text went
    beside_words: bool = False  # the words for it followed


class SentRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request, by its hash, and how it was made of its prompt."""

    sha256: str
    size: int  # in bytes
    wire: Literal["gemini", "openai", ""] = ""  # none: it was not made of a prompt
    receipts: tuple[Receipt, ...] = ()  # of what was repaired
    vendor: Vendor | None = None  # of the service, with OpenAI's format
    streamed: bool = False
    cached: str | None = None  # the explicit cache that the request names


class Call(Struct, frozen=True, kw_only=True):
    """One request to a service, and what became of it."""

    model: str  # that was asked
    begun_at: datetime
    ended_at: datetime
    purpose: Purpose = "answer"
    run: str | None = None  # the run that it belongs to
    agent: str = ""  # for which it was made
    step: int | None = None  # of the run
    attempt: int = 1  # at this step, by one process
    answered_by: str = ""  # the model that answered, as the service calls it
    first_at: datetime | None = None  # when the first piece came, of a response that streamed
    waited: float = 0.0  # seconds, after the attempt before it
    status: CallStatus = "answered"
    error: str = ""  # its class
    why: str = ""  # the error in words, or how the response ended
    usage: Usage = Usage()
    price: Price | None = None  # None: not known
    money: float = 0.0  # in dollars, where the price was known
    request: SentRequest | None = None  # None: the client does not say
    media: tuple[SentMedia, ...] = ()  # of its prompt, in order


class PromptSize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The estimated tokens of a prompt, and what of it repeats the prompt before it in its place."""

    tools: int = 0
    layers: tuple[int, ...] = ()  # of each layer, in order
    instructions: tuple[int, ...] = ()  # what of these its instruction has
    stable: int = 0  # of the prefix that both begin with
    broken_by: str | None = None  # the first layer of the one before that is not repeated, or `history`; None: all are
    cause: str = ""  # why, in words; also where there is none to compare with

    @property
    def total(self) -> int:
        return self.tools + sum(self.layers)


_NOTED: ContextVar[list[SentRequest] | None] = ContextVar("_NOTED", default=None)


@contextmanager
def noted_requests(noted: list[SentRequest] | None) -> Iterator[None]:
    """Add what clients note in this task to *noted*; without a list they note nothing."""
    token = _NOTED.set(noted)
    try:
        yield
    finally:
        _NOTED.reset(token)


def note_request(
    body: bytes,
    *,
    wire: Literal["gemini", "openai", ""] = "",
    receipts: tuple[Receipt, ...] = (),
    vendor: Vendor | None = None,
    streamed: bool = False,
    cached: str | None = None,
) -> None:
    """Note the body of a request that is sent now."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(
            SentRequest(
                sha256=sha256(body).hexdigest(),
                size=len(body),
                wire=wire,
                receipts=receipts,
                vendor=vendor,
                streamed=streamed,
                cached=cached,
            )
        )


def priced(call: Call, prices: Prices) -> Call:
    """Return a call with its price and what it has cost, if the price of its model is known."""
    price = price_of(call.model, prices)
    return replace(call, price=price, money=cost(call.usage, price)) if price else call
