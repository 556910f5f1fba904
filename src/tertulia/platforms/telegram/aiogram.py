"""A router for bots that are made with aiogram: what their own handlers leave goes to the engine."""

import asyncio
import logging
from typing import Any

from aiogram import Router
from aiogram.types import Update

from tertulia.engine.engine import Engine
from tertulia.errors import InvalidValue
from tertulia.platforms.telegram.platform import Telegram
from tertulia.platforms.telegram.types import ALLOWED_UPDATES

log = logging.getLogger(__name__)

NEEDED = "start aiogram with start_polling(…, handle_as_tasks=False): else it confirms updates before they are stored"


def router(engine: Engine) -> Router:
    """Return a router to include last. The engine has `Telegram(token, poll=False)` among its platforms."""
    bots = {platform.name: platform for platform in engine.platforms.values() if isinstance(platform, Telegram)}
    if not bots:
        raise InvalidValue("the engine has no Telegram: Engine(store, model, [Telegram(token, poll=False)])")
    made, complained = Router(name="tertulia"), False

    async def store(_: Any, event_update: Update, bot: Any) -> None:
        nonlocal complained
        if not complained and _is_task():
            complained = True
            log.error(NEEDED)
        platform = bots.get(f"telegram-{bot.id}")
        if platform is None:
            raise InvalidValue(f"the engine has no Telegram with the token of the bot {bot.id}")
        raw = event_update.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True).encode()
        await platform.apply(engine.inbox(platform.name), event_update.update_id, raw)

    for kind in ALLOWED_UPDATES:
        if kind in made.observers:  # aiogram may not know the newest kinds yet
            made.observers[kind].register(store)
    return made


def _is_task() -> bool:
    """Return whether aiogram handles this update in a task of its own, and asks for the next ones meanwhile."""
    task = asyncio.current_task()
    return task is not None and "_process_update" in getattr(task.get_coro(), "__qualname__", "")
