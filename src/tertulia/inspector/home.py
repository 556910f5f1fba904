"""Home: whether the bot is well, what it has spent today, and what waits for a decision."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median

from tertulia.engine.inspection import CallSum, CallTime, DaySummary, Spent, StoreState
from tertulia.engine.limits import Cap
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.places import midnight, place_key, place_rows
from tertulia.inspector.runs import run_rows
from tertulia.inspector.shown import shown_item
from tertulia.inspector.values import Decided, Home, ModelHealth, PlaceRow, PlatformHealth, StoreHealth

RUNS = 12  # of the newest
TASKS = 8  # of the next
_MEASURED = 400  # calls whose times are read


async def home(store: StoreProtocol, *, now: datetime, cap: Cap | None = None) -> Home:
    """Return the state of a bot; *cap* is on all that it may spend in a day."""
    inspection, today = store.inspection, midnight(now)
    state, day, sums = await store.state(), await inspection.day(today.date()), await inspection.call_sums(today)
    blocked = await inspection.blocked()
    places = place_rows(await inspection.places(), sums, blocked)
    doubtful = await store.outbox.listed("doubtful")
    tasks = await inspection.due_tasks(most=TASKS)
    spent = sum((one.spent for one in sums), Spent())
    return Home(
        now=now,
        agent=day.agent.name if day.agent else "",
        running=state.is_held,
        today=spent,
        hours=_hours(sums, now.hour + 1),
        cap=cap,
        runs_done=day.done,
        runs_failed=day.failed,
        replies_sent=day.sent,
        median_seconds=median(day.seconds) if day.seconds else None,
        answering=sum(row.state == "answering" for row in places),
        waiting=sum(row.waiting for row in places),
        next_task=tasks[0] if tasks else None,
        to_decide=tuple(Decided(item=shown_item(one), place_key=place_key(one.reply.place)) for one in doubtful),
        places=places,
        runs=run_rows(await inspection.runs(most=RUNS), blocked),
        models=_models(sums, await inspection.call_times(most=_MEASURED)),
        platforms=_platforms(day, places),
        store=_store_health(day, state),
        tasks=tuple(tasks),
    )


def _hours(sums: Iterable[CallSum], count: int) -> tuple[float, ...]:
    spent = [0.0] * count
    for one in sums:
        if one.hour.hour < count:
            spent[one.hour.hour] += one.spent.money
    return tuple(spent)


def _models(sums: Sequence[CallSum], times: Sequence[CallTime]) -> tuple[ModelHealth, ...]:
    """Return how the models have answered today, that which was asked most first."""
    found: dict[str, list[CallSum]] = {}
    for one in sums:
        found.setdefault(one.model, []).append(one)
    health = [_model(model, of_model, times) for model, of_model in found.items()]
    return tuple(sorted(health, key=lambda one: -one.spent.calls))


def _model(model: str, sums: Sequence[CallSum], times: Sequence[CallTime]) -> ModelHealth:
    own = [one for one in times if one.model == model]
    seconds = [one.seconds for one in own if not one.failure]
    return ModelHealth(
        model=model,
        spent=sum((one.spent for one in sums), Spent()),
        failed=sum(one.failed for one in sums),
        median_seconds=median(seconds) if seconds else None,
        answered_at=max((one.answered_at for one in sums if one.answered_at), default=None),
        failed_at=max((one.failed_at for one in sums if one.failed_at), default=None),
        why=next((one.failure for one in own if one.failure), ""),
    )


def _platforms(day: DaySummary, places: Iterable[PlaceRow]) -> tuple[PlatformHealth, ...]:
    counts: dict[str, int] = dict.fromkeys(day.updates, 0)
    for row in places:
        counts[row.place.platform] = counts.get(row.place.platform, 0) + 1
    found = []
    for name, count in sorted(counts.items()):
        seen = day.updates.get(name)
        found.append(
            PlatformHealth(
                name=name,
                updates=seen.count if seen else 0,
                unread=seen.unread if seen else 0,
                last_at=seen.last_at if seen else None,
                places=count,
            )
        )
    return tuple(found)


def _store_health(day: DaySummary, state: StoreState) -> StoreHealth:
    return StoreHealth(
        name=state.name,
        size=state.size,
        messages=day.messages,
        prompts=day.prompts,
        facts=day.facts,
        episodes=day.episodes,
        indexed=day.indexed,
    )
