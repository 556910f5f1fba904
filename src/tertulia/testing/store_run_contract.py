"""RunContract: the tests of runs and their journals, prompts, the outbox, tasks and usage."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tertulia.context.values import LeftOut
from tertulia.engine.limits import Spend
from tertulia.engine.store_protocols import PromptOutdated, StoreProtocol
from tertulia.errors import InvalidValue, PromptRemoved
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import FallbackStep, Journal, SentPrompt
from tertulia.tasks.task import cancels_everything, cancels_nothing
from tertulia.testing.store_world import (
    DIRECT,
    GROUP,
    LATER,
    NOON,
    PROMPT,
    Opened,
    a_message,
    a_record,
    a_reply,
    a_run,
    a_task,
    a_tool_run,
    check,
    check_restarts,
    receive,
    waiting,
)
from tertulia.turns import Layer, Prompt, model, user

TURNS = (model(ToolCall(name="look", id="a"), by="gemini-3.8-flash"), user(ToolResult(name="look", id="a", value=1)))


class RunContract:
    """A run begins with its messages and ends with its replies and tasks; its journal has every step between."""

    @check
    async def test_a_run_is_open_until_it_is_ended(self, store: StoreProtocol) -> None:
        first, second = a_run(), a_run(id="r2", place=DIRECT, model="m", profile="tail")
        await store.runs.begin(first, PROMPT, at=NOON)
        await store.runs.begin(second, PROMPT, at=NOON)
        before = list(await store.runs.open())
        ended = replace(first, status="failed", ended_at=LATER, why="the model refused")
        await store.runs.end(ended)

        assert (before, list(await store.runs.open())) == ([first, second], [second])
        assert await store.runs.journal("r1") == Journal(run=ended, prompt=PROMPT)
        assert await store.runs.journal("r9") is None

    @check_restarts
    async def test_a_journal_has_everything_in_order_also_for_the_next_process(
        self, opened: Callable[[], Opened]
    ) -> None:
        run = a_run()
        prompts = [Prompt.of("hi"), Prompt.of("hi", *TURNS)]
        records = [
            (0, a_record(valid=False, raw=None)),
            (0, a_record(run="r1")),
            (1, a_record(turn=user("x"), at=LATER)),
        ]
        tools = [a_tool_run(step=1, number=0), a_tool_run(number=1), a_tool_run(number=0)]
        ended = replace(tools[2], result=ToolResult(name="look", id="a", value={"n": 2**70}), ended_at=LATER)
        async with opened() as store:
            await store.runs.begin(run, PROMPT, at=NOON)
            await store.runs.ask(run, 0, prompts[0], at=NOON)
            for step, record in records:
                await store.runs.add_record(run, step, record)
            for tool in tools:
                await store.runs.begin_tool(run, tool)
            await store.runs.end_tool(run, ended)
            await store.runs.ask(run, 1, prompts[1], at=LATER)
        async with opened() as store:
            assert await store.runs.journal("r1") == Journal(
                run=run, prompt=prompts[1], step=1, records=tuple(records), tools=(ended, tools[1], tools[0])
            )
            await store.runs.resume(replace(run, resumed=1))
            assert list(await store.runs.open()) == [replace(run, resumed=1)]

    @check
    async def test_a_run_that_was_not_begun_or_has_ended_asks_nothing(self, store: StoreProtocol) -> None:
        runs, run = store.runs, a_run()
        steps = (
            runs.ask(run, 0, PROMPT, at=NOON),
            runs.add_record(run, 0, a_record()),
            runs.begin_tool(run, a_tool_run()),
            runs.resume(run),
        )
        for step in steps:
            with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
                await step
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.runs.end(a_run(status="done", ended_at=LATER))
        with pytest.raises(InvalidValue, match="run 'r1' has ended"):
            await store.runs.ask(a_run(), 1, PROMPT, at=LATER)

    @check
    async def test_a_message_is_taken_by_one_run(self, store: StoreProtocol) -> None:
        await receive(store, *(a_message(id=name) for name in ("m1", "m2", "m3")))
        await store.runs.begin(a_run(taken=("m1", "m2")), PROMPT, at=NOON)

        with pytest.raises(PromptOutdated, match="message 'm1' was taken by run 'r1' already"):
            await store.runs.begin(a_run(id="r2", taken=("m3", "m1")), PROMPT, at=NOON)
        with pytest.raises(InvalidValue, match="was taken by run 'r1' already"):
            await store.runs.end(a_run(id="r2", taken=("m2",), status="done", horizon=0), replies=[a_reply()])

        assert await waiting(store) == ["m3"]
        assert list(await store.outbox.listed()) == []
        grown = a_run(taken=("m1", "m2", "m3"))
        await store.runs.ask(grown, 1, PROMPT, at=LATER)
        assert await waiting(store) == []

    @check
    async def test_a_run_does_not_begin_with_an_outdated_prompt(self, store: StoreProtocol) -> None:
        await receive(store, a_message())
        await store.inbox.edit(a_message("changed"), at=NOON)

        with pytest.raises(PromptOutdated):
            await store.runs.begin(a_run(), PROMPT, at=NOON, changes=0)

        assert (await waiting(store), list(await store.runs.open())) == (["m1"], [])
        await store.runs.begin(a_run(), PROMPT, at=NOON, changes=1)
        await store.runs.begin(a_run(), PROMPT, at=NOON, changes=1)
        assert [run.id for run in await store.runs.open()] == ["r1"]

    @check
    async def test_a_run_ends_once_with_its_replies_and_tasks_or_not_at_all(self, store: StoreProtocol) -> None:
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        ended = a_run(status="done", ended_at=LATER)
        lost: Any = "lost"
        with pytest.raises(InvalidValue):
            await store.runs.end(ended, replies=[a_reply(), a_reply(id="o2", status=lost)], tasks=[a_task()])
        before = list(await store.runs.open()), list(await store.outbox.listed()), list(await store.tasks.listed())

        await store.runs.end(ended, replies=[a_reply(run="r1")], tasks=[a_task(run="r1")])
        await store.runs.end(ended, replies=[a_reply(), a_reply(id="o2")], tasks=[a_task(), a_task(id="t2")])

        assert before == ([a_run()], [], [])
        assert list(await store.outbox.listed()) == [a_reply(run="r1")]
        assert list(await store.tasks.listed()) == [a_task(run="r1")]

    @check
    async def test_a_new_run_cancels_what_a_policy_names(self, store: StoreProtocol) -> None:
        old = [a_task(id="t1", run="r0", kind="remember", args={}), a_task(id="t2", run="r0", after=("t1",))]
        await store.tasks.add(old)
        found = []
        for run_id, policy in (("r1", cancels_nothing), ("r2", cancels_everything)):
            await store.runs.begin(a_run(id=run_id, taken=()), PROMPT, at=NOON, cancels=policy)
            found.append([task.status for task in await store.tasks.listed()])

        assert found == [["pending", "pending"], ["cancelled", "cancelled"]]

    @check
    async def test_a_prompt_comes_back_as_it_was_sent(self, store: StoreProtocol) -> None:
        left = (LeftOut(source="background", ids=("f1",), tokens=3, why="over the budget"),)
        layers = tuple(Layer(name=name, instruction=f"{name} тест " * 50) for name in ("static", "dynamic"))
        first = Prompt(layers=layers)
        second = Prompt(layers=(layers[0], Layer(name="dynamic", instruction=layers[1].instruction[:-9] + "other")))
        tried = FallbackStep(step=1, fallback="next model", why="it refused", model="n")
        run = a_run(model="m")
        await store.runs.begin(run, first, at=NOON, left_out=left)
        await store.runs.ask(replace(run, model="n"), 1, second, at=LATER, tried=tried)

        found = [await store.prompts.sent("r1", step) for step in range(3)]

        expected = SentPrompt(run_id="r1", step=0, at=NOON, model="m", prompt=first, left_out=left)
        assert found[0] is not None
        assert found[1] is not None
        assert [found[0].prompt, found[0].left_out] == [expected.prompt, expected.left_out]
        assert [found[1].prompt, found[1].tried, found[1].model] == [second, tried, "n"]
        assert found[2] is None

    @check
    async def test_old_prompts_are_removed_and_say_so(self, store: StoreProtocol) -> None:
        for number, (run_id, ended_at) in enumerate((("r1", NOON), ("r2", LATER), ("r3", None))):
            run = a_run(id=run_id, target=str(number), taken=(str(number),))
            await store.runs.begin(run, Prompt.of(f"a long history and {number}"), at=NOON)
            if ended_at:
                await store.runs.end(replace(run, status="done", ended_at=ended_at))

        removed = [count async for count in store.prompts.remove_old(LATER, at=LATER)]

        assert sum(removed) == 1
        with pytest.raises(PromptRemoved):
            await store.prompts.sent("r1", 0)
        left = [await store.prompts.sent(run_id, 0) for run_id in ("r2", "r3")]
        assert [one and one.prompt for one in left] == [Prompt.of(f"a long history and {number}") for number in (1, 2)]

    @check
    async def test_tasks_are_stored_once_and_listed_by_their_time_and_place(self, store: StoreProtocol) -> None:
        tasks = [a_task(id="t1", due_at=LATER), a_task(id="t2"), a_task(id="t3", place=DIRECT)]
        await store.tasks.add(tasks)
        await store.tasks.add([a_task(id="t1", args={"text": "other"})])

        assert list(await store.tasks.listed()) == [tasks[1], tasks[2], tasks[0]]
        assert list(await store.tasks.listed(DIRECT)) == [tasks[2]]
        assert await store.tasks.next_due() == NOON

    @check
    async def test_what_was_spent_is_summed_by_day_place_and_person(self, store: StoreProtocol) -> None:
        used = Usage(input=100, cached=40, output=7, thought=3)
        spent = Call(model="m", usage=used, money=0.5, begun_at=NOON, ended_at=NOON)
        tomorrow = replace(spent, begun_at=NOON + timedelta(days=1), ended_at=NOON + timedelta(days=1))
        author = a_message().author
        await receive(store, a_message())
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        await store.usage.add(spent, place=GROUP, author=author)
        await store.usage.add(tomorrow, place=DIRECT)

        today = NOON.date()
        found = [
            await store.usage.spent(today),
            await store.usage.spent(today, place=GROUP),
            await store.usage.spent(today, place=GROUP, author=author),
            await store.usage.spent(today, place=DIRECT),
        ]
        assert found == [Spend(tokens=110, money=0.5)] * 3 + [Spend()]
