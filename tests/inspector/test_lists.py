"""Replies, tasks, media and usage as lists."""

from datetime import timedelta

import pytest

from inspector.evening import NOW, an_evening, doubt
from people import a_message, a_photo
from store.builders import a_task
from tertulia.engine.limits import UsageRow
from tertulia.inspector import lists
from tertulia.media.values import StoredFile
from tertulia.models.prices import PRICES, Price
from tertulia.store import Store


async def test_the_outbox_begins_with_what_is_not_settled() -> None:
    async with an_evening() as store:
        await doubt(store)
        found = await lists.outbox(store)

    assert [(one.item.status, len(one.attempts)) for one in found] == [
        ("doubtful", 0), ("sent", 1), ("sent", 1), ("sent", 1),
    ]  # fmt: skip


async def test_tasks_are_listed_the_newest_first(store: Store) -> None:
    await store.tasks.add([a_task(id="t1"), a_task(id="t2")])

    assert [task.id for task in await lists.tasks(store)] == ["t2", "t1"]


async def test_media_have_a_file_or_the_reason_why_not(store: Store) -> None:
    photo, other = a_photo(data=None, file_id="f"), a_photo(unique_id="p2", data=None, file_id="g")
    await store.inbox.receive(a_message("look", parts=(photo,)), at=NOW)
    await store.inbox.receive(a_message("look", id="m2", parts=(other,)), at=NOW)
    file = await store.media.add("p1", b"\xff\xd8", StoredFile(sha256="", size=0, mime="image/jpeg"), at=NOW)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOW)

    second, first = await lists.media(store)

    assert (first.unique_id, first.mime, first.size, first.sha256) == ("p1", "image/jpeg", 2, file.sha256)
    assert (first.kind, first.description, first.place_key) == ("photo", "a cat", "telegram.-100123")
    assert (second.unique_id, second.sha256, second.message.id) == ("p2", None, "m2")


async def test_usage_is_summed_up_with_what_the_cache_has_saved() -> None:
    async with an_evening() as store:
        page = await lists.usage(store, NOW.date())
        later = await lists.usage(store, NOW.date() + timedelta(days=1))

    assert (page.total.calls, later.total.calls) == (9, 0)
    assert page.total.money == pytest.approx(sum(row.money for row in page.rows))
    row = UsageRow(
        day=NOW.date(), place=None, person=None, model="m", calls=2, input=1_000_000, cached=500_000, output=0,
        thought=0, money=1.0,
    )  # fmt: skip
    spent = lists.spent_in(row, {"m": Price(input=2.0, cached=0.5, output=1.0)})
    assert (spent.without_cache, spent.unpriced) == (1.75, 0)
    assert lists.is_priced(row, PRICES)
