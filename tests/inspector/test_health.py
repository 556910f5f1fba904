"""Health: since when a service does not answer, read of its calls; when it is asked again, from the bot's process."""

from datetime import timedelta
from typing import Any

from inspector.evening import NOW
from tertulia.engine.health import Health
from tertulia.inspector.health import model_health
from tertulia.inspector.values import ModelHealth
from tertulia.models.calls import Call


def a_time(minutes: int, error: str = "", **changes: Any) -> Call:
    fields: dict[str, Any] = {
        "model": "m",
        "begun_at": NOW + timedelta(minutes=minutes),
        "ended_at": NOW + timedelta(minutes=minutes),
    }
    failed = {"status": "failed", "error": error, "why": "busy"} if error else {}
    return Call(**fields | failed | changes)


def down_since(*times: Call) -> Any:
    (found,) = model_health((), times[::-1], Health(models={"m": None}, platforms={}), now=NOW)
    return found.down_since and (found.down_since - NOW) // timedelta(minutes=1)


def test_a_model_is_down_since_the_first_call_that_its_service_did_not_answer() -> None:
    answered, stopped = a_time(0), a_time(5, status="stopped")
    cases = {
        (answered,): None,
        (answered, a_time(1, "Overloaded"), a_time(2, "TimedOut")): 1,
        (a_time(1, "KeyRefused"), a_time(2, "QuotaExhausted"), stopped): 1,
        (a_time(1, "Overloaded"), a_time(2)): None,
        (a_time(1, "Overloaded"), a_time(2, "RequestRefused")): None,  # the service lives
        (a_time(1, "Overloaded"), a_time(2, "HouseOnFire")): None,  # a model of somebody else raised it
        (a_time(1, "Overloaded", model="other"),): None,
    }

    assert {times: down_since(*times) for times in cases} == cases


def test_models_that_were_not_asked_today_are_shown_and_a_wait_that_is_over_is_not() -> None:
    health = Health(models={"m": NOW - timedelta(seconds=1), "n": NOW + timedelta(seconds=9)}, platforms={})

    assert model_health((), (), health, now=NOW) == (
        ModelHealth(model="m"),
        ModelHealth(model="n", retry_at=NOW + timedelta(seconds=9)),
    )
