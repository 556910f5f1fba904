"""Lists: replies with their attempts, tasks, media, orders, usage."""

from collections.abc import Iterable
from datetime import date

from tertulia.engine.inspection import Spent
from tertulia.engine.limits import UsageRow
from tertulia.engine.orders import Order
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.inspector.places import person_key, place_key
from tertulia.inspector.shown import brief, shown_item
from tertulia.inspector.values import Delivered, MediaRow, OrderShown, UsagePage
from tertulia.memory.values import Subject
from tertulia.models.prices import PRICES, Prices, price_of
from tertulia.tasks.task import Task

MOST = 300  # rows of a list


async def outbox(store: StoreProtocol) -> tuple[Delivered, ...]:
    """Return the replies that are not settled, then the newest others, each with its attempts."""
    items = await store.inspection.outbox(most=MOST)
    attempts = await store.outbox.attempts(*(one.id for one in items))
    return tuple(Delivered(item=shown_item(one), attempts=tuple(attempts.get(one.id, ()))) for one in items)


async def tasks(store: StoreProtocol) -> tuple[Task, ...]:
    """Return the newest tasks, the newest first."""
    return tuple(await store.inspection.tasks_listed(most=MOST))


async def media(store: StoreProtocol) -> tuple[MediaRow, ...]:
    """Return the media of the newest messages, each with its file or why it has none."""
    blocked = await store.inspection.blocked()
    return tuple(
        MediaRow(
            unique_id=one.unique_id,
            kind=one.kind,
            mime=one.file.mime if one.file else "",
            size=one.file.size if one.file else None,
            sha256=one.file.sha256 if one.file else None,
            place_key=place_key(one.message.message.place),
            message=brief(one.message, blocked),
            description=one.description,
            why_not=one.failure,
        )
        for one in await store.inspection.media(most=MOST)
    )


async def orders(store: StoreProtocol) -> tuple[OrderShown, ...]:
    """Return who asked for what, the newest first."""
    return tuple(map(shown_order, await store.orders.listed(most=MOST)))


async def order(store: StoreProtocol, order_id: str) -> OrderShown:
    """Return an order as it stands."""
    found = await store.orders.find(order_id)
    if found is None:
        raise InvalidValue(f"there is no order {order_id:.100}")
    return shown_order(found)


def shown_order(found: Order) -> OrderShown:
    """Return an order as it is shown."""
    is_person = found.kind == "forget person" and found.subject
    return OrderShown(
        id=found.id,
        kind=found.kind,
        subject=person_key(Subject(platform=found.service, id=found.subject)) if is_person else found.subject,
        place_key=place_key(found.place) if found.place else None,
        place_title=found.place.title if found.place else "",
        who=found.who,
        at=found.at,
        status=found.status,
        why=found.why,
        ended_at=found.ended_at,
    )


async def usage(store: StoreProtocol, since: date, prices: Prices = PRICES) -> UsagePage:
    """Return what was spent since a day in UTC, by day, place, person and model."""
    rows = await store.usage.listed(since)
    return UsagePage(rows=tuple(rows), total=sum((spent_in(row, prices) for row in rows), Spent()))


def spent_in(row: UsageRow, prices: Prices) -> Spent:
    """Return a row of usage as a sum; what it would have cost without a cache is by the *prices* of today."""
    price = price_of(row.model, prices)
    saved = row.cached * (price.input - price.cached) / 1_000_000 if price and price.cached is not None else 0.0
    return Spent(
        calls=row.calls,
        input=row.input,
        cached=row.cached,
        output=row.output + row.thought,
        money=row.money,
        without_cache=row.money + (saved if row.money else 0.0),
        unpriced=0 if is_priced(row, prices) else row.calls,
    )


def tokens_of(rows: Iterable[UsageRow]) -> int:
    """Return the tokens of rows of usage."""
    return sum(row.input + row.output + row.thought for row in rows)


def is_priced(row: UsageRow, prices: Prices) -> bool:
    """Return whether the price was known: calls that cost nothing are those of a free model, or have no tokens."""
    price = price_of(row.model, prices)
    return row.money > 0 or not tokens_of([row]) or (price is not None and not price.input and not price.output)
