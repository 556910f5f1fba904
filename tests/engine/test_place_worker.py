import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import World
from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, talked
from fakes import Meanwhile
from people import NOON
from store.builders import a_run, skip
from stored_rows import change, on
from tertulia import Engine
from tertulia.context.gather import ContextOptions
from tertulia.context.values import Context, Persona
from tertulia.decisions import Decision
from tertulia.engine.admission import Admission
from tertulia.engine.batches import Batch
from tertulia.engine.behavior import Behavior
from tertulia.engine.identity import Identity
from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.engine.place_worker import MAX_REBUILDS, PlaceWorker, WorkerParts
from tertulia.engine.rate_limit import RateLimiter
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

Work = Callable[[Sequence[Message]], Any]


class NotedWorker(PlaceWorker):
    """Notes what it is to do, and does no more than is needed so that nothing waits."""

    def __init__(self, place: Place, parts: WorkerParts, **named: Any) -> None:
        super().__init__(place, parts, **named)
        self.done: list[tuple[Any, ...]] = []
        self.open: list[Run] = []
        self.during: Work | None = None
        self.waiting: Callable[[], Any] | None = None

    async def answer(self, batch: Batch) -> None:
        self.done.append(("answer", list(batch.all_ids), batch.target.id))
        if self.during is not None:
            await self.during(batch.messages)
        await self._parts.store.inbox.skip(batch.target.place, batch.decided("answered"), at=NOON)

    async def cancel_old_plans(self) -> None:
        if self.waiting is not None:
            await self.waiting()
        else:
            self.done.append(("call off",))

    async def resume(self, run: Run) -> None:
        self.done.append(("resume", run.id))

    async def read_open_runs(self) -> Sequence[Run]:
        return self.open

    async def send_limit_notice(self, message: Message, decision: Decision) -> None:
        self.done.append(("too many", message.id))


def a_worker(store: Store, place: Place = DIRECT, /, **changes: Any) -> NotedWorker:
    behavior = changes.pop("behavior", Behavior(debounce=0.0))
    identity = Identity(Persona(), {"recorded": RecordedPlatform()})
    rate_limiter = RateLimiter(store.rate_limits, CurrentLimits(changes.pop("limits", None)), now=lambda: NOON)
    named: dict[str, Any] = dict.fromkeys(WorkerParts.__struct_fields__) | {
        "store": store,
        "behavior": behavior,
        "admission": Admission(store.log, store.inbox, store.place_settings, identity, behavior, rate_limiter),
        "rate_limiter": rate_limiter,
        "now": lambda: NOON + timedelta(minutes=1),
        "sleep": asyncio.sleep,
    }
    parts = WorkerParts(**named | {name: changes.pop(name) for name in ("now", "sleep", "store") if name in changes})
    return NotedWorker(place, parts, **changes)


def with_inbox(store: Store, inbox: Any) -> Any:
    """The store with another inbox."""
    return SimpleNamespace(**vars(store) | {"inbox": inbox})


async def received(store: Store, *messages: Message) -> None:
    for number, message in enumerate(messages):
        await store.inbox.receive(message, at=NOON + timedelta(seconds=number))


async def test_each_message_is_answered_in_turn_and_then_nothing_waits(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))

    worker = a_worker(store)
    await worker.run()

    assert worker.done == [("answer", ["1"], "1"), ("answer", ["2"], "2")]
    assert await store.inbox.waiting(DIRECT) == []


async def test_runs_that_were_left_open_come_first(store: Store) -> None:
    await received(store, said("one", 1))

    worker = a_worker(store, runs=[a_run(id="r1"), a_run(id="r2")])
    await worker.run()

    assert worker.done == [("resume", "r1"), ("resume", "r2"), ("answer", ["1"], "1")]


async def test_what_is_not_for_us_is_passed_over_and_keeps_nobody_waiting(store: Store) -> None:
    await received(
        store,
        said("a", 1, place=GROUP),
        said("b", 2, place=GROUP, author=BOB),
        said("Gryag?", 3, place=GROUP, author=BOB),
        said("c", 4, place=GROUP),
    )

    worker = a_worker(store, GROUP)
    await worker.run()

    assert worker.done == [("answer", ["3"], "3")]
    assert await store.inbox.waiting(GROUP) == []


