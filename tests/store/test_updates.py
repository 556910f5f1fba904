"""All that one update of a service means is stored in one transaction, once."""

import asyncio
from collections.abc import Sequence
from datetime import time, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from people import ALICE, BOB, GROUP, NOON, a_message
from store.builders import rows
from stored_rows import on, read, remove
from tertulia.decisions import Decision
from tertulia.engine.store_protocols import UpdateResult
from tertulia.events import MessageReceived
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    Update,
)
from tertulia.store import Store
from tertulia.store.database import Connection
from tertulia.store.events import add as add_event
from tertulia.store.identities import upsert_place
from tertulia.tasks.recurrence import Recurrence
from tertulia.tasks.task import FORGET_CONFIRMED, Task

WEEK = timedelta(days=7)
ELSEWHERE = replace(GROUP, id="-999")


async def apply(
    store: Store, *changes: Change, key: str = "u1", raw: bytes | None = None, **named: Any
) -> UpdateResult:
    given: dict[str, Any] = {"at": NOON, "keep": WEEK} | named
    return await store.updates.apply(GROUP.platform, changes, key=key, raw=raw, **given)


async def texts(store: Store) -> list[str]:
    found = await store.log.read(GROUP, 0, 99)
    return [part.text for message in found for part in message.parts if isinstance(part, Text)]


async def waiting(store: Store) -> list[str]:
    return [one.message.id for one in await store.inbox.waiting(GROUP)]


async def reactions(store: Store) -> Sequence[tuple[str, list[str]]]:
    return await rows(store, "reactions", "message_id", "emojis")


async def test_raw_updates_that_are_too_old_are_removed_by_an_update_once_a_minute(store: Store) -> None:
    keep = timedelta(seconds=10)
    found = []

    for seconds in (0, 20, 59, 60):
        await apply(store, key=f"u{seconds}", raw=b"?", at=NOON + timedelta(seconds=seconds), keep=keep)
        found.append([update.key for update in await store.updates.unread(GROUP.platform)])

    assert found == [["u0"], ["u0", "u20"], ["u0", "u20", "u59"], ["u59", "u60"]]


async def test_updates_that_come_together_are_stored_and_told_in_their_order(store: Store) -> None:
    messages = [a_message(str(number), id=str(number)) for number in range(20)]
    told = []

    async def received(message: Message) -> None:
        await apply(store, Received(message=message), key=message.id)
        told.append(message.id)

    await asyncio.gather(*map(received, messages))

    assert await texts(store) == told == [str(number) for number in range(20)]


async def test_an_edit_of_an_unknown_message_is_stored_and_waits_if_it_came_in_time(store: Store) -> None:
    for number, minutes in enumerate((0, 60, 61)):
        edited_at = NOON + timedelta(minutes=minutes)
        await apply(store, Edited(message=a_message("now", id=str(number), edited_at=edited_at)), key=str(number))

    assert await texts(store) == ["now", "now", "now"]
    assert await waiting(store) == ["0", "1"]
    (late,) = await store.inbox.decided(GROUP, "2", most=1)
    assert late[1] == (Decision(reason="late edit", at=NOON),)


async def test_an_edit_by_somebody_else_is_left_out_and_the_rest_is_applied(store: Store) -> None:
    await apply(store, Received(message=a_message("mine", id="1", author=ALICE)))

    edit = Edited(message=a_message("yours", id="1", author=BOB))
    await apply(store, edit, Received(message=a_message("two", id="2")), key="u2")

    assert await texts(store) == ["mine", "two"]


async def test_a_persons_reactions_are_those_they_show_now(store: Store) -> None:
    def reacted(author: Author, *emojis: str) -> Reacted:
        return Reacted(place=GROUP, message_id="1", author=author, emojis=emojis)

    await apply(store, reacted(ALICE, "👍"), reacted(BOB, "🔥"))
    await apply(store, reacted(Author(id=ALICE.id, name="Another name"), "❤", "👀"), reacted(BOB), key="u2")

    assert await reactions(store) == [("1", ["❤", "👀"])]


