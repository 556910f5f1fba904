"""What one process holds in memory for all its engines: who answers where, how often, and who wants a stop."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import DIRECT, GROUP
from tertulia.engine.limits import Limits
from tertulia.store.process_state import LocalOwnership, LocalRateLimits, LocalStopRequests

ALICE, BOB = ("telegram", "1"), ("telegram", "2")
TWO = Limits(messages=2, seconds=60)


def at(seconds: float) -> datetime:
    return datetime(2025, 1, 15, tzinfo=UTC) + timedelta(seconds=seconds)


async def test_a_place_is_held_by_one_at_a_time_and_others_are_free() -> None:
    ownership, events = LocalOwnership(), list[str]()

    async def work(name: str) -> None:
        async with ownership.hold(GROUP):
            events.append(f"{name} begins")
            await asyncio.sleep(0)
            events.append(f"{name} ends")

    async with asyncio.timeout(10), ownership.hold(DIRECT):
        await asyncio.gather(work("one"), work("two"))

    assert events == ["one begins", "one ends", "two begins", "two ends"]


async def test_a_place_is_free_again_after_an_error() -> None:
    ownership = LocalOwnership()

    with pytest.raises(ZeroDivisionError):
        async with ownership.hold(GROUP):
            raise ZeroDivisionError
    async with asyncio.timeout(10), ownership.hold(GROUP):
        pass


@pytest.mark.parametrize(
    ("times", "now", "allowed"),
    [([], 0, True), ([0], 59, True), ([0, 10], 59.9, False), ([0, 10], 60, True), ([0, 10, 61], 62, False)],
)
async def test_an_answer_counts_for_so_many_seconds(times: list[float], now: float, allowed: bool) -> None:
    limits = LocalRateLimits()
    for time in times:
        assert await limits.count_answer(ALICE, TWO, at=at(time))

    assert await limits.allows(ALICE, TWO, at=at(now)) == allowed
    assert await limits.allows(BOB, TWO, at=at(now))
    assert await limits.allows(("discord", ALICE[1]), TWO, at=at(now))
    assert await limits.count_answer(ALICE, TWO, at=at(now)) == allowed


async def test_a_clock_that_is_set_back_silences_nobody() -> None:
    limits = LocalRateLimits()
    for time in (7200, 7201):
        await limits.count_answer(ALICE, TWO, at=at(time))

    assert await limits.allows(ALICE, TWO, at=at(0))


async def test_who_is_warned_is_warned_once_until_answered_again() -> None:
    limits = LocalRateLimits()

    assert [await limits.claim_notice(author) for author in (ALICE, ALICE, BOB)] == [True, False, True]
    await limits.count_answer(ALICE, TWO, at=at(0))
    assert [await limits.claim_notice(author) for author in (ALICE, ALICE, BOB)] == [True, False, False]


async def test_an_answer_that_is_given_back_does_not_count_and_a_warning_stands() -> None:
    limits = LocalRateLimits()
    await limits.count_answer(ALICE, TWO, at=at(0))
    await limits.count_answer(ALICE, TWO, at=at(0))
    await limits.claim_notice(ALICE)

    await limits.uncount_answer(ALICE)
    await limits.uncount_answer(BOB)

    assert not await limits.claim_notice(ALICE)
    assert [await limits.count_answer(ALICE, TWO, at=at(0)), await limits.count_answer(ALICE, TWO, at=at(0))] == [
        True,
        False,
    ]


async def test_a_warning_that_came_to_nothing_is_given_again_and_every_answer_counts_still() -> None:
    limits = LocalRateLimits()
    await limits.count_answer(ALICE, TWO, at=at(0))
    await limits.count_answer(ALICE, TWO, at=at(0))
    await limits.claim_notice(ALICE)

    await limits.release_notice(ALICE)

    assert not await limits.allows(ALICE, TWO, at=at(0))
    assert [await limits.claim_notice(ALICE), await limits.claim_notice(ALICE)] == [True, False]


async def test_of_too_many_authors_the_one_answered_longest_ago_is_forgotten() -> None:
    limits = LocalRateLimits(authors=2)
    for author in (ALICE, BOB, ALICE, ("telegram", "3")):
        await limits.count_answer(author, TWO, at=at(0))

    assert [await limits.count_answer(author, TWO, at=at(0)) for author in (ALICE, BOB, BOB)] == [False, True, True]


@given(st.lists(st.floats(0, 50)), st.integers(1, 5), st.integers(1, 20))
async def test_no_author_is_answered_more_often_than_agreed_in_any_stretch_of_time(
    pauses: list[float], most: int, seconds: int
) -> None:
    limits, limit, now = LocalRateLimits(), Limits(messages=most, seconds=seconds), at(0)
    granted, warned = list[datetime](), list[bool]()
    for pause in pauses:
        now += timedelta(seconds=pause)
        allowed = await limits.allows(ALICE, limit, at=now)
        assert await limits.count_answer(ALICE, limit, at=now) == allowed
        if allowed:
            granted.append(now)
        else:
            warned.append(await limits.claim_notice(ALICE))

    assert all(late - early >= timedelta(seconds=seconds) for early, late in zip(granted, granted[most:], strict=False))
    assert sum(warned) <= len(granted)


def test_a_request_to_stop_reaches_who_listens_in_that_place_while_they_do() -> None:
    requests, heard = LocalStopRequests(), list[str]()

    requests.request(GROUP)
    with requests.listen(GROUP, lambda: heard.append("group")), requests.listen(DIRECT, lambda: heard.append("direct")):
        requests.request(GROUP)
    requests.request(GROUP)

    assert heard == ["group"]
