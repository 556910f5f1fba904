import math
from typing import Any

import pytest

from tertulia import errors
from tertulia.engine.behavior import FAILED, NOTHING_TO_SAY, Behavior, error_text
from tertulia.errors import InvalidValue, TertuliaError
from tertulia.tasks.task import POLICIES

WORDED = [
    (errors.ContextTooLong("?"), "too long for me"),
    (errors.QuotaExhausted("?"), "used up"),
    (errors.RateLimited("?"), "too much to do"),
    (errors.Overloaded("?"), "cannot reach my model"),
    (errors.ServiceFault("?"), "cannot reach my model"),
    (errors.TimedOut("?"), "cannot reach my model"),
    (errors.ConnectionLost("?"), "cannot reach my model"),
    (errors.KeyMissing("?"), "whoever runs me"),
    (errors.StoreFull("?"), "whoever runs me"),
    (errors.AnswerUnfit("?"), NOTHING_TO_SAY),
    (errors.ResponseUnreadable("?"), NOTHING_TO_SAY),
    (errors.RequestRefused("?"), FAILED),
    (errors.InvalidValue("?"), FAILED),
    (errors.CacheGone("?"), FAILED),
    (TertuliaError("?"), FAILED),
]


@pytest.mark.parametrize(("error", "words"), WORDED)
def test_the_line_for_a_person_says_what_helps_them(error: TertuliaError, words: str) -> None:
    assert words in error_text(error)


@pytest.mark.parametrize("kind", [type(error) for error, _ in WORDED])
def test_what_went_wrong_inside_stays_inside(kind: type[TertuliaError]) -> None:
    assert error_text(kind("the key sk-secret at /home/me")) == error_text(kind("?"))


IMPOSSIBLE: list[dict[str, Any]] = [
    {"cancel_tasks": "some"},
    {"debounce": -1.0},
    {"debounce": math.nan},
    {"debounce": 11.0},
    {"debounce": math.inf, "max_debounce": math.inf},
    {"max_debounce": math.nan},
    {"max_debounce": math.inf},
    {"max_debounce": 1e300},
    {"max_runs": 0},
    {"model_may": frozenset({"send"})},
    {"max_resumes": 0},
    {"agents_in_a_row": -1},
]


@pytest.mark.parametrize("values", IMPOSSIBLE)
def test_a_behavior_that_cannot_be_is_refused_in_one_line(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        Behavior(**values)

    assert "\n" not in str(refused.value)
    assert next(iter(values)).partition("_")[0] in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"debounce": 0.0, "max_debounce": 0.0},
        {"debounce": 60.0, "max_debounce": 60.0},
        {"agents_in_a_row": 0},
        {"max_runs": 1, "max_resumes": 1},
        {"during_run": "next_step", "doubtful_replies": "resend"},
        *({"cancel_tasks": name} for name in POLICIES),
    ],
)
def test_what_can_be_can_be(values: dict[str, Any]) -> None:
    behavior = Behavior(**values)

    assert behavior.policy is POLICIES[values.get("cancel_tasks", "sends")]
