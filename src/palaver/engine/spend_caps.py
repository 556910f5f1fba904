"""Spend caps: how many tokens and how much money a day may cost, for a place, a person, and in total."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Protocol

from palaver.engine.limits import Cap, CurrentLimits, Spend
from palaver.errors import InvalidValue
from palaver.messages import Author, Message, Place
from palaver.models.base import Model, Response
from palaver.models.prices import PRICES, Prices, price_of
from palaver.run.journal import CallCost, call_cost

SPENT = "I have used up what I may spend today, and cannot answer any more until tomorrow."


class UsageStore(Protocol):
    async def spent(self, day: date, *, place: Place | None = None, author: Author | None = None) -> Spend:
        """Return the spend of a day in UTC: of a place, of an author in the place's service, or in total."""
        ...

    async def add(self, spent: CallCost, *, place: Place, author: Author | None = None, at: datetime) -> None:
        """Count a call outside of runs; the calls of runs are counted with their responses."""
        ...

    async def has_notice(self, message: Message, day: date) -> bool:
        """Return whether the author of a message got the notice about a cap in its place that day."""
        ...

    async def add_notice(self, message: Message, day: date) -> None: ...


class SpendTracker:
    """Counts model calls, and says whether a cap is reached and who got the notice about it."""

    def __init__(
        self, usages: UsageStore, limits: CurrentLimits, *, prices: Prices = PRICES, now: Callable[[], datetime]
    ) -> None:
        self._usages = usages
        self._limits = limits
        self._prices = prices
        self._now = now

    def require_prices(self, models: Iterable[Model]) -> None:
        """Raise `InvalidValue` for a cap on money where the price of a model is unknown."""
        limits = self._limits.value
        if all(cap.money is None for cap in (limits.place, limits.person, limits.total)):
            return
        for model in models:
            if price_of(model.name, self._prices) is None:
                raise InvalidValue(f"money is capped, but {model.name} has no price: set it in Behavior(prices=…)")

    async def is_reached(self, place: Place, author: Author | None) -> bool:
        """Return whether a cap for *place*, *author* (if any) or the total is reached."""
        caps, day = self._limits.value, self._day()
        if not caps.has_caps:
            return False
        if caps.total != Cap() and caps.total.is_reached(await self._usages.spent(day)):
            return True
        if caps.place != Cap() and caps.place.is_reached(await self._usages.spent(day, place=place)):
            return True
        if caps.person == Cap() or author is None:
            return False
        return caps.person.is_reached(await self._usages.spent(day, place=place, author=author))

    async def has_notice(self, message: Message) -> bool:
        """Return whether the author got the notice in this place today."""
        return await self._usages.has_notice(message, self._day())

    async def add_notice(self, message: Message) -> None:
        await self._usages.add_notice(message, self._day())

    async def count(self, response: Response, model: Model, place: Place, author: Author | None) -> None:
        spent = call_cost(model.name, response.usage, self._prices)
        if spent:
            await self._usages.add(spent, place=place, author=author, at=self._now())

    def _day(self) -> date:
        return self._now().astimezone(UTC).date()
