from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from memory.known import a_fact
from people import BOB, DIRECT, GROUP, NOON, a_message
from store.builders import a_run, a_task, an_outgoing, begin
from tertulia.engine.store_protocols import PromptOutdated, SendStatus
from tertulia.errors import InvalidValue
from tertulia.parts import ToolCall, ToolResult
from tertulia.platform import Reacted
from tertulia.run.journal import Journal
from tertulia.store import Store
from tertulia.turns import Prompt, model, user

LATER = NOON + timedelta(minutes=5)
TURNS = (model(ToolCall(name="look", id="a"), by="gemini-3.8-flash"), user(ToolResult(name="look", id="a", value=1)))


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


async def edited(store: Store) -> None:
    await store.inbox.edit(a_message("other", id="m2", author=BOB), at=NOON)


async def reacted(store: Store) -> None:
    change = Reacted(place=GROUP, message_id="m2", author=BOB, emojis=("👍",), at=NOON)
    await store.updates.apply(GROUP.platform, [change], key="u", raw=None, at=NOON, keep=timedelta(days=1))


async def deleted(store: Store) -> None:
    await store.inbox.delete(GROUP, "m2", at=NOON)


async def emptied(store: Store) -> None:
    await store.inbox.edit(a_message(id="m2", author=BOB, parts=()), at=NOON)


async def hidden(store: Store) -> None:
    await store.facts.learn([a_fact("Likes tea.", id="f1", about=BOB, sources=("m2",))])
    await store.facts.forget(["f1"], at=NOON)


async def forgotten(store: Store) -> None:
    await store.forget(platform=GROUP.author_namespace, author_id=BOB.id)


MAY_GO_ON: dict[Callable[[Store], Awaitable[None]], bool] = {
    edited: True,
    reacted: True,
    deleted: False,
    emptied: False,
    hidden: False,
    forgotten: False,
}


@pytest.mark.parametrize("happened", MAY_GO_ON)
async def test_a_prompt_is_outdated_by_any_change_or_only_by_what_is_deleted_or_forgotten(
    store: Store, happened: Callable[[Store], Awaitable[None]]
) -> None:
    await store.inbox.receive(a_message(id="m1"), at=NOON)
    await store.inbox.receive(a_message("I like tea.", id="m2", author=BOB), at=NOON)
    changes = (await store.inbox.snapshot(GROUP)).changes
    await happened(store)

    async def begins(**named: Any) -> bool:
        with suppress(PromptOutdated):
            await store.runs.begin(a_run(), Prompt.of("tea?"), at=NOON, changes=changes, **named)
        return await store.runs.journal("r1") is not None

    assert (await begins(), await begins(edits_matter=False)) == (False, MAY_GO_ON[happened])


async def test_a_run_that_was_never_begun_ends_with_its_messages_taken(store: Store) -> None:
    await store.inbox.receive(a_message(id="m1"), at=NOON)
    ended = a_run(status="failed", ended_at=LATER, why="no model")

    await store.runs.end(ended, replies=[an_outgoing("Sorry.")])

    assert await store.inbox.places() == []
    assert await store.outbox.unsent() == [an_outgoing("Sorry.")]
    assert await store.runs.journal("r1") == Journal(run=ended, prompt=None, records=(), tools=())


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


async def test_replies_to_retry_are_those_that_wait_after_an_attempt(store: Store) -> None:
    waiting = an_outgoing(id="new")
    tried = [an_outgoing(id=f"tried {number}", attempts=number) for number in (1, 2)]
    for outgoing in (waiting, *tried, an_outgoing(id="sending", status="sending", attempts=1)):
        await store.outbox.put(outgoing)

    assert await store.outbox.to_retry() == tried
