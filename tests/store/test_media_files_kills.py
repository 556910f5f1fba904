"""A process that is killed while it adds, sweeps or forgets files leaves no half file, and nothing of the forgotten."""

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from people import BOB, NOON, a_message
from sizes import size
from store.builders import files_hold
from stored_rows import on, read
from tertulia.media.values import StoredFile
from tertulia.messages import Author
from tertulia.parts import Media
from tertulia.store import Store

HERE = Path(__file__).parent


def run(store: Path, name: str, step: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(HERE / "media_child.py"), str(store), name, str(step)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def life(store: Path, name: str, step: int) -> list[str]:
    """What a process said before it died at that step."""
    ran = run(store, name, step)
    assert ran.returncode == (-9 if step else 0), ran.stderr
    return ran.stdout.splitlines()


def files_in(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and file.name not in (".lock", ".store")]


async def verify(path: Path, said: list[str]) -> None:
    """Every row has a whole file, every file a row, and those who are forgotten are nowhere."""
    async with Store.open(path) as store:
        files = {sha256 for (sha256,) in await on(store, read, "files", "sha256")}
        people = {author for (author,) in await on(store, read, "authors", "author_id")}
        there = files_in(Path(f"{path}-media"))
        assert {file.name for file in there} == files
        assert all(sha256(file.read_bytes()).hexdigest() == file.name for file in there)
        assert await store.check() == []
        forgotten = {line.split()[1] for line in said if line.startswith("forgotten")}
        assert not forgotten & people
        for author in {line.split()[1] for line in said if line.startswith("forg")} - people:
            assert not files_hold(path.parent, f"<{author}|"), author


async def lives(folder: Path, seed: int, deaths: int) -> None:
    chance, said, path = random.Random(seed), list[str](), folder / f"{seed}.db"  # noqa: S311
    for number in range(deaths):
        said += life(path, f"{seed}x{number}", chance.randrange(1, 250))
        await verify(path, said)


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_kills_leave_whole_files_and_nothing_of_the_forgotten(tmp_path: Path) -> None:
    for seed in range(size(1, full=40)):
        await lives(tmp_path, seed, size(3, full=5))


async def test_a_full_disk_leaves_nothing_half_and_what_is_smaller_goes_on(tmp_path: Path) -> None:
    said = life(tmp_path / "s.db", "full", 0)

    full = f"there is no room left on the disk ({os.strerror(errno.EFBIG)})"
    assert said == [
        "open",
        f"full: the folder of media {tmp_path / 's.db-media'}: {full}",
        "left: [], {}",
        "then: b'x', []",
        "no room for a row",
        "read: b'x'",
        "left: True",
    ]
    await verify(tmp_path / "s.db", [])


HERS = Author(id="u1", name="Xanthippe")
FILES = {f"p{number}": f"<{'u1' if number < 3 else 'u2'}|{number}>".encode() * 50 for number in range(6)}


async def a_store(path: Path) -> None:
    """A store with the files of two people."""
    async with Store.open(path) as store:
        for number, (name, data) in enumerate(FILES.items()):
            picture = Media(media_kind="photo", unique_id=name, sha256=sha256(data).hexdigest())
            message = a_message("", id=name, author=HERS if number < 3 else BOB, parts=(picture,))
            await store.inbox.receive(message, at=NOON)
            await store.media.add(name, data, StoredFile(sha256="", size=0, mime="image/png"), at=NOON)


async def killed(folder: Path, name: str) -> AsyncIterator[tuple[int, Path]]:
    """The steps at which a process was killed, each with what it left of its store; at last it ended by itself."""
    await a_store(folder / "first" / "s.db")
    chance, step, is_killed = random.Random(name), 0, True  # noqa: S311
    while is_killed:
        step += chance.randint(1, size(32, full=1))
        copy = folder / str(step)
        shutil.copytree(folder / "first", copy)
        ran = run(copy / "s.db", name, step)
        is_killed = ran.returncode == -9
        assert is_killed or ran.returncode == 0, ran.stderr
        yield step, copy / "s.db"
    assert step > 9


@pytest.fixture
def first(tmp_path: Path) -> Path:
    (tmp_path / "first").mkdir()
    return tmp_path


@pytest.mark.timeout(3600)
async def test_a_kill_while_files_move_loses_none_and_leaves_none_behind(first: Path) -> None:
    async for step, path in killed(first, "move"):
        folders = {"old": Path(f"{path}-media"), "new": Path(f"{path}-moved")}
        named = [None, *folders.values()][step % 3]  # the config may name the old one again
        async with Store.open(path, media_folder=named) as store:
            assert await store.check() == []
            assert len(await store.media.find(list(FILES))) == len(FILES)
            used = store.media.folder.path
            assert used
        assert named in (None, used)
        left = {name: len(files_in(folder)) for name, folder in folders.items() if folder != used}
        assert left == dict.fromkeys(left, 0), step
        assert len(files_in(used)) == len(FILES), step


@pytest.mark.timeout(3600)
async def test_a_kill_while_a_store_is_copied_leaves_no_copy_or_a_whole_one(first: Path) -> None:
    copies = []
    async for _, path in killed(first, "backup"):
        found = [one for one in (path, Path(f"{path}-copy")) if one.name in os.listdir(path.parent)]
        copies.append(len(found))
        for one in found:
            async with Store.open(one) as store:
                assert await store.check() == []
                assert len(await store.media.find(list(FILES))) == len(FILES)
            assert len(files_in(Path(f"{one}-media"))) == len(FILES)
    assert (copies[0], copies[-1]) == (1, 2)


@pytest.mark.timeout(3600)
async def test_a_forget_that_was_killed_is_done_by_who_opens_the_store_next(first: Path) -> None:
    left = []
    async for step, path in killed(first, "forget"):
        async with Store.open(path) as store:
            left.append(len(await store.names_by_platform("u1")))
            assert await store.check() == []
        assert len(files_in(Path(f"{path}-media"))) == (len(FILES) if left[-1] else 3), step
        assert files_hold(path.parent, "<u1|") == bool(left[-1]), step
    assert left[-1] == 0
