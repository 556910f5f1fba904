import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import World
from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, store_with, talked
from fakes import Meanwhile
from people import NOON
from store.builders import a_run, begin, skip
from tertulia import Engine
from tertulia.context.gather import ContextOptions
from tertulia.context.values import Context
from tertulia.decisions import Reason
from tertulia.engine.behavior import TOO_MANY, Behavior
from tertulia.engine.limits import Limits
from tertulia.engine.place_worker import MAX_REBUILDS, STOPPED
from tertulia.engine.store_protocols import PlaceSnapshot
from tertulia.errors import InvalidValue, StoreFull
from tertulia.messages import Author, Message, Place
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Text, cut_text
from tertulia.platform import Reacted
from tertulia.run.journal import Run
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform
from tertulia.turns import Prompt

LATER = timedelta(minutes=1)

Taken = tuple[list[str], str]  # the messages that a run took, and the one it replied to


async def received(store: Store, *messages: Message) -> None:
    """Messages that came before the engine was started, one a second."""
    for number, message in enumerate(messages):
        await store.inbox.receive(message, at=NOON + timedelta(seconds=number))


async def runs_of(store: Store) -> list[Run]:
    return [one.run for one in reversed(await store.inspection.runs(most=99))]


async def taken(store: Store) -> list[Taken]:
    return [(list(run.taken), run.target) for run in await runs_of(store)]


async def answered(store: Store, **changes: Any) -> list[Taken]:
    """What has been taken once an engine, a minute later, has answered all that waits."""
    async with engine_with(Scripted(*["Yes."] * 9), store=store, **{"now": lambda: NOON + LATER} | changes) as engine:
        await engine.settled()
    return await taken(store)


async def decided(store: Store, place: Place = DIRECT) -> list[tuple[str, Reason]]:
    """The last decision about each message."""
    return [(message.id, made[-1].reason) for message, made in await store.inbox.decided(place, most=99)]


async def test_each_message_is_answered_in_turn_and_then_nothing_waits(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))

    assert await answered(store) == [(["1"], "1"), (["2"], "2")]
    assert await store.inbox.waiting(DIRECT) == []


async def test_runs_that_were_left_open_come_first(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2), said("three", 3))
    for name, message_id in (("r1", "1"), ("r2", "2")):
        await begin(store, a_run(id=name, place=DIRECT, target=message_id, taken=(message_id,)))

    assert await answered(store) == [(["1"], "1"), (["2"], "2"), (["3"], "3")]
    sent = await store.outbox.listed()
    assert [(one.run, one.message_id) for one in sent][:2] == [("r1", "s-0"), ("r2", "s-1")]
    assert [run.resumed for run in await runs_of(store)] == [1, 1, 0]


async def test_what_is_not_for_us_is_passed_over_and_keeps_nobody_waiting(store: Store) -> None:
    await received(
        store,
        said("a", 1, place=GROUP),
        said("b", 2, place=GROUP, author=BOB),
        said("Gryag?", 3, place=GROUP, author=BOB),
        said("c", 4, place=GROUP),
    )

    assert await answered(store) == [(["3"], "3")]
    assert await store.inbox.waiting(GROUP) == []


BURST = Behavior(debounce=10.0, max_debounce=10.0)