def a_task(name: str, place: Place = GROUP, **changes: Any) -> Task:
    fields: dict[str, Any] = {"id": name, "kind": "send", "place": place, "due_at": NOON, "args": {"text": "tea"}}
    return Task(**fields | changes)


async def test_what_was_planned_in_a_place_we_have_left_is_cancelled_also_if_we_join_it_again(store: Store) -> None:
    daily = Recurrence(words="every day", zone="UTC", at=time(9), first=NOON.date())
    topic = replace(GROUP, thread="7")
    forgetting = a_task("forget", kind=FORGET_CONFIRMED)  # nothing is said there
    planned = [a_task("once"), a_task("daily", again=daily), a_task("topic", topic, kind="poll"), forgetting]
    await store.tasks.add([*planned, a_task("there", ELSEWHERE), a_task("running", due_at=NOON - WEEK)])
    await store.tasks.take(NOON - WEEK)

    await apply(store, PlaceLeft(place=GROUP), key="u2")
    await apply(store, PlaceJoined(place=GROUP), key="u3")

    found = {task.id: (task.status, task.why) for task in await store.tasks.listed()}
    gone, waits = ("cancelled", "nothing can be sent to this place any more"), ("pending", "")
    assert found == {
        "once": gone, "daily": gone, "topic": gone, "forget": waits, "there": waits, "running": ("running", "")
    }  # fmt: skip


async def left(store: Store) -> list[tuple[str, str | None]]:
    """The places that we have left, and their threads."""
    places = await rows(store, "places", "place_id", "thread", "left_at")
    return [(place_id, thread) for place_id, thread, left_at in places if left_at is not None]


async def test_a_place_is_left_with_its_threads_until_we_join_it_or_hear_of_it(store: Store) -> None:
    topic = replace(GROUP, thread="7")
    await apply(store, Received(message=a_message("one", id="1", place=topic)))

    await apply(store, PlaceLeft(place=GROUP), key="u2")
    gone = await left(store)
    await apply(store, PlaceJoined(place=GROUP), key="u3")
    joined = await left(store)
    await apply(store, PlaceLeft(place=GROUP), Received(message=a_message("two", id="2", place=topic)), key="u4")

    assert sorted(gone, key=str) == sorted([(GROUP.id, None), (GROUP.id, "7")], key=str)
    assert joined == await left(store) == []


async def test_a_stop_changes_nothing_that_is_stored(store: Store) -> None:
    assert await apply(store, Stopped(place=GROUP)) == UpdateResult(new=True)


async def test_an_update_that_could_not_be_read_is_stored_and_applied_once_it_can(store: Store) -> None:
    await apply(store, raw=b'{"odd": 1}')
    before = await store.updates.unread(GROUP.platform)
    again = await apply(store, raw=b'{"odd": 1}')

    read = await apply(store, Received(message=a_message("odd", id="1")))

    assert (before, again) == ([Update(key="u1", raw=b'{"odd": 1}')], UpdateResult(new=False))
    assert read == UpdateResult(new=True)
    assert await store.updates.unread(GROUP.platform) == []
    assert await texts(store) == ["odd"]


BAD = [
    Received(message=a_message("?", id="")),
    Received(message=a_message("?", id="1", author=Author(id="​", name="Nobody"))),
    Edited(message=a_message("?", id="\ud800")),
    Deleted(place=GROUP, message_id="\ud800"),
    Deleted(place=replace(GROUP, id=""), message_id="1"),
    Received(message=a_message("?", id="1", reply_to=Quote(message_id="\ud800"))),
    Received(message=a_message("?", id="1", parts=(Text(text="?", raw={"odd": object()}),))),
    Reacted(place=GROUP, message_id="1", author=Author(id="", name="Nobody"), emojis=("👍",)),
    Reacted(place=GROUP, message_id="1", author=ALICE, emojis=("👍",), at=NOON.replace(tzinfo=None)),
    PlaceMigrated(old=GROUP, new=replace(GROUP, id=" ")),
    PlaceLeft(place=replace(GROUP, id="\ud800")),
    Stopped(place=replace(GROUP, thread="\ud800")),
]


