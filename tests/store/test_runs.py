from datetime import timedelta
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from people import DIRECT, GROUP, GRYAG, NOON, a_message, a_photo
from store.builders import PROMPT, a_record, a_run, a_task, a_tool_run, an_outgoing, begin
from tertulia.engine.store_protocols import OutboxItem, SendStatus
from tertulia.errors import InvalidValue
from tertulia.messages import Quote, Reply
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.run.journal import Journal
from tertulia.store import Store
from tertulia.tasks.task import cancels_everything, cancels_nothing
from tertulia.turns import Prompt, model, user

LATER = NOON + timedelta(minutes=5)
TURNS = (model(ToolCall(name="look", id="a"), by="gemini-3.8-flash"), user(ToolResult(name="look", id="a", value=1)))


async def test_a_run_is_open_until_it_is_ended(store: Store) -> None:
    first, second = a_run(), a_run(id="r2", place=DIRECT, model="m", profile="tail")
    await begin(store, first)
    await begin(store, second)

    assert list(await store.runs.open()) == [first, second]

    ended = replace(first, status="failed", ended_at=LATER, why="the model refused")
    await store.runs.end(ended)

    assert list(await store.runs.open()) == [second]
    assert await store.runs.journal("r1") == Journal(run=ended, prompt=PROMPT, records=(), tools=())


async def test_a_journal_holds_everything_in_order(store: Store) -> None:
    run = a_run()
    prompts = [Prompt.of("hi"), Prompt.of("hi", *TURNS)]
    records = [(0, a_record(valid=False, raw=None)), (0, a_record(run="r1")), (1, a_record(turn=user("x"), at=LATER))]
    begun = [a_tool_run(step=1, number=0), a_tool_run(number=1), a_tool_run(number=0)]
    ended = replace(begun[2], result=ToolResult(name="look", id="a", value={"n": 2**70}), ended_at=LATER)
    await begin(store, run)

    await store.runs.ask(run, 0, prompts[0], at=NOON)
    for step, record in records:
        await store.runs.add_record(run, step, record)
    for tool in begun:
        await store.runs.begin_tool(run, tool)
    await store.runs.end_tool(run, ended)
    await store.runs.ask(run, 1, prompts[1], at=LATER)

    assert await store.runs.journal("r1") == Journal(
        run=run, prompt=prompts[1], step=1, records=tuple(records), tools=(ended, begun[1], begun[0])
    )


async def test_there_is_no_journal_of_a_run_that_was_never_begun(store: Store) -> None:
    run = a_run()

    assert await store.runs.journal("r1") is None
    with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
        await store.runs.add_record(run, 0, a_record())
    with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
        await store.runs.ask(run, 0, Prompt.of("hi"), at=NOON)
    with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
        await store.runs.begin_tool(run, a_tool_run())


async def test_a_run_that_is_begun_again_stays_as_it_was(store: Store) -> None:
    ended = a_run(status="done", ended_at=LATER)
    await begin(store, a_run())
    await store.runs.end(ended)

    await begin(store, a_run())

    assert list(await store.runs.open()) == []


async def test_a_run_begins_with_its_messages_and_its_prompt_or_not_at_all(store: Store) -> None:
    for message_id in ("m1", "m2", "m3"):
        await store.inbox.receive(a_message(id=message_id), at=NOON)
    await begin(store, a_run(taken=("m1", "m2")))
    before = [row async for row in store.export()]

    for taken in (("m3", "m1"), ("m2",)):
        with pytest.raises(InvalidValue, match=f"^message {taken[-1]!r} was taken by run 'r1' already$"):
            await store.runs.begin(a_run(id="r2", taken=taken), Prompt.of("other"), at=NOON)
        with pytest.raises(InvalidValue, match="was taken by run 'r1' already"):
            await store.runs.end(a_run(id="r2", taken=taken, status="done", horizon=0), replies=[an_outgoing()])
    await store.runs.begin(a_run(taken=("m1", "m3")), Prompt.of("other"), at=LATER)

    assert [row async for row in store.export()] == before
    assert [waiting.message.id for waiting in await store.inbox.waiting(GROUP)] == ["m3"]


async def test_a_run_takes_what_came_meanwhile_with_what_it_asks_next(store: Store) -> None:
    for message_id in ("m1", "m2"):
        await store.inbox.receive(a_message(id=message_id), at=NOON)
    await begin(store, a_run())
    grown = a_run(taken=("m1", "m2"))

    await store.runs.ask(grown, 1, Prompt.of("both"), at=LATER)

    assert await store.inbox.waiting(GROUP) == []
    assert await store.runs.journal("r1") == Journal(run=grown, prompt=Prompt.of("both"), step=1, records=(), tools=())


