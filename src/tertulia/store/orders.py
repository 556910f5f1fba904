"""Orders, and what of them concerns the store alone: done and ended in one transaction."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.orders import Order, ended
from tertulia.errors import InvalidValue
from tertulia.memory.values import FactRules
from tertulia.store import decisions, episodes, facts, outbox, tasks
from tertulia.store.database import Database
from tertulia.store.encoding import STRINGS, clean, format_time
from tertulia.store.facts import SqlFacts
from tertulia.store.forget.retraction import hide_stating, remove_sources
from tertulia.store.identities import find_place, upsert_place, upsert_title
from tertulia.store.message_rows import FIND_MESSAGE
from tertulia.store.rows import Rows
from tertulia.store.threads import Access, Repository, reading, writing

WHY = "decided by {who}"  # of a reply or a task
_ORDERS = Rows(
    Order,
    "orders o",
    "id=order_id kind subject service who at status why ended_at",
    place="(SELECT t.body FROM titles t WHERE t.id = o.title)",
)


class SqlOrders(Repository):
    """Implements `engine.orders.OrderStore`."""

    def __init__(self, access: Access, known: SqlFacts) -> None:
        super().__init__(access)
        self._facts = known

    @writing
    def add(self, database: Database, order: Order) -> None:
        place = order.place and upsert_place(database, order.place)
        title = order.place and place and upsert_title(database, order.place, place)
        _ORDERS.insert(database, order, place=place, title=title)

    @reading
    def find(self, database: Database, order_id: str) -> Order | None:
        return _ORDERS.one(database, "WHERE order_id = :order_id", order_id=order_id)

    @reading
    def waiting(self, database: Database) -> Sequence[Order]:
        return _ORDERS.all(database, "WHERE status = 'waiting' ORDER BY o.id")

    @reading
    def listed(self, database: Database, *, most: int) -> Sequence[Order]:
        return _ORDERS.all(database, "ORDER BY o.id DESC LIMIT :most", most=most)

    async def carry_out(self, order: Order, *, at: datetime) -> Order:
        try:
            done = await self._carry_out(order, at)
        except InvalidValue as error:
            done = ended(order, "refused", at=at, why=str(error))
            await self.end(done)
        if done.kind == "forget fact":
            await self._facts.resume_forgetting()
        return done

    @writing
    def _carry_out(self, database: Database, order: Order, at: datetime) -> Order:
        """Do what a waiting order asks and end it."""
        stored = _ORDERS.one(database, "WHERE order_id = :order_id", order_id=order.id)
        if stored is None:
            raise InvalidValue(f"there is no order {order.id!r}")
        if stored.status != "waiting":
            return stored
        self._do(database, stored, at)
        done = ended(stored, "done", at=at)
        _end(database, done)
        return done

    def _do(self, database: Database, order: Order, at: datetime) -> None:
        why = WHY.format(who=order.who)
        match order.kind:
            case "send reply" | "drop reply":
                status: outbox.NewStatus = "waiting" if order.kind == "send reply" else "dropped"
                _require(outbox.decide(database, order.subject, status, why), "reply", order)
            case "cancel task":
                _require(tasks.cancel(database, order.subject, why, self._access.plans), "task", order)
            case "forget fact":
                _require(facts.forget(database, [order.subject], at), "fact", order)
            case "hide message":
                _hide_message(database, order, at, self._access.facts)
            case "hide episode":
                _require(episodes.hide(database, order.subject), "episode", order)
            case "retry run":
                _retry_run(database, order.subject)
            case _:
                raise InvalidValue("only a running bot can do that")

    @writing
    def end(self, database: Database, order: Order) -> None:
        _end(database, order)


def _end(database: Database, order: Order) -> None:
    database.run(
        """UPDATE orders SET status = :status, why = :why, ended_at = :ended_at, subject = :subject
            WHERE order_id = :order_id AND status = 'waiting'""",
        order_id=order.id,
        status=order.status,
        ended_at=format_time(order.ended_at),
        why=clean(order.why),
        subject=clean(order.subject),
    )


def _require(found: object, what: str, order: Order) -> None:
    if not found:
        raise InvalidValue(f"there is no {what} {order.subject!r}")


def _hide_message(database: Database, order: Order, at: datetime, rules: FactRules) -> None:
    """Hide a message, and what was learned from it alone."""
    place = order.place and find_place(database, order.place)
    row = database.one(f"SELECT {FIND_MESSAGE}", place=place, message_id=order.subject)
    found = row and row[0] and database.one("SELECT text, hidden FROM messages WHERE id = :row", row=row[0])
    if not row or not found:
        raise InvalidValue(f"there is no message {order.subject!r}")
    text, hidden = found
    if hidden:
        raise InvalidValue(f"message {order.subject!r} is hidden already")
    remove_sources(database, [row[0]], rules)
    hide_stating(database, {row[0]: [text]}, at)


def _retry_run(database: Database, run_id: str) -> None:
    """Let the messages of a failed run wait again."""
    row = database.one("SELECT status, message_ids FROM runs WHERE run_id = :run_id", run_id=run_id)
    if row is None:
        raise InvalidValue(f"there is no run {run_id!r}")
    status, taken = row
    if status != "failed":
        raise InvalidValue(f"run {run_id!r} is {status}; only one that failed is retried")
    if not decisions.release(database, run_id):
        count = len(STRINGS.loads(taken))
        raise InvalidValue(f"none of the {count} messages of run {run_id!r} is left to be answered")
