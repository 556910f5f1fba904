"""A store in memory ends with its process, and is copied like one in a file."""

from pathlib import Path

from people import NOON
from store.builders import an_outgoing
from tertulia.media.values import StoredFile
from tertulia.store import Store


async def test_a_store_in_memory_remembers_nothing_for_another_process(store: Store) -> None:
    assert not store.model_caches.is_durable
    assert await store.model_caches.owner() == await store.model_caches.owner()


async def test_a_store_in_memory_has_a_folder_that_goes_with_it() -> None:
    async with Store.open(":memory:") as store:
        added = await store.media.add("cat", b"cat", StoredFile(sha256="", size=0, mime="image/png"), at=NOON)
        folder = store.media.folder.path
        assert folder
        assert await store.media.read(added.sha256, at=NOON) == b"cat"
    assert not folder.exists()


async def test_a_store_in_memory_can_be_backed_up(tmp_path: Path) -> None:
    async with Store.open(":memory:") as store:
        await store.outbox.put(an_outgoing())
        await store.backup(tmp_path / "copy.db")
        async with Store.open(tmp_path / "copy.db") as copy:
            assert [row async for row in copy.export()] == [row async for row in store.export()]
