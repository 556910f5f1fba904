"""A run that was cut anywhere ends as the uncut one."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from people import NOON
from run.loop_child import MODEL, Watched, build_prompt, toolbox
from run.loops import resumed, run_to_end
from run.scripted_runs import BOOK, LOOK, REBOOK, RUN, TALK, counting, names, polls, ran_with
from sizes import size
from tertulia.errors import (
    InvalidValue,
    Overloaded,
    QuotaExhausted,
    RequestRefused,
    TertuliaError,
)
from tertulia.models import Gemini, Model
from tertulia.models.scripted import Scripted
from tertulia.parts import Part, Text, Thought, ToolCall, ToolResult
from tertulia.run.journal import Journal
from tertulia.run.loop import RunAnswered
from tertulia.run.tool_runs import UNKNOWN_OUTCOME
from tertulia.sim.gemini import Actor, GeminiSim
from tertulia.store import Store
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Prompt, Turn, model, user

HERE = Path(__file__).parent


SCRIPT: list[Any] = [[BOOK, LOOK], [], ["One more.", REBOOK], "Both are booked."]


UNCUT = (
    model(BOOK, LOOK, by="scripted"),
    user(ToolResult(name="book", id="a", value={"booked": 1}), ToolResult(name="look", id="b", value="Lviv is green")),
    model("One more.", REBOOK, by="scripted"),
    user(ToolResult(name="book", id="c", value={"booked": 2})),
    model("Both are booked.", by="scripted"),
)


class Write(Struct, frozen=True):
    point: str
    method: str
    values: tuple[Any, ...]
    named: dict[str, Any]


class Ran(Struct, frozen=True, kw_only=True):
    """What came of a run, what was written in it, and how often each tool ran."""

    answered: RunAnswered
    writes: list[Write]
    tools: Counter[str]
    journal: Journal


async def gone_on(store: Store, answering: Model) -> Ran:
    """The run begun or resumed from what is in the store, and finished."""
    writes: list[Write] = []
    ran: Counter[str] = Counter()

    def tell(point: str, method: str, values: tuple[Any, ...]) -> None:
        if method:
            writes.append(Write(point, method, *values))

    tools = toolbox(lambda name: ran.update([name]))
    found = await store.runs.journal(RUN.id)
    equipment: dict[str, Any] = {
        "runs": Watched(store.runs, tell), "model": answering, "toolbox": tools, "now": lambda: NOON,
    }  # fmt: skip
    if found is None:
        answered = await run_to_end(prompt=build_prompt(tools), run=RUN, **equipment)
    else:
        answered = await resumed(journal=found, **equipment)
    journal = await store.runs.journal(RUN.id)
    assert journal
    assert answered.turns == journal.turns
    assert answered.tried == journal.tried
    assert answered.response.turn == answered.turns[-1]
    return Ran(answered=answered, writes=writes, tools=ran, journal=journal)


async def replayed(store: Store, writes: Iterable[Write]) -> None:
    for write in writes:
        await getattr(store.runs, write.method)(*write.values, **write.named)


def under_way(writes: Sequence[Write]) -> list[ToolCall]:
    """The calls that were begun and have no result."""
    tools = [write.values[1] for write in writes if write.method.endswith("_tool")]
    ended = {(one.step, one.number) for one in tools if one.result}
    return [one.call for one in tools if (one.step, one.number) not in ended]


def not_known(turns: Iterable[Turn], calls: Sequence[ToolCall]) -> tuple[Turn, ...]:
    """The turns with an unknown outcome for those of the calls that are not repeated."""
    ids = {call.id for call in calls if call.name == "book"}

    def told(part: Part) -> Part:
        if not isinstance(part, ToolResult) or part.id not in ids:
            return part
        return replace(part, value=UNKNOWN_OUTCOME.format(name=part.name), failed=True)

    return tuple(replace(turn, parts=tuple(map(told, turn.parts))) for turn in turns)


def begun(writes: Sequence[Write]) -> Counter[str]:
    return Counter(write.values[1].call.name for write in writes if write.method == "begin_tool")


async def test_a_long_result_is_kept_whole_and_asked_about_cut_also_by_a_run_taken_up_again(tmp_path: Path) -> None:
    pages = {"pages": ["x" * 70_000, "y" * 30_000]}
    call = ToolCall(name="read", id="a")
    written = '{"pages":["' + "x" * 70_000 + '","' + "y" * 30_000 + '"]}'
    cut = f"{written[:39_940]}\n(… {len(written) - 49_940:,} characters are left out here …)\n{written[-10_000:]}"

    def read() -> Any:
        """Reads the pages."""
        return pages

    async with Store.open(tmp_path / "s.db") as store:
        first, second = Scripted(call, InvalidValue("stopped here")), Scripted("Long.")
        with pytest.raises(InvalidValue, match="stopped here"):
            await run_to_end(store.runs, RUN, Prompt.of("Read."), model=first, toolbox=Toolbox([read]))
        journal = await store.runs.journal(RUN.id)
        assert journal
        cut_off = replace(journal, prompt=first.prompts[0], step=0)
        await resumed(store.runs, cut_off, model=second, toolbox=Toolbox([read]))
        ended = await store.runs.journal(RUN.id)

    sent = user(ToolResult(name="read", id="a", value=cut))
    assert [prompt.turns[2:] for prompt in (first.prompts[1], second.prompts[0])] == [(sent,), (sent,)]
    assert ended
    assert ended.prompt == second.prompts[0] == first.prompts[1]
    assert ended.turns[1] == user(ToolResult(name="read", id="a", value=pages))


async def test_a_run_keeps_everything_before_anything_follows_from_it(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        scripted = Scripted(*SCRIPT)

        ran = await gone_on(store, scripted)

        assert await store.check() == []
    assert [write.point.removeprefix("after ") for write in ran.writes if "0." not in write.point] == [
        "begin", "record 0", "ask 1", "record 1", "ask 2", "record 2", "begin 2.0", "end 2.0", "ask 3", "record 3",
    ]  # fmt: skip
    asked = [write.values[-1] for write in ran.writes if write.method in ("begin", "ask")]
    assert asked == scripted.prompts
    assert ran.answered.turns == UNCUT
    assert ran.answered.response.text == "Both are booked."
    assert names(ran.answered.tried) == ("again",)
    assert ran.tools == {"book": 2, "look": 1}
    assert [record.valid for _, record in ran.journal.records] == [True, False, True, True]


async def test_a_run_cut_at_any_write_ends_as_the_uncut_one(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        scripted = Scripted(*SCRIPT)
        uncut = await gone_on(store, scripted)
    assert len(uncut.writes) == 14

    for cut in range(len(uncut.writes) + 1):
        done = uncut.writes[:cut]
        unknown = under_way(done)
        kept = sum(write.method == "add_record" for write in done)
        path = tmp_path / f"{cut}.db"
        async with Store.open(path, durable=False) as store:
            await replayed(store, done)
        async with Store.open(path, durable=False) as store:
            following = Scripted(*SCRIPT[kept:])
            ran = await gone_on(store, following)

        assert ran.answered.turns == not_known(UNCUT, unknown)
        assert names(ran.answered.tried) == names(uncut.answered.tried)
        assert [asked.turns for asked in following.prompts] == [
            not_known(asked.turns, unknown) for asked in scripted.prompts[kept:]
        ]
        if not unknown:
            assert following.prompts == scripted.prompts[kept:]
        assert (begun(done) + ran.tools)["book"] == 2
        assert (begun(done) + ran.tools)["look"] == 1 + ("look" in {call.name for call in unknown})


async def test_a_run_cut_twice_still_knows_that_an_outcome_is_unknown(tmp_path: Path) -> None:
    async with Store.open(":memory:") as store:
        uncut = await gone_on(store, Scripted(*SCRIPT))
    cut = next(number for number, write in enumerate(uncut.writes) if write.method == "begin_tool") + 1

    async with Store.open(tmp_path / "s.db") as store:
        await replayed(store, uncut.writes[:cut])
        with pytest.raises(Overloaded):
            await resumed(
                store.runs,
                await journal_of(store),
                model=Scripted(*[Overloaded("busy", retry_after=100)]),
                toolbox=toolbox(lambda _: None),
            )
        ran = await gone_on(store, Scripted(*SCRIPT[1:]))

    assert ran.answered.turns == not_known(UNCUT, under_way(uncut.writes[:cut]))
    assert ran.tools == {"book": 1}


async def journal_of(store: Store) -> Journal:
    found = await store.runs.journal(RUN.id)
    assert found
    return found


def plain(turns: Iterable[Turn]) -> list[tuple[str, Any]]:
    """What was done and said, without the ids and signatures that no two answers share."""
    return [
        (part.name, part.args if isinstance(part, ToolCall) else part.value)
        if isinstance(part, ToolCall | ToolResult)
        else (turn.role, part.text if isinstance(part, Text | Thought) else part)
        for turn in turns
        for part in turn.parts
    ]


def done_in(turns: Iterable[Turn]) -> list[tuple[str, Any]]:
    """… without the last words, which tell the results."""
    return plain(turns)[:-1]


def assert_results_follow_their_calls(turns: Sequence[Turn]) -> None:
    for said, done in zip(turns[::2], turns[1::2], strict=False):
        calls = [(part.name, part.id) for part in said.parts if isinstance(part, ToolCall)]
        assert [(part.name, part.id) for part in done.parts if isinstance(part, ToolResult)] == calls


async def test_with_a_strict_service_every_cut_goes_on_with_legal_requests() -> None:
    async with (
        GeminiSim(behaviour=Actor(steps=2, parallel=3)) as sim,
        Gemini(MODEL, key="k", base_url=sim.url) as asked,
    ):
        async with Store.open(":memory:") as store:
            uncut = await gone_on(store, asked)
        for cut in range(len(uncut.writes) + 1):
            unknown = under_way(uncut.writes[:cut])
            async with Store.open(":memory:") as store:
                await replayed(store, uncut.writes[:cut])
                ran = await gone_on(store, asked)

            assert_results_follow_their_calls(ran.answered.turns)
            assert done_in(ran.answered.turns) == done_in(not_known(uncut.answered.turns, unknown))
            assert names(ran.answered.tried) == ()
            assert (begun(uncut.writes[:cut]) + ran.tools)["book"] == uncut.tools["book"]
        assert {request.status for request in sim.requests} == {200}
    assert len(uncut.writes) == 3 * 2 + 6 * 2


async def killed(path: Path, url: str, point: str) -> None:
    """Run the child until it kills itself at *point*."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "loop_child.py"),
        str(path),
        url,
        str(path.with_suffix(".log")),
        env={**os.environ, "PYTHONPATH": str(HERE.parent), "TERTULIA_KILL_AT": point},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()


