"""Orders: writes that people ask for from outside of the bot's process, carried out by the bot, each once.

An order is stored first. The engine that has the store finds it, does what it asks and ends it: in one transaction
where the store alone is concerned, so that a kill at any moment repeats and loses nothing. The others say why they may
be repeated: a stop concerns only runs from before the order, and a person who is forgotten is not there any more. Pure.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tertulia.messages import Place

OrderKind = Literal[
    "send reply",  # a doubtful or dropped one
    "drop reply",
    "stop place",  # the answer that is under way there
    "forget person",
    "forget fact",
    "cancel task",
    "hide message",  # from all that models are shown
    "hide episode",
    "retry run",  # that failed
]
OrderStatus = Literal["waiting", "done", "refused"]
WITH_BOT: frozenset[OrderKind] = frozenset({"stop place", "forget person"})  # the others concern the store alone


class Order(Struct, frozen=True, kw_only=True):
    """One write that somebody asks for."""

    id: str
    kind: OrderKind
    subject: str = ""  # the id of what it is about; of a person only while the order waits
    place: Place | None = None  # of a message, or that is stopped
    service: str = ""  # where the id of a person is unique
    who: str  # asks for it
    at: datetime
    status: OrderStatus = "waiting"
    why: str = ""  # it is refused
    ended_at: datetime | None = None


def ended(order: Order, status: OrderStatus, *, at: datetime, why: str = "") -> Order:
    """Return an order as it is stored at its end."""
    subject = "" if order.kind == "forget person" else order.subject
    return replace(order, status=status, why=why, ended_at=at, subject=subject)


class OrderStore(Protocol):
    async def add(self, order: Order) -> None:
        """Store an order."""
        ...

    async def find(self, order_id: str) -> Order | None: ...

    async def waiting(self) -> Sequence[Order]:
        """Return the orders that wait, the oldest first."""
        ...

    async def listed(self, *, most: int) -> Sequence[Order]:
        """Return the newest orders, the newest first."""
        ...

    async def carry_out(self, order: Order, *, at: datetime) -> Order:
        """Do what an order asks of the store and end it, in one transaction; return it as it is then.

        What cannot be done refuses it. One that does not wait any more stays as it is.
        """
        ...

    async def end(self, order: Order) -> None:
        """Store the end of an order that waits."""
        ...
