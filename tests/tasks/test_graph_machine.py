"""Plans that are made, run, broken off and called off in any order, while the clock goes as it likes."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from people import DIRECT, GROUP, NOON
from tasks.ready_tasks import next_due, ready
from tertulia.tasks.graph import (
    MOST_BEGINNINGS,
    begin,
    cancel,
    fail,
    finish,
    plan,
    recover,
    settle,
    supersede,
)
from tertulia.tasks.task import POLICIES, REPEATABLE, BlockAuthor, Remember, Send, Task, TaskBlock, Think, Wait

BLOCKS: st.SearchStrategy[TaskBlock] = st.one_of(
    st.just(Send(text="a")),
    st.just(Remember(facts=("b",))),
    st.just(BlockAuthor()),
    st.just(Think(text="c")),
    st.builds(Wait, seconds=st.integers(0, 100)),
)
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Kyiv", "America/New_York")]
ENDED = ("done", "failed", "cancelled")


class Running(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, Task] = {}
        self.ids = map(str, count(1))
        self.runs = map("r{}".format, count(1))
        self.now: datetime = NOON
        self.plans: list[tuple[str, ...]] = []
        self.happened: list[str] = []  # what had its effect, in the order of it
        self.begins: dict[str, int] = {}

    def keep(self, *tasks: Task) -> None:
        """Keep what changed, and what follows from it, as a store does."""
        changed = settle((self.tasks | {task.id: task for task in tasks}).values())
        self.tasks = msgspec.json.decode(msgspec.json.encode({task.id: task for task in changed}), type=dict[str, Task])

    def those(self, status: str) -> list[Task]:
        return [task for task in self.tasks.values() if task.status == status]

    def can_begin(self) -> bool:
        return bool(ready(self.tasks.values(), self.now))

    def is_running(self) -> bool:
        return bool(self.those("running"))

    def begin(self, task: Task) -> None:
        self.begins[task.id] = self.begins.get(task.id, 0) + 1
        self.keep(begin(task))

    def finish(self, task: Task) -> None:
        self.happened.append(task.id)
        self.keep(finish(task, now=NOON))

    @rule(blocks=st.lists(BLOCKS, min_size=1, max_size=5), place=st.sampled_from([GROUP, DIRECT]))
    def make(self, blocks: list[TaskBlock], place: Any) -> None:
        tasks = plan(blocks, place=place, now=self.now, ids=self.ids, run=next(self.runs))
        self.plans.append(tuple(task.id for task in tasks))
        self.keep(*tasks)

    @rule(seconds=st.integers(-200, 400), zone=st.sampled_from(ZONES))
    def turn_the_clock(self, seconds: int, zone: ZoneInfo) -> None:
        self.now = (self.now.astimezone(ZONES[0]) + timedelta(seconds=seconds)).astimezone(zone)

    @rule(data=st.data())
    @precondition(can_begin)
    def begin_one(self, data: st.DataObject) -> None:
        self.begin(data.draw(st.sampled_from(ready(self.tasks.values(), self.now))))

    @rule(data=st.data())
    @precondition(is_running)
    def finish_one(self, data: st.DataObject) -> None:
        self.finish(data.draw(st.sampled_from(self.those("running"))))

    @rule(data=st.data(), permanent=st.booleans())
    @precondition(is_running)
    def fail_one(self, data: st.DataObject, permanent: bool) -> None:
        task = data.draw(st.sampled_from(self.those("running")))
        self.keep(fail(task, now=self.now, why="busy", permanent=permanent))

    @rule(data=st.data())
    @precondition(lambda self: bool(self.those("pending")))
    def cancel_one(self, data: st.DataObject) -> None:
        self.keep(cancel(data.draw(st.sampled_from(self.those("pending"))), why="not wanted"))

    @rule(happened=st.lists(st.booleans(), min_size=9, max_size=9))
    @precondition(is_running)
    def crash(self, happened: list[bool]) -> None:
        cut_off = zip(self.those("running"), happened, strict=False)
        self.happened += [task.id for task, had_effect in cut_off if had_effect]  # which nobody came to note
        self.keep(*recover(self.tasks.values()))

    @rule(place=st.sampled_from([GROUP, DIRECT]), named=st.sampled_from(sorted(POLICIES)))
    def hear(self, place: Any, named: str) -> None:
        self.keep(*supersede(self.tasks.values(), place, policy=POLICIES[named]))

    @invariant()
    def who_asks_what_is_ready_need_not_know_what_is_over(self) -> None:
        still = [task for task in self.tasks.values() if task.status not in ENDED]

        assert ready(still, self.now) == ready(self.tasks.values(), self.now)
        assert next_due(still) == next_due(self.tasks.values())

    @invariant()
    def nothing_that_was_planned_is_forgotten(self) -> None:
        assert [name for names in self.plans for name in names] == list(self.tasks)

    @invariant()
    def what_is_ready_is_due_and_all_before_it_is_over(self) -> None:
        found = ready(self.tasks.values(), self.now)

        assert found == ready(reversed(self.tasks.values()), self.now)
        for task in found:
            assert task.status == "pending"
            assert task.due_at <= self.now.astimezone(ZONES[0])
            assert all(self.is_past(name) for name in self.before(task.id))

    @invariant()
    def whoever_wakes_when_the_next_is_due_finds_it(self) -> None:
        wake = next_due(self.tasks.values())

        assert bool(ready(self.tasks.values(), self.now)) is (
            wake is not None and wake <= self.now.astimezone(ZONES[0])
        )
        assert wake is None or ready(self.tasks.values(), wake)

    @invariant()
    def each_happens_once_and_in_order(self) -> None:
        for names in self.plans:
            happened = [name for name in self.happened if name in names]
            assert happened == sorted(happened, key=names.index)
            assert all(self.may_repeat(name) for name in happened if happened.count(name) > 1)
        for name, times in self.begins.items():
            assert times == self.tasks[name].attempts <= MOST_BEGINNINGS  # killed in each one

    @invariant()
    def what_was_begun_is_never_called_off(self) -> None:
        assert not any(
            task.status == "cancelled" and task.attempts and task.why != "not wanted" for task in self.tasks.values()
        )

    def before(self, name: str) -> list[str]:
        (names,) = [names for names in self.plans if name in names]
        return list(names[: names.index(name)])

    def is_past(self, name: str) -> bool:
        task = self.tasks[name]
        return task.status in ("done", "cancelled") or (task.status == "failed" and task.doubtful)

    def may_repeat(self, name: str) -> bool:
        return self.tasks[name].kind in REPEATABLE

    def teardown(self) -> None:
        """Left alone, every plan comes to its end."""
        for task in self.those("running"):
            self.finish(task)
        for _ in list(self.tasks):
            if (wake := next_due(self.tasks.values())) is None:
                break
            self.now = wake
            task = ready(self.tasks.values(), self.now)[0]
            self.begin(task)
            self.each_happens_once_and_in_order()
            self.finish(self.tasks[task.id])

        assert {task.status for task in self.tasks.values()} <= set(ENDED)
        self.each_happens_once_and_in_order()


TestRunning = Running.TestCase
