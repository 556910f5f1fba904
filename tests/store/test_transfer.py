"""A store moves from a file to PostgreSQL and back, with every row."""

from pathlib import Path
from typing import Any

import pytest

import postgres
from people import DIRECT, GROUP, NOON, a_message
from store.builders import a_task
from stored_rows import add, change, on, read, remove
from tertulia.errors import InvalidValue, StoreBroken, StoreRefused
from tertulia.store import Store
from tertulia.store.sqlite.migrating import tables
from tertulia.store.transfer import move_store

MESSAGES = 1203  # more than two pages
SETTING = {"name": "a", "value": "1", "replaced": "2", "at": "now"}


async def fill(path: Path) -> None:
    async with Store.open(path) as store:
        for number in range(MESSAGES):
            place = DIRECT if number % 3 else GROUP
            await store.inbox.receive(a_message("ціна\\ '%s'", id=f"m{number}", place=place), at=NOON)
        await store.tasks.add([a_task()])
        await on(store, add, "owner_settings", **SETTING)
        await on(store, remove, "owner_settings")


async def rows(where: str | Path, **options: Any) -> list[dict[str, Any]]:
    async with Store.open(where, **options) as store:
        assert await store.check() == []
        return [row async for row in store.export() if row["table"] != "media_folder"]


async def test_a_store_moves_to_postgresql_and_back(url: str, tmp_path: Path) -> None:
    await fill(tmp_path / "a.db")
    seen: list[tuple[int, int]] = []

    moved = move_store(str(tmp_path / "a.db"), url, lambda done, total: seen.append((done, total)))
    assert move_store(url, str(tmp_path / "b.db")) == moved

    assert seen[-1] == (moved, moved)
    assert await rows(tmp_path / "b.db") == await rows(tmp_path / "a.db")
    assert await rows(url, media_folder=tmp_path / "media") == await rows(tmp_path / "a.db")
    async with Store.open(tmp_path / "b.db") as store:
        await on(store, add, "owner_settings", **SETTING)
        assert await on(store, read, "owner_settings", "id") == [(2,)]  # 1 is never used again


async def test_a_move_that_was_killed_goes_on(url: str, tmp_path: Path) -> None:
    await fill(tmp_path / "a.db")

    class KilledError(Exception):
        pass

    def kill(done: int, total: int) -> None:
        if done > MESSAGES // 2:
            raise KilledError

    with pytest.raises(KilledError):
        move_store(str(tmp_path / "a.db"), url, kill)
    with pytest.raises(StoreRefused, match="a move to it has not ended"):
        await Store.open(url, media_folder=tmp_path / "media")
    await fill(tmp_path / "other.db")
    with pytest.raises(StoreRefused, match="a move of another store to it has not ended"):
        move_store(str(tmp_path / "other.db"), url)

    done: list[int] = []
    move_store(str(tmp_path / "a.db"), url, lambda now, _: done.append(now))

    assert done[0] > MESSAGES // 2
    assert await rows(url, media_folder=tmp_path / "media") == await rows(tmp_path / "a.db")


async def test_a_source_that_was_used_before_its_move_went_on_is_noticed(url: str, tmp_path: Path) -> None:
    await fill(tmp_path / "a.db")

    def kill(_done: int, _total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        move_store(str(tmp_path / "a.db"), url, kill)
    async with Store.open(tmp_path / "a.db") as store:
        await on(store, change, "places", delimiter="another")

    again = "row 1 of places is not the same on both sides; if FROM was used meanwhile, empty TO and move again"
    with pytest.raises(StoreBroken, match=again):
        move_store(str(tmp_path / "a.db"), url)
    with pytest.raises(StoreRefused, match="a move to it has not ended"):
        await Store.open(url, media_folder=tmp_path / "media")


async def test_a_move_needs_an_empty_target_and_a_source_that_nobody_uses(url: str, tmp_path: Path) -> None:
    source = tmp_path / "a.db"
    await fill(source)
    move_store(str(source), url)

    with pytest.raises(StoreRefused, match="there is something in it"):
        move_store(str(source), url)
    with pytest.raises(InvalidValue, match="both the source and the target"):
        move_store(str(source), str(source))
    with pytest.raises(StoreRefused, match="it does not exist"):
        move_store(str(tmp_path / "nothing.db"), str(tmp_path / "b.db"))


async def test_a_backup_of_postgresql_is_a_file(url: str, tmp_path: Path) -> None:
    await fill(tmp_path / "a.db")
    move_store(str(tmp_path / "a.db"), url)

    async with Store.open(url, media_folder=tmp_path / "media"), Store.open(url, beside=True) as beside:
        await beside.backup(tmp_path / "copy.db")

    assert await rows(tmp_path / "copy.db") == await rows(tmp_path / "a.db")


@pytest.fixture
def url() -> str:
    return postgres.empty_database()


def test_every_table_has_a_key() -> None:
    assert [table.name for table in tables() if not table.key] == []
