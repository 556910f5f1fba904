"""The loop asks, runs tools and asks again, up to its limits."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from people import NOON
from run.loop_child import Watched, toolbox
from run.loops import a_loop, resumed
from run.scripted_runs import BOOK, LOOK, REBOOK, RUN, TOOLS, counting, names, polls, ran_with
from tertulia.engine.store_protocols import RunStore
from tertulia.errors import (
    InvalidValue,
    QuotaExhausted,
)
from tertulia.models.base import Finish, Response
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import Journal, ToolRun
from tertulia.run.loop import RunEvent, ToolsStopped
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Prompt, Settings, ToolSpec, model, user


async def test_the_limit_of_steps_ends_with_one_request_with_tools_switched_off(runs: RunStore) -> None:
    scripted = Scripted([BOOK], [REBOOK], ["That is all.", LOOK])

    answered = await ran_with(runs, scripted, Prompt.of("go", tools=TOOLS), steps=2)

    assert [asked.settings.tool_choice for asked in scripted.prompts] == [None, None, "none"]
    assert [asked.tools for asked in scripted.prompts] == [TOOLS] * 3
    assert answered.turns[-1] == model("That is all.", LOOK, by="scripted")
    assert len(answered.turns) == 5


async def test_tools_must_be_called_in_the_first_round_only(runs: RunStore) -> None:
    scripted = Scripted([BOOK], "Booked.")
    prompt = Prompt.of("go", tools=TOOLS, settings=Settings(tool_choice="required", temperature=0.5))

    await ran_with(runs, scripted, prompt)

    assert [asked.settings for asked in scripted.prompts] == [
        Settings(tool_choice="any", temperature=0.5),
        Settings(tool_choice="auto", temperature=0.5),
    ]


async def test_without_steps_tools_are_switched_off(runs: RunStore) -> None:
    scripted = Scripted([LOOK], "Fine.")

    answered = await ran_with(runs, scripted, Prompt.of("go", tools=TOOLS), steps=0)

    assert [asked.settings.tool_choice for asked in scripted.prompts] == ["none", "none"]
    assert (answered.turns, names(answered.tried)) == ((model("Fine.", by="scripted"),), ("again",))


async def test_a_call_that_is_the_callers_to_answer_ends_the_run(runs: RunStore) -> None:
    def book(seat: int) -> int:
        return seat

    box = Toolbox([ToolSpec(name="sign"), book])
    call = ToolCall(name="sign", id="s")

    answered = await ran_with(runs, Scripted([call, BOOK]), Prompt.of("go", tools=box.specs), toolbox=box)

    assert answered.turns == (
        model(call, BOOK, by="scripted"),
        user(ToolResult(name="book", id="a", value=1)),
    )


async def test_calls_that_may_be_cut_are_never_run(runs: RunStore) -> None:
    cut = Response(turn=model(BOOK, by="scripted"), finish=Finish(outcome="cut"))
    ran: list[str] = []

    answered = await ran_with(runs, Scripted(cut, "Sorry."), Prompt.of("go", tools=TOOLS), toolbox=toolbox(ran.append))

    assert (answered.turns, names(answered.tried), ran) == ((model("Sorry.", by="scripted"),), ("again",), [])


async def test_a_run_that_asked_nothing_cannot_be_resumed(runs: RunStore) -> None:
    journal = Journal(run=RUN, prompt=None, records=(), tools=())

    with pytest.raises(InvalidValue, match=r"^run 'r1' has asked nothing yet; it is run from its beginning$"):
        await resumed(runs, journal, model=Scripted(), toolbox=Toolbox())


async def test_a_tool_that_ends_while_the_run_is_cancelled_has_its_result_kept(runs: RunStore) -> None:
    started = asyncio.Event()

    async def book(seat: int) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return f"{seat} is booked all the same"
        return ""

    box = Toolbox([book])
    run = asyncio.create_task(ran_with(runs, Scripted([BOOK]), Prompt.of("go", tools=box.specs), toolbox=box))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    journal = await runs.journal(RUN.id)
    assert journal
    assert [one.result for one in journal.tools] == [ToolResult(name="book", id="a", value="1 is booked all the same")]


async def test_a_tool_is_told_when_it_has_ended_also_while_another_one_runs(runs: RunStore) -> None:
    was_told = asyncio.Event()

    async def book(seat: int) -> str:
        return "booked"

    async def look(place: str) -> str:
        await was_told.wait()
        return "green"

    box, prompt = Toolbox([book, look]), Prompt.of("go")
    await runs.begin(RUN, prompt, at=NOON)
    loop = a_loop(runs, Journal(run=RUN, prompt=prompt), model=Scripted([LOOK, BOOK], "Done."), toolbox=box)
    ended: list[tuple[int, Any]] = []
    async for event in loop.run():
        if isinstance(event, ToolRun):
            was_told.set()
            ended.append((event.number, event.result and event.result.value))

    assert ended == [(1, "booked"), (0, "green")]


async def test_tools_that_have_ended_are_told_before_a_cancellation(runs: RunStore) -> None:
    started = asyncio.Event()

    async def book(seat: int) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "booked"
        return ""

    async def look(place: str) -> str:
        await asyncio.Event().wait()
        return ""

    box, prompt, told = Toolbox([book, look]), Prompt.of("go"), list[RunEvent]()
    await runs.begin(RUN, prompt, at=NOON)
    loop = a_loop(runs, Journal(run=RUN, prompt=prompt), model=Scripted([BOOK, LOOK]), toolbox=box)

    async def read() -> None:
        async for event in loop.run():
            told.append(event)

    run = asyncio.create_task(read())
    await started.wait()
    run.cancel()
    await asyncio.wait([run])

    booked = ToolResult(name="book", id="a", value="booked")
    stopped = "look was stopped before it finished; what it has done is not known."
    left = ToolResult(name="look", id="b", value=stopped, failed=True)
    assert run.cancelled()
    assert told[-2:] == [
        ToolRun(step=0, number=0, call=BOOK, began_at=NOON, result=booked, ended_at=NOON),
        ToolsStopped(results=user(booked, left)),
    ]


async def test_a_reader_who_leaves_while_tools_run_stops_them(runs: RunStore) -> None:
    stopped = asyncio.Event()

    async def book(seat: int) -> str:
        return "booked"

    async def look(place: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    box, prompt = Toolbox([book, look]), Prompt.of("go")
    await runs.begin(RUN, prompt, at=NOON)
    loop = a_loop(runs, Journal(run=RUN, prompt=prompt), model=Scripted([BOOK, LOOK]), toolbox=box)
    async with aclosing(loop.run()) as events:
        async for event in events:
            if isinstance(event, ToolRun):
                break

    await stopped.wait()


async def test_an_error_of_the_store_is_raised_as_it_is(runs: RunStore) -> None:
    def tell(point: str, *_: Any) -> None:
        if point == "before begin 0.1":
            raise QuotaExhausted("no room")

    with pytest.raises(QuotaExhausted, match=r"^no room$"):
        await ran_with(Watched(runs, tell), Scripted([BOOK, LOOK]), Prompt.of("go", tools=TOOLS))


async def test_the_same_call_with_the_same_result_is_not_run_a_third_time(runs: RunStore) -> None:
    box, given = counting(["busy"] * 9)
    scripted = Scripted(*polls("a", "b", "a", "a"), "It is busy.")

    answered = await ran_with(runs, scripted, Prompt.of("go", tools=box.specs), toolbox=box)

    told = "poll was not run: it was called twice before with these arguments and gave the same result both times. "
    last = ToolResult(name="poll", id="3", value=f"{told}Answer with what you know.", failed=True)
    assert answered.turns[-2:] == (user(last), model("It is busy.", by="scripted"))
    assert [asked.settings.tool_choice for asked in scripted.prompts] == [None] * 4 + ["none"]
    assert len(given) == 3


async def test_a_call_that_failed_as_before_is_the_last(runs: RunStore) -> None:
    def poll(key: str) -> str:
        raise ValueError("no such key")

    box, scripted = Toolbox([poll]), Scripted(*polls("a", "b", "a"), "There is none.")

    await ran_with(runs, scripted, Prompt.of("go", tools=box.specs), toolbox=box)

    assert [asked.settings.tool_choice for asked in scripted.prompts] == [None] * 3 + ["none"]


NOT_IDENTICAL: list[tuple[list[Any], dict[str, Any]]] = [
    (["busy", "still busy", "busy", "busy"], {}),
    (["busy"] * 4, {"allow_identical_calls": True}),
]


@pytest.mark.parametrize(("answers", "options"), NOT_IDENTICAL)
async def test_a_call_is_run_again_where_its_results_differ_or_its_tool_allows_it(
    runs: RunStore, answers: list[Any], options: dict[str, Any]
) -> None:
    box, given = counting(answers, **options)

    await ran_with(runs, Scripted(*polls(*"aaaa"), "Done."), Prompt.of("go", tools=box.specs), toolbox=box)

    assert given == answers