TARGETS: list[tuple[list[Message], list[Taken]]] = [
    # what else the author says belongs to it; the last that speaks to us is replied to
    ([said("Gryag,", 1), said("how", 2), said("are you", 3)], [(["1", "2", "3"], "1")]),
    ([said("Gryag,", 1), said("Gryag?", 2), said("so", 3)], [(["1", "2", "3"], "2")]),
    ([said("so", 1), said("Gryag?", 2)], [(["2"], "2")]),
    (
        [said("Gryag,", 1), said("Gryag!", 2, author=BOB), said("hi", 3), said("you", 4, author=BOB)],
        [(["1", "3"], "1"), (["2", "4"], "2")],
    ),
    # an album is taken whole, whichever of its messages speaks to us
    ([said("Gryag,", 1, album="a"), said("", 2, album="a"), said("", 3, album="a")], [(["1", "2", "3"], "1")]),
    ([said("", 1, album="a"), said("Gryag?", 2, album="a"), said("", 3, album="a")], [(["1", "2", "3"], "2")]),
    ([said("so", 1), said("", 2, album="a"), said("Gryag?", 3, album="a")], [(["2", "3"], "3")]),
    ([said("", 1, album="a"), said("Gryag?", 2, album="b")], [(["2"], "2")]),
    ([said("", 1, album="a", author=BOB), said("Gryag?", 2, album="a")], [(["2"], "2")]),
]


@pytest.mark.parametrize(("messages", "runs"), TARGETS)
async def test_a_burst_is_answered_as_one(store: Store, messages: list[Message], runs: list[Taken]) -> None:
    await received(store, *(replace(message, place=GROUP) for message in messages))

    assert await answered(store, behavior=BURST) == runs


async def test_messages_of_an_album_that_were_passed_over_are_answered_with_the_one_that_speaks_to_us(
    store: Store,
) -> None:
    await received(store, said("", 1, place=GROUP, album="a"), said("so", 2, place=GROUP))
    await skip(store, GROUP, "1", "2")
    await received(store, said("Gryag?", 3, place=GROUP, album="a"))

    assert await answered(store) == [(["1", "3"], "3")]


async def test_what_comes_of_an_album_after_its_answer_is_context(store: Store) -> None:
    async with engine_with(Scripted("Nice.", "Yes."), store=store) as engine:
        await talked(engine, said("look", 1, album="a"), said("", 2, album="a"), said("well?", 3))

    assert await taken(store) == [(["1"], "1"), (["3"], "3")]
    assert await decided(store) == [("1", "answered"), ("2", "album answered"), ("3", "answered")]


def test_an_album_of_which_more_may_come_waits_and_then_wait_no_longer(world: World) -> None:
    store, behavior = world.store, Behavior(debounce=1.5, max_debounce=1.5)

    async def work() -> list[str]:
        async with engine_with(Scripted("Yes."), store=store, now=world.now, behavior=behavior) as engine:
            await engine.receive(said("", 1, place=GROUP, album="a"))
            await engine.receive(said("", 2, place=GROUP, album="a", author=BOB))
            await asyncio.sleep(1)
            waited = [one.message.id for one in await store.inbox.waiting(GROUP)]
            await engine.receive(said("Gryag?", 3, place=GROUP, album="a"))
            await engine.settled()
            return waited

    assert world.loop.run(work()) == ["1", "2"]
    assert world.loop.run(taken(store)) == [(["1", "3"], "3")]
    assert world.loop.run(store.inbox.waiting(GROUP)) == []


async def test_in_a_direct_chat_the_last_is_replied_to(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))

    assert await answered(store, behavior=BURST) == [(["1", "2"], "2")]


def test_a_burst_is_waited_for_and_calls_off_at_once_what_was_planned(world: World) -> None:
    store, plan = world.store, "Yes.\n# «wait»\ndelay: 3600\n# «send»\nLater."
    behavior = Behavior(debounce=2.0, max_debounce=4.5)

    async def plans() -> list[str]:
        return [task.status for task in await store.tasks.listed()]

    async def work() -> list[list[str]]:
        seen: list[list[str]] = []
        async with engine_with(Scripted(plan, plan), store=store, now=world.now, behavior=behavior) as engine:
            for number in range(8):  # one a second
                await engine.receive(said("hm", number))
                await asyncio.sleep(1)
                seen.append(await plans())
            await engine.settled()
            return [*seen, await plans()]

    seen = world.loop.run(work())

    runs = world.loop.run(runs_of(store))
    assert [(run.began_at - NOON).total_seconds() for run in runs] == pytest.approx([4.5, 9.0], abs=0.01)
    assert [list(run.taken) for run in runs] == [["0", "1", "2", "3", "4"], ["5", "6", "7"]]
    assert seen == [[]] * 4 + [["pending"]] + [["cancelled"]] * 3 + [["cancelled", "pending"]]


