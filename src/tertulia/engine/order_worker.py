"""Order worker: carries out orders, those of its process at once, those of others when it finds them."""

import asyncio
import logging
import secrets
from datetime import datetime

from tertulia.engine.commands import Commands
from tertulia.engine.orders import WITH_BOT, Order, OrderKind, OrderStore, ended
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.place_worker import PlaceWorkers
from tertulia.engine.shared import Shared
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import InvalidValue, StoreTrouble, TertuliaError
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
        shared: Shared,
        commands: Commands,
        workers: PlaceWorkers,
        sender: OutboxSender,
        tasks: TaskWorker,
        *,
        poll: float = POLL,
    ) -> None:
        self._shared = shared
        self._orders = shared.store.orders
        self._now = shared.now
        self._commands = commands
        self._workers = workers
        self._sender = sender
        self._tasks = tasks
        self._poll = poll
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Carry out the orders that wait, and look for others for ever."""
        while True:
            try:
                for order in await self._orders.waiting():
                    await self.carry_out(order)
                await self._sender.enqueue_retries()
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
            if order.kind in ("stop place", "forget person"):
                return await self._act(order)
            done = await self._orders.carry_out(order, at=self._now())
        if done.status == "done":
            await self._follow(done)
        return done

    async def _act(self, order: Order) -> Order:
        """Do what the store cannot do alone; it may be done twice."""
        try:
            if order.kind == "forget person":
                await self._shared.store.forget(platform=order.service, author_id=order.subject, at=self._now())
            else:
                await self._stop(order)
        except StoreTrouble:
            raise  # the order waits on
        except TertuliaError as error:
            acted = ended(order, "refused", at=self._now(), why=str(error))
        else:
            acted = ended(order, "done", at=self._now())
        await self._orders.end(acted)
        return acted

    async def _stop(self, order: Order) -> None:
        """Stop the answer that was under way when it was ordered, and drop what waits to be sent of it."""
        if order.place is None:
            raise InvalidValue("the order names no place")
        place = self._shared.aliases.current(order.place)
        if not await self._commands.stop_answers(place, before=order.at):
            raise InvalidValue("nothing is being answered there")

    async def _follow(self, order: Order) -> None:
        """Begin what follows from an order that the store has carried out."""
        store = self._shared.store
        if order.kind == "send reply":
            waiting = await store.outbox.listed("waiting")
            self._sender.enqueue(item for item in waiting if item.id == order.subject)
        elif order.kind == "retry run" and (journal := await store.runs.journal(order.subject)):
            self._workers.wake(journal.run.place)
        elif order.kind == "cancel task":
            self._tasks.wake()
