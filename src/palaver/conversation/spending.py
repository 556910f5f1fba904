"""What runs may spend in a day: caps on tokens and money, for a place, a person, and all together."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Protocol

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.messages import Author, Message, Place, PlaceKey
from palaver.models.base import Model
from palaver.models.prices import Prices, price_of

SPENT = "I have used up what I may spend today, and cannot answer any more until tomorrow."


class Spend(Struct, frozen=True, kw_only=True):
    """What was spent."""

    tokens: int = 0
    money: float = 0.0  # in dollars, of models whose price is known


class Cap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The most for one day, in UTC; None: as much as there is."""

    tokens: int | None = None
    money: float | None = None  # in dollars

    def __post_init__(self) -> None:
        if (self.tokens is not None and self.tokens < 0) or (self.money is not None and self.money < 0):
            raise InvalidValue("a cap is 0 or more")

    def is_reached(self, spent: Spend) -> bool:
        return (self.tokens is not None and spent.tokens >= self.tokens) or (
            self.money is not None and spent.money >= self.money
        )


class Caps(Struct, frozen=True, kw_only=True, omit_defaults=True):
    place: Cap = Cap()
    person: Cap = Cap()
    total: Cap = Cap()


class Usages(Protocol):
    async def spent(self, day: date, *, place: Place | None = None, author: Author | None = None) -> Spend:
        """What runs spent that day in UTC: in a place, or to answer an author of that place's service, or in all."""
        ...


class Spending:
    """Whether a message may still be answered; whom to tell that it may not."""

    def __init__(self, usages: Usages, caps: Caps, *, now: Callable[[], datetime]) -> None:
        self._usages = usages
        self._caps = caps
        self._now = now
        self._told: set[tuple[date, PlaceKey, str]] = set()

    def require_prices(self, models: Iterable[Model], prices: Prices) -> None:
        """Refuse a cap on money that could not hold."""
        if all(cap.money is None for cap in (self._caps.place, self._caps.person, self._caps.total)):
            return
        for model in models:
            if price_of(model.name, prices) is None:
                raise InvalidValue(f"money is capped, but no price of {model.name} is known: give Conduct(prices=…)")

    async def is_reached(self, message: Message) -> bool:
        """Whether one of the caps on answers to *message* is reached."""
        caps, day = self._caps, self._day()
        if caps == Caps():
            return False
        return (
            (caps.total != Cap() and caps.total.is_reached(await self._usages.spent(day)))
            or (caps.place != Cap() and caps.place.is_reached(await self._usages.spent(day, place=message.place)))
            or (caps.person != Cap() and caps.person.is_reached(await self._of(message, day)))
        )

    def tells(self, message: Message) -> bool:
        """Whether the author is to be told so: once a day and place."""
        what = (self._day(), message.place.key, message.author.id)
        self._told = {one for one in self._told if one[0] == what[0]}
        is_new = what not in self._told
        self._told.add(what)
        return is_new

    async def _of(self, message: Message, day: date) -> Spend:
        return await self._usages.spent(day, place=message.place, author=message.author)

    def _day(self) -> date:
        return self._now().astimezone(UTC).date()
