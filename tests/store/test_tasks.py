"""Work for later, as it is kept: begun once, ended once, and every plan settled after each change."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import DIRECT, GROUP, NOON
from sizes import size
from store.builders import a_run, a_task, an_outgoing, begin
from tertulia.errors import InvalidValue
from tertulia.store import Store
from tertulia.store.tasks import MAX_BATCH
from tertulia.tasks import graph
from tertulia.tasks.task import Task

LATER = NOON + timedelta(minutes=5)
MUCH_LATER = NOON + timedelta(days=5)


def a_plan(count: int, **changes: Any) -> list[Task]:
    """Tasks that follow one another."""
    firsts = [(), *((f"t{number}",) for number in range(count - 1))]
    return [a_task(id=f"t{number}", run="r1", after=after, **changes) for number, after in enumerate(firsts)]


async def standing(store: Store) -> dict[str, str]:
    return {task.id: task.status for task in await store.tasks.listed()}


async def test_what_is_added_again_stays_as_it_is(store: Store) -> None:
    await store.tasks.add([a_task(), a_task(id="t2", run="r1"), a_task(args={"text": "other"})])
    running = await store.tasks.take(NOON)

    await store.tasks.add([a_task(), a_task(id="t2", run="r2"), a_task(id="t3", due_at=LATER)])

    assert await store.tasks.listed() == [*running, a_task(id="t3", due_at=LATER)]


async def test_tasks_are_added_all_or_none(store: Store) -> None:
    for bad in (a_task(id="\ud800"), a_task(id="t2", run="\0"), a_task(id="t2", args={"x": object()})):
        with pytest.raises(InvalidValue):
            await store.tasks.add([a_task(), bad])

    assert await store.tasks.listed() == []


async def test_tasks_are_listed_by_their_time_and_place(store: Store) -> None:
    tasks = [a_task(id="late", due_at=LATER), a_task(id="soon"), a_task(id="else", place=DIRECT, status="done")]
    await store.tasks.add(tasks)

    assert [task.id for task in await store.tasks.listed()] == ["soon", "else", "late"]
    assert await store.tasks.listed(DIRECT) == [tasks[2]]
    assert await store.tasks.listed(replace(GROUP, id="never seen")) == []


async def test_what_is_due_is_begun_once_in_order(store: Store) -> None:
    tasks = [a_task(id=f"t{n}", due_at=NOON + timedelta(microseconds=500_000 * n)) for n in (3, 1, 2, 0)]
    await store.tasks.add(tasks)

    assert await store.tasks.next_due() == NOON
    assert await store.tasks.take(NOON - timedelta(microseconds=1)) == []
    taken = [*await store.tasks.take(NOON + timedelta(seconds=1)), *await store.tasks.take(NOON + timedelta(seconds=1))]

    assert taken == [graph.begin(tasks[n]) for n in (3, 1, 2)]
    assert await store.tasks.next_due() == tasks[0].due_at
    assert await standing(store) == {"t0": "running", "t1": "running", "t2": "running", "t3": "pending"}


async def test_a_time_in_any_zone_is_that_time(store: Store) -> None:
    await store.tasks.add([a_task(due_at=datetime.fromisoformat("2025-01-15T14:00:00+02:00"))])

    assert await store.tasks.take(datetime.fromisoformat("2025-01-15T03:59:59-08:00")) == []
    assert len(await store.tasks.take(datetime.fromisoformat("2025-01-15T04:00:00-08:00"))) == 1


async def test_not_everything_that_is_due_is_begun_at_once(store: Store) -> None:
    await store.tasks.add([a_task(id=f"t{n}") for n in range(MAX_BATCH + 3)])

    assert [len(await store.tasks.take(NOON)) for _ in range(3)] == [MAX_BATCH, 3, 0]


async def test_a_task_waits_for_those_before_it_in_its_plan(store: Store) -> None:
    plan = a_plan(3)
    await store.tasks.add(plan)

    for number in range(3):
        (task,) = await store.tasks.take(LATER)
        assert task == graph.begin(plan[number])
        assert await store.tasks.next_due() is None
        await store.tasks.end(graph.finish(task, now=NOON))

    assert set((await standing(store)).values()) == {"done"}


async def test_a_failure_takes_with_it_what_waits_for_it_and_a_retry_does_not(store: Store) -> None:
    await store.tasks.add(a_plan(3))
    (first,) = await store.tasks.take(NOON)

    again = graph.fail(first, now=NOON, why="busy")
    await store.tasks.end(again)
    assert await store.tasks.next_due() == again.due_at
    assert await store.tasks.take(NOON) == []
    (first,) = await store.tasks.take(again.due_at)
    await store.tasks.end(graph.fail(first, now=LATER, why="gone", permanent=True))

    assert await standing(store) == {"t0": "failed", "t1": "cancelled", "t2": "cancelled"}
    assert await store.tasks.next_due() is None


async def test_a_task_ends_with_what_it_sends_and_only_once(store: Store) -> None:
    await store.tasks.add([a_task()])
    (task,) = await store.tasks.take(NOON)
    done, sent = graph.finish(task, now=NOON), an_outgoing(task="t1")
    with pytest.raises(InvalidValue):
        await store.tasks.end(done, replies=[sent, an_outgoing(id="o2", status="lost")])
    assert await standing(store) == {"t1": "running"}

    await store.tasks.end(done, replies=[sent])
    for late in (done, graph.fail(task, now=NOON, why="late"), replace(done, attempts=7)):
        await store.tasks.end(late, replies=[sent, an_outgoing(id="o3")])

    assert await store.tasks.listed() == [done]
    assert await store.outbox.listed() == [sent]


async def test_the_end_of_an_attempt_is_not_that_of_the_next(store: Store) -> None:
    await store.tasks.add([a_task()])
    (first,) = await store.tasks.take(NOON)
    await store.tasks.end(graph.fail(first, now=NOON, why="busy"))
    (second,) = await store.tasks.take(MUCH_LATER)

    await store.tasks.end(graph.finish(first, now=NOON), replies=[an_outgoing()])

    assert (await store.tasks.listed(), await store.outbox.listed()) == ([second], [])


async def test_only_a_task_that_is_there_ends_and_only_in_ways_to_end(store: Store) -> None:
    await store.tasks.add([a_task()])
    (task,) = await store.tasks.take(NOON)

    with pytest.raises(InvalidValue, match=r"^there is no task 't2'$"):
        await store.tasks.end(a_task(id="t2", status="done"))
    for status in ("running", "cancelled"):
        with pytest.raises(InvalidValue, match=f"^task t1 is {status}, which is no way to end$"):
            await store.tasks.end(replace(task, status=status))


async def test_after_a_crash_what_may_run_twice_runs_again_and_the_rest_is_in_doubt(store: Store) -> None:
    custom = [a_task(id="c1", kind="order", run="r2"), a_task(id="c2", run="r2", after=("c1",))]
    await store.tasks.add([*a_plan(2), *custom, a_task(id="rest", due_at=MUCH_LATER)])
    begun = await store.tasks.take(NOON)

    recovered = await store.tasks.recover()

    assert recovered == list(graph.recover(begun))
    assert [task.status for task in recovered] == ["pending", "failed"]
    assert await store.tasks.recover() == []
    assert [task.id for task in await store.tasks.take(NOON)] == ["t0", "c2"]
    assert [task.status for task in await store.tasks.recover({"order"})] == ["failed", "failed"]


async def test_a_task_that_was_not_begun_is_called_off_and_stepped_over(store: Store) -> None:
    plan = a_plan(3)
    await store.tasks.add(plan)
    (first,) = await store.tasks.take(NOON)

    assert await store.tasks.cancel("t1", why="enough") == graph.cancel(plan[1], why="enough")
    assert await store.tasks.cancel("no such", why="") is None
    with pytest.raises(InvalidValue, match=r"^task t0 is running and cannot become cancelled$"):
        await store.tasks.cancel("t0", why="")
    with pytest.raises(InvalidValue, match=r"^task t1 is cancelled and cannot become cancelled$"):
        await store.tasks.cancel("t1", why="")

    assert await store.tasks.next_due() is None
    await store.tasks.end(graph.finish(first, now=NOON))
    assert [task.id for task in await store.tasks.take(NOON)] == ["t2"]


moves = st.lists(
    st.tuples(st.sampled_from(["add", "take", "done", "retry", "fail", "crash", "cancel", "begin"]), st.integers(0, 9)),
    max_size=25,
)


@given(moves)
@settings(max_examples=size(30, full=60))
async def test_the_store_knows_of_every_plan_what_the_graph_knows(made: list[tuple[str, int]]) -> None:
    """`take` and `next_due` read columns; they must say what `graph` says of the tasks themselves."""
    now = NOON
    async with Store.open(":memory:") as store:
        for number, (move, n) in enumerate(made):
            tasks = await store.tasks.listed()
            plans = [[task for task in tasks if task.run == run] for run in {task.run for task in tasks}]
            expected = sorted(
                (task for plan in plans for task in graph.without_open_dependencies(plan)), key=lambda task: task.due_at
            )
            assert await store.tasks.next_due() == (expected[0].due_at if expected else None)
            running = [task for task in tasks if task.status == "running"]
            chosen = running[n % len(running)] if running else None
            match move:
                case "add":
                    firsts = tuple(task.id for task in tasks[-n:] if task.run == f"r{n % 3}") if n else ()
                    due_at = now + timedelta(seconds=n)
                    await store.tasks.add([a_task(id=f"t{number}", run=f"r{n % 3}", after=firsts, due_at=due_at)])
                case "take":
                    now += timedelta(seconds=n)
                    taken = {task.id for task in await store.tasks.take(now)}
                    assert taken == {task.id for task in expected if task.due_at <= now}
                case "done" if chosen:
                    await store.tasks.end(graph.finish(chosen, now=NOON))
                case "retry" | "fail" if chosen:
                    await store.tasks.end(graph.fail(chosen, now=now, why="x", permanent=move == "fail"))
                case "crash":
                    assert len(await store.tasks.recover()) == len(running)
                case "cancel" if tasks and tasks[n % len(tasks)].status == "pending":
                    await store.tasks.cancel(tasks[n % len(tasks)].id, why="no")
                case "begin" if n > 6:
                    await begin(store, a_run(id=f"new{number}", taken=()))