BURST = Behavior(debounce=10.0, max_debounce=10.0)

TARGETS: list[tuple[list[Message], list[tuple[Any, ...]]]] = [
    # what else the author says belongs to it; the last that speaks to us is replied to
    ([said("Gryag,", 1), said("how", 2), said("are you", 3)], [("answer", ["1", "2", "3"], "1")]),
    ([said("Gryag,", 1), said("Gryag?", 2), said("so", 3)], [("answer", ["1", "2", "3"], "2")]),
    ([said("so", 1), said("Gryag?", 2)], [("answer", ["2"], "2")]),
    (
        [said("Gryag,", 1), said("Gryag!", 2, author=BOB), said("hi", 3), said("you", 4, author=BOB)],
        [("answer", ["1", "3"], "1"), ("answer", ["2", "4"], "2")],
    ),
    # an album is taken whole, whichever of its messages speaks to us
    (
        [said("Gryag,", 1, album="a"), said("", 2, album="a"), said("", 3, album="a")],
        [("answer", ["1", "2", "3"], "1")],
    ),
    (
        [said("", 1, album="a"), said("Gryag?", 2, album="a"), said("", 3, album="a")],
        [("answer", ["1", "2", "3"], "2")],
    ),
    ([said("so", 1), said("", 2, album="a"), said("Gryag?", 3, album="a")], [("answer", ["2", "3"], "3")]),
    ([said("", 1, album="a"), said("Gryag?", 2, album="b")], [("answer", ["2"], "2")]),
    ([said("", 1, album="a", author=BOB), said("Gryag?", 2, album="a")], [("answer", ["2"], "2")]),
]


@pytest.mark.parametrize(("messages", "done"), TARGETS)
async def test_a_burst_is_answered_as_one(store: Store, messages: list[Message], done: list[tuple[Any, ...]]) -> None:
    await received(store, *(replace(message, place=GROUP) for message in messages))

    worker = a_worker(store, GROUP, behavior=BURST)
    await worker.run()

    assert worker.done == done


async def test_messages_of_an_album_that_were_passed_over_are_answered_with_the_one_that_speaks_to_us(
    store: Store,
) -> None:
    await received(store, said("", 1, place=GROUP, album="a"), said("so", 2, place=GROUP))
    await skip(store, GROUP, "1", "2")
    await received(store, said("Gryag?", 3, place=GROUP, album="a"))

    worker = a_worker(store, GROUP)
    await worker.run()

    assert worker.done == [("answer", ["1", "3"], "3")]


async def test_what_comes_of_an_album_after_its_answer_is_context(store: Store) -> None:
    await received(store, said("look", 1, album="a"))
    worker = a_worker(store)
    await worker.run()
    await on(store, change, "decisions", run_id="r1")
    await received(store, said("", 2, album="a"), said("well?", 3))

    await worker.run()

    assert worker.done == [("answer", ["1"], "1"), ("answer", ["3"], "3")]
    assert await store.inbox.waiting(DIRECT) == []


async def test_an_album_of_which_more_may_come_waits_and_then_wait_no_longer(store: Store) -> None:
    moments = [NOON + timedelta(seconds=1), NOON + timedelta(minutes=1)]
    behavior = Behavior(debounce=1.5, max_debounce=1.5)
    await received(store, said("", 1, place=GROUP, album="a"), said("", 2, place=GROUP, album="a", author=BOB))

    looked = asyncio.Event()

    def now() -> Any:
        looked.set()
        return moments.pop(0) if len(moments) > 1 else moments[0]

    worker = a_worker(store, GROUP, behavior=behavior, now=now)
    attending = asyncio.create_task(worker.run())
    await looked.wait()
    waited = [one.message.id for one in await store.inbox.waiting(GROUP)]
    await store.inbox.receive(said("Gryag?", 3, place=GROUP, album="a"), at=NOON + timedelta(seconds=1))
    worker.wake()
    await attending

    assert waited == ["1", "2"]
    assert worker.done == [("answer", ["1", "3"], "3")]
    assert await store.inbox.waiting(GROUP) == []


