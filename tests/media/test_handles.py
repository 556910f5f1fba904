"""Uploads: shared, waited for only a while, known by their names before they begin."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from media.attaching import FILM, START, Files
from tertulia.engine.retention import HandleRemoval
from tertulia.errors import FileExists, FileGone, HandleGone, RequestRefused
from tertulia.media.handles import Handles, upload_names
from tertulia.media.values import StoredFile
from tertulia.models.base import File
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.store import Store
from tertulia.turns import Prompt, user


class Service(Scripted):
    """A service that has files; uploads wait until it is released, and answer with *odd* if that is given."""

    account = "service:1"

    def __init__(self, *, odd: Any = None, held: bool = False) -> None:
        super().__init__("Yes.", name="gemini-3.8-flash")
        self.odd = odd
        self.free = asyncio.Event()
        if not held:
            self.free.set()
        self.files: dict[str, bytes] = {}
        self.begun: list[str] = []

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        self.begun.append(name)
        await self.free.wait()
        if isinstance(self.odd, BaseException):
            raise self.odd
        if self.odd is not None:
            return self.odd  # type: ignore[no-any-return]
        self.files[name] = data
        return a_file(name)

    def is_own_file(self, uri: str) -> bool:
        return uri.startswith("https://e.test/files/")

    async def get_file(self, name: str) -> File:
        return a_file(name)

    async def delete_file(self, name: str) -> None:
        if self.files.pop(name, None) is None:
            raise HandleGone(name)


def a_file(name: Any = "files/a", **changes: Any) -> File:
    return File(**{"name": name, "uri": f"https://e.test/{name}", "mime": "video/mp4", "state": "ACTIVE", **changes})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "bot.db", durable=False) as opened:
        yield opened


async def film(store: Store) -> StoredFile:
    media = await Files(store.media).put(FILM, "video/mp4", "video")
    return (await store.media.get([media.sha256 or ""]))[media.sha256 or ""]


async def read() -> bytes:
    return FILM


async def until_begun(found: Handles, file: StoredFile, service: Service) -> None:
    while not service.begun:
        assert await found.get(file, service, read=read) is None


def handles(store: Store, **changes: Any) -> Handles:
    return Handles(store.media, now=lambda: START, **changes)


async def test_an_upload_that_hangs_goes_on_for_all_who_want_the_file(store: Store) -> None:
    service, file, found = Service(held=True), await film(store), handles(store, patience=0.05)

    late = await asyncio.gather(*(found.get(file, service, read=read) for _ in range(3)))
    began = asyncio.get_running_loop().time()
    later = await found.get(file, service, read=read)  # it has been waited for
    took = asyncio.get_running_loop().time() - began
    service.free.set()
    handle = await found.get(file, service, read=read)
    while handle is None:
        await asyncio.sleep(0.001)
        handle = await found.get(file, service, read=read)

    assert (late, later, len(service.begun)) == ([None] * 3, None, 1)
    assert took < 0.05
    assert handle == await store.media.handle(file.sha256, service.account)


async def test_nobody_waits_after_the_deadline_and_an_upload_that_takes_too_long_ends(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    service, file, found = Service(held=True), await film(store), handles(store, timeout=0.05)

    assert await found.get(file, service, read=read, deadline=0.0) is None
    assert await found.get(file, service, read=read) is None  # until it ends

    assert "was not uploaded, and goes in another form: not within 0.05 seconds" in caplog.text
    assert await found.get(file, service, read=read) is None  # it is not tried again at once
    assert len(service.begun) == 1


async def test_closing_ends_uploads(store: Store) -> None:
    service, file, found = Service(held=True), await film(store), handles(store, patience=0.01)
    await until_begun(found, file, service)

    await found.close()

    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    "odd",
    [
        "a text",
        b"",
        {},
        a_file(state="PROCESSING"),
        a_file(state=7),
        a_file(name=""),
        a_file(name=None),
        a_file(uri="http://10.0.0.1/v1beta/files/a"),
        a_file(uri=5),
        a_file(expires_at="tomorrow"),
        a_file(expires_at=datetime(2026, 1, 3)),
        RequestRefused("<html>no</html>"),
        FileGone("the service could not read the file"),
        FileExists("it is there"),
        ValueError("a bug"),
        SystemExit(1),
    ],
    ids=str,
)
async def test_an_odd_answer_is_one_warning_and_no_handle(
    store: Store, caplog: pytest.LogCaptureFixture, odd: Any
) -> None:
    caplog.set_level(logging.WARNING, logger="tertulia")
    file, found = await film(store), handles(store)

    assert [await found.get(file, Service(odd=odd), read=read) for _ in range(2)] == [None, None]
    assert len(caplog.records) == 1
    assert await store.media.handle(file.sha256, Service.account) is None


async def test_what_a_kill_leaves_at_the_service_is_deleted_there_when_the_file_is_forgotten(store: Store) -> None:
    service, file, found = Service(held=True), await film(store), handles(store, patience=0.01)
    first, second = upload_names(file.sha256, service.account)
    await until_begun(found, file, service)
    await found.close()  # and then it was killed
    service.files = {first: FILM, "files/other": b""}  # the service had all of it

    assert await store.media.handle(file.sha256, service.account) is None
    removal = HandleRemoval(store.media, [service], now=lambda: START + timedelta(hours=2))
    assert await removal.delete_unwanted() == 0
    await store.media.sweep(unused_since=START, at=START + timedelta(hours=2))
    assert await removal.delete_unwanted() == 1
    assert [*service.files] == ["files/other"]
    assert (service.begun, second in service.begun) == ([first], False)


async def test_an_upload_under_way_is_not_deleted_before_it_has_ended(store: Store) -> None:
    service, file, found = Service(held=True), await film(store), handles(store, patience=0.01)
    await until_begun(found, file, service)
    await store.media.sweep(unused_since=START + timedelta(days=1), at=START)

    assert len(await store.media.unwanted_handles()) == 1
    assert await store.media.unwanted_handles(at=START) == []
    service.free.set()
    while not await store.media.unwanted_handles(at=START):  # noqa: ASYNC110 (its file is gone)
        await asyncio.sleep(0.001)
    assert await HandleRemoval(store.media, [service], now=lambda: START).delete_unwanted() == 1
    assert service.files == {}


async def test_a_name_that_is_taken_gives_way_to_the_second_which_is_known_too(store: Store) -> None:
    service, file = Service(), await film(store)
    taken, second = upload_names(file.sha256, service.account)
    given = service.upload

    async def upload(data: bytes, *, mime: str, name: str = "") -> File:
        if name == taken:
            raise FileExists(name)
        assert any(one.name == name for one in await rows(store))  # it is stored before
        return await given(data, mime=mime, name=name)

    service.upload = upload  # type: ignore[method-assign]
    handle = await handles(store).get(file, service, read=read)

    assert handle is not None
    assert handle.name == second


async def rows(store: Store) -> Any:
    await store.media.sweep(unused_since=START + timedelta(days=1), at=START)
    return await store.media.unwanted_handles()


async def test_where_the_service_names_no_file_a_file_is_uploaded_at_most_three_times_in_an_hour(store: Store) -> None:
    service, file, found = Service(), await film(store), handles(store)
    renewed = []
    for _ in range(5):
        handle = await found.get(file, service, read=read)
        uri = handle.uri if handle else None
        sent = Prompt.of(user(Media(media_kind="video", unique_id="v", sha256=file.sha256, uri=uri)))
        renewed.append(await found.renew(FileGone("gone"), sent, service))

    assert renewed == [True] * 3 + [False] * 2
    assert len(service.begun) == 3
