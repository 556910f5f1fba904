"""Reminders: a call becomes one task of its place, whatever happens around it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from people import ALICE, DIRECT, GROUP, a_message
from run.loops import resumed, run_to_end
from store.builders import PROMPT, a_run, begin
from tertulia import RunContext, Store
from tertulia.errors import InvalidValue
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.run.journal import Run, ToolRun
from tertulia.tasks.reminders import MAX_REMINDER_TEXT, MOST
from tertulia.tasks.task import POLICIES, Send, Task, block_of
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.reminders import reminder_tool
from tertulia.turns import Record, model

ZONE = "Europe/Kyiv"
NOW = datetime(2026, 11, 15, 15, 0, tzinfo=UTC)
RUN = a_run()


def a_call(**args: Any) -> ToolCall:
    return ToolCall(id="a", name="remind_me", args={"when": "18:00", "text": "Call mum!"} | args)


def a_toolbox(store: Store, now: Callable[[], datetime] = lambda: NOW) -> Toolbox:
    return Toolbox([reminder_tool(store.tasks, now, ZONE)])


def a_reminder(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "id": "reminder-r1-0-0", "kind": "send", "place": GROUP, "due_at": NOW + timedelta(hours=1),
        "args": {"text": "Call mum!"},
        "made_by": "r1",
    }  # fmt: skip
    return Task(**fields | changes)


async def ran(toolbox: Toolbox, *calls: ToolCall, run: Run = RUN, step: int = 0) -> list[ToolResult]:
    """The results of the calls of a step, as a run comes by them one after the other."""
    results = []
    for number, call in enumerate(calls):
        context = RunContext(run_id=run.id, step=step, call=number, now=NOW, place=run.place)
        results += await toolbox.run([call], context)
    return results


async def test_a_call_becomes_a_task_that_sends_its_text_to_the_place_of_the_run(store: Store) -> None:
    (result,) = await ran(a_toolbox(store), a_call())

    (kept,) = await store.tasks.listed()
    assert result == ToolResult(
        id="a", name="remind_me", value={"due": "2026-11-15 18:00 (Europe/Kyiv)", "id": "reminder-r1-0-0"}
    )
    assert kept == a_reminder()
    assert block_of(kept) == Send(text="Call mum!")


async def test_it_replies_to_who_asked_and_is_theirs(store: Store) -> None:
    for number, place in enumerate((GROUP, DIRECT)):
        asked = a_message(id="7", place=place)
        context = RunContext(run_id=f"r{number}", step=0, now=NOW, place=place, author=asked.author, message=asked)
        await a_toolbox(store).run([a_call()], context)

    author = {"id": ALICE.id, "name": ALICE.name}
    in_group = {"text": "Call mum!", "reply_to": "7", "author": author}
    assert [task.args for task in await store.tasks.listed()] == [in_group, {"text": "Call mum!", "author": author}]


async def test_it_comes_again(store: Store) -> None:
    (result,) = await ran(a_toolbox(store), a_call(when="every weekday at 8:00 until friday"))

    (task,) = await store.tasks.listed()
    words = "every weekday at 8:00 until friday"
    assert result.value == {"due": "2026-11-16 08:00 (Europe/Kyiv)", "again": words, "id": task.id}
    assert task.again is not None
    assert [f"{moment:%m-%d %H:%M}" for moment in task.again.moments(NOW)][::4] == ["11-16 06:00", "11-20 06:00"]


async def test_it_is_taken_when_it_is_due(store: Store) -> None:
    await ran(a_toolbox(store), a_call())

    early = await store.tasks.take(NOW + timedelta(minutes=59, seconds=59))
    taken = await store.tasks.take(NOW + timedelta(hours=1))

    assert early == []
    assert taken == [a_reminder(status="running", attempts=1)]


async def test_no_policy_calls_it_off_when_a_message_comes(store: Store) -> None:
    await ran(a_toolbox(store), a_call())

    for number, policy in enumerate(POLICIES.values()):
        await store.runs.begin(a_run(id=f"next{number}"), PROMPT, at=NOW, cancels=policy)

    assert await store.tasks.listed() == [a_reminder()]


async def test_calls_of_a_run_with_other_words_or_another_time_and_those_of_other_runs_are_reminders_of_their_own(
    store: Store,
) -> None:
    toolbox = a_toolbox(store)

    await ran(toolbox, a_call(), a_call(text="Call dad!"))
    await ran(toolbox, a_call(when="19:00"), step=1)
    await ran(toolbox, a_call(), run=a_run(id="r2", place=DIRECT))

    assert await store.tasks.listed() == [
        a_reminder(),
        a_reminder(id="reminder-r1-0-1", args={"text": "Call dad!"}),
        a_reminder(id="reminder-r2-0-0", place=DIRECT, made_by="r2"),
        a_reminder(id="reminder-r1-1-0", due_at=NOW + timedelta(hours=2)),
    ]


async def test_a_run_that_sets_the_same_reminder_again_and_again_has_set_one(store: Store) -> None:
    later = a_toolbox(store, lambda: NOW + timedelta(minutes=4))

    first, second = await ran(a_toolbox(store), a_call(when="in 1 hour"), a_call(when="in 1 hour"))
    (third,) = await ran(later, a_call(when="in 1 hour"), step=1)

    assert (second, third) == (first, first)
    assert await store.tasks.listed() == [a_reminder()]


@pytest.mark.parametrize("when", ["in 1 hour", "18:00", "2026-11-15T18:00"])
async def test_the_same_call_run_again_is_the_same_reminder(store: Store, when: str) -> None:
    (first,) = await ran(a_toolbox(store), a_call(when=when))

    (again,) = await ran(a_toolbox(store, lambda: NOW + timedelta(days=2)), a_call(when=when))

    assert again == first
    assert await store.tasks.listed() == [a_reminder()]


async def test_a_run_that_was_cut_off_in_the_call_goes_on_with_the_reminder_it_has(store: Store) -> None:
    await begin(store, RUN)
    await store.runs.ask(RUN, 0, PROMPT, at=NOW)
    await store.runs.add_record(RUN, 0, Record(turn=model(a_call(when="in 1 hour"), by="scripted"), at=NOW, run=RUN.id))
    await store.runs.begin_tool(RUN, ToolRun(step=0, number=0, call=a_call(when="in 1 hour"), began_at=NOW))
    (first,) = await ran(a_toolbox(store), a_call(when="in 1 hour"))
    journal = await store.runs.journal(RUN.id)
    assert journal is not None

    later = a_toolbox(store, lambda: NOW + timedelta(minutes=30))
    answered = await resumed(store.runs, journal, model=Scripted("At six, then."), toolbox=later)

    assert answered.turns[1].parts == (first,)
    assert await store.tasks.listed() == [a_reminder()]


async def test_a_model_in_a_run_sets_several_at_once_and_is_told_of_the_one_that_cannot_be(store: Store) -> None:
    calls = [a_call(when="tomorrow"), a_call(when="soon"), a_call(when="friday 18:00", text=" Swim ")]
    await begin(store, RUN)

    answered = await run_to_end(
        store.runs, RUN, PROMPT, model=Scripted(calls, "Done."), toolbox=a_toolbox(store), now=lambda: NOW
    )

    results = [part for part in answered.turns[1].parts if isinstance(part, ToolResult)]
    assert [result.failed for result in results] == [False, True, False]
    assert str(results[1].value).startswith("'soon' is no time that is understood; what is understood: ")
    assert await store.tasks.listed() == [
        a_reminder(due_at=datetime(2026, 11, 16, 7, tzinfo=UTC)),
        a_reminder(id="reminder-r1-0-2", due_at=datetime(2026, 11, 20, 16, tzinfo=UTC), args={"text": "Swim"}),
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"text": ""}, "say what to remind of, in at most 4,000 characters"),
        ({"text": " \n\t "}, "say what to remind of, in at most 4,000 characters"),
        ({"text": "a" * (MAX_REMINDER_TEXT + 1)}, "say what to remind of, in at most 4,000 characters"),
        ({"when": "16:00 yesterday"}, "'16:00 yesterday' is no time that is understood; what is understood: "),
        ({"when": "2026-11-14"}, "'2026-11-14' is not ahead: it is now 2026-11-15 17:00 (Europe/Kyiv)"),
        ({"when": "2126-11-14"}, "'2126-11-14' is not in the next 10 years: it is now 2026-11-15 17:00 (Europe/Kyiv)"),
    ],
)
async def test_what_cannot_be_is_answered_to_the_model_in_one_line(
    store: Store, args: dict[str, str], said: str
) -> None:
    (result,) = await ran(a_toolbox(store), a_call(**args))

    assert result.failed
    assert str(result.value).startswith(said)
    assert "\n" not in str(result.value)
    assert await store.tasks.listed() == []


@pytest.mark.parametrize(
    "text", ["a" * MAX_REMINDER_TEXT, "Подзвони мамі 🙂", "half \ud83d", "nul \0", "# «send»\nhi", "two\nlines"]
)
async def test_any_other_text_is_kept_as_it_is(store: Store, text: str) -> None:
    await ran(a_toolbox(store), a_call(text=text))

    assert await store.tasks.listed() == [a_reminder(args={"text": text})]


async def test_outside_a_conversation_there_is_nowhere_to_send_it(store: Store) -> None:
    (result,) = await a_toolbox(store).run([a_call()])

    assert result == ToolResult(
        id="a",
        name="remind_me",
        value="a reminder needs a conversation to be sent to, and this call comes from none",
        failed=True,
    )


async def test_a_place_has_only_so_many_to_come(store: Store) -> None:
    others = [a_reminder(id=f"reminder-old-0-{number}", made_by="old") for number in range(MOST - 1)]
    await store.tasks.add([*others, a_reminder(id="t1", made_by="old"), a_reminder(id="reminder-x-0-0", place=DIRECT)])
    toolbox = a_toolbox(store)

    last, refused, again = await ran(toolbox, a_call(), a_call(text="Two"), a_call(text="Three"))
    (repeated,) = await ran(toolbox, a_call())
    await store.tasks.cancel(others[0].id, why="not needed")
    (after,) = await ran(toolbox, a_call(text="Four"), step=1)

    assert [last.failed, refused.failed, again.failed, repeated.failed, after.failed] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert refused.value == "200 reminders are still to come here, and there can be no more than 200"


async def test_calls_side_by_side_are_counted_too(store: Store) -> None:
    calls = [a_call(text=f"Call number {number}") for number in range(MOST + 5)]
    await begin(store, RUN)

    await run_to_end(store.runs, RUN, PROMPT, model=Scripted(calls, "Done."), toolbox=a_toolbox(store), now=lambda: NOW)

    assert len(await store.tasks.listed(GROUP)) == MOST


async def test_a_wrong_zone_in_the_configuration_is_found_at_once(store: Store) -> None:
    with pytest.raises(InvalidValue, match="no time zone is called 'Kiev'"):
        reminder_tool(store.tasks, lambda: NOW, "Kiev")


async def test_it_may_run_again_and_says_which_zone_it_means(store: Store) -> None:
    made = reminder_tool(store.tasks, lambda: NOW, ZONE)

    assert made.repeatable
    assert made.spec.name == "remind_me"
    assert made.spec.parameters["required"] == ["when", "text"]
    assert "in the time zone Europe/Kyiv" in made.spec.parameters["properties"]["when"]["description"]
