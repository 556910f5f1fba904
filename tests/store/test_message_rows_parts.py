"""A message of ours that was sent in parts is one message, found and changed by the id of any part."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from memory.known import a_fact
from people import ALICE, GROUP, GRYAG, NOON, a_message
from store.builders import an_outgoing, rows
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Message, Quote
from tertulia.parts import Text
from tertulia.platform import PlaceMigrated
from tertulia.store import Store
from tertulia.turns import model

TURNS = (model("one two three", by="m"),)


def a_part(number: int, text: str, **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {
        "id": f"o.{number}",
        "author": GRYAG,
        "reply_id": "o",
        "part": number,
        "separator": " " if number else "",
        "turns": () if number else TURNS,
    }
    return an_outgoing(text, **fields | changes)


async def send(store: Store, *parts: OutboxItem) -> None:
    for part in parts:
        await store.outbox.change(replace(part, status="sent", message_id=f"s{part.part}", sent_at=NOON))


async def in_parts(store: Store) -> list[OutboxItem]:
    parts = [a_part(number, text) for number, text in enumerate(["one", "two", "three"])]
    await store.outbox.put(*parts)
    return parts


async def ours(store: Store) -> Message:
    return (await store.log.read(GROUP, 0, 9))[0]


async def test_the_message_grows_with_each_part_and_has_its_turns_at_the_end(store: Store) -> None:
    parts = await in_parts(store)
    seen: list[tuple[str, Any, int]] = []
    for part in parts:
        await send(store, part)
        message = await ours(store)
        seen.append((message.id, message.parts, len(await store.log.turns([message]))))

    assert seen == [
        ("s0", (Text(text="one"),), 0),
        ("s0", (Text(text="one two"),), 0),
        ("s0", (Text(text="one two three"),), 1),
    ]
    assert await store.log.count(GROUP) == 1


async def test_it_is_found_by_the_id_of_any_part(store: Store) -> None:
    await send(store, *await in_parts(store))

    message = await ours(store)

    assert await store.log.find(GROUP, ["s0", "s1", "s2"]) == [(0, message)] * 3
    assert [await store.log.number(a_message(id=one)) for one in ("s0", "s1", "s2", "s3")] == [0, 0, 0, None]


async def test_a_quote_of_a_part_is_stored_as_a_quote_of_the_message(store: Store) -> None:
    await send(store, *await in_parts(store))
    await store.inbox.receive(a_message("what?", reply_to=Quote(message_id="s2", author=GRYAG)), at=NOON)
    await store.inbox.receive(a_message("and this?", id="m2", reply_to=Quote(message_id="else")), at=NOON)

    quotes = [message.reply_to for message in await store.log.read(GROUP, 1, 9)]

    assert quotes == [Quote(message_id="s0", author=GRYAG), Quote(message_id="else")]


async def test_an_edit_of_a_part_changes_that_part(store: Store) -> None:
    await send(store, *await in_parts(store))
    edited = Message(id="s1", place=GROUP, author=GRYAG, parts=(Text(text="2"),))

    assert await store.inbox.edit(edited, at=NOON)
    assert await store.inbox.edit(edited, at=NOON)
    assert ((await ours(store)).id, (await ours(store)).parts) == ("s0", (Text(text="one 2 three"),))


async def test_a_deleted_part_is_gone_and_the_message_with_the_last_of_them(store: Store) -> None:
    await send(store, *await in_parts(store))
    seen: list[Any] = []
    for one in ("s0", "s2", "s1"):
        assert await store.inbox.delete(GROUP, one, at=NOON)
        message = await ours(store)
        seen.append((message.parts, message.deleted))

    assert seen == [((Text(text="two three"),), False), ((Text(text="two"),), False), ((Text(text="two"),), True)]


async def test_a_part_that_the_platform_showed_us_before_its_receipt_is_no_message_of_its_own(store: Store) -> None:
    parts = await in_parts(store)
    await send(store, parts[0])
    await store.inbox.receive(Message(id="s1", place=GROUP, author=GRYAG, parts=(Text(text="two"),)), at=NOON)
    await send(store, *parts[1:])
    again = Message(id="s2", place=GROUP, author=GRYAG, parts=(Text(text="three"),))

    assert not await store.inbox.receive(again, at=NOON)
    assert [(one.parts, one.deleted) for one in await store.log.read(GROUP, 0, 9)] == [
        ((Text(text="one two three"),), False),
        ((), True),
    ]
    assert await store.inbox.waiting(GROUP) == []


async def test_a_forgotten_person_is_in_no_part(store: Store) -> None:
    await store.inbox.receive(a_message("my cat is called Mister Whiskers the Third", id="m0"), at=NOON)
    words = ["so your cat is called", "Mister Whiskers the Third then", "fine"]
    parts = [a_part(number, text) for number, text in enumerate(words)]
    await store.outbox.put(*parts)
    await send(store, *parts)

    await store.forget(platform=GROUP.platform, author_id=ALICE.id, at=NOON)

    assert [one.reply.text for one in await store.outbox.listed()] == ["", "", ""]
    assert await rows(store, "message_parts", "content") == [([],)] * 3


async def test_in_a_place_that_moves_the_parts_stay_one_message_and_an_edit_becomes_a_new_one(store: Store) -> None:
    await send(store, *await in_parts(store))
    await store.outbox.put(an_outgoing(id="o2", edits="s9"))
    new = replace(GROUP, id="-200")

    change = PlaceMigrated(old=GROUP, new=new)
    await store.updates.apply(GROUP.platform, [change], key="u", raw=None, at=NOON, keep=timedelta(days=1))

    (message,) = await store.log.read(new, 0, 9)
    assert await store.log.find(new, [f"{GROUP.id}:s2"]) == [(0, message)]
    assert [(one.reply.place.id, one.edits) for one in await store.outbox.listed("waiting")] == [("-200", None)]


async def test_what_would_tell_a_forgotten_fact_in_two_parts_is_dropped_with_both(store: Store) -> None:
    await store.inbox.receive(a_message("I live in Lviv", id="m0"), at=NOON)
    fact = a_fact("lives in Lviv", sources=("m0",))
    await store.facts.learn([fact], reading=await store.cursors.next_range(GROUP))
    await store.outbox.put(a_part(0, "Alice, you live"), a_part(1, "in Lviv, I think"))

    await store.facts.forget([fact.id])

    assert [(one.status, one.reply.text) for one in await store.outbox.listed()] == [("dropped", ""), ("dropped", "")]
