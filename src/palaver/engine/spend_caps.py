"""What model calls may spend in a day: caps on tokens and money, for a place, a person, and all together."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Protocol

from msgspec import Struct

from palaver.errors import InvalidValue
from palaver.messages import Author, Message, Place
from palaver.models.base import Model, Response
from palaver.models.prices import PRICES, Prices, price_of
from palaver.run.journal import CallCost, call_cost

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


class UsageStore(Protocol):
    async def spent(self, day: date, *, place: Place | None = None, author: Author | None = None) -> Spend:
        """What was spent that day in UTC: in a place, or for an author of that place's service, or in all."""
        ...

    async def add(self, spent: CallCost, *, place: Place, author: Author | None = None, at: datetime) -> None:
        """Count a call that belongs to no run; those of runs are counted with their responses."""
        ...

    async def has_notice(self, message: Message, day: date) -> bool:
        """Whether the author of a message was told in its place that a cap is reached that day."""
        ...

    async def add_notice(self, message: Message, day: date) -> None: ...


class SpendTracker:
    """Whether a model may still be asked; whom to tell that it may not."""

    def __init__(self, usages: UsageStore, caps: Caps, *, prices: Prices = PRICES, now: Callable[[], datetime]) -> None:
        self._usages = usages
        self._caps = caps
        self._prices = prices
        self._now = now

    def require_prices(self, models: Iterable[Model]) -> None:
        """Refuse a cap on money that could not hold."""
        if all(cap.money is None for cap in (self._caps.place, self._caps.person, self._caps.total)):
            return
        for model in models:
            if price_of(model.name, self._prices) is None:
                raise InvalidValue(f"money is capped, but no price of {model.name} is known: give Behavior(prices=…)")

    async def is_reached(self, place: Place, author: Author | None) -> bool:
        """Whether a cap on calls for *author* in *place* is reached; without one, for nobody in particular."""
        caps, day = self._caps, self._day()
        if caps == Caps():
            return False
        if caps.total != Cap() and caps.total.is_reached(await self._usages.spent(day)):
            return True
        if caps.place != Cap() and caps.place.is_reached(await self._usages.spent(day, place=place)):
            return True
        if caps.person == Cap() or author is None:
            return False
        return caps.person.is_reached(await self._usages.spent(day, place=place, author=author))

    async def has_notice(self, message: Message) -> bool:
        """Whether its author was told today, in its place, that a cap is reached."""
        return await self._usages.has_notice(message, self._day())

    async def add_notice(self, message: Message) -> None:
        await self._usages.add_notice(message, self._day())

    async def count(self, response: Response, model: Model, place: Place, author: Author | None) -> None:
        spent = call_cost(model.name, response.usage, self._prices)
        if spent:
            await self._usages.add(spent, place=place, author=author, at=self._now())

    def _day(self) -> date:
        return self._now().astimezone(UTC).date()