MODEL_POINTS = [f"{when} {what}" for what in ("record 0", "ask 1", "record 1") for when in ("before", "after")]
TOOL_POINTS = [
    f"{when} {what} 0.{number}" for number in (0, 1) for what in ("begin", "end") for when in ("before", "after")
]
POINTS = ["before begin", "after begin", "within book", "within look", "after the run", *MODEL_POINTS, *TOOL_POINTS]


async def test_a_process_killed_at_any_write_point_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    async with (
        GeminiSim(behaviour=Actor(steps=1, parallel=2)) as sim,
        Gemini(MODEL, key="k", base_url=sim.url) as asked,
    ):
        async with Store.open(":memory:") as store:
            uncut = await gone_on(store, asked)
        for number, point in enumerate(POINTS[:: size(6, full=1)]):
            path = tmp_path / f"{number}.db"
            await killed(path, sim.url, point)
            log = path.with_suffix(".log")
            before = Counter(log.read_text().split() if log.exists() else ())
            async with Store.open(path) as store:
                found = await store.runs.journal(RUN.id) or Journal(run=RUN, prompt=None, records=(), tools=())
                ran = await gone_on(store, asked)
                assert await store.check() == []

            unknown = [one.call for one in found.tools if one.result is None]
            assert_results_follow_their_calls(ran.answered.turns)
            expected = not_known(uncut.answered.turns, [*map(same_call(uncut), unknown)])
            assert done_in(ran.answered.turns) == done_in(expected), point
            assert (before + ran.tools)["book"] <= 1, point
            assert (before + ran.tools)["look"] in {1, 2}, point
            kept = {step for step, _ in found.records}
            assert not kept & {write.values[1] for write in ran.writes if write.method in {"ask", "add_record"}}, point
        assert {request.status for request in sim.requests} <= {200, 0}


