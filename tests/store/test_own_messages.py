"""A reply that may have arrived is in the log, once, until it is settled."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from people import ALICE, GROUP, GRYAG, NOON, a_message
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place, Reply
from tertulia.parts import Text
from tertulia.platform import PlaceMigrated
from tertulia.store import Store
from tertulia.turns import model

TURNS = (model("ok"),)


def an_item(name: str = "r-0", text: str = "ok", **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"id": name, "reply": Reply(place=GROUP, text=text), "made_at": NOON, "author": GRYAG}
    return OutboxItem(**fields | {"turns": TURNS} | changes)


def sending(item: OutboxItem, **changes: Any) -> OutboxItem:
    return replace(item, attempts=1, sent_at=NOON, **changes)


def doubtful(item: OutboxItem) -> OutboxItem:
    return sending(item, status="doubtful", unknown_attempts=1)


def sent(item: OutboxItem, message_id: str) -> OutboxItem:
    return sending(item, status="sent", message_id=message_id)


async def shown(store: Store, place: Place = GROUP) -> list[tuple[str, str, bool]]:
    """Id, text and doubt of each message that a model is shown."""
    found = await store.log.read(place, 0, 99)
    return [(one.id, one.text, one.doubtful) for one in found if not one.deleted]


async def turns_in(store: Store) -> list[tuple[Any, ...]]:
    return list((await store.log.turns(await store.log.read(GROUP, 0, 99))).values())


async def test_a_doubtful_reply_is_in_the_log_under_the_id_of_its_delivery(store: Store) -> None:
    await store.outbox.put(an_item())
    await store.outbox.change(doubtful(an_item()))
    await store.outbox.change(doubtful(an_item()))

    assert await shown(store) == [("r-0", "ok", True)]
    assert await turns_in(store) == [TURNS]
    assert [one.message_id for one in await store.outbox.listed("doubtful")] == ["r-0"]
    assert await store.check() == []


async def test_a_receipt_gives_it_the_id_of_the_platform_in_its_place(store: Store) -> None:
    await store.outbox.put(an_item())
    await store.outbox.change(doubtful(an_item()))
    await store.inbox.receive(a_message("and now?", id="1", place=GROUP), at=NOON)
    before = await shown(store)
    await store.outbox.decide("r-0", "waiting")
    queued = await shown(store)
    await store.outbox.change(sending(an_item(), status="sending"))
    await store.outbox.change(sent(an_item(), "s-7"))

    assert before == queued == [("r-0", "ok", True), ("1", "and now?", False)]
    assert await shown(store) == [("s-7", "ok", False), ("1", "and now?", False)]
    assert await turns_in(store) == [TURNS]
    assert await store.check() == []


async def test_one_that_is_dropped_is_no_longer_said_and_said_anew_if_it_is_sent_after_all(store: Store) -> None:
    await store.outbox.put(an_item())
    seen = []
    for _ in range(2):
        await store.outbox.change(doubtful(an_item()))
        await store.outbox.decide("r-0", "dropped")
        seen.append(await shown(store))
        await store.outbox.decide("r-0", "waiting")
    await store.inbox.receive(a_message("hm", id="1", place=GROUP), at=NOON)
    await store.outbox.change(sent(an_item(), "s-7"))

    assert seen == [[], []]
    assert await shown(store) == [("1", "hm", False), ("s-7", "ok", False)]
    assert await store.check() == []


async def test_what_is_dropped_with_its_place_or_by_a_refusal_is_no_longer_said(store: Store) -> None:
    for name in ("r-0", "r-1"):
        await store.outbox.put(an_item(name))
        await store.outbox.change(doubtful(an_item(name)))
    await store.outbox.decide("r-0", "waiting")
    await store.updates.leave(GROUP, at=NOON)
    await store.outbox.change(sending(an_item("r-1"), status="dropped"))

    assert await shown(store) == []


async def test_a_message_that_the_platform_showed_us_before_is_the_same_one(store: Store) -> None:
    await store.outbox.put(an_item())
    await store.outbox.change(doubtful(an_item()))
    echo = Message(id="s-7", place=GROUP, author=GRYAG, sent_at=NOON, parts=(Text(text="ok"),))
    await store.inbox.receive(echo, at=NOON)
    await store.outbox.change(sent(an_item(), "s-7"))

    assert await shown(store) == [("s-7", "ok", False)]


async def test_the_id_of_another_reply_is_refused(store: Store) -> None:
    for name in ("r-0", "r-1"):
        await store.outbox.put(an_item(name))
    await store.outbox.change(sent(an_item("r-0"), "s-7"))
    await store.outbox.change(doubtful(an_item("r-1")))

    with pytest.raises(InvalidValue, match="'s-7' is the id of another reply"):
        await store.outbox.change(sent(an_item("r-1"), "s-7"))
    assert await shown(store) == [("s-7", "ok", False), ("r-1", "ok", True)]


def in_parts(*texts: str) -> list[OutboxItem]:
    names = ["r-0", *(f"r-0.{number}" for number in range(1, len(texts)))]
    return [
        an_item(name, text, reply_id="r-0", part=part, separator=" " if part else "", turns=() if part else TURNS)
        for part, (name, text) in enumerate(zip(names, texts, strict=True))
    ]


async def test_a_split_reply_is_one_message_that_is_doubtful_while_a_part_is(store: Store) -> None:
    one, two, three = in_parts("one", "two", "three")
    await store.outbox.put(one, two, three)
    seen = []
    for change in (doubtful(one), sent(two, "s-2"), doubtful(three), sent(one, "s-1"), sent(three, "s-3")):
        await store.outbox.change(change)
        seen += await shown(store)

    assert seen == [
        ("r-0", "one", True),
        ("r-0", "one two", True),
        ("r-0", "one two three", True),
        ("s-1", "one two three", True),
        ("s-1", "one two three", False),
    ]
    assert await turns_in(store) == [TURNS]
    assert [(await store.log.get(GROUP, name)) is not None for name in ("s-2", "s-3", "r-0")] == [True, True, False]
    assert await store.check() == []


async def test_of_a_split_reply_only_the_dropped_part_goes(store: Store) -> None:
    one, two = in_parts("one", "two")
    await store.outbox.put(one, two)
    await store.outbox.change(doubtful(one))
    await store.outbox.change(sent(two, "s-2"))
    await store.outbox.decide("r-0", "dropped")

    assert await shown(store) == [("s-2", "two", False)]
    assert await turns_in(store) == []
    assert await store.check() == []


async def test_a_doubtful_reply_moves_with_its_place_and_is_settled_there(store: Store) -> None:
    new = replace(GROUP, id="-100999")
    await store.inbox.receive(a_message("hi", id="1", place=GROUP), at=NOON)
    await store.outbox.put(an_item())
    await store.outbox.change(doubtful(an_item()))
    moved = [PlaceMigrated(old=GROUP, new=new)]
    await store.updates.apply(GROUP.platform, moved, key="u1", raw=None, at=NOON, keep=timedelta(days=7))
    await store.outbox.decide("r-0", "waiting")
    (queued,) = await store.outbox.listed("waiting")
    await store.outbox.change(sent(queued, "s-7"))

    assert await shown(store, new) == [(f"{GROUP.id}:1", "hi", False), ("s-7", "ok", False)]


async def test_forgetting_a_person_reaches_a_doubtful_answer(store: Store) -> None:
    await store.inbox.receive(a_message("my secret", id="1", place=GROUP, author=ALICE), at=NOON)
    told = replace(an_item(text="Your secret is safe."), reply=Reply(place=GROUP, text="Yes, Alice.", reply_to="1"))
    await store.outbox.put(told)
    await store.outbox.change(doubtful(told))

    await store.forget(platform=GROUP.author_namespace, author_id=ALICE.id, at=NOON)

    assert await shown(store) == []
    assert [one.reply.text for one in await store.outbox.listed()] == [""]
