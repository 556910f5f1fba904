from pathlib import Path

from msgspec.structs import replace

from people import ALICE, GROUP, a_message
from store.builders import a_cache
from tertulia.store import Store

ACCOUNT = a_cache().account


async def test_a_cache_is_remembered_before_it_has_a_name_and_until_it_is_removed(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        owner = await store.model_caches.owner()
        await store.model_caches.add(a_cache())
        await store.model_caches.add(a_cache("tertulia me 2", replaces=("tertulia me 1",)))
        await store.model_caches.add(a_cache("tertulia me 3", account="another"))
        await store.model_caches.set_name("tertulia me 2", "cachedContents/x")
        await store.model_caches.drop(["tertulia me 1"])
    async with Store.open(tmp_path / "s.db") as store:
        found = await store.model_caches.find(ACCOUNT)
        await store.model_caches.remove(["tertulia me 1", "tertulia me 2"])

        assert found == [
            a_cache(unwanted=True),
            a_cache("tertulia me 2", name="cachedContents/x", replaces=("tertulia me 1",)),
        ]
        assert await store.model_caches.find(ACCOUNT) == []
        assert await store.model_caches.owner() == owner
        assert await store.check() == []


async def test_a_copy_has_another_owner_and_none_of_the_caches(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await store.model_caches.add(a_cache())
        await store.backup(tmp_path / "copy.db")
        async with Store.open(tmp_path / "copy.db") as copy:
            assert await copy.model_caches.owner() != await store.model_caches.owner()
            assert await copy.model_caches.find(ACCOUNT) == []


async def test_no_cache_is_wanted_once_somebody_was_forgotten(store: Store) -> None:
    await store.inbox.receive(a_message("I live in Lviv", place=GROUP, author=ALICE), at=a_message().sent_at)  # type: ignore[arg-type]
    await store.model_caches.add(a_cache())

    await store.forget(platform=GROUP.platform, author_id=ALICE.id)

    assert await store.model_caches.find(ACCOUNT) == [replace(a_cache(), unwanted=True)]
