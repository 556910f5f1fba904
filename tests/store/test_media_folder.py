"""A folder of files belongs to one store; it moves and is copied whole."""

import asyncio
import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from people import NOON
from stored_rows import change, on, on_file, read
from tertulia.errors import InvalidValue, StoreRefused
from tertulia.files import create_atomically
from tertulia.media.values import StoredFile
from tertulia.store import Store

CAT, DOG = b"\xff\xd8 a cat", b"\xff\xd8 a dog"
CAT_NAME, DOG_NAME = sha256(CAT).hexdigest(), sha256(DOG).hexdigest()
REFUSED = r"the folder of media .*: it belongs to the store .*/{}; name another folder with media\.folder, or remove"


async def add(store: Store, data: bytes = CAT) -> None:
    file = StoredFile(sha256="", size=0, mime="image/jpeg")
    await store.media.add(data.decode("latin-1"), data, file, at=NOON)


async def made(path: Path, data: bytes = CAT, **options: Any) -> None:
    """A store with one file."""
    async with Store.open(path, **options) as store:
        await add(store, data)


async def contents(path: Path, **options: Any) -> set[bytes | None]:
    """All files of a store that its rows name."""
    async with Store.open(path, **options) as store:
        names = {name for (name,) in await on(store, read, "files", "sha256")}
        assert store.media.folder.names() <= names
        return {await store.media.read(name, at=NOON) for name in names}


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and path.name not in (".lock", ".store")}


async def test_two_stores_that_name_one_folder_do_not_remove_each_others_files(tmp_path: Path) -> None:
    await made(tmp_path / "a.db", media_folder=tmp_path / "media")
    async with Store.open(tmp_path / "b.db") as store:
        await add(store, DOG)

    for _ in range(2):
        with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
            Store.open(tmp_path / "b.db", media_folder=tmp_path / "media").__enter__()

    assert await contents(tmp_path / "a.db") == {CAT}
    assert await contents(tmp_path / "b.db") == {DOG}


async def test_a_folder_that_another_store_made_meanwhile_is_not_written(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "b.db", media_folder=tmp_path / "media") as store:
        await made(tmp_path / "a.db", media_folder=tmp_path / "media")
        with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
            await add(store, DOG)

    assert files_in(tmp_path / "media") == {CAT_NAME}


async def test_a_folder_that_was_removed_and_made_by_another_store_is_not_written(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "b.db", media_folder=tmp_path / "media") as store:
        await add(store, DOG)
        shutil.rmtree(tmp_path / "media")
        await made(tmp_path / "a.db", media_folder=tmp_path / "media")
        with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
            await add(store, DOG)
        with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
            await store.media.remove_strays()

    assert files_in(tmp_path / "media") == {CAT_NAME}


