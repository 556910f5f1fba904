"""A reminder that comes again, in processes that are killed at every point and at any time, comes once for each day."""

import asyncio
import signal
import sys
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from engine.engines import GROUP
from engine.reminder_child import DAY
from people import NOON
from sizes import size
from tertulia.store import Store
from tertulia.tasks.recurrence import parse_when
from tertulia.tasks.reminders import reminder_task

CHILD = Path(__file__).with_name("reminder_child.py")
POINTS = ("before take", "after take", "before end", "after end", "within send")
KILLS = size(2, full=20)  # at any time
SECOND = timedelta(seconds=1)


async def lived(path: Path, began: float, point: str = "", *, sends: int = 0, seconds: float = 0.0) -> list[str]:
    """Let a process live until it ends itself, or so long after so many sends; return the ids of what it sent."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, path, str(began), point,
        env={"PYTHONPATH": str(CHILD.parents[1])}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        async with asyncio.timeout(60):
            sent = [await child.stdout.readline() for _ in range(sends)]
            await asyncio.sleep(seconds)
            if not point:
                child.kill()
            sent += [await child.stdout.read()]
            assert await child.wait() == -signal.SIGKILL
    finally:
        if child.returncode is None:
            child.kill()
    return b"".join(sent).decode().split()


async def test_it_comes_once_for_each_day_and_once_for_those_that_no_process_saw(tmp_path: Path) -> None:
    path, began = tmp_path / "bot.db", time.time()
    due_at, again = parse_when("every day at 3:30", NOON, "Europe/Kyiv")
    assert again is not None
    async with Store.open(path) as store:
        await store.tasks.add([reminder_task("reminder-1", GROUP, "Tea.", when=(due_at, again), asked=None)])

    sent: list[str] = []
    for point in POINTS:
        sent += await lived(path, began, point)
    for number in range(KILLS):
        sent += await lived(path, began, sends=2, seconds=number * 0.37 % 1 * DAY)
    async with Store.open(path) as store:
        (task,) = await store.tasks.listed()
        told = [item for item in await store.outbox.listed() if item.task]

    due = [datetime.strptime(f"{item.id.split('-')[-2]}+0000", "%Y%m%dT%H%M%S%z") for item in told]
    assert [again.next_after(one - SECOND) for one in due] == due
    assert all(one < other for one, other in pairwise(due))  # none is doubled
    assert all(item.made_at < later for item, later in zip(told, [*due[1:], task.due_at], strict=True))  # missed: once
    assert list(dict.fromkeys(sent)) in ([item.id for item in told], [item.id for item in told[:-1]])
    assert len(told) >= 2 * KILLS
