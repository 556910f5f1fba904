"""Nobody gets at the file of another person: not by its hash, and not by the id of its media."""

import math
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, engine_with, said, talked
from fakes import Files
from tertulia.engine.task_worker import TaskHandler
from tertulia.messages import Message, Place, Quote, Reply
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text, ToolCall, ToolResult, foreign_media
from tertulia.sim.telegram import image
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform

PRIVATE, OTHER = image(64, 61), image(10, 11)
HASH = sha256(PRIVATE).hexdigest()
BOBS = Place(platform="recorded", id="8", kind="direct")
ALICES_PHOTO = Media(media_kind="photo", unique_id="alice", file_id="private")
STOLEN = Media(media_kind="photo", unique_id="bob", sha256=HASH)


def private(media: Media) -> bytes:
    return {"private": PRIVATE}[media.file_id or ""]


def by_bob(*parts: Any, **changes: Any) -> Message:
    return said("", 9, place=BOBS, author=BOB, parts=(*parts, Text(text="what is it?")), **changes)


def hashes(model: Scripted) -> set[str | None]:
    parts = [part for prompt in model.prompts for turn in prompt.turns for part in turn.parts]
    media = [one for part in parts for one in (part.media if isinstance(part, ToolResult) else [part])]
    return {one.sha256 for one in media if isinstance(one, Media)}


@pytest.mark.parametrize(
    "message",
    [
        by_bob(STOLEN),
        by_bob(reply_to=Quote(message_id="5", author=ALICE, parts=(STOLEN,))),
        by_bob(Media(media_kind="photo", unique_id="alice", data=OTHER)),
    ],
    ids=["hash", "quoted hash", "bytes under the id of another"],
)
async def test_a_message_shows_no_file_of_another_person(store: Store, message: Message) -> None:
    async with engine_with(Scripted("Nice."), Files(private), store=store) as engine:
        await talked(engine, said("", 1, place=DIRECT, parts=(ALICES_PHOTO,)))
    model = Scripted("Nice.")
    async with engine_with(model, Files(private), store=store) as engine:
        await talked(engine, message)

    assert HASH not in hashes(model)
    assert (await store.media.find(["alice"]))["alice"].sha256 == HASH  # type: ignore[union-attr]


MADE = {
    "hash": STOLEN,
    "bytes under the id of another": Media(media_kind="photo", unique_id="alice", data=OTHER),
    "an address under the id of another": Media(media_kind="photo", unique_id="alice", uri="https://e.invalid/a"),
    "a file of the platform": Media(media_kind="photo", unique_id="bob", file_id="private"),
    "the file of another": ALICES_PHOTO,
    "the id of another": Media(media_kind="photo", unique_id="alice"),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
async def test_a_model_sends_no_file_of_another_person(store: Store, made: Media) -> None:
    async with engine_with(Scripted("Nice."), Files(private), store=store) as engine:
        await talked(engine, said("", 1, place=DIRECT, parts=(ALICES_PHOTO,)))
    model, platform = Scripted(["Look.", made], "And?"), Files(private)
    async with engine_with(model, platform, store=store) as engine:
        await talked(engine, by_bob(), said("more?", 10, place=BOBS, author=BOB))

    assert HASH not in hashes(model)
    assert PRIVATE not in [one.data for delivery in platform.deliveries for one in delivery.reply.media]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
async def test_a_task_sends_no_file_of_another_person(store: Store, made: Media) -> None:
    async def send(_: Task) -> list[Reply]:
        return [Reply(place=BOBS, text="Look.", media=(made,))]

    async with engine_with(Scripted("Nice."), Files(private), store=store) as engine:
        await talked(engine, said("", 1, place=DIRECT, parts=(ALICES_PHOTO,)))
    platform, handler = Files(private), TaskHandler(run=send)
    async with engine_with(Scripted("Nice."), platform, store=store, task_handlers={"look": handler}) as engine:
        await engine.schedule([Task(id="t", kind="look", place=BOBS, due_at=datetime.now(UTC))])
        await engine.settled()

    assert [one.reply.text.partition("\n")[0] for one in platform.deliveries] == ["Look."]
    assert PRIVATE not in [one.data for delivery in platform.deliveries for one in delivery.reply.media]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
async def test_a_tool_sends_no_file_of_another_person(store: Store, made: Media) -> None:
    def camera() -> Media:
        """Takes a photo."""
        return made

    async with engine_with(Scripted("Nice."), Files(private), store=store) as engine:
        await talked(engine, said("", 1, place=DIRECT, parts=(ALICES_PHOTO,)))
    model, platform = Scripted(ToolCall(name="camera"), "Look.", "And?"), Files(private)
    async with engine_with(model, platform, store=store, tools=[camera]) as engine:
        await talked(engine, by_bob(), said("more?", 10, place=BOBS, author=BOB))

    assert HASH not in hashes(model)
    assert PRIVATE not in [one.data for delivery in platform.deliveries for one in delivery.reply.media]


async def test_two_pictures_of_a_tool_with_one_id_are_two(store: Store) -> None:
    def chart() -> list[Media]:
        """Draws."""
        return [Media(media_kind="photo", unique_id="chart", data=data) for data in (PRIVATE, OTHER)]

    platform = Files(private)
    async with engine_with(Scripted(ToolCall(name="chart"), "Look."), platform, store=store, tools=[chart]) as engine:
        await talked(engine, by_bob())

    assert [one.data for one in platform.deliveries[0].reply.media] == [PRIVATE, OTHER]


@pytest.mark.parametrize(
    "numbers",
    [
        {"size": -1},
        {"width": 0},
        {"height": -(10**30)},
        {"width": 10**30},
        *({"seconds": n} for n in (-1, math.nan, math.inf)),
    ],
    ids=str,
)
def test_numbers_that_cannot_be_true_are_not_known(numbers: Any) -> None:
    film = Media(media_kind="video", unique_id="v", file_id="f")

    assert foreign_media(replace(film, **numbers)) == film


async def test_a_video_of_nonsense_seconds_is_answered(store: Store) -> None:
    film = Media(media_kind="video", unique_id="v", file_id="private", seconds=math.nan)
    platform = Files(private)
    async with engine_with(Scripted("Nice."), platform, store=store) as engine:
        await talked(engine, by_bob(film))

    assert platform.texts == ["Nice."]


def test_a_unique_id_that_is_too_long_is_its_hash() -> None:
    long = Media(media_kind="photo", unique_id="x\ud800" * 1000, file_id="f")

    assert len(foreign_media(long).unique_id) == 64
    assert foreign_media(STOLEN).sha256 is None
    assert foreign_media(ALICES_PHOTO) is ALICES_PHOTO


@pytest.mark.parametrize(
    "address",
    ["http://ann:secret@camera.invalid/now.jpg", "https://secret@camera.invalid", "http://camera.invalid/\nsecret"],
)
async def test_people_get_no_address_with_a_password_and_nothing_that_follows_one(store: Store, address: str) -> None:
    def look() -> Media:
        """Look at the door."""
        return Media(media_kind="photo", unique_id="door", uri=address)

    model, platform = Scripted(ToolCall(name="look"), "Here."), RecordedPlatform()
    async with engine_with(model, platform, store=store, tools=[look]) as engine:
        await talked(engine, said("Who is there?"))

    assert platform.texts == ["Here.\n\n[photo]"]