async def test_in_a_direct_chat_the_last_is_replied_to(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))

    worker = a_worker(store, behavior=BURST)
    await worker.run()

    assert worker.done == [("answer", ["1", "2"], "2")]


def test_a_burst_is_waited_for_and_calls_off_at_once_what_was_planned(world: World) -> None:
    moments: list[float] = []

    async def note(_: Sequence[Message]) -> None:
        moments.append(world.loop.moment)

    worker = a_worker(world.store, behavior=Behavior(debounce=2.0, max_debounce=5.0), now=world.now)
    worker.during = note

    async def work() -> None:
        attending = asyncio.ensure_future(attend(worker))
        for number in range(8):  # one a second
            await world.store.inbox.receive(said("hm", number), at=world.now())
            worker.wake()
            await asyncio.sleep(1)
        await attending

    async def attend(worker: NotedWorker) -> None:
        for pause in (0.5, 1.5):
            await asyncio.sleep(pause)
            await worker.run()

    world.loop.run(work())

    assert worker.done == [
        ("call off",),
        ("answer", ["0", "1", "2", "3", "4", "5"], "5"),
        ("call off",),
        ("answer", ["6", "7"], "7"),
    ]
    assert moments == pytest.approx([5.0, 9.0], abs=0.01)


def test_what_is_deleted_while_more_is_waited_for_is_not_answered(world: World) -> None:

    worker = a_worker(world.store, behavior=Behavior(debounce=2.0), now=world.now)

    async def work() -> None:
        await world.store.inbox.receive(said("one", 1), at=world.now())
        attending = asyncio.ensure_future(worker.run())
        await asyncio.sleep(1)
        await world.store.inbox.delete(DIRECT, "1", at=world.now())
        worker.wake()
        await attending

    world.loop.run(work())

    assert worker.done == [("call off",)]
    assert world.loop.moment == pytest.approx(1.0, abs=0.01)


async def test_what_comes_during_a_run_is_answered_before_the_place_is_left(store: Store) -> None:
    await received(store, said("one", 1))
    worker = a_worker(store)

    async def more(messages: Sequence[Message]) -> None:
        if messages[0].id == "1":
            await received(store, said("two", 2))
            worker.wake()

    worker.during = more
    await worker.run()

    assert worker.done == [("answer", ["1"], "1"), ("answer", ["2"], "2")]


async def test_and_so_is_what_comes_when_it_is_about_to_be_left(store: Store) -> None:

    class Late:
        """An inbox in which something comes just after it was found empty."""

        skip = staticmethod(store.inbox.skip)

        async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
            found = await store.inbox.snapshot(place, most=most)
            if await store.inbox.receive(said("late", 1), at=NOON):
                worker.wake()
            return found

    worker = a_worker(store, store=with_inbox(store, Late()))
    await worker.run()

    assert worker.done == [("answer", ["1"], "1")]


async def test_a_message_that_is_edited_while_it_is_decided_about_is_decided_about_once_more(store: Store) -> None:
    await received(store, said("what?", 1, place=GROUP), said("so", 2, place=GROUP, author=BOB))

    class Edited:
        """An inbox in which a message is edited just after it was read."""

        skip = staticmethod(store.inbox.skip)

        async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
            found = await store.inbox.snapshot(place, most=most)
            await store.inbox.edit(said("Gryag, what?", 1, place=GROUP), at=NOON)
            return found

    worker = a_worker(store, GROUP, store=with_inbox(store, Edited()))
    await worker.run()

    assert worker.done == [("answer", ["1"], "1")]
    assert await store.inbox.waiting(GROUP) == []


async def test_a_run_that_is_stopped_is_over_and_the_next_message_is_answered(store: Store) -> None:
    await received(store, said("one", 1), said("two", 2))
    worker = a_worker(store)

    async def stopped(messages: Sequence[Message]) -> None:
        if messages[0].id == "1":
            await skip(store, DIRECT, "1")
            worker.stop()
            await asyncio.sleep(0)
            pytest.fail("it goes on though it was stopped")

    worker.during = stopped
    await worker.run()

    assert worker.done == [("answer", ["1"], "1"), ("answer", ["2"], "2")]