async def test_a_new_store_does_not_remove_the_files_of_one_that_is_gone(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    (tmp_path / "a.db").unlink()

    with pytest.raises(StoreRefused, match=r"it has files of an earlier .*/a\.db; to begin anew remove the folder too"):
        Store.open(tmp_path / "a.db").__enter__()

    assert files_in(tmp_path / "a.db-media") == {CAT_NAME}


async def test_a_folder_that_names_no_store_is_taken_unless_it_has_unknown_files(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    await made(tmp_path / "b.db", DOG)
    for name in "ab":
        (tmp_path / f"{name}.db-media" / ".store").unlink()

    with pytest.raises(StoreRefused, match="it has files of another store; name another folder"):
        Store.open(tmp_path / "b.db", media_folder=tmp_path / "a.db-media").__enter__()

    assert await contents(tmp_path / "a.db") == {CAT}
    assert await contents(tmp_path / "b.db") == {DOG}
    assert (tmp_path / "a.db-media" / ".store").exists()


async def test_a_store_that_was_moved_with_its_folder_or_without_has_its_files(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    (tmp_path / "there").mkdir()
    for name in ("a.db", "a.db-media"):
        (tmp_path / name).rename(tmp_path / "there" / name)
    assert await contents(tmp_path / "there" / "a.db") == {CAT}

    await made(tmp_path / "b.db", DOG, media_folder=tmp_path / "named")
    (tmp_path / "b.db").rename(tmp_path / "there" / "b.db")
    assert await contents(tmp_path / "there" / "b.db") == {DOG}


async def test_a_copy_by_hand_has_a_folder_of_its_own(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    assert await contents(tmp_path / "b.db") == {None}  # without its folder
    await made(tmp_path / "b.db", DOG)

    shutil.copy(tmp_path / "a.db", tmp_path / "c.db")
    shutil.copytree(tmp_path / "a.db-media", tmp_path / "c.db-media")
    assert await contents(tmp_path / "c.db") == {CAT}

    assert await contents(tmp_path / "a.db") == {CAT}
    assert await contents(tmp_path / "b.db") == {DOG}


async def test_a_copy_by_hand_does_not_use_the_named_folder_of_the_original(tmp_path: Path) -> None:
    await made(tmp_path / "a.db", media_folder=tmp_path / "media")
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")

    with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
        Store.open(tmp_path / "b.db").__enter__()
    assert await contents(tmp_path / "b.db", media_folder=tmp_path / "other") == {CAT}  # copied

    assert await contents(tmp_path / "a.db") == {CAT}
    assert files_in(tmp_path / "media") == {CAT_NAME}


async def test_a_backup_has_an_id_and_a_folder_of_its_own(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "a.db", media_folder=tmp_path / "media") as store:
        await add(store)
        await store.backup(tmp_path / "b.db")
    (tmp_path / "a.db").unlink()

    with pytest.raises(StoreRefused, match=REFUSED.format(r"a\.db")):
        Store.open(tmp_path / "b.db", media_folder=tmp_path / "media").__enter__()

    assert await contents(tmp_path / "b.db") == {CAT}
    for name in ("b.db", "b.db-media"):
        (tmp_path / name).rename(tmp_path / name.replace("b", "c", 1))
    assert await contents(tmp_path / "c.db") == {CAT}


async def test_a_folder_that_is_a_link_to_another_disk_is_the_folder(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "a.db-media").symlink_to(tmp_path / "disk")

    await made(tmp_path / "a.db", media_folder=tmp_path / "a.db-media")

    assert await contents(tmp_path / "a.db") == {CAT}
    assert await contents(tmp_path / "a.db", media_folder=tmp_path / "disk") == {CAT}
    assert files_in(tmp_path / "disk") == {CAT_NAME}


async def test_what_a_move_left_in_a_folder_that_is_not_used_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "a.db-media", tmp_path / "new"
    await made(tmp_path / "a.db")
    shutil.copytree(old, new)
    on_file(tmp_path / "a.db", change, "media_folder", other=str(new))  # killed while it copied

    assert await contents(tmp_path / "a.db") == {CAT}  # the config names the old folder again

    assert not new.exists()
    assert files_in(old) == {CAT_NAME}


async def test_a_move_is_one_line_of_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tertulia.store.media_folder")
    await made(tmp_path / "a.db", media_folder=tmp_path / "old")
    assert caplog.messages == []  # nothing was there to move

    await contents(tmp_path / "a.db", media_folder=tmp_path / "new")
    await contents(tmp_path / "a.db", media_folder=tmp_path / "new")

    assert caplog.messages == [f"files of media: 1 moved from {tmp_path / 'old'} to {tmp_path / 'new'}"]


KILLED = """
import asyncio, os, signal, sys
from tertulia.store import Store, store

def die(database, path, source):
    copy_folder(database, path, source)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with Store.open(sys.argv[1], beside=True) as opened:
        await opened.backup(sys.argv[2])

copy_folder, store.copy_folder = store.copy_folder, die
asyncio.run(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="files are not locked while they are written")
async def test_what_a_killed_backup_left_is_removed_by_the_next(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    (tmp_path / "backups").mkdir()
    copy = tmp_path / "backups" / "b.db"
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(tmp_path / "a.db"), str(copy))
    await killed.wait()
    assert len(os.listdir(copy.parent)) >= 2

    async with Store.open(tmp_path / "a.db") as store:
        await store.backup(copy)

    assert sorted(os.listdir(copy.parent)) == ["b.db", "b.db-media"]
    assert await contents(copy) == {CAT}


async def test_a_backup_that_is_under_way_is_left_alone_by_another(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    copy = tmp_path / "b.db"
    async with Store.open(tmp_path / "a.db") as store:
        with create_atomically(copy) as unfinished:
            await made(copy)  # as its folder
            copy.unlink()
            with pytest.raises(InvalidValue, match=r"b\.db-media is there already"):
                await store.backup(copy)
            assert unfinished.exists()

    assert files_in(tmp_path / "b.db-media") == {CAT_NAME}


async def test_what_else_is_in_a_folder_stays_there_when_it_moves(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    (tmp_path / "a.db-media" / "notes.txt").write_text("mine")

    assert await contents(tmp_path / "a.db", media_folder=tmp_path / "new") == {CAT}

    assert os.listdir(tmp_path / "a.db-media") == ["notes.txt"]


async def test_a_move_replaces_what_is_damaged_where_it_goes(tmp_path: Path) -> None:
    await made(tmp_path / "a.db")
    shutil.copytree(tmp_path / "a.db-media", tmp_path / "new")
    (tmp_path / "new" / ".store").unlink()
    (tmp_path / "new" / CAT_NAME[:2] / CAT_NAME).write_bytes(CAT[:3])

    assert await contents(tmp_path / "a.db", media_folder=tmp_path / "new") == {CAT}
