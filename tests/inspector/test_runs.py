"""A run is shown from its message to its reply: time line, steps with layers, calls, tools, and what was recalled."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.engines import GROUP
from inspector.evening import NOW, an_evening
from memory.known import a_fact
from people import a_message
from store.builders import PROMPT, a_record, a_run
from tertulia.context.values import RecalledThing
from tertulia.errors import InvalidValue
from tertulia.inspector import runs
from tertulia.inspector.shown import MASK
from tertulia.inspector.words import must_act
from tertulia.messages import Place
from tertulia.parts import Opaque, Text, Thought, ToolCall
from tertulia.store import Store
from tertulia.turns import Layer, Prompt, Turn, user


async def test_runs_are_listed_by_place_status_and_page() -> None:
    async with an_evening() as store:
        every = await runs.runs(store)
        failed = await runs.runs(store, status="failed", place=GROUP)
        elsewhere = await runs.runs(store, place=replace(GROUP, id="-9"))
        before = await runs.runs(store, before=every[1].run.id)

    assert [(one.run.status, one.message and one.message.text, one.spent.calls) for one in every] == [
        ("failed", "Gryag, and 3B?", 5),
        ("done", "Gryag, is 3A free?", 3),
        ("done", "Gryag, hello!", 1),
    ]
    assert (failed, elsewhere, before) == (every[:1], (), every[2:])
    assert every[2].layers == ("static", "dynamic", "buffered", "trigger")
    assert every[2].size.cause == "nothing to compare with: the first request, or the first since a start"
    assert every[1].size.stable > 0


async def test_a_run_has_a_bar_for_all_that_took_time() -> None:
    async with an_evening() as store:
        _, row, _ = await runs.runs(store)
        shown = await runs.run(store, row.run.id[:8])

    assert [(one.kind, one.label, one.step, one.failed) for one in shown.spans] == [
        ("wait", "Message", None, False),
        ("gather", "Gather", None, False),
        ("request", "Request 1", 0, True),
        ("retry", "Wait", 0, False),
        ("request", "Request 1, try 2", 0, False),
        ("tool", "look", 0, False),
        ("request", "Request 2", 1, False),
        ("send", "Send", None, False),
    ]
    assert shown.spans[3].ended_at == shown.spans[3].begun_at + timedelta(seconds=2)
    assert shown.spans[2].note.startswith("RateLimited: Gemini asks to slow down (429)")
    assert shown.spans[5].note == '{"seat":"3A"}'
    assert [message.text for message in shown.taken] == ["Gryag, is 3A free?"]
    assert [(one.item.reply.text, len(one.attempts)) for one in shown.replies] == [("Seat 3A is free. Take it.", 1)]


async def test_a_run_has_its_steps_with_layers_calls_answers_and_tools() -> None:
    async with an_evening() as store:
        _, row, _ = await runs.runs(store)
        shown = await runs.run(store, row.run.id)

    first, second = shown.steps
    assert [[call.call.status for call in step.calls] for step in shown.steps] == [["failed", "answered"], ["answered"]]
    assert [layer.name for layer in first.layers] == ["static", "dynamic", "buffered", "trigger"]
    assert [layer.name for layer in second.layers][-1] == "run"
    for step in shown.steps:
        assert [layer.tokens for layer in step.layers] == list(step.size.layers)
        assert sum(layer.repeated for layer in step.layers) == step.size.stable - step.size.tools
    assert first.answer
    assert first.answer.parts[-1] == ToolCall(name="look", args={"seat": "3A"}, id=first.tool_runs[0].call.id)
    assert [tool.result and tool.result.value for tool in first.tool_runs] == ["3A is free"]
    assert second.answer
    assert second.answer.text == "Seat 3A is free. Take it."
    assert (first.usable, second.usable, shown.why_no_steps) == (True, True, "")


async def test_neither_signatures_nor_the_mark_of_a_place_are_shown(store: Store) -> None:
    mark = await store.place_settings.delimiter(GROUP)
    parts = (Text(text=f"«{mark}» hi", signature="s"), Thought(text="t", signature="s"), Opaque(raw={"secret": mark}))
    layer = Layer(name="static", instruction=f"mark: {mark}", turns=(user("x"), Turn(role="model", parts=parts)))
    run = a_run(place=GROUP)
    await store.runs.begin(run, Prompt(layers=(layer,)), at=NOW)
    await store.runs.add_record(run, 0, a_record(turn=Turn(role="model", parts=parts)))

    shown = await runs.run(store, "r1")
    asked = await runs.run(store, "r1", unmasked=True)

    expected = (Text(text=f"«{MASK}» hi"), Thought(text="t"), Opaque(raw={}))
    (step,) = shown.steps
    assert [layer.name for layer in step.layers] == ["static", "history"]
    assert (step.layers[0].instruction, step.layers[1].turns[1].parts) == (f"mark: {MASK}", expected)
    assert step.answer
    assert step.answer.parts == expected
    assert asked.steps[0].layers[0].instruction == f"mark: {mark}"


async def test_who_must_act_about_a_failure_is_known_by_its_error() -> None:
    async with an_evening() as store:
        failed, done, _ = [await runs.run(store, row.run.id) for row in await runs.runs(store)]

    assert (failed.must_act, done.must_act) == ("nobody", None)
    named = ("Overloaded", "RunTimedOut", "KeyRefused", "SpendCapReached", "ContextTooLong", "ZeroDivisionError", "")
    assert [must_act(one) for one in named] == ["nobody"] * 2 + ["operator"] * 2 + ["program"] * 2 + [None]


async def test_what_was_recalled_is_shown_with_its_text(store: Store) -> None:
    await store.inbox.receive(a_message("I keep bees", id="m1"), at=NOW)
    fact = a_fact()
    await store.facts.learn([fact])
    place: Place = fact.place
    things = [
        RecalledThing(kind="fact", id=fact.id, why="it is known of the author"),
        RecalledThing(kind="message", id="m1", place=place, score=0.8, why="it says bees"),
    ]
    await store.runs.begin(a_run(place=place), PROMPT, at=NOW, recalled=things)

    shown = await runs.run(store, "r1")

    assert [(one.thing.kind, one.text, one.place_key) for one in shown.recalled] == [
        ("fact", fact.text, None),
        ("message", "I keep bees", "telegram.-100123"),
    ]
    assert shown.spans[1].note == "1 fact, 1 message"


async def test_a_run_is_named_by_the_beginning_of_its_id(store: Store) -> None:
    for name in ("abc1", "abc2", "abc"):
        await store.runs.begin(a_run(id=name, target=name, taken=(name,)), PROMPT, at=NOW)

    assert await runs.find_run(store, "abc1") == "abc1"
    assert await runs.find_run(store, "abc") == "abc"
    with pytest.raises(InvalidValue, match="there is no run x"):
        await runs.find_run(store, "x")
    with pytest.raises(InvalidValue, match="there is no run "):
        await runs.find_run(store, "")
    with pytest.raises(InvalidValue, match="3 runs begin with ab"):
        await runs.find_run(store, "ab")


async def test_a_run_whose_prompts_were_removed_says_so(store: Store) -> None:
    run = a_run()
    await store.runs.begin(run, PROMPT, at=NOW)
    await store.runs.end(replace(run, status="done", ended_at=NOW))
    async for _ in store.prompts.remove_old(NOW + timedelta(days=1), at=NOW):
        pass

    shown = await runs.run(store, "r1")

    assert shown.steps == ()
    assert shown.why_no_steps.startswith("the prompts of run 'r1' were removed on 2025-01-15")
