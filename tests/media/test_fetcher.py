"""Media become stored files, each fetched once; what cannot be had is remembered."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fakes import Files
from media import media_files
from tertulia.errors import MediaUnavailable, MediaUnreadable, StoreFull
from tertulia.media.addresses import Fetched
from tertulia.media.decoding import FileFacts, type_of
from tertulia.media.fetcher import MediaFetcher, is_fetchable, with_file
from tertulia.media.values import FetchFailure, StoredFile, file_key
from tertulia.messages import Place
from tertulia.parts import Media
from tertulia.sim.telegram import image
from tertulia.store import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PNG = image(8, 6)
PHOTO = Media(media_kind="photo", unique_id="p1", file_id="f1")


class Facts:
    """A decoder that knows every PNG by its name."""

    async def facts(self, data: bytes) -> FileFacts:
        if b"bomb" in data:
            raise MediaUnreadable("image/png: it has too many pixels")
        return FileFacts(mime=type_of(data), width=8, height=6)


class Web:
    """Addresses, with what is there."""

    def __init__(self, **files: bytes) -> None:
        self.files = files

    async def fetch(self, url: str, *, limit: int) -> Fetched:
        if url not in self.files:
            raise MediaUnavailable("nas is not the name of a public host")
        return Fetched(data=self.files[url])


class World:
    """A fetcher over a real store, and its time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = NOON
        self.web = Web()
        self.platform = Files(self.give)
        self.outcomes: list[Any] = []  # of the next fetches; then the photo

    async def give(self, _: Media) -> Any:
        outcome = self.outcomes.pop(0) if self.outcomes else PNG
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def fetcher(self, **options: Any) -> MediaFetcher:
        return MediaFetcher(
            self.store.media,
            {"recorded": self.platform},
            addresses=self.web,  # type: ignore[arg-type]
            decoder=Facts(),
            now=lambda: self.now,
            **options,
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with Store.open(tmp_path / "bot.db", durable=False) as store:
        yield World(store)


async def failure(world: World, unique_id: str = "p1") -> FetchFailure | StoredFile | None:
    return (await world.store.media.find([unique_id])).get(unique_id)


async def test_a_file_is_fetched_once_and_stored_with_what_it_is(world: World) -> None:
    fetcher = world.fetcher()

    first = await asyncio.gather(*(fetcher.fetch(PHOTO, "recorded") for _ in range(5)))
    later = await world.fetcher().fetch(PHOTO, "recorded")

    file = StoredFile(sha256=sha256(PNG).hexdigest(), size=len(PNG), mime="image/png", width=8, height=6)
    assert [*first, later] == [file] * 6
    assert world.platform.asked == ["f1"]
    assert await world.store.media.read(file.sha256, at=NOON) == PNG
    assert with_file(PHOTO, file) == Media(
        media_kind="photo",
        unique_id="p1",
        file_id="f1",
        sha256=file.sha256,
        mime="image/png",
        size=len(PNG),
        width=8,
        height=6,
    )


async def test_a_photo_that_says_where_it_was_taken_is_marked(world: World) -> None:
    world.outcomes = [media_files.taken_at_home(), media_files.image("JPEG")]
    photos = [Media(media_kind="document", unique_id=name, file_id=name) for name in ("d1", "d2")]

    for photo in photos:
        await world.fetcher().fetch(photo, "recorded")

    found = await world.store.media.find(["d1", "d2"])
    assert {name: getattr(file, "has_metadata", None) for name, file in found.items()} == {"d1": True, "d2": False}


async def test_bytes_that_media_hold_are_stored_too(world: World) -> None:
    media = Media.of(PNG, mime="image/jpeg")

    file = await world.fetcher(largest=1).fetch(media, "elsewhere")

    assert file is not None
    assert with_file(media, file).data is None
    assert world.platform.asked == []


async def test_an_address_is_fetched_but_not_a_video_of_youtube(world: World) -> None:
    world.web = Web(**{"https://example.org/cat": PNG})
    fetcher = world.fetcher()

    def at(uri: str) -> Media:
        return Media(media_kind="photo", unique_id=uri, uri=uri)

    found = await fetcher.fetch(at("https://example.org/cat"), "recorded")

    assert found is not None
    assert with_file(at("https://example.org/cat"), found).uri is None
    assert await fetcher.fetch(at("http://nas/cat"), "recorded") is None
    assert await failure(world, "http://nas/cat") == FetchFailure(why="nas is not the name of a public host")
    assert not is_fetchable(at("https://youtu.be/dQw4w9WgXcQ"))
    assert is_fetchable(at("https://generativelanguage.googleapis.com/v1beta/files/abc"))  # a person wrote it


async def test_a_declared_size_over_the_limit_is_not_fetched(world: World) -> None:
    large = Media(media_kind="video", unique_id="v", file_id="f", size=101)

    assert await world.fetcher(largest=100).fetch(large, "recorded") is None

    assert world.platform.asked == []
    assert await failure(world, "v") is None  # a larger limit lets it come


@pytest.mark.parametrize(
    ("outcome", "why", "for_now"),
    [
        (MediaUnavailable("it is gone"), "it is gone", False),
        (MediaUnavailable("later", for_now=True), "later", True),
        (KeyError("x"), "KeyError: 'x'", True),
        (SystemExit(3), "SystemExit: 3", True),
        (asyncio.CancelledError(), "the platform cancelled it", True),
        (TimeoutError("slow"), "TimeoutError: slow", True),
        ("text", "the platform returned a str, not bytes", True),
        (None, "the platform returned a NoneType, not bytes", True),
        (b"", "it is empty", False),
        (PNG + bytes(1000), "it has more than 1,000 bytes", False),
        (b"PK\x05\x06" + bytes(18), "it is no photo: its content is application/zip", False),
        (b"\x00\x01\x02", "it is no photo: its content is application/octet-stream", False),
        (PNG + b"bomb", "image/png: it has too many pixels", False),
    ],
    ids=str,
)
async def test_whatever_a_platform_does_is_a_failure_that_is_remembered(
    world: World, outcome: Any, why: str, for_now: bool
) -> None:
    world.outcomes = [outcome]
    fetcher = world.fetcher(largest=1000)

    assert await fetcher.fetch(PHOTO, "recorded") is None
    assert await fetcher.fetch(PHOTO, "recorded") is None

    retry_at = NOON + timedelta(minutes=1) if for_now else None
    assert await failure(world) == FetchFailure(why=why, retry_at=retry_at)
    assert world.platform.asked == ["f1"]


async def test_a_failure_for_now_is_retried_after_twice_as_long_each_time_up_to_a_day(world: World) -> None:
    world.outcomes = [MediaUnavailable("later", for_now=True)] * 13
    fetcher, waits = world.fetcher(), []
    for _ in range(13):
        assert await fetcher.fetch(PHOTO, "recorded") is None
        found = await failure(world)
        assert isinstance(found, FetchFailure)
        assert found.retry_at is not None
        waits.append((found.retry_at - world.now) / timedelta(minutes=1))
        world.now = found.retry_at

    assert await fetcher.fetch(PHOTO, "recorded") is not None
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]


