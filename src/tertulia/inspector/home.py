"""Home: whether the bot is well, what it has spent today, and what waits for a decision."""

from collections.abc import Iterable
from datetime import datetime
from statistics import median

from tertulia.engine.health import Health
from tertulia.engine.inspection import CallSum, DaySummary, Spent, StoreState
from tertulia.engine.limits import Cap
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.health import MEASURED, model_health, platform_health
from tertulia.inspector.places import midnight, place_key, place_rows
from tertulia.inspector.runs import run_rows
from tertulia.inspector.shown import shown_item
from tertulia.inspector.values import AgentBrief, Decided, Home, StoreHealth

RUNS = 12  # of the newest
TASKS = 8  # of the next


async def home(
    store: StoreProtocol,
    *,
    now: datetime,
    agents: tuple[AgentBrief, ...] = (),
    cap: Cap | None = None,
    health: Health | None = None,
) -> Home:
    """Return the state of a bot; *cap* is on all that it may spend in a day, *health* what its own process knows."""
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
        agents=agents,
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
        models=model_health(sums, await inspection.call_times(most=MEASURED), health, now=now),
        platforms=platform_health(day, places, health),
        store=_store_health(day, state),
        tasks=tuple(tasks),
    )


def _hours(sums: Iterable[CallSum], count: int) -> tuple[float, ...]:
    spent = [0.0] * count
    for one in sums:
        if one.hour.hour < count:
            spent[one.hour.hour] += one.spent.money
    return tuple(spent)


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
