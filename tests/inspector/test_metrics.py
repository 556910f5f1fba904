"""Metrics, as Prometheus' own parser reads them: what waits, what was done and spent, who is well; nobody's words."""

from collections.abc import Mapping
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from inspector.evening import MODEL, NOW, an_evening, doubt
from tertulia.engine.health import Health
from tertulia.inspector import home
from tertulia.inspector.metrics import metrics
from tertulia.platform import Trouble
from tertulia.store import Store

AT = NOW + timedelta(hours=1)
ODD = 'a "model"\\with\nlines'


def samples(text: str) -> Mapping[tuple[str, ...], float]:
    """Return the values by names and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        for sample in family.samples:
            found[(sample.name.removeprefix("tertulia_"), *sample.labels.values())] = sample.value
    return found


async def test_metrics_count_what_waits_and_what_was_done_and_spent_today() -> None:
    async with an_evening() as store:
        await doubt(store)
        shown = await home.home(store, now=AT)
        text = await metrics(store, now=AT)
    found = samples(text)

    spent = shown.models[0].spent
    expected = {
        ("messages_waiting",): 0,
        ("runs_open",): 0,
        ("runs_today", "done"): shown.runs_done,
        ("runs_today", "failed"): shown.runs_failed,
        ("deliveries", "doubtful"): 1,
        ("tasks_due",): 0,
        ("calls_today", MODEL, "answered"): spent.calls - shown.models[0].failed,
        ("calls_today", MODEL, "failed"): shown.models[0].failed,
        ("tokens_today", MODEL, "answered", "input"): spent.input,
        ("tokens_today", MODEL, "answered", "cached"): spent.cached,
        ("tokens_today", MODEL, "answered", "output"): spent.output,
        ("dollars_today", MODEL, "answered"): spent.money,
        ("model_up", MODEL): 0,
        ("running",): 1,
    }
    assert {name: round(found[name], 9) for name in expected} == {name: round(expected[name], 9) for name in expected}
    assert found["newest_event_seconds",] > 0
    assert not any(word in text for word in ("Alice", "Bob", "Friends", "3A", "-100"))


async def test_what_only_the_process_knows_is_measured_too_and_names_may_be_odd(store: Store) -> None:
    trouble = Trouble(since=NOW, why="the wire is cut", retry_at=AT + timedelta(seconds=3))
    health = Health(
        models={"m": None, ODD: AT + timedelta(seconds=8)}, platforms={"telegram-9": trouble, "terminal": None}
    )

    text = await metrics(store, now=AT, health=health)

    assert {name: value for name, value in samples(text).items() if len(name) > 1} == {
        ("model_up", "m"): 1,
        ("model_up", ODD): 1,
        ("platform_up", "telegram-9"): 0,
        ("platform_up", "terminal"): 1,
        ("retry_seconds", ODD): 8,
        ("retry_seconds", "telegram-9"): 3,
        ("updates_today", "telegram-9"): 0,
        ("updates_today", "terminal"): 0,
    }
    assert "wire" not in text
