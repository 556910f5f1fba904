"""Orders, and what of them concerns the store alone: done and ended in one transaction."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.orders import Order, ended
from tertulia.errors import InvalidValue
from tertulia.memory.values import FactRules
from tertulia.store import decisions, episodes, facts, outbox, tasks
from tertulia.store.database import Database, Row, insert_row
from tertulia.store.encoding import PLACE, STRINGS, Columns, clean, format_time
from tertulia.store.facts import SqlFacts
from tertulia.store.forget.retraction import hide_stating, remove_sources
from tertulia.store.identities import find_place, upsert_place, upsert_title
from tertulia.store.message_rows import FIND_MESSAGE
from tertulia.store.threads import Access, Repository, reading, writing

WHY = "decided by {who}"  # of a reply or a task
_ORDER = Columns(Order, "id=order_id kind subject service who at status why ended_at")
_SELECT = f"""SELECT (SELECT t.body FROM titles t WHERE t.id = o.title), {_ORDER} FROM orders o"""


class SqlOrders(Repository):
    """Implements `engine.orders.OrderStore`."""

    def __init__(self, access: Access, known: SqlFacts) -> None:
        super().__init__(access)
        self._facts = known

    @writing
    def add(self, database: Database, order: Order) -> None:
        values = {**_ORDER.encode(order), "subject": clean(order.subject)}
        if order.place is not None:
            values["place"] = place = upsert_place(database, order.place)
            values["title"] = upsert_title(database, order.place, place)
        insert_row(database, "orders", **values)

    @reading
    def find(self, database: Database, order_id: str) -> Order | None:
        row = database.one(f"{_SELECT} WHERE order_id = :order_id", order_id=order_id)
        return _decode(row) if row else None

    @reading
    def waiting(self, database: Database) -> Sequence[Order]:
        return [_decode(row) for row in database.all(f"{_SELECT} WHERE status = 'waiting' ORDER BY o.id")]

    @reading
    def listed(self, database: Database, *, most: int) -> Sequence[Order]:
        return [_decode(row) for row in database.all(f"{_SELECT} ORDER BY o.id DESC LIMIT :most", most=most)]

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
        row = database.one(f"{_SELECT} WHERE order_id = :order_id", order_id=order.id)
        if row is None:
            raise InvalidValue(f"there is no order {order.id!r}")
        stored = _decode(row)
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


def _decode(row: Row) -> Order:
    place, *columns = row
    return _ORDER.decode(columns, **({"place": PLACE.loads(place)} if place else {}))


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
