"""A request is rebuilt from the store as it went over the wire, byte for byte, and says why where it cannot be."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.engines import engine_with, said
from media.media_files import image
from tertulia.context.values import Persona
from tertulia.engine.limits import StoredCall
from tertulia.engine.rebuilt_request import RebuiltRequest, rebuild_request
from tertulia.models import CachedGemini, Gemini, Model, OpenAI
from tertulia.parts import Media, Text
from tertulia.sim import GeminiSim, OpenAISim, faults
from tertulia.sim.behaviours import Actor
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.testing.fakes import Clock

LETTER = b"Dear all,\nthe ferry leaves at nine.\n"


class Files(RecordedPlatform):
    """A platform whose messages have files."""

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        return LETTER if media.mime == "text/plain" else image("JPEG")


def look(seat: str) -> str:
    """Look at a seat."""
    return f"{seat} is free"


def an_evening() -> list[Any]:
    """Texts, photos and a document."""
    photo = Media(media_kind="photo", unique_id="p1", file_id="f1", mime="image/jpeg")
    other = Media(media_kind="photo", unique_id="p2", file_id="f2", mime="image/jpeg")
    letter = Media(media_kind="document", unique_id="d1", file_id="f3", mime="text/plain")
    return [
        said("hello", 1),
        said("", 2, parts=(photo, Text(text="what is this?"))),
        said("", 3, parts=(letter, Text(text="and what does this say?"))),
        said("", 4, parts=(other, photo, Text(text="and these?"))),
        said("thanks", 5),
    ]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "bot.db", durable=False) as opened:
        yield opened


async def rebuilt(store: Store) -> list[tuple[StoredCall, RebuiltRequest]]:
    found = []
    for stored in await store.usage.calls(most=999):
        assert stored.call.run is not None
        sent = await store.prompts.sent(stored.call.run, stored.call.step or 0)
        assert sent is not None
        found.append((stored, await rebuild_request(store, sent, stored)))
    return found


async def spend_evening(store: Store, model: Sequence[Model], *, streaming: bool, **changes: Any) -> None:
    clock = Clock()
    async with engine_with(
        model, Files(), store=store, tools=[look], now=clock.now, sleep=clock.sleep, **changes
    ) as engine:

        async def watch() -> None:
            async for _ in engine.events():
                pass

        watching = asyncio.create_task(watch()) if streaming else None
        await asyncio.sleep(0)
        for message in an_evening():
            await engine.receive(message)
            await engine.settled()
        if watching:
            watching.cancel()


@pytest.mark.parametrize("wire", ["gemini", "openai"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_each_request_of_an_evening_is_rebuilt_as_it_was_sent(store: Store, wire: str, streaming: bool) -> None:
    sim: Any = GeminiSim(behaviour=Actor(steps=1)) if wire == "gemini" else OpenAISim(behaviour=Actor(steps=1))
    async with sim:
        made: Any = Gemini if wire == "gemini" else OpenAI
        names = ["gemini-3.8-flash", "gemini-2.5-flash"] if wire == "gemini" else ["gpt-5.6", "compatible-1"]
        models = [made(name, key="k", base_url=sim.url) for name in names]
        sim.fail(faults.RateLimited(1.0))
        sim.fail(faults.ContextTooLong())
        await spend_evening(store, models, streaming=streaming)
        for one in models:
            await one.aclose()

        found = await rebuilt(store)

    assert [(stored.call.step, one.why) for stored, one in found if not one.is_same] == []
    received = [one.body for one in sim.requests if one.method == "POST" and isinstance(one.body, dict)]
    bodies = [json.loads(one.body) for _, one in found]
    assert sorted(map(json.dumps, bodies)) == sorted(map(json.dumps, received))
    assert {stored.call.request.streamed for stored, _ in found if stored.call.request} == {streaming}
    assert {stored.call.status for stored, _ in found} == {"answered", "failed"}
    assert any(form.sha256 for stored, _ in found for form in stored.call.media)


async def test_why_a_request_is_not_the_same_any_more_is_said(store: Store) -> None:
    async with GeminiSim(behaviour=Actor(steps=0)) as sim, Gemini("gemini-3.8-flash", key="k", base_url=sim.url) as one:
        await spend_evening(store, [one], streaming=False)
    calls = await store.usage.calls(most=999)
    (photo, *_) = [form.sha256 for stored in calls for form in stored.call.media if form.sha256]
    store.media.folder.remove([photo])

    reasons = {one.why for _, one in await rebuilt(store)}
    assert reasons == {"as it was sent", "not as it was sent: the file of a photo is gone"}


async def test_requests_that_name_an_explicit_cache_are_rebuilt_too(store: Store) -> None:
    async with (
        GeminiSim(behaviour=Actor(steps=0)) as sim,
        CachedGemini(Gemini("gemini-2.5-flash", key="k", base_url=sim.url), threshold=1024) as one,
    ):
        await spend_evening(store, [one], streaming=False, persona=Persona(text="Be kind to all. " * 2_000))
        found = await rebuilt(store)

    assert [one.why for _, one in found if not one.is_same] == []
    assert any(stored.call.request and stored.call.request.cached for stored, _ in found)
