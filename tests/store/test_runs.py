from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from palaver.conversation.journal import Journal, Outgoing
from palaver.errors import InvalidValue
from palaver.messages import Quote, Reply
from palaver.parts import Text, ToolCall, ToolResult
from palaver.store import Store
from palaver.turns import Prompt, model, user
from people import DIRECT, GROUP, GRYAG, NOON, a_message, a_photo
from store.kept import a_record, a_run, a_task, a_tool_run, an_outgoing

LATER = NOON + timedelta(minutes=5)
TURNS = (model(ToolCall(name="look", id="a"), by="gemini-3.8-flash"), user(ToolResult(name="look", id="a", value=1)))


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store.open(":memory:") as opened:
        yield opened


async def test_a_run_is_open_until_it_is_ended(store: Store) -> None:
    first, second = a_run(), a_run(id="r2", place=DIRECT, model="m", profile="tail")
    await store.runs.begin(first)
    await store.runs.begin(second)

    assert list(await store.runs.open()) == [first, second]

    ended = replace(first, status="failed", ended_at=LATER, why="the model refused", rungs=("again", "shorten"))
    await store.runs.end(ended)

    assert list(await store.runs.open()) == [second]
    assert await store.runs.journal("r1") == Journal(run=ended, prompt=None, records=(), tools=())


async def test_a_journal_holds_everything_in_order(store: Store) -> None:
    run = a_run()
    prompts = [Prompt.of("hi"), Prompt.of("hi", *TURNS)]
    records = [(0, a_record(valid=False, raw=None)), (0, a_record(run="r1")), (1, a_record(turn=user("x"), at=LATER))]
    begun = [a_tool_run(step=1, number=0), a_tool_run(number=1), a_tool_run(number=0)]
    ended = replace(begun[2], result=ToolResult(name="look", id="a", value={"n": 2**70}), ended_at=LATER)
    await store.runs.begin(run)

    await store.runs.ask(run, 0, prompts[0], at=NOON)
    for step, record in records:
        await store.runs.keep(run, step, record)
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
        await store.runs.keep(run, 0, a_record())
    with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
        await store.runs.ask(run, 0, Prompt.of("hi"), at=NOON)
    with pytest.raises(InvalidValue, match="no run 'r1' was begun"):
        await store.runs.begin_tool(run, a_tool_run())


async def test_a_run_that_is_begun_again_stays_as_it_was(store: Store) -> None:
    ended = a_run(status="done", ended_at=LATER)
    await store.runs.begin(a_run())
    await store.runs.end(ended)

    await store.runs.begin(a_run())

    assert list(await store.runs.open()) == []


async def test_a_run_ends_with_its_replies_and_tasks_or_not_at_all(store: Store) -> None:
    await store.runs.begin(a_run())
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
    await store.runs.end(ended, replies=[an_outgoing()], tasks=[a_task()])
    sent = an_outgoing(status="sent", message_id="9", sent_at=LATER)
    await store.outbox.put(sent)
    await store.tasks.save([a_task(status="done")])

    await store.runs.end(ended, replies=[an_outgoing()], tasks=[a_task()])

    assert await store.outbox.listed() == [sent]
    assert await store.tasks.listed() == [a_task(status="done")]


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
    waiting = Outgoing(id="o1", reply=reply, made_at=NOON, author=GRYAG, turns=TURNS)
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
    assert [message.id for message in await store.inbox.waiting(GROUP)] == ["m1"]


async def test_a_sent_reply_is_never_anything_else_again(store: Store) -> None:
    await store.outbox.put(an_outgoing(status="sent", message_id="9"))

    with pytest.raises(InvalidValue, match="was sent already"):
        await store.outbox.put(an_outgoing(status="waiting"))

    assert [reply.status for reply in await store.outbox.listed()] == ["sent"]


async def test_tasks_are_kept_as_they_stand(store: Store) -> None:
    tasks = [
        a_task(id="late", due_at=LATER),
        a_task(id="soon", after=("late",), status="running", attempts=2),
        a_task(id="else", place=DIRECT, status="done"),
        a_task(id="gone", status="cancelled"),
        a_task(id="bad", status="failed"),
    ]
    await store.tasks.save(tasks)

    assert list(await store.tasks.unfinished()) == tasks[:2]
    assert [task.id for task in await store.tasks.listed()] == ["soon", "else", "gone", "bad", "late"]
    assert await store.tasks.listed(DIRECT) == [tasks[2]]
    assert await store.tasks.listed(replace(GROUP, id="never seen")) == []

    await store.tasks.save([replace(tasks[0], status="running"), replace(tasks[1], status="done")])

    assert list(await store.tasks.unfinished()) == [replace(tasks[0], status="running")]


async def test_tasks_are_saved_all_or_none(store: Store) -> None:
    with pytest.raises(InvalidValue):
        await store.tasks.save([a_task(), a_task(id="\ud800")])

    assert list(await store.tasks.listed()) == []


async def test_media_are_described_once_for_everybody(store: Store) -> None:
    await store.descriptions.describe("p1", "a cat", by="gemini-3.8-flash", at=NOON)
    await store.descriptions.describe("p2", "half of a \ud83d", by="gemini-3.8-flash", at=NOON)
    await store.descriptions.describe("p1", "a black cat", by="gemini-3.8-flash", at=LATER)

    found = await store.descriptions.described(["p2", "p1", "p3", "p1", *map(str, range(2000))])

    assert found == {"p1": "a black cat", "p2": "half of a \ud83d"}
    assert await store.descriptions.described([]) == {}