def test_what_is_deleted_while_more_is_waited_for_is_not_answered(world: World) -> None:
    async def work() -> None:
        behavior = Behavior(debounce=2.0)
        async with engine_with(Scripted(), store=world.store, now=world.now, behavior=behavior) as engine:
            await engine.receive(said("one", 1))
            await asyncio.sleep(1)
            await engine.delete(DIRECT, "1")
            await engine.settled()

    world.loop.run(work())

    assert world.rows("runs") == []
    assert world.loop.moment == pytest.approx(1.0, abs=0.01)


class Inbox:
    """An inbox in which something happens just after what waits was read."""

    def __init__(self, store: Store, happens: Callable[[PlaceSnapshot], Awaitable[Any]]) -> None:
        self._inbox = store.inbox
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inbox, name)

    async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
        found = await self._inbox.snapshot(place, most=most)
        await self._happens(found)
        return found


async def test_what_comes_when_the_place_is_about_to_be_left_is_answered(store: Store) -> None:
    came: list[bool] = []

    async def come(_: PlaceSnapshot) -> None:
        if not came:
            came.append(await engine.receive(said("Gryag?", "late", place=GROUP)))

    late = store_with(store, inbox=Inbox(store, come))
    async with engine_with(Scripted("Yes."), store=late) as engine:
        await talked(engine, said("so", 1, place=GROUP))

    assert await taken(store) == [(["late"], "late")]


async def test_a_message_that_is_edited_while_it_is_decided_about_is_decided_about_once_more(store: Store) -> None:
    await received(store, said("what?", 1, place=GROUP), said("so", 2, place=GROUP, author=BOB))

    async def edit(_: PlaceSnapshot) -> None:
        await store.inbox.edit(said("Gryag, what?", 1, place=GROUP), at=NOON)

    assert await answered(store_with(store, inbox=Inbox(store, edit))) == [(["1"], "1")]
    assert await store.inbox.waiting(GROUP) == []


async def test_a_run_that_is_stopped_is_over_and_the_next_message_is_answered(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))
    platform, model = RecordedPlatform(), HeldModel("Yes.")

    async with engine_with(model, platform, store=store) as engine:
        await model.asked.wait()
        engine.stop(DIRECT)
        await engine.settled()

    assert [(run.target, run.status, run.why) for run in await runs_of(store)] == [
        ("1", "failed", STOPPED),
        ("2", "done", ""),
    ]
    assert platform.texts == ["Yes."]


class Runs:
    """The runs of a store whose end is not stored as long as something happens."""

    def __init__(self, store: Store, happens: Callable[[], Awaitable[Any]]) -> None:
        self._runs = store.runs
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def end(self, run: Run, **named: Any) -> None:
        await self._happens()
        await self._runs.end(run, **named)


async def test_a_run_whose_end_was_not_kept_when_it_was_stopped_ends_as_soon_as_it_can_be_kept(store: Store) -> None:
    platform, model, ends = RecordedPlatform(), HeldModel(), list[str]()

    async def stopped_again() -> None:
        ends.append("tried")
        if len(ends) == 1:
            engine.stop(DIRECT)
            await asyncio.sleep(0)
            raise StoreFull("no room")

    async with engine_with(model, platform, store=store_with(store, runs=Runs(store, stopped_again))) as engine:
        await engine.receive(said("one", 1))
        await model.asked.wait()
        engine.stop(DIRECT)
        await engine.settled()

    [run] = await runs_of(store)
    assert (run.status, run.why, run.resumed, len(ends), platform.texts) == ("failed", STOPPED, 0, 2, [])


