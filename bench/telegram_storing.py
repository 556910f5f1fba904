"""Subjects that poll a Bot API server and store its updates durably: ours, and aiogram with aiosqlite."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench.engine import BEHAVIOR, LIMITS, InstantModel
from bench.telegram_server import TOKEN, Control
from msgspec import Struct

from tertulia import Engine, Store
from tertulia.platform import Inbox
from tertulia.platforms.telegram import Telegram

WARM = 300  # updates before the clock starts


class Stored(Struct, frozen=True, kw_only=True):
    """What it took a subject to store all updates but the first `WARM`, in seconds."""

    name: str
    cpu: float
    wall: float


class Clock:
    """Times a bot from the update `WARM` to the last one, when the server has them confirmed."""

    def __init__(self, port: int, count: int) -> None:
        self.port = port
        self._count = count
        self.cpu = self.wall = 0.0

    async def time(self, polling: Coroutine[Any, Any, None]) -> None:
        """Let a bot poll until it has confirmed all updates."""
        tasks = bot, timing = asyncio.create_task(polling), asyncio.create_task(self._time())
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert timing.done(), f"the bot ended: {bot.exception()}"
        bot.cancel()
        with suppress(asyncio.CancelledError):
            await bot

    async def _time(self) -> None:
        control = await Control.connect(self.port)
        await control.confirmed(WARM)
        wall, cpu = time.perf_counter(), time.process_time()
        await control.confirmed(WARM + self._count)
        self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu


Subject = Callable[[Path, Clock], Coroutine[Any, Any, None]]


class OneByOne(Telegram):
    """It stores each update with a commit of its own."""

    def __init__(self, token: str, *, base_url: str) -> None:
        super().__init__(token, base_url=base_url)
        self._lock = asyncio.Lock()

    async def apply(self, inbox: Inbox, number: int, raw: bytes) -> None:
        async with self._lock:
            await super().apply(inbox, number, raw)


async def tertulia_inbox(path: Path, clock: Clock, *, kind: Callable[..., Telegram] = Telegram) -> None:
    """Store with the inbox of the engine alone: nobody decides whether to answer."""
    platform = kind(TOKEN, base_url=f"http://127.0.0.1:{clock.port}")
    await platform.open()
    async with Store.open(path) as store:
        engine = Engine(store, InstantModel(), [platform], behavior=BEHAVIOR, limits=LIMITS)  # it is not started
        await clock.time(platform.run(engine.inbox(platform.name)))
    await platform.close()


async def tertulia_engine(path: Path, clock: Clock) -> None:
    """Store with the whole engine, which decides about each message that it is not spoken to."""
    platform = Telegram(TOKEN, base_url=f"http://127.0.0.1:{clock.port}")
    async with (
        Store.open(path) as store,
        Engine(store, InstantModel(), [platform], behavior=BEHAVIOR, limits=LIMITS) as engine,
    ):
        await clock.time(platform.run(engine.inbox(platform.name)))
        began = time.process_time()
        await engine.settled()
        clock.cpu += time.process_time() - began  # what it had not decided yet


async def aiogram(path: Path, clock: Clock, *, is_raw_stored: bool = True) -> None:
    """Store in a handler of aiogram: two rows and a commit for each update, before the next one is handled."""
    import aiosqlite
    from aiogram import Bot, Dispatcher, types
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    logging.getLogger("aiogram").setLevel(logging.CRITICAL)  # it complains when its polling is ended
    server = TelegramAPIServer.from_base(f"http://127.0.0.1:{clock.port}")
    bot, dispatcher = Bot(TOKEN, session=AiohttpSession(api=server)), Dispatcher()
    async with aiosqlite.connect(path) as database:
        await database.execute("PRAGMA journal_mode = WAL")
        await database.execute("PRAGMA synchronous = FULL")
        await database.execute("CREATE TABLE updates (id INTEGER PRIMARY KEY, raw TEXT)")
        await database.execute(
            """CREATE TABLE messages (chat INTEGER, id INTEGER, author INTEGER, name TEXT, sent_at TEXT,
                reply_to INTEGER, text TEXT, PRIMARY KEY (chat, id))"""
        )

        async def store(message: types.Message, event_update: types.Update) -> None:
            user, replied = message.from_user, message.reply_to_message
            row = (
                message.chat.id,
                message.message_id,
                user.id if user else None,
                user.full_name if user else None,
                message.date.isoformat(),
                replied.message_id if replied else None,
                message.text or message.caption,
            )
            if is_raw_stored:
                raw = event_update.model_dump_json(by_alias=True, exclude_none=True)
                await database.execute("INSERT INTO updates VALUES (?, ?)", (event_update.update_id, raw))
            await database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            await database.commit()

        dispatcher.message.register(store)
        await clock.time(dispatcher.start_polling(bot, handle_as_tasks=False, handle_signals=False))


SUBJECTS: dict[str, Subject] = {
    "tertulia": tertulia_inbox,
    "tertulia, a commit for each": partial(tertulia_inbox, kind=OneByOne),
    "tertulia, whole engine": tertulia_engine,
    "aiogram + aiosqlite": aiogram,
    "aiogram + aiosqlite, not the raw update": partial(aiogram, is_raw_stored=False),
}


def store_updates(name: str, port: int, count: int, folder: str) -> Stored:
    """Let a subject store updates, and check that it has all of them."""
    path, clock = Path(folder) / "s.db", Clock(port, count)
    asyncio.run(SUBJECTS[name](path, clock))
    with closing(sqlite3.connect(path)) as database:
        messages, texts = database.execute("SELECT count(*), count(DISTINCT text) FROM messages").fetchone()
        raws = database.execute("SELECT count(*) FROM updates WHERE length(raw) > 100").fetchone()[0]
    assert messages == texts == WARM + count, f"{name} stored {messages} messages, {texts} different texts"
    assert raws == (0 if "not the raw" in name else WARM + count), f"{name} stored {raws} raw updates"
    return Stored(name=name, cpu=clock.cpu, wall=clock.wall)
