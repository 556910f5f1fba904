"""Media that people send on Telegram go to the model, and again after the service lost them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from media import media_files
from media.attaching import FILM, FLASH, PHOTO, VOICE, uploads
from platforms.telegram.world import telegram
from tertulia.engine.behavior import Behavior
from tertulia.engine.engine import Engine
from tertulia.models.gemini.client import Gemini
from tertulia.platforms.telegram.platform import Telegram
from tertulia.profiles import PROFILES
from tertulia.sim.gemini import Answer, Ask, GeminiSim
from tertulia.sim.telegram import TelegramSim
from tertulia.store import Store


class Sees:
    """Answers with the number of the answer."""

    def __init__(self) -> None:
        self.answers = 0

    def answer(self, _: Ask) -> Answer:
        self.answers += 1
        return Answer(text=f"Answer {self.answers}")


def sent_types(request: Any) -> list[str]:
    """The types of the media in a request, those by handle in brackets."""
    parts = [part for content in request.body["contents"] for part in content["parts"]]
    return [
        part["inlineData"]["mimeType"] if "inlineData" in part else f"({part['fileData']['mimeType']})"
        for part in parts
        if "inlineData" in part or "fileData" in part
    ]


@asynccontextmanager
async def polling(bot: Telegram, engine: Engine) -> AsyncIterator[None]:
    task = asyncio.create_task(bot.run(engine.inbox(bot.name)))
    yield
    task.cancel()
    await asyncio.wait([task])


async def test_an_hour_of_media_with_a_service_that_loses_files(tmp_path: Path) -> None:
    async with (
        TelegramSim() as sim,
        GeminiSim(behaviour=Sees(), clock=time.time, processing=0) as service,
        Gemini(FLASH, key="k", base_url=service.url) as model,
        Store.open(tmp_path / "bot.db", durable=False) as store,
        Engine(
            store,
            model,
            [bot := telegram(sim)],
            profile=PROFILES["tail"],
            behavior=Behavior(debounce=0.0),
            describe=None,
        ) as engine,
        polling(bot, engine),
    ):
        ann = sim.user("Ann")
        chat = sim.private(ann)

        async def answered(number: int) -> None:
            async with asyncio.timeout(30):
                await sim.until(lambda: len(chat.of(sim.bot)) == number)

        ann.send_photo(chat, PHOTO, caption="A photo")
        await answered(1)
        ann.send_video(chat, FILM, caption="A film")
        await answered(2)
        ann.send_sticker(chat, data=media_files.tgs(), is_animated=True)
        await answered(3)
        ann.send_voice(chat, VOICE)
        await answered(4)
        service.clock.advance(49 * 3600)
        ann.send_document(chat, media_files.pdf("a page"), file_name="a.pdf", mime_type="application/pdf")
        await answered(5)

        requests = [one for one in service.requests if ":generateContent" in one.path or ":stream" in one.path]

    assert [one.status for one in requests] == [200, 200, 200, 200, 403, 200]
    assert sent_types(requests[-1]) == ["image/jpeg", "(video/mp4)", "image/png", "audio/ogg", "application/pdf"]
    assert uploads(service) == ["200", "200"]
