import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import World
from engine.engines import DIRECT, ME, engine_with, said, shared_by, store_with
from media.fetchers import a_fetcher
from people import NOON
from tertulia.engine.behavior import Behavior
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.reply_parts import LongReplies
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import OutboxItem
from tertulia.engine.task_worker import CLOCK_CHECK, GRACE, TaskHandler, TaskWorker, block_kinds, raw_text
from tertulia.errors import InvalidValue, KeyRefused, Overloaded, StoreFull
from tertulia.messages import Place, Reply
from tertulia.models.scripted import Scripted
from tertulia.platform import Delivery
from tertulia.store import Store
from tertulia.tasks.blocks import parse
from tertulia.tasks.graph import CUT_OFF, MOST_BEGINNINGS
from tertulia.tasks.kinds import Body
from tertulia.tasks.task import Retry, Task
from tertulia.testing import RecordedPlatform

US = replace(ME, persona="Gryag")


def a_task(name: str = "t1", **changes: Any) -> Task:
    fields: dict[str, Any] = {"id": name, "kind": "work", "place": DIRECT, "due_at": NOON}
    return Task(**fields | changes)


class Hands:
    """What runs the tasks: each is noted, and ends as it is told."""

    def __init__(self, *ends: Any) -> None:
        self.done: list[str] = []
        self._ends = list(ends)

    async def __call__(self, task: Task) -> Any:
        self.done.append(task.id)
        end = self._ends.pop(0) if self._ends else None
        if isinstance(end, BaseException):
            raise end
        return end


def a_worker(
    shared: Shared,
    task_handlers: Mapping[str, TaskHandler],
    sender: OutboxSender | None = None,
    *,
    grace: float = GRACE,
) -> TaskWorker:
    long_replies = LongReplies(shared.platforms, ContextMedia(a_fetcher(shared.store)), shared.translator)
    return TaskWorker(shared, task_handlers, long_replies, sender or OutboxSender(shared), grace=grace)


async def quiet(worker: TaskWorker) -> None:
    while worker.busy:
        await worker.done()


@asynccontextmanager
async def at_work(
    store: Store,
    hands: Callable[[Task], Any],
    platform: RecordedPlatform | None = None,
    *,
    repeatable: bool = False,
    **changes: Any,
) -> AsyncIterator[TaskWorker]:
    """A worker that has done what it can, and goes on until the end. What it says is sent by then."""
    shared = shared_by(store, platform, **changes)
    sender = OutboxSender(shared)
    worker = a_worker(shared, {"work": TaskHandler(run=hands, repeatable=repeatable)}, sender)
    await worker.recover()
    worker.start()
    try:
        await quiet(worker)
        yield worker
    finally:
        await worker.close()
        await sender.done()


async def listed(store: Store) -> list[tuple[str, str, int]]:
    return [(task.id, task.status, task.attempts) for task in await store.tasks.listed()]


async def test_what_is_due_is_done_once_and_what_is_not_waits(store: Store) -> None:
    hands = Hands()
    await store.tasks.add([a_task("now"), a_task("soon", due_at=NOON + timedelta(seconds=1))])

    async with at_work(store, hands) as worker:
        for _ in range(3):
            worker.wake()
            await quiet(worker)

    assert hands.done == ["now"]
    assert await listed(store) == [("now", "done", 1), ("soon", "pending", 0)]


