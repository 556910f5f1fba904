"""Limits: how much the agent answers, works and spends; and the protocol of the store that counts it. Pure."""

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.memory.values import Subject
from tertulia.messages import Author, Message, Place
from tertulia.models.calls import Call


class Spend(Struct, frozen=True, kw_only=True):
    """A sum of tokens and money."""

    tokens: int = 0
    money: float = 0.0  # in dollars, for models with a known price


class Cap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cap on one day in UTC; None is no cap."""

    tokens: int | None = None
    money: float | None = None  # in dollars

    def __post_init__(self) -> None:
        if (self.tokens is not None and self.tokens < 0) or (self.money is not None and self.money < 0):
            raise InvalidValue("Cap: tokens and money must be 0 or more")

    def is_reached(self, spent: Spend) -> bool:
        return (self.tokens is not None and spent.tokens >= self.tokens) or (
            self.money is not None and spent.money >= self.money
        )


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of an engine, which may be set while it runs. Every field has a default."""

    messages: int = 20  # of one author, in all places together, that are answered within `seconds`
    seconds: float = 60.0
    call_timeout: float = 120.0  # seconds of one model call
    run_timeout: float = 300.0  # seconds of one run, over all processes
    place: Cap = Cap()  # on a day's spend of one place
    person: Cap = Cap()  # on that of one person on one service
    total: Cap = Cap()  # on that of everything together

    def __post_init__(self) -> None:
        if self.messages < 1 or not self.seconds >= 0:
            raise InvalidValue("Limits: messages must be at least 1 and seconds at least 0")
        if self.call_timeout <= 0 or self.run_timeout <= 0:
            raise InvalidValue("Limits: call_timeout and run_timeout must be more than 0 seconds")

    @property
    def has_caps(self) -> bool:
        return (self.place, self.person, self.total) != (Cap(), Cap(), Cap())


class CurrentLimits:
    """Holds the limits of an engine for the parts that obey them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.value = limits or Limits()


class UsageRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The model calls of a day in UTC, for one place, person, agent and model."""

    day: date
    place: Place | None  # None: it was removed
    person: Subject | None  # None: the calls were for nobody in particular, or the person was forgotten
    agent: str = ""
    model: str
    calls: int
    input: int  # tokens, the cached among them
    cached: int
    written: int = 0  # to a cache
    output: int
    thought: int
    money: float  # in dollars; 0 where no price was known


class StoredCall(Struct, frozen=True, kw_only=True):
    """A call, and for whom it was made."""

    call: Call
    place: Place | None
    person: Subject | None


class UsageStore(Protocol):
    """Counts what model calls have spent."""

    async def spent(
        self, day: date, *, place: Place | None = None, author: Author | None = None, agent: str | None = None
    ) -> Spend:
        """Return the spend of a day in UTC: of a place, of an author in the place's service, or in total.

        It is that of one agent where its stored name is given.
        """
        ...

    async def add(self, call: Call, *, place: Place | None, author: Author | None = None) -> None:
        """Store and count a call outside of runs; `JournalStore` does that for the calls of runs."""
        ...

    async def calls(
        self, *, run: str | None = None, place: Place | None = None, failed: bool = False, most: int
    ) -> Sequence[StoredCall]:
        """Return the newest calls, the oldest first: of a run, of a place, those that failed, if that is said."""
        ...

    async def listed(self, since: date) -> Sequence[UsageRow]:
        """Return all usage from a day in UTC on, the oldest first."""
        ...

    async def has_notice(self, message: Message, day: date) -> bool:
        """Return whether the author of a message got the notice about a cap in its place that day."""
        ...

    async def add_notice(self, message: Message, day: date) -> None: ...
