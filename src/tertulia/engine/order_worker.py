"""Order worker: carries out orders, those of its process at once, those of others when it finds them."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from tertulia.engine.orders import WITH_BOT, Order, OrderKind, OrderStore, ended
from tertulia.errors import StoreTrouble, TertuliaError
from tertulia.messages import Place

log = logging.getLogger(__name__)

POLL = 1.0  # seconds between two looks for orders of other processes
NO_BOT = "no bot runs with this store, and only a bot can do that"


def make_order(
    kind: OrderKind, subject: str = "", *, who: str, at: datetime, place: Place | None = None, service: str = ""
) -> Order:
    """Return a new order that waits."""
    name = f"order-{secrets.token_hex(10)}"
    return Order(id=name, kind=kind, subject=subject, place=place, service=service, who=who, at=at)


async def give_beside(orders: OrderStore, order: Order, *, is_held: bool | None) -> Order:
    """Store an order from outside of the bot's process; return it as it is then: it waits for the bot.

    Where no bot has the store, it is carried out at once, or refused.
    """
    if is_held is not False:
        await orders.add(order)
        return order
    if order.kind in WITH_BOT:
        refused = ended(order, "refused", at=order.at, why=NO_BOT)
        await orders.add(refused)
        return refused
    await orders.add(order)
    return await orders.carry_out(order, at=order.at)


class OrderWorker:
    """Carries out the orders of one store."""

    def __init__(
        self,
        orders: OrderStore,
        *,
        actions: Mapping[OrderKind, Callable[[Order], Awaitable[None]]],
        done: Callable[[Order], Awaitable[None]],
        now: Callable[[], datetime],
        retries: Callable[[], Awaitable[None]] | None = None,
        poll: float = POLL,
    ) -> None:
        self._orders = orders
        self._actions = actions  # what the store cannot do alone; each may be done twice
        self._done = done  # called with each order that the store has carried out
        self._now = now
        self._retries = retries  # finds replies that others have set to be sent again
        self._poll = poll
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Carry out the orders that wait, and look for others for ever."""
        while True:
            try:
                for order in await self._orders.waiting():
                    await self.carry_out(order)
                if self._retries:
                    await self._retries()
            except StoreTrouble as trouble:
                log.debug("orders are read again: %s", trouble)
            await asyncio.sleep(self._poll)  # time passes elsewhere, whatever the clock of the engine says

    async def give(self, order: Order) -> Order:
        """Store an order and carry it out; return it as it ended."""
        await self._orders.add(order)
        return await self.carry_out(order)

    async def carry_out(self, order: Order) -> Order:
        """Carry out a stored order; return it as it ended."""
        async with self._lock:
            if action := self._actions.get(order.kind):
                return await self._act(order, action)
            done = await self._orders.carry_out(order, at=self._now())
        if done.status == "done":
            await self._done(done)
        return done

    async def _act(self, order: Order, action: Callable[[Order], Awaitable[None]]) -> Order:
        try:
            await action(order)
        except StoreTrouble:
            raise  # the order waits on
        except TertuliaError as error:
            acted = ended(order, "refused", at=self._now(), why=str(error))
        else:
            acted = ended(order, "done", at=self._now())
        await self._orders.end(acted)
        return acted