async def test_a_run_that_was_never_begun_ends_with_its_messages_taken(store: Store) -> None:
    await store.inbox.receive(a_message(id="m1"), at=NOON)
    ended = a_run(status="failed", ended_at=LATER, why="no model")

    await store.runs.end(ended, replies=[an_outgoing("Sorry.")])

    assert await store.inbox.places() == []
    assert await store.outbox.unsent() == [an_outgoing("Sorry.")]
    assert await store.runs.journal("r1") == Journal(run=ended, prompt=None, records=(), tools=())


async def test_a_run_that_has_ended_asks_nothing_more(store: Store) -> None:
    await begin(store, a_run())
    await store.runs.end(a_run(status="done", ended_at=LATER))

    with pytest.raises(InvalidValue, match=r"^run 'r1' has ended$"):
        await store.runs.ask(a_run(), 1, PROMPT, at=LATER)


async def test_how_often_a_run_was_taken_up_again_is_known(store: Store) -> None:
    await begin(store, a_run())
    await store.runs.resume(a_run(resumed=1))
    await store.runs.resume(a_run(resumed=2))

    assert await store.runs.open() == [a_run(resumed=2)]
    with pytest.raises(InvalidValue, match="no run 'r9' was begun"):
        await store.runs.resume(a_run(id="r9"))


async def test_a_run_begun_in_a_place_calls_off_what_was_still_to_be_said_there(store: Store) -> None:
    old = [
        a_task(id="t1", run="r0"),
        a_task(id="t2", run="r0", kind="remember", after=("t1",), args={}),
        a_task(id="t3", run="r0", due_at=LATER, after=("t2",)),
        a_task(id="reminder", due_at=LATER),
        a_task(id="elsewhere", run="r9", place=DIRECT, due_at=LATER),
    ]
    await store.tasks.add(old)
    (begun,) = await store.tasks.take(NOON)
    await begin(store, a_run())

    called_off = replace(old[2], status="cancelled", why="a new message came")
    assert {task.id: task for task in await store.tasks.listed()} == {
        "t1": begun, "t2": old[1], "t3": called_off, "reminder": old[3], "elsewhere": old[4],
    }  # fmt: skip


async def test_a_policy_says_what_a_new_message_calls_off(store: Store) -> None:
    old = [a_task(id="t1", run="r0", kind="remember", args={}), a_task(id="t2", run="r0", after=("t1",))]
    await store.tasks.add(old)

    await store.runs.begin(a_run(id="r1", taken=()), PROMPT, at=NOON, cancels=cancels_nothing)
    assert await store.tasks.listed() == old
    await store.runs.begin(a_run(id="r2", taken=()), PROMPT, at=NOON, cancels=cancels_everything)
    assert [task.status for task in await store.tasks.listed()] == ["cancelled", "cancelled"]
    assert await store.tasks.next_due() is None


async def test_a_run_ends_with_its_replies_and_tasks_or_not_at_all(store: Store) -> None:
    await begin(store, a_run())
    ended = a_run(status="done", ended_at=LATER)

    with pytest.raises(InvalidValue):
        await store.runs.end(ended, replies=[an_outgoing(), an_outgoing(id="o2", status="lost")], tasks=[a_task()])

    assert (await store.runs.open(), await store.outbox.listed(), await store.tasks.listed()) == ([a_run()], [], [])

    await store.runs.end(ended, replies=[an_outgoing(run="r1")], tasks=[a_task(run="r1")])

    assert (await store.runs.open(), await store.outbox.listed(), await store.tasks.listed()) == (
        [],
        [an_outgoing(run="r1")],
        [a_task(run="r1")],
    )


async def test_a_run_that_is_ended_again_sends_nothing_again(store: Store) -> None:
    ended = a_run(status="done", ended_at=LATER)
    await begin(store, a_run())
    await store.runs.end(ended, replies=[an_outgoing()], tasks=[a_task()])
    sent = an_outgoing(status="sent", message_id="9", sent_at=LATER)
    await store.outbox.put(sent)
    (running,) = await store.tasks.take(NOON)

    for again in (ended, replace(ended, status="failed", why="what was said is said")):
        await store.runs.end(again, replies=[an_outgoing(), an_outgoing(id="o2")], tasks=[a_task(), a_task(id="t2")])

    assert await store.outbox.listed() == [sent]
    assert await store.tasks.listed() == [running]
    journal = await store.runs.journal("r1")
    assert journal is not None
    assert journal.run == ended


