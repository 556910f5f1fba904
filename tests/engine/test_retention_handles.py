"""Files that are no longer stored here are deleted at the services that have them."""

import asyncio
import logging
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

import pytest
from msgspec.structs import replace

from engine.engines import engine_with, until
from people import ALICE, NOON, a_message
from store.builders import a_cache
from tertulia.engine.retention import HANDLES_INTERVAL, HandleRemoval
from tertulia.errors import FileGone, Overloaded, StoreFull
from tertulia.media.values import Handle, StoredFile
from tertulia.models import CachedGemini, Gemini
from tertulia.models.base import File
from tertulia.models.gemini.cache_store import new_label
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.sim.gemini import GeminiSim, Internal
from tertulia.store import Store
from tertulia.testing import Clock
from tertulia.turns import Prompt

FILE = StoredFile(sha256="a" * 64, size=1, mime="image/png")


class Service(Scripted):
    """A model of a service with files; the next deletions may raise these errors."""

    def __init__(self, account: str = "gemini-1f", *errors: Exception) -> None:
        super().__init__("Hello!")
        self.account = account
        self.errors = list(errors)
        self.deleted: list[str] = []

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        raise NotImplementedError

    def is_own_file(self, uri: str) -> bool:
        return uri.startswith("https://e.test/files/")

    async def get_file(self, name: str) -> File:
        raise NotImplementedError

    async def delete_file(self, name: str) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.deleted.append(name)


def a_handle(number: int = 1, **changes: object) -> Handle:
    fields = {"account": "gemini-1f", "expires_at": NOON + timedelta(days=2), **changes}
    return Handle(sha256="a" * 64, name=f"files/p-{number}", uri=f"https://g/p-{number}", mime="image/png", **fields)  # type: ignore[arg-type]


async def test_unwanted_handles_are_deleted_at_the_service_of_their_account(store: Store) -> None:
    first, second = Service("gemini-1f"), Service("gemini-2e")
    for number, account in ((1, "gemini-1f"), (2, "gemini-2e")):
        await store.media.add_handle(a_handle(number, account=account), at=NOON)  # their file is gone
    await store.media.add("cat", b"a cat", FILE, at=NOON)
    wanted = replace(a_handle(3), sha256=sha256(b"a cat").hexdigest())
    await store.media.add_handle(wanted, at=NOON)

    removal = HandleRemoval(store.media, [first, second, Scripted("no files")], now=lambda: NOON)

    assert await removal.delete_unwanted() == 2
    assert (first.deleted, second.deleted) == (["files/p-1"], ["files/p-2"])
    assert await store.media.unwanted_handles() == []
    assert await store.media.handle(wanted.sha256, "gemini-1f") == wanted


async def test_what_gemini_has_of_a_forgotten_person_is_deleted_there(store: Store) -> None:
    data = b"\x89PNG her own door"
    async with GeminiSim() as sim, Gemini("gemini-3.8-flash", key="k", base_url=sim.url) as gemini:
        await store.inbox.receive(a_message("", parts=(Media(media_kind="photo", unique_id="door"),)), at=NOON)
        uploaded = await gemini.upload(data, mime="image/png", name="files/p-door")
        await store.media.add("door", data, FILE, at=NOON)
        handle = Handle(
            sha256=sha256(data).hexdigest(),
            account=gemini.account,
            name=uploaded.name,
            uri=uploaded.uri,
            mime="image/png",
        )
        await store.media.add_handle(handle, at=NOON)
        removal = HandleRemoval(store.media, [gemini], now=lambda: NOON)
        assert await removal.delete_unwanted() == 0
        assert (await gemini.get_file(uploaded.name)).name == uploaded.name

        await store.forget(platform="telegram", author_id=ALICE.id, at=NOON)
        assert await removal.delete_unwanted() == 1

        with pytest.raises(FileGone):
            await gemini.get_file(uploaded.name)
        await store.media.add_handle(handle, at=NOON)  # somebody else has deleted it there meanwhile
        assert await removal.delete_unwanted() == 1
        assert await store.media.unwanted_handles() == []


async def test_one_that_has_expired_or_that_the_service_no_longer_has_is_removed(store: Store) -> None:
    model = Service("gemini-1f", FileGone("not there"))
    await store.media.add_handle(a_handle(1), at=NOON)
    await store.media.add_handle(a_handle(2, expires_at=NOON), at=NOON)

    assert await HandleRemoval(store.media, [model], now=lambda: NOON).delete_unwanted() == 2
    assert (model.deleted, await store.media.unwanted_handles()) == ([], [])