async def test_stopping_where_nothing_is_under_way_changes_nothing(store: Store) -> None:
    async with engine_with(Scripted("Yes."), store=store) as engine:
        engine.stop(DIRECT)
        await talked(engine, said("one", 1))

    assert [(run.target, run.status) for run in await runs_of(store)] == [("1", "done")]


async def test_a_store_in_trouble_is_tried_again_after_growing_pauses_with_the_runs_that_stayed_open(
    store: Store,
) -> None:
    platform, model = RecordedPlatform(), Scripted("One.", "Two.")
    pauses, troubles = list[float](), [StoreFull("no room")] * 3

    async def trouble() -> None:
        if troubles:
            raise troubles.pop()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    await received(store, said("one", 1), said("two", 2))
    little = store_with(store, runs=Runs(store, trouble))
    async with engine_with(model, platform, store=little, sleep=sleep) as engine:
        await engine.settled()

    assert pauses == [1.0, 2.0, 4.0]
    assert (len(model.prompts), platform.texts) == (2, ["One.", "Two."])
    assert [(run.target, run.status, run.resumed) for run in await runs_of(store)] == [
        ("1", "done", 1),
        ("2", "done", 0),
    ]


async def test_who_has_said_too_much_is_told_and_not_answered(store: Store) -> None:
    once, platform = Limits(messages=1), RecordedPlatform()
    await store.rate_limits.count_answer((DIRECT.author_namespace, ALICE.id), once, at=NOON)
    await received(store, said("one", 1), said("two", 2), said("three", 3, author=BOB))

    async with engine_with(Scripted("Yes."), platform, store=store, limits=once, now=lambda: NOON) as engine:
        await engine.settled()

    assert platform.texts == [TOO_MANY, "Yes."]
    assert await decided(store) == [("1", "rate limit"), ("2", "rate limit"), ("3", "answered")]


REFUSED: list[tuple[Message, str]] = [
    (said("hi", ""), "a message needs an id"),
    (said("hi", "\0"), "cannot be kept as the id of a message"),
    (said("hi", place=replace(DIRECT, id="\ud800")), "cannot be kept as the id of a place"),
    (said("hi", author=Author(id="\0", name="?")), "cannot be kept as the id of an author"),
    (said("hi", sent_at=NOON.replace(tzinfo=None)), "a time without a zone"),
    (said("hi", edited_at=NOON.replace(tzinfo=None)), "a time without a zone"),
]


@pytest.mark.parametrize(("message", "why"), REFUSED)
async def test_a_message_that_cannot_be_kept_is_refused_and_the_next_is_answered(
    store: Store, message: Message, why: str
) -> None:
    platform = RecordedPlatform()

    async with engine_with(Scripted("Yes."), platform, store=store) as engine:
        with pytest.raises(InvalidValue, match=why):
            await engine.receive(message)
        with pytest.raises(InvalidValue, match=why):
            await engine.edit(message)
        await talked(engine, said("hello", "next"))

    assert platform.texts == ["Yes."]
    assert [kept.id for kept in await store.log.read(DIRECT, 0, 9)] == ["next", "s-0"]


async def test_a_clock_without_a_zone_is_refused_at_once(store: Store) -> None:
    with pytest.raises(InvalidValue, match="a time without a zone"):
        async with engine_with(Scripted(), store=store, now=lambda: NOON.replace(tzinfo=None)):
            pytest.fail("it has started")


async def pass_ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def cancelled_delivery(engine: Engine, ticks: int) -> asyncio.Future[bool]:
    """Deliver a message, and cancel the delivery after *ticks* turns of the loop."""
    delivery = asyncio.ensure_future(engine.receive(said("hi")))
    await pass_ticks(ticks)
    delivery.cancel()
    return delivery


