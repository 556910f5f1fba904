import asyncio
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_quote, a_talk
from sizes import size
from store.builders import a_record, a_run, add_own, begin, rows, skip
from tertulia.context.log import with_current_quote
from tertulia.engine import store_protocols
from tertulia.engine.store_protocols import WaitingMessage
from tertulia.errors import InvalidValue
from tertulia.media.descriptions import DescriptionStore
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.run.journal import PromptStore
from tertulia.store import Store
from tertulia.turns import model

LATER = NOON + timedelta(minutes=5)


async def everything(store: Store, place: Place = GROUP) -> list[Message]:
    return list(await store.log.read(place, 0, 1000))


def test_the_store_fulfils_what_the_engine_wants_kept(store: Store) -> None:
    wanted: tuple[
        store_protocols.InboxStore,
        store_protocols.RunStore,
        store_protocols.OutboxStore,
        store_protocols.TaskStore,
        PromptStore,
        DescriptionStore,
    ] = (
        store.inbox,
        store.runs,
        store.outbox,
        store.tasks,
        store.prompts,
        store.descriptions,
    )

    assert all(wanted)


async def test_the_language_of_a_client_makes_no_other_author_and_no_edit(store: Store) -> None:
    quoted = a_quote("hi", author=ALICE)
    plain = a_message(reply_to=quoted)
    ukrainian = replace(ALICE, language="uk")

    await store.inbox.receive(replace(plain, author=ukrainian, reply_to=replace(quoted, author=ukrainian)), at=NOON)
    await store.inbox.receive(replace(plain, id="m2"), at=NOON)
    await store.inbox.edit(replace(plain, author=ukrainian), at=LATER)

    assert await everything(store) == [plain, replace(plain, id="m2")]
    assert await rows(store, "names", "body") == [({"id": "u123", "name": "Alice", "username": "alice_ua"},)]


async def test_a_forward_keeps_whose_words_it_is_through_edits_quotes_and_the_export(store: Store) -> None:
    quote = a_quote("hm", forwarded_from=replace(BOB, language="uk"))
    olha, hidden = Author(id="7", name="Olha"), Author(id="unknown", name="Ann", unknown=True)
    forward = a_message("I live in Lviv", forwarded_from=replace(olha, language="uk"), reply_to=quote)
    await store.inbox.receive(forward, at=NOON)
    await store.inbox.receive(a_message("hi", id="m2", forwarded_from=hidden), at=NOON)
    await store.inbox.edit(a_message("I live in Kyiv"), at=LATER)

    edited = replace(forward, parts=(Text(text="I live in Kyiv"),), edited_at=LATER)
    assert await everything(store) == [
        replace(edited, forwarded_from=olha, reply_to=replace(quote, forwarded_from=BOB)),
        a_message("hi", id="m2", forwarded_from=hidden),
    ]
    rows = [row async for row in store.export() if row["table"] == "messages"]
    assert [row["forwarded_from"] for row in rows] == [
        {"id": "7", "name": "Olha"},
        {"id": "unknown", "name": "Ann", "unknown": True},
    ]
    assert [row["forward_author"] is None for row in rows] == [False, True]
    await store.inbox.receive(a_message("so?", id="m3", reply_to=Quote(message_id="m1")), at=NOON)
    (_, _, reply) = await everything(store)
    current = await with_current_quote(store.log, reply)
    assert current.reply_to == Quote(message_id="m1", author=ALICE, parts=edited.parts, forwarded_from=olha)
    assert await store.check() == []


async def test_an_edit_before_the_run_changes_what_waits(store: Store) -> None:
    await store.inbox.receive(a_message("helo"), at=NOON)

    assert await store.inbox.edit(a_message("hello", edited_at=LATER), at=LATER) is True
    assert list(await store.inbox.waiting(GROUP)) == [
        WaitingMessage(message=a_message("hello", edited_at=LATER), since=NOON, number=0)
    ]


async def test_edits_and_deletions_are_events_once_each(store: Store) -> None:
    await store.inbox.receive(a_message("1"), at=NOON)
    for _ in range(2):
        await store.inbox.edit(a_message("2"), at=NOON)
        await store.inbox.edit(a_message("3", edited_at=LATER), at=LATER)
        await store.inbox.delete(GROUP, "m1", at=LATER)

    events = [row async for row in store.export() if row["table"] == "message_changes"]
    assert [(event["kind"], event["before"]["parts"][0]["text"]) for event in events] == [
        ("edited", "1"),
        ("edited", "2"),
        ("deleted", "3"),
    ]


async def test_an_event_says_when_it_happened_and_whether_a_run_had_shown_the_message(store: Store) -> None:
    talk = a_talk(4, authors=(ALICE,))
    for message in talk[:3]:
        await store.inbox.receive(message, at=NOON)
    await store.inbox.edit(replace(talk[0], parts=(Text(text="1"),)), at=LATER)
    await begin(store, a_run(id="r1", target="1", taken=("0", "1"), horizon=1))
    await begin(store, a_run(id="r2", target="1", taken=(), horizon=2))
    await store.inbox.edit(replace(talk[1], parts=(Text(text="2"),)), at=LATER)
    await store.inbox.delete(GROUP, "2", at=LATER)
    await store.inbox.receive(talk[3], at=NOON)
    await store.inbox.delete(GROUP, "0", at=LATER)

    events = [row async for row in store.export() if row["table"] == "message_changes"]
    assert [(event["number"], event["position"], event["seen"]) for event in events] == [
        (0, 3, 0),
        (1, 3, 1),
        (2, 3, 0),
        (0, 4, 1),
    ]


