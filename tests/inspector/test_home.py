"""Home says what a bot has done and spent today, how its models answer, and what waits for a decision."""

from datetime import timedelta

import pytest

from inspector.evening import MODEL, NOW, an_evening, doubt
from store.builders import a_task
from tertulia.engine.limits import Cap
from tertulia.inspector.home import home
from tertulia.inspector.values import StoreHealth
from tertulia.store import Store


async def test_home_counts_what_happened_today() -> None:
    async with an_evening() as store:
        item = await doubt(store)
        task = a_task(due_at=NOW + timedelta(days=1))
        await store.tasks.add([task])
        found = await home(store, now=NOW, cap=Cap(money=2.0))
        tomorrow = await home(store, now=NOW + timedelta(days=1))

    assert (found.agent, found.runs_done, found.runs_failed, found.replies_sent) == ("Gryag", 2, 1, 3)
    assert (found.answering, found.waiting, found.next_task, found.cap) == (0, 0, task, Cap(money=2.0))
    assert [(one.item.id, one.place_key) for one in found.to_decide] == [(item.id, "recorded.-100")]
    assert found.hours == pytest.approx([0.0] * 12 + [found.today.money])
    assert [(one.model, one.spent.calls, one.failed) for one in found.models] == [(MODEL, 9, 6)]
    assert found.models[0].why.startswith("Overloaded: Gemini is busy (503)")
    assert [(one.name, one.places) for one in found.platforms] == [("recorded", 1)]
    assert found.store == StoreHealth(name=":memory:", messages=7, prompts=4)
    assert [one.run.status for one in found.runs] == ["failed", "done", "done"]
    assert found.median_seconds
    assert (tomorrow.runs_done, tomorrow.today.calls, tomorrow.median_seconds) == (0, 0, None)


async def test_home_of_an_empty_store(store: Store) -> None:
    found = await home(store, now=NOW)

    assert (found.agent, found.running, found.places, found.models, found.platforms) == ("", True, (), (), ())
