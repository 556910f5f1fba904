"""OrderContract: the tests of orders, which are done and ended in one transaction."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tertulia.engine.orders import Order, ended
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.memory.values import Episode
from tertulia.run.journal import Run
from tertulia.testing.store_memory_contract import a_fact
from tertulia.testing.store_world import (
    ALICE,
    GROUP,
    LATER,
    NOON,
    PROMPT,
    Opened,
    a_message,
    a_reply,
    a_run,
    a_talk,
    a_task,
    check,
    check_restarts,
    log_of,
    receive,
    waiting,
)


def an_order(**changes: Any) -> Order:
    fields: dict[str, Any] = {"id": "order-1", "kind": "send reply", "subject": "o1", "who": "owner 3f9a", "at": NOON}
    return Order(**fields | changes)


async def given(store: StoreProtocol, **changes: Any) -> Order:
    """Give an order and carry it out."""
    order = an_order(**changes)
    await store.orders.add(order)
    return await store.orders.carry_out(order, at=LATER)


async def failed_run(store: StoreProtocol) -> Run:
    await receive(store, a_message("hello"))
    run = a_run()
    await store.runs.begin(run, PROMPT, at=NOON)
    await store.runs.end(replace(run, status="failed", ended_at=NOON, why="the model refused"))
    return run


class OrderContract:
    """An order waits until it is done or refused, and is done once."""

    @check_restarts
    async def test_an_order_waits_until_it_has_ended(self, opened: Callable[[], Opened]) -> None:
        stop = an_order(id="order-2", kind="stop place", subject="", place=GROUP)
        async with opened() as store:
            await store.orders.add(an_order())
            await store.orders.add(stop)
        async with opened() as store:
            before = list(await store.orders.waiting())
            done = replace(stop, status="done", ended_at=LATER)
            await store.orders.end(done)
            await store.orders.end(replace(stop, status="refused", why="again"))
            after, newest = list(await store.orders.waiting()), list(await store.orders.listed(most=1))
            found = [await store.orders.find(name) for name in ("order-2", "none")]

        assert (before, after, newest, found) == ([an_order(), stop], [an_order()], [done], [done, None])

    @check
    async def test_an_order_is_carried_out_once(self, store: StoreProtocol) -> None:
        await store.outbox.put(a_reply(status="doubtful", attempts=1))
        order = await given(store)
        await store.outbox.put(a_reply(status="doubtful", attempts=2))
        again = await store.orders.carry_out(an_order(), at=LATER)

        assert order == again == an_order(status="done", ended_at=LATER)
        assert [one.status for one in await store.outbox.listed()] == ["doubtful"]

    @check
    async def test_what_cannot_be_done_is_refused_and_changes_nothing(self, store: StoreProtocol) -> None:
        await store.outbox.put(a_reply(status="sent", message_id="9"))
        asked: list[dict[str, Any]] = [
            {"kind": "send reply", "subject": "o1"},
            {"kind": "drop reply", "subject": "none"},
            {"kind": "cancel task", "subject": "none"},
            {"kind": "forget fact", "subject": "none"},
            {"kind": "hide message", "subject": "none", "place": GROUP},
            {"kind": "hide episode", "subject": "none"},
            {"kind": "retry run", "subject": "none"},
            {"kind": "stop place", "place": GROUP},
        ]
        refused = [await given(store, id=f"order-{number}", **one) for number, one in enumerate(asked)]

        assert [(one.status, one.why) for one in refused] == [
            ("refused", "reply 'o1' is sent; only one that is doubtful or dropped can be sent again"),
            ("refused", "there is no reply 'none'"),
            ("refused", "there is no task 'none'"),
            ("refused", "there is no fact 'none'"),
            ("refused", "there is no message 'none'"),
            ("refused", "there is no episode 'none'"),
            ("refused", "there is no run 'none'"),
            ("refused", "only a running bot can do that"),
        ]
        assert list(await store.orders.waiting()) == []

    @check
    async def test_replies_and_tasks_are_decided_about(self, store: StoreProtocol) -> None:
        await store.outbox.put(a_reply(status="doubtful", attempts=1))
        await store.tasks.add([a_task()])
        await given(store)
        sent = await store.outbox.listed()
        await given(store, id="order-2", kind="drop reply")
        await given(store, id="order-3", kind="cancel task", subject="t1")

        assert [(one.status, one.why) for one in sent] == [("waiting", "decided by owner 3f9a")]
        assert [one.status for one in await store.outbox.listed()] == ["dropped"]
        assert [one.status for one in await store.tasks.listed()] == ["cancelled"]

    @check
    async def test_a_hidden_message_is_shown_to_no_model_nor_is_what_was_learned_from_it(
        self, store: StoreProtocol
    ) -> None:
        await receive(store, a_message("I like tea"), a_message("really", id="m2"))
        await store.facts.learn([a_fact()])
        ended = await given(store, kind="hide message", subject="m1", place=GROUP)
        again = await given(store, id="order-2", kind="hide message", subject="m1", place=GROUP)

        assert (ended.status, again.status, again.why) == ("done", "refused", "message 'm1' is hidden already")
        assert [message.text for message in await log_of(store)] == ["", "really"]
        assert list(await store.facts.listed()) == []

    @check
    async def test_a_hidden_episode_is_recalled_no_more_and_not_made_again(self, store: StoreProtocol) -> None:
        await receive(store, *a_talk(3))
        seen = await store.episodes.cursor(GROUP)
        assert seen is not None
        await store.episodes.add(Episode(id="e1", place=GROUP, start=0, stop=3, people=(ALICE.id,)), seen=seen)
        ended = await given(store, kind="hide episode", subject="e1")

        assert ended.status == "done"
        assert list(await store.episodes.listed(GROUP)) == []
        assert list(await store.episodes.missing_ranges(GROUP)) == []

    @check
    async def test_a_fact_is_forgotten_with_what_states_it(self, store: StoreProtocol) -> None:
        await receive(store, a_message("I like tea"))
        [fact] = await store.facts.learn([a_fact()])
        await given(store, kind="forget fact", subject=fact.id)

        assert list(await store.facts.listed()) == []
        assert [message.text for message in await log_of(store)] == [""]

    @check
    async def test_the_messages_of_a_failed_run_wait_again_once(self, store: StoreProtocol) -> None:
        await failed_run(store)
        before = await waiting(store)
        first = await given(store, kind="retry run", subject="r1")
        after = await waiting(store)
        second = await given(store, id="order-2", kind="retry run", subject="r1")

        assert (before, first.status, after) == ([], "done", ["m1"])
        assert (second.status, second.why) == ("refused", "none of the 1 messages of run 'r1' is left to be answered")

    @check
    async def test_only_a_run_that_failed_is_retried(self, store: StoreProtocol) -> None:
        await receive(store, a_message("hello"))
        await store.runs.begin(a_run(), PROMPT, at=NOON)
        refused = await given(store, kind="retry run", subject="r1")

        assert (refused.status, refused.why) == ("refused", "run 'r1' is open; only one that failed is retried")

    @check
    async def test_the_order_to_forget_a_person_does_not_name_them_when_it_is_done(self, store: StoreProtocol) -> None:
        order = an_order(kind="forget person", subject=ALICE.id, service="telegram")
        await store.orders.add(order)
        await store.orders.end(ended(order, "done", at=LATER))

        assert list(await store.orders.listed(most=9)) == [
            an_order(kind="forget person", subject="", service="telegram", status="done", ended_at=LATER)
        ]
