"""Bots that are made with aiogram, and pass on what their own handlers leave."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from platforms.telegram.world import AT_ONCE, short_sleep
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.errors import InvalidValue
from tertulia.models.scripted import Scripted
from tertulia.platforms.telegram.platform import Telegram
from tertulia.sim.telegram import TelegramSim
from tertulia.store import Store
from tertulia.testing import RecordedPlatform


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSim]:
    async with TelegramSim() as served:
        yield served


async def run_with_aiogram(sim: TelegramSim, store: Store, ready: Any, *, handle_as_tasks: bool) -> None:
    """An aiogram bot with a handler of its own for /ping, and the engine for all else."""
    from aiogram import Bot, Dispatcher, Router
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.filters import Command
    from aiogram.types import Message

    from tertulia.platforms.telegram.aiogram import router

    own = Router()

    @own.message(Command("ping"))
    async def ping(message: Message) -> None:
        await message.answer("pong")

    platform = Telegram(sim.token, base_url=sim.url, poll=False, pace=AT_ONCE, sleep=short_sleep)
    async with Engine(store, Scripted("Hello.", "Again."), [platform], behavior=Behavior(debounce=0)) as engine:
        dispatcher = Dispatcher()
        dispatcher.include_routers(own, router(engine))
        session = AiohttpSession(api=TelegramAPIServer.from_base(sim.url))
        polling = asyncio.create_task(
            dispatcher.start_polling(
                Bot(sim.token, session=session), handle_signals=False, handle_as_tasks=handle_as_tasks
            )
        )
        await sim.until(ready)
        await engine.settled()
        await dispatcher.stop_polling()
        await polling


async def test_what_the_bots_own_handlers_leave_is_answered_by_the_engine(
    sim: TelegramSim, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    olha = sim.user("Olha")
    chat = sim.private(olha)
    olha.send(chat, "/ping")
    olha.send(chat, "hi")

    await run_with_aiogram(sim, store, lambda: len(chat.of(sim.bot)) == 2, handle_as_tasks=False)

    assert sorted(one.text for one in chat.of(sim.bot)) == ["Hello.", "pong"]
    assert "handle_as_tasks=False" not in caplog.text


async def test_a_message_whose_link_has_no_preview_reaches_the_engine(sim: TelegramSim, store: Store) -> None:
    """aiogram's values for what a bot sends by default cannot be encoded."""
    olha = sim.user("Olha")
    chat = sim.private(olha)
    shown = {"id": olha.id, "is_bot": False, "first_name": "Olha"}
    message = {"message_id": 99, "date": 1, "chat": {**shown, "type": "private"}, "from": shown, "text": "see a.org"}
    sim.inject({"message": {**message, "link_preview_options": {"is_disabled": True}}})

    await run_with_aiogram(sim, store, lambda: len(chat.of(sim.bot)) == 1, handle_as_tasks=False)

    assert [one.text for one in chat.of(sim.bot)] == ["Hello."]


async def test_it_says_so_when_updates_are_confirmed_before_they_are_stored(
    sim: TelegramSim, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    olha = sim.user("Olha")
    chat = sim.private(olha)
    olha.send(chat, "hi")

    await run_with_aiogram(sim, store, lambda: len(chat.of(sim.bot)) == 1, handle_as_tasks=True)

    assert "start_polling(…, handle_as_tasks=False)" in caplog.text


async def test_an_engine_without_telegram_is_refused(store: Store) -> None:
    from tertulia.platforms.telegram.aiogram import router

    engine = Engine(store, Scripted("Hello."), [RecordedPlatform()])

    with pytest.raises(InvalidValue, match="the engine has no Telegram"):
        router(engine)


def programs(page: str) -> list[str]:
    """The programs of a page that use aiogram."""
    text = (Path(__file__).parents[3] / "docs" / page).read_text("utf-8")
    return [one for one in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "aiogram" in one]


def test_the_programs_of_the_pages_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")

    for program in (*programs("telegram.md"), *programs("porting.md")):
        exec(compile(program, "a page", "exec"), {"__name__": "program"})  # noqa: S102 (of our own pages)
    assert (len(programs("telegram.md")), len(programs("porting.md"))) == (1, 2)