@pytest.mark.parametrize("error", [Overloaded("busy"), ValueError("a bug of the model")])
async def test_one_that_fails_is_retried_and_holds_up_no_other(store: Store, error: Exception) -> None:
    model = Service("gemini-1f", error)
    for number in (1, 2):
        await store.media.add_handle(a_handle(number), at=NOON + timedelta(seconds=number))
    removal = HandleRemoval(store.media, [model], now=lambda: NOON)

    assert await removal.delete_unwanted() == 1
    assert model.deleted == ["files/p-2"]
    assert await removal.delete_unwanted() == 1
    assert model.deleted == ["files/p-2", "files/p-1"]


async def test_handles_of_a_key_that_nobody_has_stay_until_they_expire(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.media.add_handle(a_handle(), at=NOON)
    now = NOON
    removal = HandleRemoval(store.media, [Service("gemini-2e")], now=lambda: now)

    assert [await removal.delete_unwanted() for _ in range(3)] == [0, 0, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "files stay at a service until they expire: no model has the key of gemini-1f"
    ]
    now += timedelta(days=2)
    assert await removal.delete_unwanted() == 1


async def test_an_engine_deletes_what_is_unwanted_when_it_starts(store: Store) -> None:
    model = Service()
    await store.media.add_handle(a_handle(expires_at=None), at=NOON)

    async def is_deleted() -> bool:
        return model.deleted == ["files/p-1"]

    async with engine_with(model, store=store):
        await until(is_deleted)


async def test_every_five_minutes_again_also_when_the_store_had_no_room(caplog: pytest.LogCaptureFixture) -> None:
    clock, passes = Clock(), []

    class Full:
        async def unwanted_handles(self, *, at: datetime | None = None) -> list[Handle]:
            passes.append(clock.now())
            raise StoreFull("there is no room")

        async def remove_handle(self, handle: Handle) -> None: ...

    async def has(number: int) -> bool:
        return len(passes) >= number

    caplog.set_level(logging.ERROR, logger="tertulia")
    running = asyncio.create_task(HandleRemoval(Full(), [], now=clock.now, sleep=clock.sleep).run())
    for number in (1, 2):
        await until(lambda: has(number))  # noqa: B023
        await clock.advance(HANDLES_INTERVAL + 1)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

    assert timedelta(minutes=5) <= passes[1] - passes[0] < timedelta(minutes=6)
    assert "files and caches at services are deleted later: there is no room" in caplog.text


async def test_the_list_of_caches_is_read_once_and_what_is_dropped_later_goes_without_it(store: Store) -> None:
    async with (
        GeminiSim() as sim,
        Gemini("gemini-3.8-flash", key="k", base_url=sim.url) as gemini,
        CachedGemini(gemini) as model,
    ):
        account, held = model.account, Prompt.of(system="You keep the log of a ship. " * 700)
        removal = HandleRemoval(store.media, [model], now=lambda: NOON, caches=store.model_caches)
        await removal.delete_caches()
        label = new_label(await store.model_caches.owner())
        await store.model_caches.add(a_cache(label, account=account))
        made = await gemini.create_cache(held, label=label)
        await store.model_caches.set_name(label, made.name)
        await removal.delete_caches()
        there = len(await model.list_caches())
        await store.model_caches.drop([label])  # as forgetting somebody does
        await removal.delete_caches()
        left = await model.list_caches()

    methods = [one.method for one in sim.requests]
    assert (there, left) == (1, [])
    assert methods == ["GET", "POST", "GET", "DELETE", "GET"]


async def test_a_bot_that_caches_nothing_asks_no_service_for_caches(store: Store) -> None:
    async with GeminiSim() as sim, Gemini("gemini-3.8-flash", key="k", base_url=sim.url) as model:
        await HandleRemoval(store.media, [model], now=lambda: NOON, caches=store.model_caches).delete_caches()

    assert sim.requests == []


async def test_caches_that_cannot_be_listed_are_looked_for_again(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with GeminiSim() as sim, CachedGemini(Gemini("gemini-3.8-flash", key="k", base_url=sim.url)) as model:
        removal = HandleRemoval(store.media, [model], now=lambda: NOON, caches=store.model_caches)
        sim.fail(Internal())
        await removal.delete_caches()
        await removal.delete_caches()
        await removal.delete_caches()

    assert [one.status for one in sim.requests] == [500, 200]
    assert "caches at a service are deleted later" in caplog.text