async def test_a_run_whose_end_was_not_kept_when_it_was_stopped_is_taken_up_again(store: Store) -> None:
    await received(store, said("one", 1))
    worker = a_worker(store)

    async def stopped(_: Sequence[Message]) -> None:
        await skip(store, DIRECT, "1")
        worker.open = [a_run(id="r1")]
        worker.stop()
        await asyncio.sleep(0)

    worker.during = stopped
    await worker.run()

    assert worker.done == [("answer", ["1"], "1"), ("resume", "r1")]


async def test_stopping_where_nothing_is_under_way_changes_nothing(store: Store) -> None:
    worker = a_worker(store)
    worker.stop()
    await received(store, said("one", 1))

    await worker.run()

    assert worker.done == [("answer", ["1"], "1")]


async def test_a_store_in_trouble_is_tried_again_after_growing_pauses_with_the_runs_that_stayed_open(
    store: Store,
) -> None:
    pauses: list[float] = []
    troubles = [StoreFull("no room")] * 3
    await received(store, said("one", 1))

    async def trouble(_: Sequence[Message]) -> None:
        if len(troubles) == 1:
            worker.open = [a_run(id="r1")]
        if troubles:
            raise troubles.pop()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    worker = a_worker(store, sleep=sleep)
    worker.during = trouble
    await worker.run()

    assert pauses == [1.0, 2.0, 4.0]
    assert worker.done == [*[("answer", ["1"], "1")] * 3, ("resume", "r1"), ("answer", ["1"], "1")]


async def test_who_has_said_too_much_is_told_and_not_answered(store: Store) -> None:
    once = Limits(messages=1)
    worker = a_worker(store, limits=once)
    await store.rate_limits.count_answer((DIRECT.author_namespace, ALICE.id), once, at=NOON)
    await received(store, said("one", 1), said("two", 2), said("three", 3, author=BOB))

    await worker.run()

    assert worker.done == [("too many", "1"), ("too many", "2"), ("answer", ["3"], "3")]
    assert await store.inbox.waiting(DIRECT) == []


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


class Counted:
    """An inbox that counts how often it is read."""

    def __init__(self, store: Store) -> None:
        self.reads = 0
        self.skip = store.inbox.skip
        self._store = store

    async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
        self.reads += 1
        return await self._store.inbox.snapshot(place, most=most)


async def test_a_message_is_judged_once_however_often_it_is_read_until_it_is_edited(store: Store) -> None:
    judged, moments = list[str](), iter([NOON, NOON, NOON])

    def rule(message: Message) -> bool:
        judged.append(f"{message.id} {cut_text(message.parts)}")
        return "two" in cut_text(message.parts)

    inbox = Counted(store)
    worker = a_worker(
        store,
        GROUP,
        behavior=Behavior(debounce=30.0, max_debounce=60.0, answer_if=rule),
        now=lambda: next(moments, NOON + LATER),
        store=with_inbox(store, inbox),
    )

    async def cancel_old_plans() -> None:
        """The worker is about to wait: meanwhile a message is edited."""
        await store.inbox.edit(said("not three", 3, place=GROUP), at=NOON)
        worker.wake()

    worker.waiting = cancel_old_plans
    for message in (said("two", 2, place=GROUP), said("three", 3, place=GROUP)):
        await store.inbox.receive(message, at=NOON)
    await worker.run()

    assert worker.done == [("answer", ["2", "3"], "2")]
    assert (judged, inbox.reads) == (["2 two", "3 not three"], 2)


async def test_who_is_blocked_meanwhile_is_judged_again(store: Store) -> None:
    moments = iter([NOON, NOON, NOON])
    worker = a_worker(
        store, behavior=Behavior(debounce=30.0, max_debounce=60.0), now=lambda: next(moments, NOON + LATER)
    )

    async def cancel_old_plans() -> None:
        await store.place_settings.block(platform="recorded", author_id=said("hi").author.id, at=NOON)
        worker.wake()

    worker.waiting = cancel_old_plans
    await received(store, said("hi"))
    await worker.run()

    assert (worker.done, await store.inbox.waiting(DIRECT)) == ([], [])


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
