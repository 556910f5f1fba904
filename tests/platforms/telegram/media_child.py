"""A bot that sees and describes media, on the simulators of Telegram and Gemini, in a process forked for each life."""

import asyncio
import errno
import os
import sys
from datetime import UTC, datetime, timedelta

from msgspec import Struct, json

from lives import fork_lives
from platforms.telegram.bot_child import AT_ONCE, short_sleep
from tertulia import Behavior, Engine, Store
from tertulia.engine.background import RealClock
from tertulia.engine.describers import by_model
from tertulia.engine.limits import Limits
from tertulia.models.gemini.client import Gemini
from tertulia.platforms.telegram.platform import Telegram

MODEL = "gemini-3.8-flash"


class MediaLife(Struct, frozen=True, kw_only=True):
    """What a child is told."""

    path: str
    url: str
    token: str
    gemini: str
    key: str
    ahead: float = 0.0  # seconds that its clock is ahead
    full: bool = False  # whether no file of media can be written
    questions: int = 0  # after which it ends when all is done; 0: it lives until it is killed


def refuse_files(folder: str) -> None:
    """Let the disk of a folder be full: no file in it can be opened for writing."""

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event != "open" or not str(args[0]).startswith(folder):
            return
        if isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR) and ".part-" in str(args[0]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(args[0]))

    sys.addaudithook(audit)


async def live(life: MediaLife) -> None:
    if life.full:
        refuse_files(f"{life.path}-media")
    clock = RealClock(now=lambda: datetime.now(UTC) + timedelta(seconds=life.ahead))
    behavior, limits = Behavior(debounce=0.0, max_resumes=100_000), Limits(messages=100_000)
    async with (
        Store.open(life.path, media_folder=f"{life.path}-media") as store,
        Gemini(MODEL, key=life.key, base_url=life.gemini) as model,
    ):
        platform = Telegram(life.token, base_url=life.url, pace=AT_ONCE, sleep=short_sleep)
        engine = Engine(
            store, model, [platform], behavior=behavior, limits=limits, describe=by_model(model), clock=clock
        )
        running = asyncio.create_task(engine.run())
        if not life.questions:
            await running
        while await asked(store) < life.questions:  # noqa: ASYNC110 (nobody tells when the last one is there)
            await asyncio.sleep(0.1)
        await engine.settled()
        running.cancel()
        await asyncio.wait([running])


async def asked(store: Store) -> int:
    """How many questions are stored."""
    rows = [row async for row in store.export() if row["table"] == "messages"]
    return sum("number " in row["text"] for row in rows if not row["own"])


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=MediaLife)))
