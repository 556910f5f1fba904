"""Health of models and platforms: how they answered today, and since when they do not. Pure.

A model is down since the first call that failed after its last answer, if the service was the reason. That is read of
the calls. When it is asked again, and what keeps a platform from its service, only the bot's own process knows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from tertulia import errors
from tertulia.engine.health import Health
from tertulia.engine.inspection import CallSum, DaySummary, Spent
from tertulia.inspector.values import ModelHealth, PlaceRow, PlatformHealth
from tertulia.models.calls import Call
from tertulia.platform import Trouble

MEASURED = 400  # calls whose times are read
_NOBODY = Health(models={}, platforms={})


def model_health(
    sums: Iterable[CallSum], times: Sequence[Call], health: Health | None, *, now: datetime
) -> tuple[ModelHealth, ...]:
    """Return how the models have answered today, that which was asked most first."""
    known = (health or _NOBODY).models
    found: dict[str, list[CallSum]] = {name: [] for name in known}
    for one in sums:
        found.setdefault(one.model, []).append(one)
    rows = [_model(model, of_model, times, known.get(model), now) for model, of_model in found.items()]
    return tuple(sorted(rows, key=lambda one: -one.spent.calls))


def _model(
    model: str, sums: Sequence[CallSum], times: Sequence[Call], retry_at: datetime | None, now: datetime
) -> ModelHealth:
    own = [one for one in times if one.model == model]
    seconds = [(one.ended_at - one.begun_at).total_seconds() for one in own if one.status == "answered"]
    return ModelHealth(
        model=model,
        spent=sum((one.spent for one in sums), Spent()),
        failed=sum(one.failed for one in sums),
        median_seconds=median(seconds) if seconds else None,
        answered_at=max((one.answered_at for one in sums if one.answered_at), default=None),
        failed_at=max((one.failed_at for one in sums if one.failed_at), default=None),
        why=next((f"{one.error}: {one.why}" for one in own if one.status == "failed"), ""),
        down_since=_down_since(own),
        retry_at=retry_at if retry_at and retry_at > now else None,
    )


def _down_since(newest_first: Iterable[Call]) -> datetime | None:
    """Return when the first call failed after the last that says something else of the service."""
    since = None
    for one in newest_first:
        if one.status == "stopped":
            continue
        if not is_of_service(one.error):
            return since
        since = one.ended_at
    return since


def is_of_service(error: str) -> bool:
    """Return whether an error of this class says that a service does not answer; that it refused one request does not.

    Calls are stored with the class of their error.
    """
    kind: Any = getattr(errors, error, None)
    return isinstance(kind, type) and issubclass(kind, errors.ModelUnavailable | errors.OperatorMustAct)


def platform_health(day: DaySummary, places: Iterable[PlaceRow], health: Health | None) -> tuple[PlatformHealth, ...]:
    """Return the platforms that run, have places, or had updates today."""
    troubles = (health or _NOBODY).platforms
    counts: dict[str, int] = dict.fromkeys([*day.updates, *troubles], 0)
    for row in places:
        counts[row.place.platform] = counts.get(row.place.platform, 0) + 1
    return tuple(_platform(name, count, day, health, troubles.get(name)) for name, count in sorted(counts.items()))


def _platform(
    name: str, places: int, day: DaySummary, health: Health | None, trouble: Trouble | None
) -> PlatformHealth:
    seen = day.updates.get(name)
    return PlatformHealth(
        name=name,
        updates=seen.count if seen else 0,
        unread=seen.unread if seen else 0,
        last_at=seen.last_at if seen else None,
        places=places,
        running=name in health.platforms if health else None,
        down_since=trouble.since if trouble else None,
        retry_at=trouble.retry_at if trouble else None,
        why=trouble.why if trouble else "",
    )
