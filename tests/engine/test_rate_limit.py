import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.engines import BOB, GROUP, engine_with, said, shared_by, store_with, talked
from engine.test_admission import decided
from tertulia.engine.admission import Admission
from tertulia.engine.behavior import TOO_MANY
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.limits import CurrentLimits, Limits
from tertulia.engine.rate_limit import RateLimiter
from tertulia.errors import InvalidValue, StoreFull
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

TWICE = Limits(messages=2, seconds=60)


class Clock:
    """A clock that says `at` seconds; nothing sleeps until it is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> datetime:
        return datetime(2025, 1, 15, tzinfo=UTC) + timedelta(seconds=self.at)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("values", [{"messages": 0}, {"messages": -1}, {"seconds": -1.0}, {"seconds": math.nan}])
def test_a_limit_that_cannot_be_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=r"^Limits: messages must be at least 1 and seconds at least 0$"):
        Limits(**values)


async def test_an_author_is_answered_so_often_in_all_places(store: Store, clock: Clock) -> None:
    made = RateLimiter(store.rate_limits, CurrentLimits(TWICE), now=clock.now)
    here, there = said("hi"), said("Gryag?", place=GROUP)

    assert [await made.count_answer(here), await made.count_answer(there), await made.count_answer(here)] == [
        True,
        True,
        False,
    ]
    assert [await made.allows(there), await made.allows(said("hi", author=BOB))] == [False, True]
    clock.at = 60.0
    assert await made.allows(there)
    assert await made.count_answer(there)


async def test_a_message_over_the_limit_does_not_count(store: Store, clock: Clock) -> None:
    made = RateLimiter(store.rate_limits, CurrentLimits(TWICE), now=clock.now)
    for clock.at in (0.0, 10.0, 20.0, 59.0):
        await made.count_answer(said("hi"))

    clock.at = 60.0

    assert [await made.count_answer(said("hi")), await made.count_answer(said("hi"))] == [True, False]


async def test_an_answer_that_is_given_back_does_not_count(store: Store, clock: Clock) -> None:
    made = RateLimiter(store.rate_limits, CurrentLimits(TWICE), now=clock.now)
    await made.count_answer(said("hi"))
    await made.count_answer(said("hi"))

    await made.uncount_answer(said("hi"))

    assert [await made.count_answer(said("hi")), await made.count_answer(said("hi"))] == [True, False]


async def test_admission_decides_by_the_rate_limit(store: Store, clock: Clock) -> None:
    shared = shared_by(store, limits=Limits(messages=1, seconds=60), now=clock.now)
    made = RateLimiter(store.rate_limits, shared.limits, now=clock.now)
    admission = Admission(shared, made, Confirmations(shared))
    await made.count_answer(said("hi"))

    assert (await decided(admission, said("Gryag?", place=GROUP))).reason == "rate limit"
    assert (await decided(admission, said("hi", author=BOB))).reason == "answered"
    clock.at = 60.0
    assert (await decided(admission, said("Gryag?", place=GROUP))).reason == "answered"


async def test_of_too_many_messages_there_is_one_notice_then_silence_and_a_notice_again_after_an_answer(
    store: Store, clock: Clock
) -> None:
    platform, numbers = RecordedPlatform(), iter(range(99))
    limits = Limits(messages=1, seconds=60)

    async with engine_with(Scripted("1", "2", "3"), platform, store=store, limits=limits, now=clock.now) as engine:
        for clock.at in (0, 1, 2, 59, 60, 61, 62, 300, 301):
            await talked(engine, said("hi", next(numbers)))

    assert platform.texts == ["1", TOO_MANY, "2", TOO_MANY, "3", TOO_MANY]


async def test_a_notice_for_which_there_was_no_room_does_not_make_room_for_an_answer(store: Store) -> None:
    """The disk is full for a while, just when the author is to be told."""

    class Runs:
        def __init__(self) -> None:
            self.full = 3

        def __getattr__(self, name: str) -> Any:
            return getattr(store.runs, name)

        async def end(self, run: Any, **changes: Any) -> None:
            if self.full and run.status == "failed":
                self.full -= 1
                raise StoreFull("there is no room left")
            await store.runs.end(run, **changes)

    async def sleep(_: float) -> None: ...

    platform, model = RecordedPlatform(), Scripted("1", "2", "3", "4")
    little = store_with(store, runs=Runs())
    async with engine_with(model, platform, store=little, limits=TWICE, sleep=sleep) as engine:
        await talked(engine, *(said("hi", number) for number in range(6)))

    assert platform.texts == ["1", "2", TOO_MANY]
