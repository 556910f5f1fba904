"""An answer that waits for files or uploads: it can be stopped, and holds up neither others nor the end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engine.engines import DIRECT, engine_with, said, until
from media.attaching import FILM
from tertulia.engine.engine import Engine
from tertulia.errors import FileGone
from tertulia.models.base import File
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Role

VIDEO = Media(media_kind="video", unique_id="film", file_id="f", mime="video/mp4")


class Hanging(Scripted):
    """A service whose uploads never end."""

    account = "hanging:1"

    def __init__(self) -> None:
        super().__init__("Nice.", name="gemini-3.8-flash")
        self.begun = 0

    def takes(self, media: Media, _: Role) -> bool:
        return self.name != "gpt-5.6"

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        self.begun += 1
        await asyncio.Event().wait()
        raise AssertionError

    def is_own_file(self, uri: str) -> bool:
        return False

    async def get_file(self, name: str) -> File:
        raise FileGone(name)

    async def delete_file(self, name: str) -> None: ...


class Slow(RecordedPlatform):
    """A platform with a film, whose files may never come."""

    def __init__(self, *, comes: bool) -> None:
        super().__init__()
        self.comes = comes
        self.asked = 0

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        self.asked += 1
        if not self.comes:
            await asyncio.Event().wait()
        return FILM


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "bot.db", durable=False) as opened:
        yield opened


async def until_begun(engine: Engine, is_begun: Any) -> None:
    await engine.receive(said("", parts=(VIDEO, Text(text="what is it?"))))

    async def begun() -> bool:
        return bool(is_begun())

    await until(begun)
    await asyncio.sleep(0.05)  # it waits now


@pytest.mark.parametrize("what", ["upload", "file", "description"])
async def test_an_answer_that_waits_is_stopped_at_once(store: Store, what: str) -> None:
    asked = []

    async def describe(media: Media) -> str:
        asked.append(media)
        await asyncio.Event().wait()
        return ""

    eyes = describe if what == "description" else None
    model, platform = Hanging(), Slow(comes=what != "file")
    model.name = "gpt-5.6" if eyes else model.name  # it takes no videos
    async with engine_with(model, platform, store=store, describe=eyes) as engine:
        await until_begun(engine, lambda: asked or model.begun or (what == "file" and platform.asked))

        async with asyncio.timeout(1.0):
            engine.stop(DIRECT)
            await engine.settled(learned=False)

    assert (platform.deliveries, model.prompts, await store.runs.open()) == ([], [], [])


async def test_an_engine_ends_in_time_while_an_upload_is_under_way(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    model, platform = Hanging(), Slow(comes=True)
    async with engine_with(model, platform, store=store) as engine:
        await until_begun(engine, lambda: model.begun)
        began = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - began < 2.0
    assert len(asyncio.all_tasks()) == 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
