"""Metrics of a bot as Prometheus reads them. Labels name models, platforms and states; never people, places or texts.

What is counted since midnight in UTC is a gauge: what is forgotten or removed lowers it, as a counter never sinks.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from tertulia.engine.health import Health
from tertulia.engine.inspection import Figures, StoreState
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.health import MEASURED, model_health, platform_health
from tertulia.inspector.places import midnight
from tertulia.inspector.values import ModelHealth, PlatformHealth

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TODAY = "since midnight in UTC"
Labels = Mapping[str, str]


class Gauge(Struct, frozen=True):
    """A family of samples."""

    name: str
    help: str
    samples: Iterable[tuple[Labels, float]]


async def metrics(store: StoreProtocol, *, now: datetime, health: Health | None = None) -> str:
    """Return the metrics of a bot in Prometheus' text format."""
    inspection, today = store.inspection, midnight(now)
    figures, day = await inspection.figures(today, now=now), await inspection.day(today.date())
    times = await inspection.call_times(most=MEASURED)
    models = model_health(await inspection.call_sums(today), times, health, now=now)
    platforms = platform_health(day, (), health)
    gauges = [*_work(figures, now), *_calls(figures), *_health(models, platforms, now), *_state(await store.state())]
    return "".join(map(_family, gauges))


def _work(figures: Figures, now: datetime) -> Iterable[Gauge]:
    yield Gauge("messages_waiting", "Messages that wait to be answered.", _one(figures.waiting))
    yield Gauge("messages_waiting_seconds", "Age of the oldest of them.", _age(figures.waiting_since, now))
    yield Gauge("runs_open", "Answers under way.", _one(figures.open_runs))
    yield Gauge("runs_today", f"Answers that began {TODAY}.", _labelled("status", figures.runs))
    yield Gauge("deliveries", "Replies that are stored.", _labelled("status", figures.replies))
    yield Gauge("tasks_due", "Tasks whose time has come.", _one(figures.tasks_due))
    yield Gauge("tasks_pending", "Tasks that wait for their time, with those.", _one(figures.tasks_pending))
    yield Gauge("newest_event_seconds", "Age of the newest event.", _age(figures.newest_event_at, now))


def _calls(figures: Figures) -> Iterable[Gauge]:
    calls = [({"model": one.model, "status": one.status}, one.spent) for one in figures.calls]
    yield Gauge("calls_today", f"Calls of models {TODAY}.", [(labels, one.calls) for labels, one in calls])
    tokens = [
        ({**labels, "kind": kind}, float(count))
        for labels, one in calls
        for kind, count in (("input", one.input), ("cached", one.cached), ("output", one.output))
    ]
    yield Gauge("tokens_today", f"Tokens {TODAY}; input has the cached ones too.", tokens)
    yield Gauge(
        "dollars_today", f"What they cost, where prices are known, {TODAY}.", [(by, s.money) for by, s in calls]
    )
    saved = [(labels, one.without_cache) for labels, one in calls]
    yield Gauge("dollars_without_cache_today", "What they would have cost without the cache.", saved)


def _health(models: Iterable[ModelHealth], platforms: Iterable[PlatformHealth], now: datetime) -> Iterable[Gauge]:
    of_models = [({"model": one.model}, one) for one in models]
    of_platforms = [({"platform": one.name}, one) for one in platforms]
    running = [(by, _up(one)) for by, one in of_platforms if one.running]
    waits: list[tuple[Labels, datetime | None]] = [(by, model.retry_at) for by, model in of_models]
    waits += [(by, platform.retry_at) for by, platform in of_platforms]
    seconds = [(by, max(0.0, (at - now).total_seconds())) for by, at in waits if at]
    yield Gauge("model_up", "0: its service does not answer.", [(by, _up(one)) for by, one in of_models])
    yield Gauge("platform_up", "0: it cannot reach its service. Only the bot's own process knows.", running)
    yield Gauge("retry_seconds", "Until what is down is tried again.", seconds)
    yield Gauge("updates_today", f"Updates of platforms {TODAY}.", [(by, one.updates) for by, one in of_platforms])


def _state(state: StoreState) -> Iterable[Gauge]:
    yield Gauge("running", "Whether a bot has the store.", () if state.is_held is None else _one(state.is_held))
    yield Gauge("store_bytes", "Size of the store.", () if state.size is None else _one(state.size))


def _one(value: float) -> Iterable[tuple[Labels, float]]:
    return [({}, value)]


def _labelled(name: str, counts: Mapping[Any, int]) -> Iterable[tuple[Labels, float]]:
    return [({name: key}, count) for key, count in sorted(counts.items())]


def _age(since: datetime | None, now: datetime) -> Iterable[tuple[Labels, float]]:
    return [({}, max(0.0, (now - since).total_seconds()))] if since else ()


def _up(one: ModelHealth | PlatformHealth) -> float:
    return one.down_since is None


def _family(gauge: Gauge) -> str:
    name = f"tertulia_{gauge.name}"
    lines = [f"{name}{_braced(labels)} {float(value):.15g}\n" for labels, value in gauge.samples]
    return f"# HELP {name} {gauge.help}\n# TYPE {name} gauge\n{''.join(lines)}" if lines else ""


def _braced(labels: Labels) -> str:
    """Return labels as Prometheus reads them; a name that a config gives may have any characters."""
    named = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{named}}}" if named else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