@pytest.mark.parametrize("change", BAD)
async def test_changes_that_cannot_be_stored_leave_the_update_unread(store: Store, change: Change) -> None:
    outcome = await apply(store, Received(message=a_message("good", id="7")), change, raw=b"raw")

    assert outcome.new
    assert outcome.refused
    assert await texts(store) == []
    assert await store.updates.unread(GROUP.platform) == [Update(key="u1", raw=b"raw")]


async def test_the_last_message_is_the_newest_that_was_received(store: Store) -> None:
    assert await store.updates.last(GROUP) is None
    said = [a_message(text, id=text) for text in ("one", "two")]

    await apply(store, *(Received(message=message) for message in said))

    assert await store.updates.last(GROUP) == said[1]


async def test_forgetting_somebody_takes_along_what_services_sent_of_them(store: Store) -> None:
    said = a_message("my number is 4417-9035", id="1", author=ALICE)
    await apply(store, Received(message=said), raw=b'{"text": "my number is 4417-9035"}')
    await apply(store, Commanded(message=said, name="forget", argument="4417-9035"), key="u2", raw=b"4417-9035")
    await apply(store, Reacted(place=GROUP, message_id="1", author=ALICE, emojis=("👍",)), key="u3")
    await apply(store, key="u4", raw=f'{{"from": {ALICE.id!r}, "odd": "4417-9035"}}'.encode())
    await apply(store, key="u5", raw=b'{"odd": "of nobody"}')

    await store.forget(platform=GROUP.platform, author_id=ALICE.id)

    assert await on(store, read, "updates", "update_key", "raw") == [
        ("u1", None),
        ("u2", None),
        ("u3", None),
        ("u4", None),
        ("u5", b'{"odd": "of nobody"}'),
    ]
    assert (await store.updates.commands(), await reactions(store)) == ([], [])
    assert await store.check() == []


async def test_what_services_sent_of_somebody_who_never_wrote_is_removed_too(store: Store) -> None:
    raw = f'{{"by": "{ALICE.id}", "to": "4417-9035"}}'.encode()
    named = f'{{"mentions": "{BOB.name}"}}'.encode()
    await apply(store, Reacted(place=GROUP, message_id="1", author=ALICE, emojis=("👍",)), raw=raw)
    await apply(store, Reacted(place=GROUP, message_id="1", author=ALICE, emojis=()), key="u2", raw=raw)
    await apply(store, Stopped(place=GROUP, author=ALICE), key="u3", raw=raw)
    await apply(store, Received(message=a_message("hello", id="1", author=BOB)), key="u4")
    await apply(store, PlaceLeft(place=ELSEWHERE), key="u5", raw=named)
    await apply(store, Stopped(place=ELSEWHERE, author=Author(id="never-seen", name="N")), key="u6", raw=b"never-seen")
    await apply(store, key="u7", raw=b"nobody")

    for author in (ALICE.id, BOB.id, "never-seen"):
        await store.forget(platform=GROUP.platform, author_id=author)

    assert [key for key, raw in await on(store, read, "updates", "update_key", "raw") if raw] == ["u7"]


async def test_a_message_that_is_received_by_two_updates_is_one(store: Store) -> None:
    said: Message = a_message("one", id="1")

    assert [await apply(store, Received(message=said), key=key) for key in ("u1", "u2")] == [UpdateResult(new=True)] * 2

    assert await texts(store) == ["one"]


async def test_a_place_that_is_removed_leaves_no_events_behind(store: Store) -> None:
    def work(database: Connection) -> None:
        add_event(database, MessageReceived(place=GROUP, message_id="1"))
        upsert_place(database, GROUP)
        remove(database, "places")
        database.cache.clear()

    await on(store, work)

    assert (await rows(store, "places"), await rows(store, "place_events")) == ([], [])
