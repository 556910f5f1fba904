"""Why a message was or was not answered: each decision is a row, written by the transaction that decides."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, engine_with, said, talked
from engine.test_spend_caps import answers, capped
from people import NOON
from tertulia.decisions import Address, Reason
from tertulia.engine.behavior import Behavior
from tertulia.engine.limits import Cap, Limits
from tertulia.events import MessageDecided
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.platform import Deleted, PlaceLeft, Received
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform

Why = tuple[str, Reason, Address | None, bool]  # the id of a message, the decision, whether a run has taken it
HOUR = timedelta(hours=1)
ROBO = Author(id="9", name="Robo", persona="robo")


def row(message_id: str, made: Any) -> Why:
    return message_id, made.reason, made.address, made.run_id is not None


async def why(store: Store, place: Place = GROUP) -> list[Why]:
    return [row(one.id, made) for one, all_made in await store.inbox.decided(place, most=99) for made in all_made]


async def told(store: Store) -> list[Why]:
    """What the events of decisions say."""
    found = await store.events.read(after="")
    return [row(one.message_id, one) for one in found if isinstance(one, MessageDecided)]


async def test_how_a_message_speaks_to_us_is_stored_with_the_run_that_answers_it(store: Store) -> None:
    me, rule = replace(ME, username="gryag_bot"), Behavior(debounce=0.0, answer_if=lambda message: "?" in message.text)
    platform = RecordedPlatform(me=me)

    async with engine_with(Scripted(*["Yes."] * 9), platform, store=store, behavior=rule) as engine:
        await talked(engine, said("hi", 1))
        await talked(engine, said("nobody", 2, place=GROUP), said("Gryag!", 3, place=GROUP))
        await talked(engine, said("@gryag_bot", 4, place=GROUP), said("what?", 5, place=GROUP))
        quote = Quote(message_id="old", author=me)
        await talked(engine, said("so", 6, place=GROUP, reply_to=quote), said("yes", 7, place=GROUP, author=me))

    assert await why(store, DIRECT) == [("1", "answered", "direct", True)]
    assert await why(store) == [
        ("2", "not addressed", None, False),
        ("3", "answered", "name", True),
        ("4", "answered", "mention", True),
        ("5", "answered", "rule", True),
        ("6", "answered", "reply", True),
        ("7", "our own", None, False),
    ]
    assert await told(store) == [*await why(store, DIRECT), *await why(store)]
    assert await store.check() == []


async def test_a_message_waits_until_its_burst_is_answered_and_what_was_not_addressed_goes_with_it(
    store: Store,
) -> None:
    for message in (said("Gryag, wait", 1, place=GROUP), said("so", 2, place=GROUP)):
        await store.inbox.receive(message, at=NOON)
    before = await why(store)

    async with engine_with(Scripted("Well?"), store=store) as engine:
        await engine.settled()

    assert before == [("1", "waiting", None, False), ("2", "waiting", None, False)]
    assert await why(store) == [("1", "answered", "name", True), ("2", "answered", None, True)]


async def test_a_message_that_joins_a_run_says_so(store: Store) -> None:
    model = HeldModel([ToolCall(name="look", id="a")], "It is green, and yes.")

    async def look() -> str:
        return "green"

    behavior = Behavior(debounce=0.0, during_run="next_step")
    async with engine_with(model, store=store, tools=[look], behavior=behavior) as engine:
        await engine.receive(said("look!", 1))
        await model.asked.wait()
        await engine.receive(said("and hurry", 2))
        model.release()
        await engine.settled()

    assert await why(store, DIRECT) == [("1", "answered", "direct", True), ("2", "joined", "direct", True)]
    assert await told(store) == await why(store, DIRECT)


async def test_a_message_over_the_rate_limit_says_so_with_and_without_a_notice(store: Store) -> None:
    limits = Limits(messages=1, seconds=60)
    async with engine_with(Scripted("Yes."), store=store, limits=limits, now=lambda: NOON) as engine:
        await talked(engine, *(said("hi", number) for number in (1, 2, 3)))

    assert await why(store, DIRECT) == [
        ("1", "answered", "direct", True),
        ("2", "rate limit", "direct", True),  # the run that sent the notice
        ("3", "rate limit", "direct", False),
    ]


async def test_a_message_over_a_spend_cap_says_so_with_and_without_a_notice(store: Store) -> None:
    async with engine_with(answers(1), store=store, **capped(person=Cap(tokens=1000))) as engine:
        await talked(engine, *(said("Gryag, hi", number, place=GROUP) for number in (1, 2, 3)))

    assert await why(store) == [
        ("1", "answered", "name", True),
        ("2", "spend cap", "name", True),
        ("3", "spend cap", "name", False),
    ]


async def test_agents_in_a_row_and_blocked_people_are_told_apart(store: Store) -> None:
    await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOON)
    behavior = Behavior(debounce=0.0, agents_in_a_row=1)

    async with engine_with(Scripted("Yes."), store=store, behavior=behavior) as engine:
        await talked(engine, *(said("Gryag, go on", number, place=GROUP, author=ROBO) for number in (1, 2)))
        await talked(engine, said("Gryag?", 3, place=GROUP, author=BOB))

    assert await why(store) == [
        ("1", "answered", "name", True),
        ("2", "agents in a row", "name", False),
        ("3", "blocked", None, False),
    ]


async def test_the_rest_of_an_album_goes_with_its_answer_and_what_comes_later_is_context(store: Store) -> None:
    async with engine_with(Scripted("Nice."), store=store) as engine:
        await talked(engine, said("", 1, place=GROUP, album="a"), said("Gryag?", 2, place=GROUP, album="a"))
        await talked(engine, said("Gryag!", 3, place=GROUP, album="a"))

    assert await why(store) == [
        ("1", "answered", None, True),
        ("2", "answered", "name", True),
        ("3", "album answered", "name", False),
    ]


async def test_what_comes_of_an_album_while_it_is_being_answered_joins_no_run(store: Store) -> None:
    model = HeldModel([ToolCall(name="look", id="a")], "It is green.")

    async def look() -> str:
        return "green"

    behavior = Behavior(debounce=0.0, during_run="next_step")
    async with engine_with(model, store=store, tools=[look], behavior=behavior) as engine:
        await engine.receive(said("look!", 1, album="a"))
        await model.asked.wait()
        await engine.receive(said("and this", 2, album="a"))
        model.release()
        await engine.settled()

    assert await why(store, DIRECT) == [
        ("1", "answered", "direct", True),
        ("2", "album answered", "direct", False),
    ]


async def test_a_message_that_is_deleted_or_left_behind_before_its_answer_says_so(store: Store) -> None:
    changes = [Received(message=said("Gryag", number, place=GROUP)) for number in (1, 2)]
    deleted = Deleted(place=GROUP, message_id="1")
    keep = timedelta(days=1)

    await store.updates.apply("recorded", [*changes, deleted], key="1", raw=None, at=NOON, keep=keep)
    await store.updates.apply("recorded", [PlaceLeft(place=GROUP)], key="2", raw=None, at=NOON, keep=keep)

    assert await why(store) == [("1", "withdrawn", None, False), ("2", "place left", None, False)]
    assert await told(store) == await why(store)


async def test_an_imported_message_and_one_of_ours_have_no_decision(store: Store) -> None:
    async with engine_with(Scripted("Yes."), store=store) as engine:
        await talked(engine, said("hi", 1))

    assert [one.id for one, _ in await store.inbox.decided(DIRECT, most=9)] == ["1"]
    assert await store.inbox.decided(DIRECT, "1", most=9) == await store.inbox.decided(DIRECT, most=9)
    assert await store.inbox.decided(GROUP, most=9) == []


def edited(text: str, number: int = 1, *, after: timedelta, author: Author = ALICE) -> Message:
    message = said(text, number, place=GROUP, author=author, sent_at=NOON)
    return replace(message, edited_at=NOON + after)


@pytest.mark.parametrize(("after", "is_answered"), [(HOUR, True), (HOUR + timedelta(seconds=1), False)])
async def test_a_message_edited_within_an_hour_so_that_it_names_us_is_answered_once(
    store: Store, after: timedelta, is_answered: bool
) -> None:
    platform, model = RecordedPlatform(), Scripted("Yes?", "Again?")

    async with engine_with(model, platform, store=store, now=lambda: NOON + after) as engine:
        await talked(engine, said("what is the time?", 1, place=GROUP, sent_at=NOON))
        await talked(engine, said("nobody knows", 2, place=GROUP, sent_at=NOON, author=BOB))
        for text in ("what, Bob, is the time?", "Gryag, what is the time?", "Gryag, what was the time?"):
            await engine.edit(edited(text, after=after))
            await engine.settled()

    ((_, (made,)),) = await store.inbox.decided(GROUP, "1", most=1)
    assert platform.texts == ["Yes?"] * is_answered
    assert (made.reason, made.address, made.edited) == (
        ("answered", "name", True) if is_answered else ("not addressed", None, False)
    )
    if is_answered:
        (prompt,) = model.prompts
        assert str(prompt).count("Gryag, what is the time?") == 1
        assert "Text(text='what is the time?'" not in str(prompt)


async def test_a_message_that_was_answered_blocked_or_joined_is_not_answered_for_its_edit(store: Store) -> None:
    platform = RecordedPlatform()
    await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOON)
    for message in (said("Gryag?", 1, place=GROUP, sent_at=NOON), said("so", 2, place=GROUP, sent_at=NOON)):
        await store.inbox.receive(message, at=NOON)  # one burst

    async with engine_with(Scripted("Yes?"), platform, store=store, now=lambda: NOON) as engine:
        await talked(engine, said("hm", 3, place=GROUP, sent_at=NOON, author=BOB))
        before = await why(store)
        for number, author in ((1, ALICE), (2, ALICE), (3, BOB)):
            await engine.edit(edited("Gryag, hello!", number, after=HOUR / 2, author=author))
            await engine.settled()

    assert platform.texts == ["Yes?"]
    assert await why(store) == before


async def test_an_edit_of_a_message_that_waits_is_answered_with_its_burst(store: Store) -> None:
    platform = RecordedPlatform()
    await store.inbox.receive(said("what is the time?", 1, place=GROUP, sent_at=NOON), at=NOON)
    await store.inbox.edit(edited("Gryag, what is the time?", after=HOUR), at=NOON)

    async with engine_with(Scripted("Yes?"), platform, store=store) as engine:
        await engine.settled()

    ((_, (made,)),) = await store.inbox.decided(GROUP, most=9)
    assert platform.texts == ["Yes?"]
    assert (made.reason, made.address, made.edited) == ("answered", "name", False)


async def test_a_message_from_before_the_conversation_was_cleared_is_not_answered_for_its_edit(store: Store) -> None:
    platform = RecordedPlatform()

    async with engine_with(Scripted(), platform, store=store, now=lambda: NOON) as engine:
        await talked(engine, said("what is the time?", 1, place=GROUP, sent_at=NOON))
        await engine.clear(GROUP)
        await engine.edit(edited("Gryag, what is the time?", after=HOUR))
        await engine.settled()

    assert platform.texts == []
    assert await why(store) == [("1", "not addressed", None, False)]


async def test_an_edit_that_names_us_while_nobody_runs_is_answered_at_the_next_start(store: Store) -> None:
    async with engine_with(Scripted(), store=store, now=lambda: NOON) as engine:
        await talked(engine, said("what is the time?", 1, place=GROUP, sent_at=NOON))
    await store.inbox.edit(edited("Gryag, what is the time?", after=HOUR), at=NOON)
    platform = RecordedPlatform()

    async with engine_with(Scripted("Yes?"), platform, store=store) as engine:
        await engine.settled()

    assert platform.texts == ["Yes?"]
    assert [one.text for one in await store.log.read(GROUP, 0, 9)] == ["Gryag, what is the time?", "Yes?"]
