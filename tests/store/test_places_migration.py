"""A place that goes on under another id."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import texts_of
from people import ALICE, BOB, GRYAG, NOON, a_message
from store.builders import a_run
from tertulia.engine.limits import Spend
from tertulia.engine.orders import Order
from tertulia.engine.store_protocols import OutboxItem
from tertulia.events import MessageReceived
from tertulia.memory.facts import subject_of
from tertulia.memory.values import Fact
from tertulia.messages import Place, Quote, Reply
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.platform import Change, Deleted, Edited, PlaceMigrated, Received
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.turns import Prompt, user

OLD = Place(platform="telegram", id="-5", kind="group", title="Friends")
NEW = Place(platform="telegram", id="-100", kind="group", title="Friends")
MOVED = PlaceMigrated(old=OLD, new=NEW)


async def apply(store: Store, key: str, *changes: Change) -> None:
    outcome = await store.updates.apply("telegram", changes, key=key, raw=None, at=NOON, keep=timedelta(days=7))
    assert not outcome.refused


def said(text: str, number: int, place: Place = OLD, **changes: Any) -> Received:
    fields: dict[str, Any] = {"id": str(number), "place": place, "author": ALICE} | changes
    return Received(message=a_message(text, **fields))


async def told(store: Store, place: Place) -> list[tuple[str, str, str | None]]:
    messages = await store.log.read(place, 0, 99)
    assert {message.place.key for message in messages} <= {place.key}
    return [(one.id, texts_of([one])[0], one.reply_to.message_id if one.reply_to else None) for one in messages]


FIRST = [
    said("one", 1),
    said("two", 2, author=BOB, reply_to=Quote(message_id="1", author=ALICE)),
]
AFTER = [said("three", 1, NEW), said("four", 2, NEW, reply_to=Quote(message_id="1"))]
ALL = [("-5:1", "one", None), ("-5:2", "two", "-5:1"), ("1", "three", None), ("2", "four", "1")]


@pytest.mark.parametrize(
    "order", [[*FIRST, MOVED, *AFTER], [*FIRST, *AFTER, MOVED], [*FIRST, AFTER[0], MOVED, AFTER[1]]]
)
async def test_history_goes_on_and_ids_stay_apart(store: Store, order: list[Change]) -> None:
    for number, change in enumerate(order):
        await apply(store, f"u{number}", change)
    await apply(store, "again", MOVED)

    assert await told(store, NEW) == ALL
    assert await store.log.count(NEW) == 4
    assert [one.message.id for one in await store.inbox.waiting(NEW)] == ["-5:1", "-5:2", "1", "2"]
    assert await store.check() == []


async def test_what_comes_late_from_the_old_place_is_kept_apart_from_what_has_its_id_in_the_new_one(
    store: Store,
) -> None:
    late = said("late", 2, reply_to=Quote(message_id="1"))
    await apply(store, "u1", said("one", 1))
    await apply(store, "u2", MOVED)
    await apply(store, "u3", late)
    await apply(store, "u4", said("two", 2, NEW))
    await apply(store, "u5", Edited(message=a_message("one, edited", id="1", place=OLD, author=ALICE)))
    await apply(store, "u6", Deleted(place=OLD, message_id="2"))

    assert await told(store, NEW) == [("-5:1", "one, edited", None), ("-5:2", "late", "-5:1"), ("2", "two", None)]
    assert [message.deleted for message in await store.log.read(NEW, 0, 9)] == [False, True, False]
    received = [one.message_id for one in await store.events.read(after="") if isinstance(one, MessageReceived)]
    assert received == ["1", "-5:2", "2"]


NEWEST = replace(NEW, id="-200")


async def test_what_comes_late_from_a_place_that_moved_twice_has_the_name_of_its_message(store: Store) -> None:
    await apply(store, "u1", said("one", 1))
    await apply(store, "u2", MOVED)
    await apply(store, "u3", PlaceMigrated(old=NEW, new=NEWEST))
    await apply(store, "u4", MOVED)
    await apply(store, "u5", said("late", 2))
    await apply(store, "u6", Edited(message=a_message("one, edited", id="1", place=OLD, author=ALICE)))

    assert await told(store, NEWEST) == [("-100:-5:1", "one, edited", None), ("-100:-5:2", "late", None)]
    assert await store.updates.migrated_places() == {OLD.key: NEWEST, NEW.key: NEWEST}


async def test_more_may_have_been_said_in_the_new_place_than_in_the_old_one(store: Store) -> None:
    await apply(store, "u1", said("one", 1))
    for number in range(1, 5):
        await apply(store, f"new {number}", said(f"new {number}", number, NEW))
    await apply(store, "u2", MOVED)

    assert await told(store, NEW) == [("-5:1", "one", None), *((f"{one}", f"new {one}", None) for one in range(1, 5))]
    assert await store.check() == []


async def test_a_place_that_is_told_to_move_to_two_places_moves_on_to_the_second(store: Store) -> None:
    await apply(store, "u1", said("one", 1))
    await apply(store, "u2", said("three", 3, NEWEST))
    await apply(store, "u3", MOVED)
    await apply(store, "u4", said("two", 1, NEW))
    await apply(store, "u5", PlaceMigrated(old=OLD, new=NEWEST))

    assert await told(store, NEWEST) == [("-100:-5:1", "one", None), ("-100:1", "two", None), ("3", "three", None)]
    assert await store.updates.migrated_places() == {OLD.key: NEWEST, NEW.key: NEWEST}
    assert await store.check() == []


async def test_a_place_that_moves_to_one_that_has_moved_goes_on_where_that_does(store: Store) -> None:
    other = replace(NEW, id="-9")
    await apply(store, "u1", said("one", 1))
    await apply(store, "u2", MOVED)
    await apply(store, "u3", said("other", 1, other))
    await apply(store, "u4", PlaceMigrated(old=other, new=OLD))

    assert await told(store, NEW) == [("-9:1", "other", None), ("-5:1", "one", None)]
    assert await store.updates.migrated_places() == {other.key: NEW, OLD.key: NEW}
    assert await store.check() == []


async def test_a_place_may_move_back(store: Store) -> None:
    await apply(store, "u1", said("one", 1))
    await apply(store, "u2", MOVED)
    await apply(store, "u3", said("two", 1, NEW))
    await apply(store, "u4", PlaceMigrated(old=NEW, new=OLD))
    await apply(store, "u5", said("three", 1, OLD))

    assert await told(store, OLD) == [("-100:-5:1", "one", None), ("-100:1", "two", None), ("1", "three", None)]
    assert await store.updates.migrated_places() == {NEW.key: OLD}
    assert await store.check() == []


async def test_a_place_where_nothing_was_said_may_move(store: Store) -> None:
    await apply(store, "u1", MOVED)
    await apply(store, "u2", said("three", 1, NEW))

    assert await told(store, NEW) == [("1", "three", None)]
    assert await store.updates.migrated_places() == {OLD.key: NEW}


async def test_what_both_places_spent_is_spent_in_one(store: Store) -> None:
    await apply(store, "u1", *FIRST, *AFTER)
    spent = Call(model="m", usage=Usage(input=5), begun_at=NOON, ended_at=NOON)
    for place in (OLD, NEW):
        for author in (ALICE, None):
            await store.usage.add(spent, place=place, author=author)
        await store.usage.add_notice(a_message("hi", place=place, author=ALICE), NOON.date())

    await apply(store, "u2", MOVED)
    await store.usage.add(spent, place=NEW)

    assert await store.usage.spent(NOON.date(), place=NEW) == Spend(tokens=25)
    assert await store.usage.spent(NOON.date(), place=NEW, author=ALICE) == Spend(tokens=10)
    assert await store.usage.has_notice(a_message("hi", place=NEW, author=ALICE), NOON.date())
    assert await store.check() == []


async def test_memory_and_tasks_go_on_and_what_is_to_be_sent_goes_to_the_new_place(store: Store) -> None:
    fact = Fact(
        id="f1",
        subject=subject_of(ALICE, OLD),
        text="Likes tea.",
        place=OLD,
        sources=("1",),
        learned_at=NOON,
        scope="chat",
    )
    task = Task(id="t1", kind="send", place=OLD, due_at=NOON, args={"text": "later", "reply_to": "1"})
    waiting = OutboxItem(id="o1", reply=Reply(place=OLD, text="now", reply_to="1"), made_at=NOON)
    await apply(store, "u1", *FIRST)
    await store.facts.learn([fact])
    await store.tasks.add([task])
    await store.outbox.put(waiting)

    await apply(store, "u2", MOVED, *AFTER)

    about = await store.facts.about(subject_of(ALICE, NEW), place=NEW, asked_by=subject_of(BOB, NEW))
    assert about == [replace(fact, place=NEW, sources=("-5:1",))]
    assert await store.tasks.listed(NEW) == [replace(task, place=NEW, args={"text": "later", "reply_to": None})]
    assert await store.outbox.listed() == [replace(waiting, reply=Reply(place=NEW, text="now"))]
    assert await store.updates.migrated_places() == {OLD.key: NEW}
    assert await store.check() == []


async def test_somebody_is_forgotten_in_a_place_that_has_moved(store: Store) -> None:
    await apply(store, "u1", said("my number is 4417-9035", 1), MOVED, said("4417-9035 again", 1, NEW))

    report = await store.forget(platform="telegram", author_id=ALICE.id)

    assert report.messages == 2
    assert [message.deleted for message in await store.log.read(NEW, 0, 9)] == [True, True]
    assert await store.check() == []


async def test_a_run_that_is_under_way_ends_with_the_messages_it_took(store: Store) -> None:
    await apply(store, "u1", *FIRST)
    run = a_run(id="r1", place=OLD, target="1", taken=("1",), horizon=2)
    await store.runs.begin(run, Prompt.of(user("hello")), at=NOON)

    await apply(store, "u2", MOVED, *AFTER)
    answer = OutboxItem(id="r1-0", reply=Reply(place=OLD, text="now"), made_at=NOON, run="r1", author=GRYAG)
    await store.runs.end(replace(run, status="done", ended_at=NOON), replies=[answer])
    await store.outbox.change(replace(answer, status="sent", message_id="s1", sent_at=NOON))

    journal = await store.runs.journal("r1")
    assert journal
    assert (journal.run.place, journal.run.target, journal.run.taken) == (NEW, "-5:1", ("-5:1",))
    assert await told(store, NEW) == [*ALL, ("s1", "now", None)]
    assert [one.message.id for one in await store.inbox.waiting(NEW)] == ["-5:2", "1", "2"]
    assert await store.check() == []


async def test_who_knows_a_place_by_its_old_id_reads_the_same(store: Store) -> None:
    await apply(store, "u1", *FIRST)
    delimiter = await store.place_settings.delimiter(OLD)
    await store.place_settings.clear(OLD, 1, at=NOON)

    await apply(store, "u2", MOVED, *AFTER)

    assert await store.inbox.snapshot(OLD) == await store.inbox.snapshot(NEW)
    assert await store.log.read(OLD, 0, 9) == await store.log.read(NEW, 0, 9)
    assert (await store.place_settings.delimiter(OLD), await store.place_settings.delimiter(NEW)) == (
        delimiter,
        delimiter,
    )
    assert (await store.place_settings.beginning(OLD), await store.place_settings.beginning(NEW)) == (1, 1)


async def test_an_order_about_either_place_is_still_there(store: Store) -> None:
    orders = [
        Order(id=place.id, kind="stop place", place=place, who="Oksana", at=NOON, status="waiting")
        for place in (OLD, NEW)
    ]
    for number, change in enumerate([*FIRST, *AFTER]):
        await apply(store, f"u{number}", change)
    for order in orders:
        await store.orders.add(order)

    await apply(store, "moved", MOVED)

    assert [(one.id, one.place) for one in await store.orders.waiting()] == [(one.id, NEW) for one in orders]
