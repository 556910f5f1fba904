"""An index whose maker is killed at any moment and started again is the one that is made in peace."""

import asyncio
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from engine.memory.index_child import Life
from memory.searching import Letters, a_search, hear, talk
from people import BOB, DIRECT, GROUP, NOON, a_message
from sizes import EXAMPLES, size
from stored_rows import on_file, read
from tertulia.store import Store

COUNT = 3_000  # messages of the longest place
KILLS = size(2, full=max(6, EXAMPLES // 500))
LONGEST = 0.3  # seconds of a life that is killed at a random moment
WORDS = (
    "sea sun moon dog cat tree house river boat train garden tea coffee Lviv Kyiv piano book море сонце 北京".split()
)
TABLES = (
    "search_places",
    "search_terms",
    "search_messages",
    "search_stale",
    "search_vectors",
    "search_progress",
    "search_embedder",
)
WORDS_WRITTEN = (
    ("INSERT INTO search_messages", 300), ("INSERT INTO search_terms", 999), ("INSERT INTO search_places", 2),
)  # fmt: skip
VECTORS_WRITTEN = (
    ("INSERT INTO search_vectors", 50), ("INSERT INTO search_progress", 2), ("BEGIN", 3), ("COMMIT", 3),
    ("DELETE FROM search_vectors", 1), ("DELETE FROM search_progress", 1),
)  # fmt: skip
POINTS = {  # how a statement begins, and the how manieth it is within which a life ends
    "first": (("INSERT INTO search_embedder", 1), ("COMMIT", 1), ("BEGIN", 2), *WORDS_WRITTEN, *VECTORS_WRITTEN),
    "second": (("COMMIT", 1), *VECTORS_WRITTEN),
}
QUESTIONS = ("the sea and the moon", "did Bob see a dog in Lviv?", "море", "北京", "coffee yesterday")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which all was said, some of it changed, and nothing is indexed."""
    path = tmp_path_factory.mktemp("said") / "s.db"
    asyncio.run(_said(path))
    return path


async def _said(path: Path) -> None:
    chance = random.Random(1)  # noqa: S311

    def texts(count: int) -> list[str]:
        return [" ".join(chance.choices(WORDS, k=6)) for _ in range(count)]

    async with Store.open(path, durable=False) as store:
        await hear(store, *talk(*texts(COUNT)), *talk(*texts(300), place=DIRECT))
        for number in range(0, COUNT, 100):
            await store.inbox.edit(a_message("edited", id=str(number)), at=NOON)
            await store.inbox.delete(GROUP, str(number + 1), at=NOON)


class Station:
    """One process, from which those are forked that index."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def live(self, life: Life, *, seconds: float | None = None) -> int:
        """How a life ended, after so many seconds at most."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.encode(life) + b"\n")
        child = int(self._process.stdout.readline())
        if seconds is not None and not select.select([self._process.stdout], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)
        code = int(self._process.stdout.readline())
        self._process.stdin.write(b"\n")
        return code


@pytest.fixture(scope="module")
def station() -> Iterator[Station]:
    tests = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("index_child.py"))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    with process:
        yield Station(process)
        process.communicate()


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    return {table: on_file(path, read, table) for table in TABLES}


async def found(path: Path) -> list[object]:
    async with Store.open(path) as store:
        search = a_search(store, embedders=Letters)
        assert await store.check() == []
        return [await search.find(question, place=GROUP, author=BOB) for question in QUESTIONS]


@pytest.fixture(scope="module")
def peaceful(said: Path, station: Station) -> Path:
    """The same store, indexed by nobody who was killed: with one embedder, and then with another."""
    path = said.with_name("peaceful.db")
    shutil.copy(said, path)
    assert [station.live(Life(path=str(path), embedder=name)) for name in POINTS] == [0, 0]
    return path


async def test_an_indexer_killed_within_every_write_leaves_the_same_index(
    tmp_path: Path, said: Path, station: Station, peaceful: Path
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(said, path)
    for embedder, points in POINTS.items():
        for point, times in points:
            life = Life(path=str(path), embedder=embedder, kill_at=point, times=times)
            assert (point, station.live(life)) == (point, -signal.SIGKILL)
        assert station.live(Life(path=str(path), embedder=embedder)) == 0

    assert rows(path) == rows(peaceful)
    assert await found(path) == await found(peaceful)


@pytest.mark.torture
async def test_an_indexer_killed_at_random_moments_leaves_the_same_index(
    tmp_path: Path, said: Path, station: Station, peaceful: Path
) -> None:
    chance = random.Random(3)  # noqa: S311
    kills, expected = 0, (rows(peaceful), await found(peaceful))
    while kills < KILLS:
        path = tmp_path / f"{kills}.db"
        shutil.copy(said, path)
        for embedder in POINTS:
            life = Life(path=str(path), embedder=embedder)
            while station.live(life, seconds=chance.uniform(0, LONGEST)) == -signal.SIGKILL:
                kills += 1

        assert (rows(path), await found(path)) == expected
