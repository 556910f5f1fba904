"""Durable events: their numbers and cursors, who reads which, and how many are kept."""

import pytest
from msgspec.structs import replace

from people import GROUP, NOON, a_message
from tertulia.events import DurableEvent, MessageReceived, PromptSent, RunStarted
from tertulia.messages import Place
from tertulia.store import Store, events
from tertulia.store.sqlite.connection import Database

OTHER = Place(platform=GROUP.platform, id="other", kind="group")


def received(place: Place, message_id: str, number: int, cursor: int) -> DurableEvent:
    return MessageReceived(place=place, message_id=message_id, number=number, cursor=str(cursor), at=NOON)


async def receive(store: Store, *places: Place) -> None:
    for number, place in enumerate(places):
        await store.inbox.receive(a_message(id=f"m{number}", place=place), at=NOON)


async def test_events_are_numbered_in_their_place_and_in_one_sequence(store: Store) -> None:
    await receive(store, GROUP, OTHER, GROUP)

    first, other, second = received(GROUP, "m0", 1, 1), received(OTHER, "m1", 1, 2), received(GROUP, "m2", 2, 3)
    assert await store.events.read(after="") == [first, other, second]
    assert await store.events.read(after="", place=GROUP) == [first, second]
    assert await store.events.read(after=first.cursor, place=GROUP) == [second]
    assert await store.events.last() == "3"


async def test_events_of_one_transaction_are_numbered_as_they_were_added(store: Store) -> None:
    def work(database: Database) -> None:
        started = RunStarted(place=GROUP, run_id="r", message_id="m")
        events.add(database, started, PromptSent(place=GROUP, run_id="r", step=0), at=NOON)
        events.add(database, MessageReceived(place=GROUP, message_id="n"), at=NOON)

    await store.writer.run(work)
    await receive(store, GROUP)

    found = await store.events.read(after="")
    assert [(one.number, one.cursor, type(one)) for one in found] == [
        (1, "1", RunStarted),
        (2, "2", PromptSent),
        (3, "3", MessageReceived),
        (4, "4", MessageReceived),
    ]
    assert await store.events.read(after="", run_id="r") == found[:2]


async def test_the_newest_events_of_all_places_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_EVENTS", 4)
    monkeypatch.setattr(events, "CLEANUP_INTERVAL", 2)

    await receive(store, GROUP, *[OTHER] * 7)

    assert [one.cursor for one in await store.events.read(after="")] == ["5", "6", "7", "8"]
    assert await store.events.read(after="", place=GROUP) == []
    assert [one.number for one in await store.events.read(after="", place=OTHER)] == [4, 5, 6, 7]


async def test_an_event_of_a_unit_that_fails_is_neither_stored_nor_published(store: Store) -> None:
    published: list[DurableEvent] = []
    store.events.subscribe(published.extend, lambda error: None)

    def fail(database: Database) -> None:
        events.add(database, MessageReceived(place=GROUP, message_id="m"), at=NOON)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.writer.run(fail)
    await receive(store, GROUP)

    (stored,) = await store.events.read(after="")
    assert published == [stored] == [replace(received(GROUP, "m0", 1, 1), cursor=stored.cursor)]