@pytest.mark.parametrize("ticks", range(6))
def test_a_message_whose_delivery_is_cancelled_is_answered_if_it_was_stored(world: World, ticks: int) -> None:
    platform = RecordedPlatform()

    async def work() -> bool:
        async with engine_with(Scripted("Yes."), platform, store=world.store, now=world.now) as engine:
            delivery = await cancelled_delivery(engine, ticks)
            await asyncio.wait([delivery])
            await pass_ticks(9)
            await engine.settled()
            return bool(await world.store.log.count(DIRECT))

    stored = world.loop.run(work())

    assert stored == (ticks > 0)
    assert platform.texts == (["Yes."] if stored else [])


@pytest.mark.parametrize("ticks", range(6))
def test_a_stored_message_is_answered_by_the_next_engine_if_this_one_closes_meanwhile(world: World, ticks: int) -> None:
    platform = RecordedPlatform()

    async def work() -> None:
        async with engine_with(Scripted("Yes."), platform, store=world.store, now=world.now) as engine:
            delivery = await cancelled_delivery(engine, ticks)
        await asyncio.wait([delivery])
        await pass_ticks(9)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        async with engine_with(Scripted("Yes."), platform, store=world.store, now=world.now) as engine:
            await engine.settled()

    world.loop.run(work())

    assert platform.texts == (["Yes."] if ticks else [])


@pytest.mark.parametrize("author", [ALICE, Author(id="-100", name="Friends")])  # in a channel the channel writes
async def test_a_run_that_was_cut_off_is_answered_whoever_has_written(store: Store, author: Author) -> None:
    platform, endless = RecordedPlatform(), HeldModel()
    async with engine_with(endless, platform, store=store) as engine:
        await engine.receive(said("Gryag?", place=GROUP, author=author))
        await endless.asked.wait()

    async with engine_with(Scripted("Yes."), platform, store=store) as engine:
        await engine.settled()

    assert platform.texts == ["Yes."]


@pytest.mark.parametrize("place", [GROUP, replace(DIRECT, id=ALICE.id)])
async def test_nobody_who_was_forgotten_meanwhile_is_answered_and_the_next_is(store: Store, place: Place) -> None:
    platform, endless = RecordedPlatform(), HeldModel()
    async with engine_with(endless, platform, store=store) as engine:
        await engine.receive(said("Gryag, my word is aubergine", place=place))
        await endless.asked.wait()
    await store.forget(platform="recorded", author_id=ALICE.id)

    model = Scripted("Yes.")
    async with engine_with(model, platform, store=store) as engine:
        await engine.settled()
        await talked(engine, said("Gryag?", 2, place=GROUP, author=BOB))

    assert platform.texts == ["Yes."]
    assert "aubergine" not in str(model.prompts)
    assert await store.runs.open() == []


@pytest.mark.parametrize("place", [GROUP, replace(DIRECT, id=ALICE.id)])
async def test_a_run_goes_to_its_end_though_its_person_is_forgotten_while_it_is_under_way(
    store: Store, place: Place
) -> None:
    forget = partial(store.forget, platform="recorded", author_id=ALICE.id)
    platform, model = RecordedPlatform(), Meanwhile(forget, "First.", "Second.")
    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, said("Gryag, my word is aubergine", place=place))
        await talked(engine, said("Gryag?", 2, place=GROUP, author=BOB))

    assert platform.texts[-1] == "Second."
    assert "aubergine" not in str(model.prompts[1])
    assert "aubergine" not in str([row async for row in store.export()])
    assert await store.runs.open() == []
    assert await store.check() == []


def test_a_message_is_judged_once_however_often_it_is_read_until_it_is_edited(world: World) -> None:
    judged, reads = list[str](), list[PlaceSnapshot]()

    def rule(message: Message) -> bool:
        judged.append(f"{message.id} {cut_text(message.parts)}")
        return "two" in cut_text(message.parts)

    async def note(snapshot: PlaceSnapshot) -> None:
        reads.append(snapshot)

    async def work() -> None:
        noted = store_with(world.store, inbox=Inbox(world.store, note))
        behavior = Behavior(debounce=30.0, max_debounce=60.0, answer_if=rule)
        async with engine_with(Scripted("Yes."), store=noted, now=world.now, behavior=behavior) as engine:
            await engine.receive(said("two", 2, place=GROUP))
            await asyncio.sleep(1)
            await engine.receive(said("three", 3, place=GROUP))
            await asyncio.sleep(1)
            await engine.edit(said("two!", 2, place=GROUP))
            await engine.settled()

    world.loop.run(work())

    assert (judged, len(reads)) == (["2 two", "2 two!", "3 three"], 4)
    assert world.loop.run(taken(world.store)) == [(["2", "3"], "2")]


