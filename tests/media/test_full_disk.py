"""A disk that is really full: a small tmpfs, which only root can mount."""

import asyncio
import logging
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from media.fetchers import a_fetcher
from people import BOB, a_message
from tertulia.errors import StoreFull
from tertulia.media.fetcher import MediaFetcher
from tertulia.media.values import FileForm, StoredFile
from tertulia.parts import Media
from tertulia.store import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LARGE = 40_000  # bytes of a file
ROOM = "16m"  # of the disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk."""
    path = tmp_path / "disk"
    path.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=0700", "tmpfs", str(path)],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if mounted.returncode:
        pytest.skip("a disk can be mounted by root alone")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(disk: Path) -> Path:
    """Use up all room; return the file that has it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return filler


def a_document(number: int, size: int = LARGE) -> Media:
    data = f"{number:06}\0".encode() * (size // 7)
    return Media(media_kind="document", unique_id=sha256(data).hexdigest(), data=data)


def contents(folder: Path) -> set[str]:
    """All files of media, and temporary ones."""
    return {path.name for path in folder.rglob("*") if path.is_file() and path.name not in (".lock", ".store")}


def name_of(media: Media) -> str:
    return sha256(media.data or b"").hexdigest()


@asynccontextmanager
async def world(db: Path, folder: Path) -> AsyncIterator[tuple[Store, MediaFetcher]]:
    async with Store.open(db, media_folder=folder) as store:
        fetcher = a_fetcher(store)
        yield store, fetcher
        await fetcher.close()


async def fetched(fetcher: MediaFetcher, *media: Media) -> list[bool]:
    """Which of these became files."""
    return [await fetcher.fetch(one, "telegram") is not None for one in media]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_media_go_as_words_while_their_disk_is_full_and_as_files_when_there_is_room(
    tmp_path: Path, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = disk / "media"
    first, *others = [a_document(number) for number in range(5)]
    async with world(tmp_path / "bot.db", folder) as (store, fetcher):
        assert await fetched(fetcher, first) == [True]
        filler = fill(disk)

        assert await fetched(fetcher, *others, first) == [False] * 4 + [True]
        assert contents(folder) == {name_of(first)}
        assert len(errors(caplog)) == 1
        assert f"media go in words: the folder of media {folder}: there is no room left on the disk" in caplog.text
        assert await store.media.read(name_of(first), at=NOON + timedelta(days=9)) == first.data
        assert await store.check() == []

        filler.unlink()
        assert await fetched(fetcher, *others) == [True] * 4
        assert await store.check() == []
        assert contents(folder) == {name_of(one) for one in (first, *others)}
        fill(disk)
        assert await fetched(fetcher, a_document(9)) == [False]
        assert len(errors(caplog)) == 2  # it worked in between


async def test_a_folder_that_could_not_be_made_on_a_full_disk_is_made_when_there_is_room(
    tmp_path: Path, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = disk / "media"
    filler = fill(disk)
    async with world(tmp_path / "bot.db", folder) as (store, fetcher):
        assert await fetched(fetcher, a_document(1), a_document(2)) == [False, False]
        assert len(errors(caplog)) == 1
        assert contents(folder) == set()

        filler.unlink()
        assert await fetched(fetcher, a_document(1), a_document(2)) == [True, True]
        assert await store.check() == []


async def test_no_file_is_left_without_a_row_while_the_disk_of_the_rows_is_full(
    tmp_path: Path, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, db = tmp_path / "media", disk / "bot.db"
    first = a_document(0)
    async with world(db, folder) as (store, fetcher):
        assert await fetched(fetcher, first) == [True]
        filler = fill(disk)

        later = [a_document(number, 700) for number in range(1, 40)]
        results = await fetched(fetcher, *later)

        assert not results[-1]
        kept = {name_of(media) for media, is_there in zip(later, results, strict=True) if is_there}
        assert contents(folder) == {name_of(first), *kept}
        assert len(errors(caplog)) == 1
        assert await store.media.read(name_of(first), at=NOON + timedelta(days=9)) == first.data
        small = FileForm(file=StoredFile(sha256="", size=0, mime="image/png"))
        with pytest.raises(StoreFull):
            await store.media.add_form(name_of(first), "small", small, data=b"y" * LARGE, at=NOON)
        assert contents(folder) == {name_of(first), *kept}

        filler.unlink()
        assert await fetched(fetcher, *later) == [True] * len(later)
        assert await store.check() == []
    async with world(db, folder) as (store, fetcher):
        assert contents(folder) == {name_of(one) for one in (first, *later)}
        assert await store.check() == []


async def test_nobody_is_half_forgotten_on_a_full_disk(tmp_path: Path, disk: Path) -> None:
    folder, db = tmp_path / "media", disk / "bot.db"
    async with world(db, folder) as (store, fetcher):
        for number in range(30):
            media = a_document(number, 700)
            await store.inbox.receive(a_message("", id=f"m{number}", author=BOB, parts=(media,)), at=NOON)
            await fetcher.fetch(media, "telegram")
        filler = fill(disk)

        with pytest.raises(StoreFull):
            await store.forget(platform="telegram", author_id=BOB.id, at=NOON)

        assert await store.names_by_platform(BOB.id) == {"telegram": [BOB.name]}
        assert len(contents(folder)) == 30
        filler.unlink()
        await store.forget(platform="telegram", author_id=BOB.id, at=NOON)
    async with world(db, folder) as (store, _):
        assert contents(folder) == set()
        assert await store.names_by_platform(BOB.id) == {}


async def test_a_move_and_a_backup_to_a_full_disk_change_nothing(tmp_path: Path, disk: Path) -> None:
    documents = [a_document(number) for number in range(5)]
    async with world(tmp_path / "bot.db", tmp_path / "media") as (store, fetcher):
        await fetched(fetcher, *documents)
        filler = fill(disk)
        with pytest.raises(StoreFull):
            await store.backup(disk / "copy.db")
    assert os.listdir(disk) == ["filler"]

    for _ in range(2):
        with pytest.raises(StoreFull, match=r"disk/media: there is no room left on the disk"):
            await asyncio.to_thread(Store.open(tmp_path / "bot.db", media_folder=disk / "media").__enter__)
    assert contents(disk / "media") == set()
    async with Store.open(tmp_path / "bot.db") as store:
        assert store.media.folder.path == tmp_path / "media"
        assert await store.check() == []
    assert not (disk / "media").exists()

    filler.unlink()
    async with Store.open(tmp_path / "bot.db", media_folder=disk / "media") as store:
        await store.backup(disk / "copy.db")
        assert await store.check() == []
    async with Store.open(disk / "copy.db") as copy:
        assert contents(disk / "copy.db-media") == {name_of(one) for one in documents}
        assert await copy.check() == []
    assert not (tmp_path / "media").exists()