def same_call(ran: Ran) -> Any:
    """From a call of another run to the one of this that has its name."""
    calls = {part.name: part for turn in ran.answered.turns for part in turn.parts if isinstance(part, ToolCall)}
    return lambda call: calls[call.name]


async def test_a_run_cut_among_its_fallbacks_goes_on_with_the_next() -> None:
    lines: list[Any] = [RequestRefused("no"), [], [], RequestRefused("no"), [BOOK], [], "Here."]
    uncut, writes = Scripted(*lines), list[Write]()
    async with Store.open(":memory:") as store:
        noting = Watched(
            store.runs, lambda point, method, kept: writes.append(Write(point, method, *kept)) if method else None
        )
        answered = await ran_with(noting, uncut, TALK)
    assert names(answered.tried) == ("regroup", "placeholder signatures", "drop closed signatures", "flatten", "again")

    for cut in range(1, len(writes) + 1):
        async with Store.open(":memory:") as store:
            await replayed(store, writes[:cut])
            found = await journal_of(store)
            first = found.step + (found.step in {step for step, _ in found.records})
            following = Scripted(*lines[first:])
            ran = await gone_on(store, following)

        unknown = under_way(writes[:cut])
        assert ran.answered.turns == not_known(answered.turns, unknown)
        assert names(ran.answered.tried) == names(answered.tried)
        assert unknown or following.prompts == uncut.prompts[first:]


