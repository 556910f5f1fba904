"""Orders, as an engine carries them out: its own at once, those of other processes when it finds them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engines import ALICE, BOB, DIRECT, engine_with, said, store_with, talked, until
from tertulia.engine.orders import Order
from tertulia.errors import InvalidValue, RequestRefused, StoreBusy
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.testing import HeldModel, RecordedPlatform

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def an_order(**changes: Any) -> Order:
    fields: dict[str, Any] = {"id": "order-1", "kind": "send reply", "subject": "none", "who": "owner", "at": NOW}
    return Order(**fields | changes)


async def test_a_doubtful_reply_is_sent_again_at_once(store: Store) -> None:
    platform = RecordedPlatform(TimeoutError())
    async with engine_with(Scripted("Hello."), platform, store=store) as engine:
        await talked(engine, said("hi"))
        [doubtful] = await store.outbox.listed("doubtful")
        order = await engine.give_order("send reply", doubtful.id, who="owner 3f9a")
        await engine.settled()

        assert (order.status, order.why) == ("done", "")
        assert [one.status for one in await store.outbox.listed()] == ["sent"]
        assert list(await store.orders.listed(most=9)) == [order]


async def test_an_order_that_another_process_left_is_carried_out_at_the_start(store: Store) -> None:
    platform = RecordedPlatform(TimeoutError())
    async with engine_with(Scripted("Hello."), platform, store=store) as engine:
        await talked(engine, said("hi"))
    [doubtful] = await store.outbox.listed("doubtful")
    await store.orders.add(an_order(subject=doubtful.id))
    async with engine_with(Scripted(), platform, store=store):
        await until(lambda: is_sent(store))

    assert [one.status for one in await store.orders.listed(most=9)] == ["done"]


async def test_an_order_is_found_while_another_process_has_the_store_open(tmp_path: Path) -> None:
    path, model = tmp_path / "bot.db", HeldModel()
    async with Store.open(path) as store, Store.open(path, beside=True) as beside:
        async with engine_with(model, store=store, now=lambda: NOW) as engine:
            await engine.receive(said("hi"))
            await model.asked.wait()
            await beside.orders.add(an_order(kind="stop place", subject="", place=DIRECT))
            await until(lambda: has_ended(beside))
            await engine.settled()

        [order] = await beside.orders.listed(most=9)
        [run] = [one.run for one in await beside.inspection.runs(most=9)]

    assert (order.status, order.ended_at) == ("done", NOW)
    assert (run.status, run.why) == ("failed", "stopped by a request")


async def test_what_fails_is_refused_with_its_reason_and_trouble_of_the_store_leaves_it_waiting(store: Store) -> None:
    async def forget(*, author_id: str, **_: Any) -> None:
        raise StoreBusy("it is busy") if author_id == BOB.id else InvalidValue("nobody is known by that id")

    async with engine_with(Scripted(), store=store_with(store, forget=forget)) as engine:
        refused = await engine.give_order("forget person", ALICE.id, who="owner", service="recorded")
        with pytest.raises(StoreBusy):
            await engine.give_order("forget person", BOB.id, who="owner", service="recorded")
        [waiting] = await store.orders.waiting()

    assert (refused.status, refused.why) == ("refused", "nobody is known by that id")
    assert (waiting.kind, waiting.subject) == ("forget person", BOB.id)


async def test_the_answer_under_way_is_stopped_but_not_a_later_one(store: Store) -> None:
    model = HeldModel("One.", "Two.")
    async with engine_with(model, store=store) as engine:
        await engine.receive(said("first"))
        await model.asked.wait()
        stopped = await engine.give_order("stop place", who="owner", place=DIRECT)
        await engine.settled()
        again = await engine.give_order("stop place", who="owner", place=DIRECT)
        [run] = [one.run for one in await store.inspection.runs(most=9)]

    assert (stopped.status, run.status, run.why) == ("done", "failed", "stopped by a request")
    assert (again.status, again.why) == ("refused", "nothing is being answered there")


async def test_a_failed_run_is_retried(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(RequestRefused("no"), "Hello."), platform, store=store) as engine:
        await talked(engine, said("hi"))
        [failed] = [one.run for one in await store.inspection.runs(most=9)]
        await engine.retry_run(failed.id)
        await engine.settled()
        runs = [one.run for one in reversed(await store.inspection.runs(most=9))]
        with pytest.raises(InvalidValue, match="none of the 1 messages"):
            await engine.retry_run(failed.id)

    assert [run.status for run in runs] == ["failed", "done"]
    assert platform.texts[-1] == "Hello."


async def test_a_hidden_message_is_in_no_prompt_that_follows(store: Store) -> None:
    model = Scripted("Noted.", "I know nothing.")
    async with engine_with(model, store=store) as engine:
        await talked(engine, said("the code is 1234"))
        await engine.hide_message(DIRECT, "1")
        await talked(engine, said("what is the code?", 2))
        with pytest.raises(InvalidValue, match="there is no episode 'none'"):
            await engine.hide_episode("none")

    assert "1234" in str(model.prompts[0])
    assert "1234" not in str(model.prompts[1])


async def test_a_person_is_forgotten_and_not_named_by_the_order(store: Store) -> None:
    async with engine_with(Scripted("Hello."), store=store) as engine:
        await talked(engine, said("hi"))
        order = await engine.give_order("forget person", ALICE.id, who="owner", service="recorded")
        [stored] = await store.orders.listed(most=9)
        left = await store.count_rows()

    assert (order.status, stored.status, stored.subject) == ("done", "done", "")
    assert left["messages"] == 0


async def is_sent(store: Store) -> bool:
    return [one.status for one in await store.outbox.listed()] == ["sent"]


async def has_ended(store: Store) -> bool:
    return not await store.orders.waiting()