async def test_own_messages_do_not_wait(store: Store) -> None:
    await add_own(store, a_message("Yes?", author=GRYAG), [model("Yes?")])

    assert list(await store.inbox.places()) == []
    assert await store.inbox.receive(a_message("Yes?", author=GRYAG), at=NOON) is False


async def test_an_own_message_the_platform_showed_first_becomes_ours(store: Store) -> None:
    echoed = a_message("Yes?", author=Author(id="42", name="gryag_bot"))
    await store.inbox.receive(echoed, at=NOON)
    await everything(store)
    own = a_message("Yes?", author=GRYAG)

    await add_own(store, own, [model("Yes?")])

    assert await everything(store) == [own]
    assert await store.log.turns([own]) == {"m1": (model("Yes?"),)}
    assert list(await store.inbox.places()) == []


async def test_32_places_at_once_keep_their_order(tmp_path: Path) -> None:
    places = [Place(platform="p", id=str(n), kind="group") for n in range(32)]
    talks = [a_talk(30, place=place) for place in places]

    async with Store.open(tmp_path / "s.db") as store:

        async def speak(talk: list[Message]) -> None:
            for message in talk:
                await store.inbox.receive(message, at=NOON)

        await asyncio.gather(*map(speak, talks))

        assert [await everything(store, place) for place in places] == talks
        assert await store.check() == []


async def test_what_is_asked_for_at_once_is_done_in_that_order(store: Store) -> None:
    talk = a_talk(100)

    await asyncio.gather(*(store.inbox.receive(message, at=NOON) for message in talk))

    assert await everything(store) == talk


async def test_names_are_kept_with_when_they_were_first_seen(store: Store) -> None:
    for number, name in enumerate(["Alice", "Alisa", "Alice"]):
        message = a_message(id=str(number), author=replace(ALICE, name=name))
        await store.inbox.receive(message, at=NOON + timedelta(days=number))

    names = [row async for row in store.export() if row["table"] == "names"]
    assert [(row["name"], row["username"], row["seen_at"]) for row in names] == [
        ("Alice", "alice_ua", "2025-01-15T12:00:00+00:00"),
        ("Alisa", "alice_ua", "2025-01-16T12:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        a_message(id="\ud800"),
        a_message(place=replace(GROUP, id="\udfff")),
        a_message(author=replace(ALICE, id="\ud83d")),
        a_message(id=5),
    ],
    ids=["message", "place", "author", "number"],
)
async def test_an_id_that_cannot_be_kept_is_refused(store: Store, message: Message) -> None:
    with pytest.raises(InvalidValue, match="cannot be kept as the id"):
        await store.inbox.receive(message, at=NOON)

    assert await store.check() == []


async def test_what_is_nested_too_deeply_is_refused_in_one_line(store: Store) -> None:
    innermost: list[Any] = []
    deep = innermost
    for _ in range(20_000):
        deep = [deep]

    with pytest.raises(InvalidValue, match="cannot be kept"):
        await store.runs.add_record(a_run(), 0, a_record(raw={"deep": deep}))


@given(
    st.lists(
        st.tuples(st.sampled_from("receive edit delete pass take restart".split()), st.integers(0, 5)), max_size=25
    )
)
@settings(max_examples=size(15, full=30))
async def test_no_message_is_lost_or_doubled_by_anything_that_happens(steps: list[tuple[str, int]]) -> None:
    said: dict[str, Message] = {}
    waiting: list[str] = []
    with TemporaryDirectory() as folder:
        store = await Store.open(Path(folder) / "s.db")
        for number, (step, one) in enumerate(steps):
            name = str(one)
            match step:
                case "receive":
                    new = a_message(f"at {number}", id=name)
                    assert await store.inbox.receive(new, at=NOON) is (name not in said)
                    if said.setdefault(name, new) is new:
                        waiting.append(name)
                case "edit":
                    changed = a_message(f"at {number}", id=name, edited_at=NOON + timedelta(seconds=number))
                    assert await store.inbox.edit(changed, at=NOON) is (name in said)
                    if name in said:
                        said[name] = replace(changed, deleted=said[name].deleted)
                case "delete":
                    assert await store.inbox.delete(GROUP, name, at=NOON) is (name in said)
                    if name in said:
                        said[name] = replace(said[name], deleted=True)
                        waiting = [other for other in waiting if other != name]
                case "pass":
                    await skip(store, GROUP, name)
                    waiting = [other for other in waiting if other != name]
                case "take":
                    await begin(store, a_run(id=f"r{number}", target=name, taken=tuple(waiting)))
                    waiting = []
                case _:
                    await store.close()
                    store = await Store.open(Path(folder) / "s.db")

            assert await everything(store) == list(said.values())
            assert [one.message.id for one in await store.inbox.waiting(GROUP)] == waiting
            assert list(await store.inbox.places()) == ([GROUP] if waiting else [])
        await store.close()


BLANK = ["", " ", "\n", "\u200b", "\u2060 \ufeff", "\u3164"]


async def test_a_message_without_an_id_of_its_author_or_place_is_refused(store: Store) -> None:
    for blank in BLANK:
        with pytest.raises(InvalidValue, match="message 'm1' needs an id of its author"):
            await store.inbox.receive(a_message(author=Author(id=blank, name="Alice")), at=NOON)
        with pytest.raises(InvalidValue, match="message 'm1' needs an id of its place"):
            await store.inbox.receive(a_message(place=replace(GROUP, id=blank)), at=NOON)
        with pytest.raises(InvalidValue, match="needs an id"):
            await store.inbox.receive(a_message(id=blank), at=NOON)

    assert await store.inbox.places() == []