async def test_a_run_cut_before_it_asks_with_tools_switched_off_asks_so_when_it_is_taken_up_again() -> None:
    box, given = counting(["busy"] * 9)
    writes: list[Write] = []
    async with Store.open(":memory:") as store:
        noting = Watched(
            store.runs, lambda point, method, kept: writes.append(Write(point, method, *kept)) if method else None
        )
        uncut = await ran_with(noting, Scripted(*polls(*"aaa"), "Busy."), Prompt.of("go", tools=box.specs), toolbox=box)
    cut = next(number for number, write in enumerate(writes) if write.point == "after ask 3")

    async with Store.open(":memory:") as store:
        await replayed(store, writes[:cut])
        scripted = Scripted("Busy.")
        answered = await resumed(store.runs, await journal_of(store), model=scripted, toolbox=box)

    assert (answered.turns, len(given)) == (uncut.turns, 2)
    assert [asked.settings.tool_choice for asked in scripted.prompts] == ["none"]


async def test_a_run_that_is_taken_up_again_goes_on_with_the_model_it_had_come_to() -> None:
    first, second = Scripted(QuotaExhausted("used up"), name="first"), Scripted([LOOK], name="second")
    async with Store.open(":memory:") as store:
        with pytest.raises(TertuliaError):
            await ran_with(store.runs, first, TALK, models=[first, second])
        following = Scripted("Green.", name="second")

        answered = await resumed(
            store.runs, await journal_of(store), models=[Scripted(name="first"), following], toolbox=Toolbox()
        )

    assert answered.response.text == "Green."
