"""Order worker: carries out orders, those of its process at once, those of others when it finds them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from msgspec.structs import replace

from tertulia.engine.orders import Order, OrderKind, OrderStore
from tertulia.errors import StoreTrouble, TertuliaError

log = logging.getLogger(__name__)

POLL = 1.0  # seconds between two looks for orders of other processes


class OrderWorker:
    """Carries out the orders of one store."""

    def __init__(
        self,
        orders: OrderStore,
        *,
        actions: Mapping[OrderKind, Callable[[Order], Awaitable[None]]],
        done: Callable[[Order], Awaitable[None]],
        now: Callable[[], datetime],
        poll: float = POLL,
    ) -> None:
        self._orders = orders
        self._actions = actions  # what the store cannot do alone; each may be done twice
        self._done = done  # called with each order that the store has carried out
        self._now = now
        self._poll = poll
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Carry out the orders that wait, and look for others for ever."""
        while True:
            try:
                for order in await self._orders.waiting():
                    await self.carry_out(order)
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
            ended = await self._orders.carry_out(order, at=self._now())
        if ended.status == "done":
            await self._done(ended)
        return ended

    async def _act(self, order: Order, action: Callable[[Order], Awaitable[None]]) -> Order:
        try:
            await action(order)
        except StoreTrouble:
            raise  # the order waits on
        except TertuliaError as error:
            ended = replace(order, status="refused", why=str(error), ended_at=self._now())
        else:
            ended = replace(order, status="done", ended_at=self._now())
        await self._orders.end(ended)
        return ended