async def test_what_a_task_says_is_kept_with_its_end_and_handed_on(store: Store) -> None:
    seen: list[Any] = []

    class Looking(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            seen.append((await listed(store), [one.status for one in await store.outbox.listed()]))
            return await super().send(delivery)

    words = [Reply(place=DIRECT, text="One."), Reply(place=DIRECT, text="Two.")]
    await store.tasks.add([a_task()])

    async with at_work(store, Hands(words), Looking()):
        pass

    done = [("t1", "done", 1)]
    assert seen == [(done, ["sending", "waiting"]), (done, ["sent", "sending"])]
    made = [
        OutboxItem(id=f"t1-{number}", reply=reply, made_at=NOON, task="t1", kind="task", author=US)
        for number, reply in enumerate(words)
    ]
    assert await store.outbox.listed() == [
        replace(one, status="sent", attempts=1, message_id=f"s-{number}", sent_at=NOON)
        for number, one in enumerate(made)
    ]


async def test_a_kind_that_nobody_runs_fails_for_good_and_so_does_what_waits_for_it(store: Store) -> None:
    hands = Hands()
    await store.tasks.add([a_task("a", kind="dance"), a_task("b", after=("a",)), a_task("c")])

    async with at_work(store, hands):
        pass

    first, second, third = await store.tasks.listed()
    assert (first.status, first.why) == ("failed", "no handler for tasks of kind 'dance'")
    assert (second.status, third.status, hands.done) == ("cancelled", "done", ["c"])


FAILING: list[tuple[BaseException, str, float]] = [
    (OSError("not yet"), "OSError: not yet", 5.0),
    (OSError("GET https://a.example/?token=abc: 500"), "OSError: GET https://a.example/?token=*** 500", 5.0),
    (Overloaded("busy"), "busy", 5.0),
    (Overloaded("busy", retry_after=60.0), "busy", 60.0),
    (Overloaded("busy", retry_after=1.0), "busy", 5.0),
    (Overloaded("busy", retry_after=-60.0), "busy", 5.0),
    (Overloaded("busy", retry_after=math.nan), "busy", 5.0),
    (Overloaded("busy", retry_after=math.inf), "busy", 5.0),
    (KeyRefused("the key"), "the key", 5.0),
    (asyncio.CancelledError(), "cancelled by the handler, not by shutdown", 5.0),
    (OSError("\0"), "OSError: \0", 5.0),
]


class Foreign(Exception):
    """Somebody else's error, with a word of its own for how long to wait."""

    def __init__(self, retry_after: Any) -> None:
        super().__init__("slow down")
        self.retry_after = retry_after


FAILING += [
    (Foreign(60), "Foreign: slow down", 60.0),
    (Foreign("60"), "Foreign: slow down", 5.0),
    (Foreign(timedelta(seconds=60)), "Foreign: slow down", 5.0),
    (Foreign(lambda: 60), "Foreign: slow down", 5.0),
]


@pytest.mark.parametrize(("error", "why", "pause"), FAILING)
async def test_a_task_that_fails_is_tried_again_after_a_pause(
    store: Store, error: BaseException, why: str, pause: float
) -> None:
    await store.tasks.add([a_task()])

    async with at_work(store, Hands(error)):
        pass

    (task,) = await store.tasks.listed()
    assert (task.status, task.attempts, task.why) == ("pending", 1, why)
    assert task.due_at == NOON + timedelta(seconds=pause)


@pytest.mark.parametrize("limit", [1, 3])
async def test_and_not_more_often_than_agreed(store: Store, limit: int) -> None:
    now = NOON
    hands = Hands(*[OSError()] * 99)
    await store.tasks.add([a_task()])

    async with at_work(store, hands, now=lambda: now, behavior=Behavior(retry=Retry(limit=limit))) as worker:
        for _ in range(9):
            now += timedelta(days=1)
            worker.wake()
            await quiet(worker)

    assert len(hands.done) == limit
    assert await listed(store) == [("t1", "failed", limit)]


@pytest.mark.parametrize("repeatable", [False, True])
async def test_what_a_crash_has_cut_off_is_done_again_only_where_it_may_be(store: Store, repeatable: bool) -> None:
    hands = Hands()
    await store.tasks.add([a_task("a"), a_task("b", after=("a",))])
    await store.tasks.take(NOON)

    async with at_work(store, hands, repeatable=repeatable):
        pass

    first, second = await store.tasks.listed()
    assert hands.done == (["a", "b"] if repeatable else ["b"])
    assert second.status == "done"
    assert (first.status, first.doubtful, first.why) == (
        ("done", False, "") if repeatable else ("failed", True, CUT_OFF)
    )


async def test_a_task_that_ends_its_process_each_time_is_given_up(store: Store) -> None:
    hands = Hands()
    await store.tasks.add([a_task()])
    for _ in range(MOST_BEGINNINGS):
        await store.tasks.take(NOON)
        await store.tasks.recover({"work"})

    async with at_work(store, hands, repeatable=True):
        pass

    assert hands.done == []
    assert await listed(store) == [("t1", "failed", MOST_BEGINNINGS)]


async def test_a_task_whose_person_is_forgotten_while_it_runs_ends_quietly(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    here = Place(platform="recorded", id="1", kind="direct")

    async def forget(_: Task) -> list[Reply]:
        await store.forget(platform="recorded", author_id="1")
        return [Reply(place=here, text="hello?")]

    async def quick(_: Task) -> None: ...

    task_handlers = {"work": TaskHandler(run=forget), "quick": TaskHandler(run=quick)}
    await store.inbox.receive(said("hi", place=here), at=NOON)
    await store.tasks.add([a_task("a", place=here), a_task("b", kind="quick")])
    worker = a_worker(shared_by(store), task_handlers)
    worker.start()
    await quiet(worker)
    await worker.close()

    assert await listed(store) == [("b", "done", 1)]
    assert await store.outbox.listed() == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


class Full:
    """Tasks in a store that has no room for a while."""

    def __init__(self, tasks: Any, times: int) -> None:
        self._tasks = tasks
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    async def end(self, task: Task, **changes: Any) -> None:
        if self.times:
            self.times -= 1
            raise StoreFull("there is no room left")
        await self._tasks.end(task, **changes)


async def test_an_end_is_kept_in_the_end_and_the_work_is_not_done_again(store: Store) -> None:
    hands, full, pauses = Hands(), Full(store.tasks, 3), []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    await store.tasks.add([a_task()])
    async with at_work(store_with(store, tasks=full), hands, sleep=sleep):
        pass

    assert (hands.done, pauses) == (["t1"], [1.0, 2.0, 4.0])
    assert await listed(store) == [("t1", "done", 1)]


async def test_what_a_handler_says_in_the_last_moments_of_an_engine_is_still_sent(store: Store) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def slow(task: Task) -> list[Reply]:
        begun.set()
        await let.wait()
        return [Reply(place=task.place, text="Last words.")]

    platform = RecordedPlatform()
    async with engine_with(
        Scripted(), platform, store=store, task_handlers={"work": TaskHandler(run=slow)}, now=lambda: NOON
    ) as engine:
        await engine.schedule([a_task()])
        await begun.wait()
        asyncio.get_running_loop().call_later(0.02, let.set)

    assert platform.texts == ["Last words."]
    assert [one.status for one in await store.outbox.listed()] == ["sent"]
    assert await listed(store) == [("t1", "done", 1)]
    assert len(asyncio.all_tasks()) == 1


async def test_and_what_does_not_end_in_time_is_left_to_the_next(store: Store) -> None:
    begun = asyncio.Event()

    async def endless(_: Task) -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    await store.tasks.add([a_task()])
    worker = a_worker(shared_by(store), {"work": TaskHandler(run=endless, repeatable=True)}, grace=0.01)
    worker.start()
    await begun.wait()
    await worker.close()
    assert await listed(store) == [("t1", "running", 1)]

    hands = Hands()
    async with at_work(store, hands, repeatable=True):
        pass
    assert await listed(store) == [("t1", "done", 2)]


class Counted:
    """A member of a store that counts how often it is asked for anything."""

    def __init__(self, member: Any) -> None:
        self._member = member
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        return getattr(self._member, name)


def begun(world: World, hands: Callable[[Task], Any], *, store: Any = None, **changes: Any) -> TaskWorker:
    """A worker that has done what is due, and sleeps."""
    shared = shared_by(store or world.store, **{"now": world.now} | changes)
    worker = a_worker(shared, {"work": TaskHandler(run=hands)})
    world.loop.create_task(worker.run())
    world.loop.run(worker.done())
    return worker


@pytest.mark.parametrize("days", [None, 30])
def test_a_sleeping_database_is_left_alone(world: World, days: int | None) -> None:
    tasks, settings = Counted(world.store.tasks), Counted(world.store.place_settings)
    if days is not None:
        world.loop.run(world.store.tasks.add([a_task(due_at=NOON + timedelta(days=days))]))
    begun(world, Hands(), store=store_with(world.store, tasks=tasks, place_settings=settings))
    asked = tasks.asked, settings.asked

    world.loop.run(asyncio.sleep(timedelta(days=1).total_seconds()))

    assert (tasks.asked, settings.asked) == asked


def test_a_task_is_begun_at_its_time(world: World) -> None:
    at: list[float] = []

    async def note(_: Task) -> None:
        at.append(world.loop.moment)

    due = [0.25, 29.5, 30.0, 31.0, 4_000.0]
    world.loop.run(world.store.tasks.add([a_task(str(after), due_at=NOON + timedelta(seconds=after)) for after in due]))
    begun(world, note)

    world.loop.run(asyncio.sleep(5_000))

    assert at == pytest.approx(due, abs=0.001)


@pytest.mark.parametrize(("ahead", "after"), [(3_600.0, CLOCK_CHECK), (-3_600.0, 7_200.0)])
def test_a_clock_that_is_set_is_noticed(world: World, ahead: float, after: float) -> None:
    """What is due in an hour is begun when the clock on the wall says so."""
    at: list[float] = []
    shift = timedelta(0)

    async def note(_: Task) -> None:
        at.append(world.loop.moment)

    world.loop.run(world.store.tasks.add([a_task(due_at=NOON + timedelta(hours=1))]))
    begun(world, note, now=lambda: world.now() + shift)
    shift = timedelta(seconds=ahead)

    world.loop.run(asyncio.sleep(10_000))

    assert at == pytest.approx([after], abs=0.001)


def test_a_full_disk_is_looked_at_again_after_a_while(world: World) -> None:
    hands = Hands()
    world.loop.run(world.store.tasks.add([a_task(due_at=NOON + timedelta(seconds=1))]))
    begun(world, hands)
    world.life.room = 0
    world.loop.run(asyncio.sleep(10))
    assert hands.done == []
    world.life.room = None

    world.loop.run(asyncio.sleep(CLOCK_CHECK))

    assert hands.done == ["t1"]
    assert world.rows("tasks", "status") == [("done",)]


async def test_tasks_are_done_side_by_side(store: Store) -> None:
    both = asyncio.Barrier(2)

    async def meet(_: Task) -> None:
        async with asyncio.timeout(5), both:
            pass

    await store.tasks.add([a_task("a"), a_task("b")])
    async with at_work(store, meet):
        pass

    assert await listed(store) == [("a", "done", 1), ("b", "done", 1)]


async def test_what_is_added_while_it_sleeps_is_done_when_it_is_woken(store: Store) -> None:
    hands = Hands()

    async with at_work(store, hands) as worker:
        assert not worker.busy
        await store.tasks.add([a_task()])
        worker.wake()
        assert worker.busy
        await quiet(worker)

    assert await listed(store) == [("t1", "done", 1)]


def test_a_kind_may_take_anything_for_its_body() -> None:
    assert raw_text(Body(text="a cat\n", id="5")) == "a cat\n"


def test_a_kind_that_fails_to_read_its_block_is_logged_and_one_that_refuses_it_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(body: Body) -> object:
        raise KeyError(body.text)

    def refuse(body: Body) -> object:
        raise InvalidValue("it needs a date")

    async def nothing(_: Task) -> None:
        return None

    handlers = {"fail": TaskHandler(run=nothing, read=fail), "refuse": TaskHandler(run=nothing, read=refuse)}
    kinds = block_kinds(handlers, Behavior())

    found = parse("# «fail»\nx\n# «refuse»\ny\n", kinds=kinds)

    assert found.problems == ("line 1, `# «fail»`: KeyError: 'x'", "line 3, `# «refuse»`: it needs a date")
    (logged,) = caplog.messages
    assert logged.startswith("task block fail: read failed: Traceback (most recent call last):")