async def test_replies_are_listed_by_what_has_become_of_them(store: Store) -> None:
    statuses = ["waiting", "sending", "sent", "doubtful", "dropped"]
    replies = [an_outgoing(id=f"o{n}", status=status, attempts=n, why="w") for n, status in enumerate(statuses)]
    for reply in replies:
        await store.outbox.put(reply)

    assert await store.outbox.unsent() == replies[:2]
    assert await store.outbox.listed("doubtful", "dropped") == replies[3:]
    assert await store.outbox.listed() == replies


async def test_a_sent_reply_is_a_message_of_the_place_with_what_the_model_did(store: Store) -> None:
    await store.inbox.receive(a_message("photo?", id="m1"), at=NOON)
    reply = Reply(place=GROUP, text="Here.", reply_to="m1", media=(a_photo(),))
    waiting = OutboxItem(id="o1", reply=reply, made_at=NOON, author=GRYAG, turns=TURNS)
    await store.outbox.put(waiting)

    assert await store.log.count(GROUP) == 1

    for _ in range(2):
        await store.outbox.put(replace(waiting, status="sent", message_id="77", sent_at=LATER))

    said = a_message(
        id="77",
        author=GRYAG,
        sent_at=LATER,
        parts=(Text(text="Here."), a_photo()),
        reply_to=Quote(message_id="m1", author=a_message().author, parts=a_message("photo?").parts),
    )
    assert list(await store.log.read(GROUP, 1, 9)) == [said]
    assert await store.log.turns([said]) == {"77": TURNS}
    assert [waiting.message.id for waiting in await store.inbox.waiting(GROUP)] == ["m1"]


async def test_a_sent_reply_is_never_anything_else_again(store: Store) -> None:
    await store.outbox.put(an_outgoing(status="sent", message_id="9"))

    with pytest.raises(InvalidValue, match="was sent already"):
        await store.outbox.put(an_outgoing(status="waiting"))

    assert [reply.status for reply in await store.outbox.listed()] == ["sent"]


@pytest.mark.parametrize(
    ("status", "before", "what"),
    [
        ("waiting", ("doubtful", "dropped"), "sent again"),
        ("dropped", ("doubtful", "waiting"), "dropped"),
    ],
)
async def test_somebody_decides_about_a_reply_where_there_is_something_to_decide(
    store: Store, status: Any, before: tuple[Any, Any], what: str
) -> None:
    for was in get_args(SendStatus):
        await store.outbox.put(an_outgoing(id=was, status=was, attempts=3, why="lost"))
        if was in before:
            decided = an_outgoing(id=was, status=status, attempts=3, why="said so")
            assert await store.outbox.decide(was, status, why="said so") == decided
            assert await store.outbox.listed() == [*(await store.outbox.listed())[:-1], decided]
            continue
        one_line = f"^reply '{was}' is {was}; only one that is {before[0]} or {before[1]} can be {what}$"
        with pytest.raises(InvalidValue, match=one_line):
            await store.outbox.decide(was, status, why="said so")

    assert await store.outbox.decide("no such", status) is None
    assert await store.outbox.decide("\ud800", status) is None


async def test_a_reply_that_somebody_dropped_meanwhile_is_not_sent(store: Store) -> None:
    await store.outbox.put(an_outgoing())
    await store.outbox.decide("o1", "dropped")

    with pytest.raises(InvalidValue, match=r"^reply 'o1' was dropped; it is not sent unless somebody decides so$"):
        await store.outbox.put(an_outgoing(status="sending"))

    await store.outbox.decide("o1", "waiting")
    await store.outbox.put(an_outgoing(status="sending"))
    assert await store.outbox.unsent() == [an_outgoing(status="sending")]


async def test_replies_to_retry_are_those_that_wait_after_an_attempt(store: Store) -> None:
    waiting = an_outgoing(id="new")
    tried = [an_outgoing(id=f"tried {number}", attempts=number) for number in (1, 2)]
    for outgoing in (waiting, *tried, an_outgoing(id="sending", status="sending", attempts=1)):
        await store.outbox.put(outgoing)

    assert await store.outbox.to_retry() == tried