async def test_it_is_known_which_media_are_stored_and_which_are_not_tried_now(world: World) -> None:
    stored, later, gone = (replace(PHOTO, unique_id=name, file_id=name) for name in ("stored", "later", "gone"))
    fetcher = world.fetcher()
    world.outcomes = [PNG, MediaUnavailable("later", for_now=True), MediaUnavailable("gone")]
    for media in (stored, later, gone):
        await fetcher.fetch(media, "recorded")
    names = ["stored", "later", "gone", "new"]

    known = await fetcher.known_files(names)
    world.now += timedelta(minutes=1)
    due = await fetcher.known_files(names)

    assert {name: type(one) for name, one in known.items()} == {
        "stored": StoredFile,
        "later": FetchFailure,
        "gone": FetchFailure,
    }
    assert due.keys() == {"stored", "gone"}


async def test_a_full_disk_is_logged_once_and_nothing_is_remembered(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> StoredFile:
        raise StoreFull("the disk is full")

    add = world.store.media.add
    monkeypatch.setattr(world.store.media, "add", full)
    fetcher = world.fetcher()
    with caplog.at_level(logging.ERROR):
        assert await fetcher.fetch(PHOTO, "recorded") is None
        assert await fetcher.fetch(PHOTO, "recorded") is None
    monkeypatch.setattr(world.store.media, "add", add)

    assert await fetcher.fetch(PHOTO, "recorded") is not None
    assert [record.getMessage() for record in caplog.records] == ["media go in words: the disk is full"]


async def test_a_run_does_not_wait_for_ever_and_the_next_one_has_the_file(world: World) -> None:
    held = asyncio.Event()

    async def give(media: Media) -> bytes:
        if media.file_id == "slow":
            await held.wait()
        return PNG

    world.platform = Files(give)
    slow = Media(media_kind="photo", unique_id="slow", file_id="slow")
    fetcher = world.fetcher(patience=0.05)

    first = await fetcher.fetch_all([PHOTO, slow], "recorded")
    held.set()
    await fetcher.done()
    second = await fetcher.fetch_all([PHOTO, slow], "recorded")

    await fetcher.done()
    assert [*first] == ["p1"]
    assert [*second] == ["p1", "slow"]
    assert world.platform.asked == ["f1", "slow"]
    assert not fetcher.busy


async def test_a_fetch_that_hangs_is_abandoned_also_if_it_cannot_be_cancelled(world: World) -> None:
    ends = asyncio.Event()

    async def give(media: Media) -> bytes:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()
        return PNG

    world.platform = Files(give)
    fetcher = world.fetcher(timeout=0.01)
    photos = [Media(media_kind="photo", unique_id=f"p{number}", file_id=f"f{number}") for number in range(6)]

    assert await fetcher.fetch_all(photos, "recorded") == {}
    ends.set()

    retry_at = NOON + timedelta(minutes=1)
    assert await failure(world, "p5") == FetchFailure(why="it did not come within 0.01 seconds", retry_at=retry_at)


async def test_a_failure_of_a_clock_that_was_ahead_is_retried_at_once(world: World) -> None:
    world.outcomes = [MediaUnavailable("later", for_now=True)]
    world.now = NOON + timedelta(days=400)
    assert await world.fetcher().fetch(PHOTO, "recorded") is None

    world.now = NOON
    assert await world.fetcher().fetch(PHOTO, "recorded") is not None


async def test_only_a_few_are_fetched_at_once(world: World) -> None:
    under_way = most = 0

    async def give(_: Media) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return PNG

    world.platform = Files(give)
    photos = [Media(media_kind="photo", unique_id=f"p{number}", file_id=f"f{number}") for number in range(20)]

    assert len(await world.fetcher().fetch_all(photos, "recorded")) == 20
    assert most == 6


async def test_a_place_with_many_slow_files_does_not_hold_up_another(world: World) -> None:
    async def give(media: Media) -> bytes:
        if media.file_id != "f1":
            await asyncio.Event().wait()
        return PNG

    world.platform = Files(give)
    fetcher = world.fetcher(patience=0.01)
    slow = [Media(media_kind="photo", unique_id=f"s{number}", file_id=f"s{number}") for number in range(20)]
    here, there = (Place(platform="recorded", id=name, kind="direct") for name in ("1", "2"))

    assert await fetcher.fetch_all(slow, "recorded", place=here) == {}
    assert await fetcher.fetch(PHOTO, "recorded", place=there) is not None
    await fetcher.close()


async def test_who_waits_for_a_file_may_leave_while_it_is_fetched_for_others(world: World) -> None:
    held = asyncio.Event()

    async def give(_: Media) -> bytes:
        await held.wait()
        return PNG

    world.platform = Files(give)
    fetcher = world.fetcher()
    waits = [asyncio.create_task(fetcher.fetch(PHOTO, "recorded")) for _ in range(2)]
    await asyncio.sleep(0)
    waits[0].cancel()
    held.set()

    assert await waits[1] is not None
    await fetcher.close()


def test_media_without_an_id_have_one_by_their_content() -> None:
    nameless = Media(media_kind="photo", unique_id="", data=b"x")

    assert file_key(nameless) == sha256(b"x").hexdigest()
    assert file_key(PHOTO) == "p1"
