"""Time passes when it is told to, and everybody wakes at their own time."""

import asyncio
from datetime import UTC, datetime, timedelta

from palaver.testing import Clock

START = datetime(2026, 3, 1, tzinfo=UTC)


async def test_sleepers_wake_in_the_order_in_which_they_are_due_and_at_their_own_time() -> None:
    clock, woken = Clock(START), list[tuple[str, float]]()

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, (clock.now() - START).total_seconds()))

    sleepers = [asyncio.create_task(sleeper("a", 5, 2)), asyncio.create_task(sleeper("b", 6, 100))]
    await clock.advance(10)

    assert woken == [("a", 5), ("b", 6), ("a", 7)]
    assert clock.now() == START + timedelta(seconds=10)
    await clock.advance(96)
    await asyncio.gather(*sleepers)


async def test_who_does_not_sleep_or_is_cancelled_holds_nobody_up() -> None:
    clock = Clock(START)
    await clock.sleep(0)
    sleeping = asyncio.create_task(clock.sleep(5))
    await clock.advance(1)
    sleeping.cancel()
    await clock.advance(10)

    assert (sleeping.cancelled(), clock.now()) == (True, START + timedelta(seconds=11))
