"""Spend caps: model calls are counted, and held to what a day may cost for a place, a person, and in total."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tertulia.engine.limits import Cap, CurrentLimits, Limits, UsageStore
from tertulia.engine.rooms import RoomStore
from tertulia.errors import InvalidValue, SpendCapReached, TertuliaError
from tertulia.memory.embeddings import Embedder
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Model, Response
from tertulia.models.calls import Call, Purpose, noted_requests, priced
from tertulia.models.prices import PRICES, Prices, price_of
from tertulia.parts import Part
from tertulia.run.model_calls import CALL_TIMEOUT, CallAttempt, ModelCalls
from tertulia.turns import Prompt

if TYPE_CHECKING:
    from tertulia.memory.retrieval.features import Floats


class SpendTracker:
    """Counts model calls, and says whether a cap is reached and who got the notice about it."""

    def __init__(
        self,
        usages: UsageStore,
        limits: CurrentLimits,
        *,
        rooms: RoomStore | None = None,
        prices: Prices = PRICES,
        now: Callable[[], datetime],
    ) -> None:
        self._usages = usages
        self._rooms = rooms
        self._limits = limits
        self._prices = prices
        self.now = now

    def require_prices(self, models: Iterable[Model], limits: Limits | None = None) -> None:
        """Raise `InvalidValue` if money is capped and a model has no price; *limits* defaults to the current ones."""
        limits = limits or self._limits.value
        if all(cap.money is None for cap in (limits.place, limits.person, limits.total)):
            return
        for model in models:
            if price_of(model.name, self._prices) is None:
                raise InvalidValue(f"money is capped, but {model.name} has no price: set it in Behavior(prices=…)")

    async def is_reached(
        self, place: Place, author: Author | None, *, agent: str | None = None, own: Limits | None = None
    ) -> bool:
        """Return whether a cap for *place*, *author* (if any) or the total is reached, or an *own* one of an agent."""
        room = await self._rooms.cap(place) if self._rooms else Cap()
        if room != Cap() and room.is_reached(await self._usages.spent(self._day(), place=place)):
            return True
        if await self._passes(self._limits.value, place, author):
            return True
        return own is not None and await self._passes(own, place, author, agent)

    async def _passes(self, caps: Limits, place: Place, author: Author | None, agent: str | None = None) -> bool:
        """Return whether what an agent has spent, or all of them, reaches one of the caps."""
        day, spent = self._day(), self._usages.spent
        if caps.total != Cap() and caps.total.is_reached(await spent(day, agent=agent)):
            return True
        if caps.place != Cap() and caps.place.is_reached(await spent(day, place=place, agent=agent)):
            return True
        if caps.person == Cap() or author is None:
            return False
        return caps.person.is_reached(await spent(day, place=place, author=author, agent=agent))

    async def has_notice(self, message: Message) -> bool:
        """Return whether the author got the notice in this place today."""
        return await self._usages.has_notice(message, self._day())

    async def add_notice(self, message: Message) -> None:
        await self._usages.add_notice(message, self._day())

    async def count(self, call: Call, place: Place | None, author: Author | None) -> None:
        """Store a call that belongs to no run; one that was stopped only if the store can."""
        try:
            await self._usages.add(priced(call, self._prices), place=place, author=author)
        except TertuliaError:
            if call.status != "stopped":
                raise

    @asynccontextmanager
    async def counted(
        self, purpose: Purpose, name: str, place: Place | None = None, author: Author | None = None
    ) -> AsyncIterator[None]:
        """Store the request that is sent within, to a service that reports no usage."""
        attempt = CallAttempt(name, now=self.now, noted=[])
        try:
            with noted_requests(attempt.noted):
                yield
        except BaseException as error:
            with suppress(TertuliaError):
                await self.count(replace(attempt.failed(error), purpose=purpose), place, author)
            raise
        await self.count(replace(attempt.answered(), purpose=purpose), place, author)

    def _day(self) -> date:
        return self.now().astimezone(UTC).date()


class MeteredModel:
    """A model for calls in a place that belong to no run, counted for *author* if one is given.

    Each call has *timeout* seconds. Raise `SpendCapReached` once a cap is reached.
    """

    def __init__(
        self,
        model: Model,
        spend_tracker: SpendTracker,
        place: Place,
        author: Author | None = None,
        *,
        purpose: Purpose,
        timeout: float = CALL_TIMEOUT,
    ) -> None:
        self.name = model.name
        self._model = model
        self._spend_tracker = spend_tracker
        self._place = place
        self._author = author
        self._purpose = purpose
        self._calls = ModelCalls(retries=0, timeout=timeout, now=spend_tracker.now)

    async def respond(self, prompt: Prompt) -> Response:
        if await self._spend_tracker.is_reached(self._place, self._author):
            raise SpendCapReached(f"{self.name} is not called until tomorrow: a spend cap is reached")
        async with aclosing(self._calls.request(self._model, prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Call):
                    await self._spend_tracker.count(replace(piece, purpose=self._purpose), self._place, self._author)
                if isinstance(piece, Response):
                    return piece
        raise AssertionError  # a request ends in a response, or raises

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


class MeteredEmbedder:
    """An embedder by a service, whose requests are stored. *counted* is entered around each."""

    def __init__(self, embedder: Embedder, counted: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self.id = embedder.id
        self._embedder = embedder
        self._counted = counted

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        async with self._counted():
            return await self._embedder.embed(texts, asking=asking)
