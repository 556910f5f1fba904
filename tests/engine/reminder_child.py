"""An engine with a reminder that comes again, in a process whose days pass in a moment and that may end itself."""

import asyncio
import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any

from people import NOON
from tertulia.engine.background import RealClock
from tertulia.engine.engine import Engine
from tertulia.models.scripted import Scripted
from tertulia.platform import Capabilities, Delivery
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

DAY = 0.2  # seconds
SPEED = 86_400 / DAY


class Dying:
    """The tasks of a store; the process ends before or after one of their calls, the second time it comes there."""

    def __init__(self, tasks: Any, point: str) -> None:
        self._tasks, self._point, self._left = tasks, point, 2

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._tasks, name)

        async def called(*args: Any, **named: Any) -> Any:
            self._reach(f"before {name}")
            found = await work(*args, **named)
            if name != "take" or found:
                self._reach(f"after {name}")
            return found

        return called if name in ("take", "end") else work

    def _reach(self, point: str) -> None:
        self._left -= point == self._point
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Service(RecordedPlatform):
    """A service that knows a delivery again by its id, and prints the ids."""

    def __init__(self, point: str) -> None:
        super().__init__(capabilities=Capabilities(idempotency_window=timedelta.max))
        self._point = point

    async def send(self, delivery: Delivery) -> str:
        print(delivery.id, flush=True)
        if self._point == "within send":
            os.kill(os.getpid(), signal.SIGKILL)
        return delivery.id


async def live(path: str, began: float, point: str) -> None:
    clock = RealClock(
        now=lambda: NOON + timedelta(seconds=(time.time() - began) * SPEED),
        sleep=lambda seconds: asyncio.sleep(max(seconds / SPEED, 0.002)),
    )
    async with Store.open(path) as store:
        store.tasks = Dying(store.tasks, point)  # type: ignore[assignment]
        async with Engine(store, Scripted(), [Service(point)], clock=clock, zone="Europe/Kyiv"):
            await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
