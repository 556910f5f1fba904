"""Tasks that wait, run, fail and are called off."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from people import DIRECT, GROUP, NOON
from sizes import in_time, size
from tasks.ready_tasks import next_due, ready
from tasks.test_blocks import BLOCKS, PANCAKES
from tertulia.errors import InvalidValue
from tertulia.tasks.blocks import parse
from tertulia.tasks.graph import (
    CUT_OFF,
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
from tertulia.tasks.task import (
    LAST,
    POLICIES,
    RETRY,
    BlockAuthor,
    Custom,
    Remember,
    Retry,
    Send,
    SendSticker,
    Status,
    Task,
    TaskBlock,
    Think,
    Wait,
    block_of,
    kind_of,
)

KYIV = ZoneInfo("Europe/Kyiv")
SECOND = timedelta(seconds=1)
STATUSES: list[Status] = ["pending", "running", "done", "failed", "cancelled"]


def a_task(name: str = "a", *after: str, **changes: Any) -> Task:
    fields: dict[str, Any] = {"id": name, "kind": "send", "place": GROUP, "due_at": NOON, "after": after, "run": "r1"}
    return Task(**fields | changes)


def planned(*blocks: TaskBlock, now: datetime = NOON) -> tuple[Task, ...]:
    return plan(blocks, place=GROUP, now=now, ids=map(str, count(1)), run="r1")


def test_a_plan_is_a_task_a_block_one_after_the_other_put_off_by_the_waits_before() -> None:
    more = "# «wait»\ndelay: 60\n# «sticker» 5\nHotCherry\nwave\n# «remember»\nLikes tea.\n# «wait»\ndelay: 1"

    assert planned(*parse(f"Hi\n{PANCAKES}{more}").steps) == (
        a_task("1", args={"text": "Hi"}),
        a_task("2", "1", args={"text": "Flour, two eggs, milk.", "reply_to": "481"}),
        a_task("3", "2", args={"text": "Time to turn it over."}, due_at=NOON + 600 * SECOND),
        a_task(
            "4",
            "3",
            kind="sticker",
            args={"set": "HotCherry", "name": "wave", "reply_to": "5"},
            due_at=NOON + 660 * SECOND,
        ),
        a_task("5", "4", kind="remember", args={"facts": ["Likes tea."]}, due_at=NOON + 660 * SECOND),
    )


def test_thoughts_and_waits_alone_are_no_plan() -> None:
    assert planned() == planned(Think(text="hm"), Wait(seconds=5)) == ()


@pytest.mark.parametrize("ids", [[], ["1"], ["1", "1"]])
def test_every_task_of_a_plan_needs_an_id_of_its_own(ids: list[str]) -> None:
    with pytest.raises(InvalidValue, match="an id of its own"):
        plan([BlockAuthor(), BlockAuthor()], place=GROUP, now=NOON, ids=iter(ids), run="r1")


def test_times_without_a_zone_are_refused() -> None:
    naive = NOON.replace(tzinfo=None)

    for refused in (lambda: planned(now=naive), lambda: a_task(due_at=naive), lambda: ready([], naive)):
        with pytest.raises(InvalidValue, match="without a zone"):
            refused()
    with pytest.raises(msgspec.ValidationError, match="without a zone"):
        msgspec.json.decode(msgspec.json.encode(a_task()).replace(b"00Z", b"00"), type=Task)


@pytest.mark.parametrize(
    ("clock", "elapsed"),
    [
        (datetime(2025, 3, 30, 2, 30, tzinfo=KYIV), "2025-03-30T01:30:00+00:00"),  # the hour from 3 to 4 is left out
        (datetime(2025, 10, 26, 3, 30, tzinfo=KYIV), "2025-10-26T01:30:00+00:00"),  # … and there twice
        (datetime(2025, 10, 26, 3, 30, fold=1, tzinfo=KYIV), "2025-10-26T02:30:00+00:00"),
        (datetime(2025, 1, 15, 23, 59, tzinfo=timezone(-5 * timedelta(hours=1))), "2025-01-16T05:59:00+00:00"),
    ],
)
def test_a_wait_is_as_long_as_it_says_when_clocks_are_changed(clock: datetime, elapsed: str) -> None:
    (task,) = planned(Wait(seconds=3600), BlockAuthor(), now=clock)
    due = datetime.fromisoformat(elapsed)

    assert task.due_at.isoformat() == elapsed
    for zone in (UTC, KYIV, ZoneInfo("America/New_York")):
        assert ready([task], (due - SECOND).astimezone(zone)) == ()
        assert ready([task], due.astimezone(zone)) == (task,)


def test_the_calendar_has_an_end() -> None:
    assert [task.due_at for task in planned(Wait(seconds=10**30), BlockAuthor())] == [LAST]
    with pytest.raises(InvalidValue, match="beyond the calendar"):
        a_task(due_at=datetime.max.replace(tzinfo=timezone(-SECOND * 3600)))


def test_ready_are_those_that_are_due_and_wait_for_nobody_the_earliest_first() -> None:
    tasks = [
        a_task("c"),
        a_task("b"),
        a_task("later", due_at=NOON + SECOND),
        a_task("early", due_at=NOON - SECOND),
        a_task("behind", "b", due_at=NOON - SECOND),
        a_task("over", status="done"),
        a_task("on", "over", "long gone"),
        a_task("running", status="running"),
        a_task("next", "running", "over"),
    ]

    assert [task.id for task in ready(tasks, NOON)] == ["early", "b", "c", "on"]
    assert ready(reversed(tasks), NOON) == ready(tasks, NOON)
    assert next_due(tasks) == NOON - SECOND


def test_the_next_is_due_when_nothing_stands_before_it() -> None:
    tasks = [a_task("a", due_at=NOON + SECOND), a_task("b", "a"), a_task("c", status="done")]

    assert next_due(tasks) == NOON + SECOND
    assert next_due([begin(tasks[0]), *tasks[1:]]) is None
    assert next_due([]) is None


MOVES: list[tuple[str, Callable[[Task], Task], Status, set[Status]]] = [
    ("begun", begin, "running", {"pending"}),
    ("finished", lambda task: finish(task, now=NOON), "done", {"running"}),
    ("failed", lambda task: fail(task, now=NOON, why="no"), "pending", {"running"}),
    ("failed for good", lambda task: fail(task, now=NOON, why="no", permanent=True), "failed", {"running"}),
    ("cancelled", lambda task: cancel(task, why="no"), "cancelled", {"pending"}),
]


@pytest.mark.parametrize(("name", "move", "to", "legal"), MOVES, ids=[move[0] for move in MOVES])
@pytest.mark.parametrize("status", STATUSES)
def test_a_task_goes_only_where_it_can_from_where_it_is(
    name: str, move: Callable[[Task], Task], to: Status, legal: set[Status], status: Status
) -> None:
    task = a_task("7", status=status)

    if status in legal:
        assert move(task).status == to
    else:
        with pytest.raises(InvalidValue, match=f"task 7 is {status} and cannot become {to}"):
            move(task)


def test_what_fails_is_tried_again_after_pauses_that_double_and_then_not() -> None:
    task, now, pauses = a_task(), NOON, []
    retry = Retry(limit=6, first=10 * SECOND, longest=60 * SECOND)

    while task.status == "pending":
        task = fail(begin(task), now=now, why="busy", retry=retry)
        pauses.append((task.due_at - now) / SECOND)
        now = task.due_at

    assert pauses == [10, 20, 40, 60, 60, 0]
    assert task == a_task(status="failed", attempts=6, why="busy", due_at=NOON + 190 * SECOND)


def test_a_pause_is_as_long_as_the_service_asks_and_never_goes_back_with_the_clock() -> None:
    task = begin(a_task())

    assert fail(task, now=NOON, why="", pause=99 * SECOND).due_at == NOON + 99 * SECOND
    assert fail(task, now=NOON - 99 * SECOND, why="").due_at == NOON + RETRY.first
    assert fail(task, now=LAST, why="").due_at == LAST


@pytest.mark.parametrize("attempts", [-1, 0, 1, 2, 11, 12, 40, 41, 42, 10**9])
def test_a_pause_is_never_longer_than_the_longest(attempts: int) -> None:
    retry = Retry(first=SECOND, longest=timedelta(days=999_999_999))

    assert SECOND <= retry.pause(attempts) <= retry.longest
    assert Retry(first=SECOND, longest=SECOND).pause(attempts) == SECOND


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"first": timedelta(0)}, {"first": SECOND, "longest": timedelta(0)}])
def test_pauses_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="tried once at least"):
        Retry(**wrong)


def test_what_waits_for_a_failed_one_is_cancelled_with_the_reason() -> None:
    lost = a_task("a", status="failed", why="no such sticker")
    why = "task a before it failed: no such sticker"

    assert settle([a_task("c", "b"), a_task("b", "x", "a"), lost, a_task("d")]) == (
        a_task("c", "b", status="cancelled", why=why),
        a_task("b", "x", "a", status="cancelled", why=why),
        lost,
        a_task("d"),
    )


def test_what_waits_for_a_cancelled_one_waits_for_what_that_one_waited_for() -> None:
    off = {"status": "cancelled", "why": "no"}
    tasks = [a_task("a", status="running"), a_task("b", "a", **off), a_task("c", "b", **off), a_task("d", "c", "x")]

    assert settle(tasks) == (*tasks[:3], a_task("d", "a", "x"))
    assert ready(tasks, NOON) == ()
    assert ready([finish(tasks[0], now=NOON), *tasks[1:]], NOON) == (a_task("d", "x"),)
    assert [task.status for task in settle([replace(tasks[0], status="failed"), *tasks[1:]])] == [
        "failed", "cancelled", "cancelled", "cancelled",
    ]  # fmt: skip


def test_what_waits_for_itself_is_cancelled() -> None:
    tasks = [a_task("a", "c"), a_task("b", "a"), a_task("c", "b"), a_task("d", "c"), a_task("e", "e"), a_task("f")]

    assert [task.status for task in settle(tasks)] == ["cancelled"] * 5 + ["pending"]
    assert settle(tasks)[0].why == "it waits for itself, or for one that does"
    assert [task.id for task in ready(tasks, NOON)] == ["f"]


def test_a_circle_that_is_over_stops_nobody() -> None:
    tasks = [a_task("a", "b", status="done"), a_task("b", "a")]

    assert settle(tasks) == tuple(tasks)
    assert ready(tasks, NOON) == (tasks[1],)


def test_after_a_crash_what_may_run_twice_begins_again_and_the_rest_is_in_doubt() -> None:
    drawn = a_task("a", kind="draw", status="running", attempts=1)
    kept = a_task("b", kind="remember", status="running", attempts=1)
    worn = replace(kept, id="c", attempts=MOST_BEGINNINGS)
    promised = a_task("d", "a", "c", due_at=NOON + SECOND)

    after = recover([drawn, kept, worn, promised])

    assert after == (
        replace(drawn, status="failed", doubtful=True, why=CUT_OFF),
        replace(kept, status="pending"),
        replace(worn, status="failed", doubtful=True, why=CUT_OFF),
        promised,
    )
    assert ready(after, NOON + SECOND) == (after[1], promised)
    assert recover([drawn], repeatable={"draw"}) == (replace(drawn, status="pending"),)


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ("sends", ["begun", "tried", "facts", "elsewhere", "thread", "reminder"]),
        ("everything", ["begun", "tried", "elsewhere", "thread", "reminder"]),
        ("nothing", ["begun", "tried", "send", "sticker", "facts", "elsewhere", "thread", "reminder"]),
    ],
)
def test_a_new_message_calls_off_what_the_policy_says_of_the_old_plan(named: str, left: list[str]) -> None:
    tasks = [
        a_task("begun", status="running", attempts=1),
        a_task("tried", attempts=1),
        a_task("send", "begun"),
        a_task("sticker", "send", kind="sticker"),
        a_task("facts", "sticker", kind="remember"),
        a_task("elsewhere", place=DIRECT),
        a_task("thread", place=replace(GROUP, thread="2")),
        a_task("reminder", kind="reminder", run=None),
    ]
    renamed = replace(GROUP, title="Best friends")

    after = supersede(tasks, renamed, policy=POLICIES[named])

    assert [task.id for task in after if task.status in ("pending", "running")] == left
    assert {task.why for task in after if task.status == "cancelled"} <= {"a new message came"}
    if named == "sends":
        assert after == supersede(tasks, GROUP)
        assert after[4] == a_task("facts", "begun", kind="remember")


@given(st.lists(BLOCKS, max_size=8))
def test_a_task_is_kept_exactly_and_knows_its_block(blocks: list[TaskBlock]) -> None:
    custom = Custom(name="poll", id="3", body="Tea?", value={"answers": [1, None, "да"]})

    tasks = planned(*blocks, custom)

    assert msgspec.json.decode(msgspec.json.encode(tasks), type=tuple[Task, ...]) == tasks
    assert [block_of(task) for task in tasks] == [
        block for block in (*blocks, custom) if not isinstance(block, Think | Wait)
    ]
    assert [task.kind for task in tasks] == [kind_of(block_of(task)) for task in tasks]


def test_a_task_that_is_not_what_its_kind_says_is_told() -> None:
    with pytest.raises(InvalidValue, match="task a is no sticker"):
        block_of(a_task(kind="sticker", args={"set": "x"}))


_NAMES = [str(number) for number in range(8)]
GRAPHS = st.lists(
    st.builds(
        lambda name, after, status, doubtful: a_task(name, *after, status=status, doubtful=doubtful, why="w"),
        st.sampled_from(_NAMES),
        st.lists(st.sampled_from([*_NAMES, "gone"]), max_size=3),
        st.sampled_from(["pending", "pending", *STATUSES]),
        st.booleans(),
    ),
    max_size=10,
)


@given(GRAPHS)
def test_a_graph_of_any_shape_comes_to_its_end(graph: list[Task]) -> None:
    tasks = settle(graph)
    assert settle(tasks) == tasks
    tasks = tuple(finish(task, now=NOON) if task.status == "running" else task for task in tasks)

    for _ in graph:
        tasks = tuple(finish(begin(task), now=NOON) if task in ready(tasks, NOON) else task for task in tasks)

    assert {task.status for task in tasks} <= {"done", "failed", "cancelled"}


@in_time
def test_a_long_plan_is_settled_in_time() -> None:
    blocks: list[TaskBlock] = [Send(text="a"), SendSticker(set="a", name="b"), Remember(facts=("a",))]
    tasks = planned(*blocks * size(4_000, full=40_000))

    left = settle([replace(tasks[0], status="failed"), *tasks[1:]])

    assert len(left) == len(supersede(tasks, GROUP)) == len(tasks)
    assert ready(reversed(tasks), NOON) == (tasks[0],)
