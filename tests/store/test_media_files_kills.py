"""A process that is killed while it adds, sweeps or forgets files leaves no half file, and nothing of the forgotten."""

import errno
import os
import random
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from palaver.store import Store
from palaver.store.sqlite.connection import Database
from sizes import size
from store.builders import files_hold

HERE = Path(__file__).parent


def life(store: Path, name: str, step: int) -> list[str]:
    """What a process said before it died at that step."""
    command = [sys.executable, str(HERE / "media_child.py"), str(store), name, str(step)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == (-9 if step else 0), ran.stderr
    return ran.stdout.splitlines()


def media_rows(database: Database) -> tuple[set[str], set[str]]:
    """The hashes of files, and the ids of the people who are known."""
    files = {sha256 for (sha256,) in database.execute("SELECT sha256 FROM files")}
    return files, {author for (author,) in database.execute("SELECT author_id FROM authors")}


def files_in(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and file.name not in (".lock", ".store")]


async def verify(path: Path, said: list[str]) -> None:
    """Every row has a whole file, every file a row, and those who are forgotten are nowhere."""
    async with Store.open(path) as store:
        files, people = await store.reader.run(media_rows)
        there = files_in(Path(f"{path}-media"))
        assert {file.name for file in there} == files
        assert all(sha256(file.read_bytes()).hexdigest() == file.name for file in there)
        assert await store.check() == []
        forgotten = {line.split()[1] for line in said if line.startswith("forgotten")}
        assert not forgotten & people
        for author in {line.split()[1] for line in said if line.startswith("forg")} - people:
            assert not files_hold(path.parent, f"<{author}|"), author
    assert not re.search("forgetting", " ".join(os.listdir(path.parent)))


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