def test_who_is_blocked_meanwhile_is_judged_again(world: World) -> None:
    async def work() -> None:
        behavior = Behavior(debounce=30.0, max_debounce=60.0)
        async with engine_with(Scripted(), store=world.store, now=world.now, behavior=behavior) as engine:
            await engine.receive(said("hi"))
            await asyncio.sleep(1)
            await world.store.place_settings.block(platform="recorded", author_id=ALICE.id, at=world.now())
            await engine.settled()

    world.loop.run(work())

    assert world.rows("runs") == []
    assert world.loop.run(decided(world.store)) == [("1", "blocked")]


class Meddled:
    """A source of a slow place: while it is asked, somebody changes another message of the place."""

    def __init__(self, change: Callable[[int], Awaitable[Any]]) -> None:
        self._change = change
        self.asked = 0

    async def __call__(self, context: Context) -> Context:
        self.asked += 1
        await self._change(self.asked)
        return context


def older(number: int) -> Message:
    return said(f"older {number}", f"old{number}", place=GROUP, author=BOB)


def reacted(number: int) -> Reacted:
    emojis = (("👍", "🎉")[number % 2],)
    return Reacted(place=GROUP, message_id="old1", author=BOB, emojis=emojis, at=NOON)


@pytest.mark.parametrize("what", ["edit", "react", "edit a message of the batch"])
async def test_a_place_is_answered_also_while_its_messages_are_edited_on_and_on(store: Store, what: str) -> None:
    async def change(number: int) -> None:
        if what == "react":
            await engine.inbox("recorded").apply([reacted(number)], key=f"r{number}")
            return
        edited = said("Gryag, hm?", 1, place=GROUP) if "batch" in what else older(1)
        await engine.edit(replace(edited, parts=(Text(text=f"{edited.text} {number}"),)))

    model, meddled = Scripted("Yes."), Meddled(change)
    context = ContextOptions(sources=(meddled,))
    async with engine_with(model, platform := RecordedPlatform(), store=store, context=context) as engine:
        await talked(engine, older(1), said("Gryag, hm?", 1, place=GROUP))

    assert (platform.texts, meddled.asked) == (["Yes."], MAX_REBUILDS + 1)


async def test_what_is_deleted_while_a_prompt_is_built_is_never_shown(store: Store) -> None:
    """However often that happens."""
    count = MAX_REBUILDS + 5

    async def change(number: int) -> None:
        if number <= count:
            await engine.delete(GROUP, f"old{number}")

    model, meddled = Scripted("Yes."), Meddled(change)
    context = ContextOptions(sources=(meddled,))
    async with engine_with(model, platform := RecordedPlatform(), store=store, context=context) as engine:
        await talked(engine, *(older(number) for number in range(1, count + 1)), said("Gryag, hm?", 1, place=GROUP))

    assert (platform.texts, meddled.asked) == (["Yes."], count + 1)
    assert "older" not in str(model.prompts)


async def test_what_a_model_raises_is_logged_and_stored_without_a_key(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    key = "AIza" + "x7Qf" * 9

    class Leaky(Scripted):
        async def respond(self, prompt: Prompt) -> Response:
            raise RuntimeError(f"no answer from https://models.example/v1?key={key}")

    async with engine_with(Leaky(), store=store) as engine:
        await talked(engine, said("hi"))

    assert key not in caplog.text
    assert "no answer from" in caplog.text
    assert key not in str([row async for row in store.export()])
