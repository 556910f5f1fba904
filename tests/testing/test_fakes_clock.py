"""Time passes when it is told to, and everybody wakes at their own time."""

import asyncio
from datetime import UTC, datetime, timedelta

from tertulia import Author, Behavior, Engine, Message, Place, Store, Text, ToolCall
from tertulia.testing import Clock, RecordedPlatform, Scripted
from tertulia.tools.reminders import reminder_tool

START = datetime(2026, 3, 1, tzinfo=UTC)
HERE = Place(platform="recorded", id="1", kind="direct")
MESSAGE = Message(
    id="1", place=HERE, author=Author(id="1", name="Alice"), parts=(Text(text="Remind me of the tea."),), sent_at=START
)


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


async def test_a_reminder_of_an_engine_comes_when_the_clock_is_advanced() -> None:
    clock, platform = Clock(START), RecordedPlatform()
    model = Scripted([ToolCall(name="remind_me", args={"when": "in 10 minutes", "text": "Tea!"})], "All right.")
    async with Store.open(":memory:") as store:
        tools = [reminder_tool(store.tasks, clock.now, "Europe/Kyiv")]
        behavior = Behavior(debounce=0)
        async with Engine(store, model, [platform], tools=tools, behavior=behavior, clock=clock) as engine:
            await engine.receive(MESSAGE)
            await engine.settled()
            await clock.advance(599)
            await engine.settled()
            assert platform.texts == ["All right."]

            await clock.advance(1)
            await engine.settled()
            assert platform.texts == ["All right.", "Tea!"]


async def test_an_engine_waits_for_more_of_an_author_by_the_clock() -> None:
    clock, platform = Clock(START), RecordedPlatform()
    async with Store.open(":memory:") as store:
        behavior = Behavior(debounce=600, max_debounce=600)
        async with Engine(store, Scripted("Hello."), [platform], behavior=behavior, clock=clock) as engine:
            await engine.receive(MESSAGE)
            while clock.now() < START + timedelta(hours=1) and not platform.texts:
                await clock.advance(60)
                await asyncio.sleep(0.001)  # the store has threads of its own

    assert platform.texts == ["Hello."]
